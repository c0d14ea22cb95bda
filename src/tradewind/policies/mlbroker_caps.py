"""Caps on what a tenant may spend, per slot and in all: whoever would exceed one loses its newest job.

Data of a slot must be processed in the slot, so a job cannot be postponed: it is refused for good, the reason names
the tenant, the bill and the cap. What counts is the tenant's share of the pooled bill (rule *proportional*).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tradewind.maths.broker_bills import group_shares
from tradewind.maths.broker_slot import Ints, Slot
from tradewind.model.errors import InputError
from tradewind.model.job import Job
from tradewind.model.spec import Param

CAPS = {
    "cap_slot_usd": Param(
        default="", doc="most a tenant may pay per slot: 120, or a=120,b=80; empty: no cap"
    ),
    "cap_total_usd": Param(
        default="", doc="most a tenant may pay in all slots together; written the same way"
    ),
    "margin": Param(default=0.0, doc="the broker's part of the saving, 0 to 1, that tenants are charged"),
}


def read_caps(where: str, text: str) -> dict[str, float]:
    """`"120"` -> {"*": 120.0}; `"a=120,b=80"` -> {"a": 120.0, "b": 80.0}; empty -> {}."""
    caps: dict[str, float] = {}
    for item in filter(None, (part.strip() for part in text.split(","))):
        name, sign, amount = item.rpartition("=")
        try:
            caps[name if sign else "*"] = float(amount)
        except ValueError:
            raise InputError(f"found {item!r}; write an amount, or TENANT=AMOUNT", where=where) from None
        if not caps[name if sign else "*"] >= 0:
            raise InputError(f"found {item!r}; a cap is 0 or more", where=where)
    return caps


@dataclass(slots=True)
class Caps:
    """Caps by tenant ("*": all others) and what each tenant has been charged so far."""

    per_slot: Mapping[str, float] = field(default_factory=dict)
    in_all: Mapping[str, float] = field(default_factory=dict)
    margin: float = 0.0
    spent: dict[str, float] = field(default_factory=dict)

    @classmethod
    def read(cls, params: Mapping[str, Any]) -> Caps:
        """From a policy's parameters."""
        margin = float(params["margin"])
        if not 0.0 <= margin <= 1.0:
            raise InputError(f"found {margin}; allowed is 0 to 1", where="mlbroker.margin")
        slot = read_caps("mlbroker.cap_slot_usd", str(params["cap_slot_usd"]))
        total = read_caps("mlbroker.cap_total_usd", str(params["cap_total_usd"]))
        return cls(per_slot=slot, in_all=total, margin=margin)

    def exceeded(
        self, slot: Slot, jobs: Sequence[Job], workers: Ints, server: Ints
    ) -> tuple[int, str] | None:
        """The newest placed job of a tenant over its cap, and why; None, after booking the bills, if nobody is."""
        if not self.per_slot and not self.in_all:
            return None
        tenants = [job.tenant for job in jobs]
        names, _, shares = group_shares(slot, workers, server, tenants, margin=self.margin)
        for name, share in zip(names, shares.tolist(), strict=True):
            reason = self._reason(name, share)
            if reason:
                newest = max(i for i in range(len(jobs)) if tenants[i] == name and server[i] >= 0)
                return newest, reason
        for name, share in zip(names, shares.tolist(), strict=True):
            self.spent[name] = self.spent.get(name, 0.0) + share
        return None

    def _reason(self, tenant: str, share: float) -> str:
        cap = self.per_slot.get(tenant, self.per_slot.get("*", float("inf")))
        if share > cap:
            return f"{tenant or 'its tenant'} would pay {share:.2f} USD in this slot, its cap is {cap:g}"
        cap = self.in_all.get(tenant, self.in_all.get("*", float("inf")))
        total = self.spent.get(tenant, 0.0) + share
        if total > cap:
            return f"{tenant or 'its tenant'} would have paid {total:.2f} USD in all, its cap is {cap:g}"
        return ""
