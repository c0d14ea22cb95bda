"""Tariff: price of a resource at a site, or of data between two sites, by the amount used in a slot."""

from __future__ import annotations

import math
from bisect import bisect_right
from dataclasses import dataclass, field, replace
from typing import Literal

from tradewind.model.errors import ScenarioError

TariffRule = Literal["graduated", "retroactive"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tariff:
    """Price by volume, with any number of tiers.

    graduated    each unit at its own tier's price: F(h) = sum of overlap(tier, h) * price. Continuous, monotone,
                 and concave because a later tier never costs more.
    retroactive  all units at the reached tier's price: F(h) = h * price(tier of h). It drops at the
                 start of a tier, so it is neither continuous nor concave nor monotone; policies that need a
                 concave tariff reject it (`is_concave`).

    starts  units (or GB) at which a tier begins; the first is 0
    usd     USD per unit-hour (or per GB) within the tier
    """

    starts: tuple[float, ...] = (0.0,)
    usd: tuple[float, ...]
    rule: TariffRule = "graduated"
    _base: tuple[float, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        starts, usd = self.starts, self.usd
        if len(starts) != len(usd) or not usd:
            raise ScenarioError(
                f"{len(starts)} tier starts and {len(usd)} prices; each tier needs both. Add the missing ones."
            )
        if starts[0] != 0:
            raise ScenarioError(f"the first tier starts at {starts[0]}; it must start at 0")
        for number, (start, price) in enumerate(zip(starts, usd, strict=True), 1):
            if not (math.isfinite(start) and math.isfinite(price)) or price < 0:
                raise ScenarioError(
                    f"tier {number} starts at {start} and costs {price} USD; both must be finite, the price not negative"
                )
            if number > 1 and start <= starts[number - 2]:
                raise ScenarioError(
                    f"tier {number} starts at {start}; it must start after tier {number - 1}'s {starts[number - 2]}"
                )
            if number > 1 and price > usd[number - 2]:
                raise ScenarioError(
                    f"tier {number} costs {price} USD; it must be at most tier {number - 1}'s {usd[number - 2]} "
                    "(a discount never raises the price). Swap the tiers or remove one."
                )
        if self.rule not in ("graduated", "retroactive"):
            raise ScenarioError(f"rule is {self.rule!r}; allowed are 'graduated' and 'retroactive'")
        base = [0.0]
        for i in range(1, len(starts)):
            base.append(base[-1] + usd[i - 1] * (starts[i] - starts[i - 1]))
        object.__setattr__(self, "_base", tuple(base))

    @property
    def is_concave(self) -> bool:
        """Whether F is concave: always for graduated tariffs, for retroactive ones with a single tier only."""
        return self.rule == "graduated" or len(self.usd) == 1

    def tier(self, amount: float) -> int:
        """Index of the tier that `amount` reaches (an amount on a start reaches that tier)."""
        return bisect_right(self.starts, amount) - 1 if amount > 0 else 0

    def times(self, factor: float) -> Tariff:
        """The tariff with every price times a factor, to a billionth of a dollar."""
        return replace(self, usd=tuple(round(usd * factor, 9) for usd in self.usd))

    def cost(self, amount: float) -> float:
        """USD per hour (or USD) for `amount` units (or GB)."""
        if len(self.usd) == 1:
            return amount * self.usd[0]
        i = self.tier(amount)
        if self.rule == "retroactive":
            return amount * self.usd[i]
        return self._base[i] + self.usd[i] * (amount - self.starts[i])
