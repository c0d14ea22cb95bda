"""Pool: a discount on what several offers cost together in a slot or a billing month."""

from __future__ import annotations

from dataclasses import dataclass

from tradewind.model.errors import ScenarioError
from tradewind.model.tariff import Tariff


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """A price by volume on spend: the rent and egress of its members in a period, added up, cost F(spend).

    rent         (node, resource) pairs whose rent counts
    egress       (source site, destination site) pairs whose transfers and traffic count
    period_us    billing period, a multiple of the slot: a slot or a month, from the start of the run on
    tariff       F: starts in USD of spend, usd what a USD of spend costs within the tier (1, 0.85, …)
    free_usd     spend of each period that costs nothing, before the tariff (a free tier)
    carried_usd  spend of the first period before the run began
    """

    name: str
    rent: tuple[tuple[int, int], ...] = ()
    egress: tuple[tuple[int, int], ...] = ()
    period_us: int
    tariff: Tariff
    free_usd: float = 0.0
    carried_usd: float = 0.0

    def __post_init__(self) -> None:
        where = f"pools[{self.name}]"
        if not self.name:
            raise ScenarioError("a pool has an empty name; give every pool a name")
        if not self.rent and not self.egress:
            raise ScenarioError(f"{where} has no members; name nodes or pairs of sites, or remove it")
        for name in ("free_usd", "carried_usd"):
            if not 0 <= getattr(self, name) < float("inf"):
                raise ScenarioError(
                    f"{where}.{name} is {getattr(self, name)}; it must be finite and 0 or more"
                )

    @property
    def least_rate(self) -> float | None:
        """What a USD of spend costs at least, whatever else is spent; None where more spend may lower a bill below that."""
        if self.tariff.rule == "retroactive" and self.carried_usd:
            return None
        return 0.0 if self.free_usd else min(self.tariff.usd)

    @property
    def is_concave(self) -> bool:
        """Whether F is concave: graduated without a free tier."""
        return self.tariff.is_concave and not self.free_usd

    def cost(self, spend_usd: float) -> float:
        """What a spend costs in a period."""
        return self.tariff.cost(max(0.0, spend_usd - self.free_usd))

    def bill(self, spend_usd: float, period: int) -> float:
        """What the spend of a period costs, after what was spent in it before the run."""
        carried = self.carried_usd if period == 0 else 0.0
        return self.cost(carried + spend_usd) - self.cost(carried)
