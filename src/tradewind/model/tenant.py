"""Tenants: what each may spend at most."""

from __future__ import annotations

from dataclasses import dataclass

from tradewind.model.errors import ScenarioError

EVERY_TENANT = "*"
"""Stands for every tenant that has no line of its own; each has the cap by itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SpendCap:
    """Limits on a tenant's spend at list price, in USD: in any one slot, and in all slots together (None: no limit)."""

    slot_usd: float | None = None
    total_usd: float | None = None

    def check(self, where: str) -> None:
        """Raises where a limit is no amount of money, or where nothing is limited."""
        for name, usd in (("slot_usd", self.slot_usd), ("total_usd", self.total_usd)):
            if usd is not None and not 0.0 <= usd < float("inf"):
                raise ScenarioError(f"{where}.{name} is {usd}; it must be finite and 0 or more")
        if self.slot_usd is None and self.total_usd is None:
            raise ScenarioError(f"{where} limits nothing; give slot_usd, total_usd or both, or drop the line")
