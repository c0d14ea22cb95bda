"""Spend caps of tenants."""

from __future__ import annotations

from dataclasses import dataclass

from tradewind.model.errors import ScenarioError

EVERY_TENANT = "*"
"""Stands for every tenant without a cap of its own; the cap applies to each of them separately."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SpendCap:
    """Limits on a tenant's spend at list price, in USD: per slot, and over all slots (None: no limit)."""

    slot_usd: float | None = None
    total_usd: float | None = None

    def check(self, where: str) -> None:
        """Raise ScenarioError if a limit is not a valid amount or no limit is given."""
        for name, usd in (("slot_usd", self.slot_usd), ("total_usd", self.total_usd)):
            if usd is not None and not 0.0 <= usd < float("inf"):
                raise ScenarioError(f"{where}.{name} is {usd}; it must be finite and 0 or more")
        if self.slot_usd is None and self.total_usd is None:
            raise ScenarioError(
                f"{where} limits nothing; give slot_usd, total_usd or both, or remove the cap"
            )
