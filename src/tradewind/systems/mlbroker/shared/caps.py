"""Caps on a tenant's spend, per slot and in total, enforced by every mlBroker policy.

A cap counts the tenant's spend at list price (docs/decisions/005), which is a sum over its jobs and independent of
other tenants. Data must be processed in its slot, so no job can be postponed. A tenant that exceeds its cap with the
pooled plans gets its jobs' cheapest plans at list price; if these exceed it too, its newest job is refused for good.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from tradewind.model.arrays import Bools, Floats, Ints
from tradewind.model.decision import Verdict
from tradewind.model.job import Job
from tradewind.model.setup import Setup
from tradewind.systems.mlbroker.kernels.bills import list_cost
from tradewind.systems.mlbroker.kernels.limits import fits
from tradewind.systems.mlbroker.kernels.rivals import selfish
from tradewind.systems.mlbroker.kernels.slot import Slot


@dataclass(frozen=True, slots=True, kw_only=True)
class CheapestPlans:
    """Every job's cheapest plan at list price: workers (I, R), server (I,) or NO_SITE, USD (I,)."""

    workers: Ints
    server: Ints
    usd: Floats

    def only(self, keep: Ints) -> CheapestPlans:
        """The plans of these jobs alone."""
        return CheapestPlans(workers=self.workers[keep], server=self.server[keep], usd=self.usd[keep])


def cheapest_plans(slot: Slot) -> CheapestPlans:
    """Cheapest plans in a slot with unweighted prices."""
    workers, server = selfish(slot)
    return CheapestPlans(workers=workers, server=server, usd=list_cost(slot, workers, server))


def pinned_slot(slot: Slot, pinned: Bools, plans: CheapestPlans) -> Slot:
    """The slot with pinned jobs (I,) confined to the sites of their cheapest plans, so that others can pool with them.

    Unchanged where capacity is limited: a confined job might not fit.
    """
    if not pinned.any() or np.isfinite(slot.capacity).any():
        return slot
    pin = (pinned & (plans.server >= 0))[:, None]
    at = np.arange(slot.shape[1])[None, :] == plans.server[:, None]
    return replace(
        slot,
        worker_ok=np.where(pin, plans.workers > 0, slot.worker_ok),
        server_ok=np.where(pin, at, slot.server_ok),
    )


def with_cheapest(
    slot: Slot, pinned: Bools, plans: CheapestPlans, chosen: tuple[Ints, Ints]
) -> tuple[Ints, Ints]:
    """The decision with the cheapest plans of pinned jobs, where the capacity allows it."""
    swap = pinned & (plans.server >= 0)
    if not swap.any():
        return chosen
    workers = np.where(swap[:, None], plans.workers, chosen[0])
    server = np.where(swap, plans.server, chosen[1])
    return (workers, server) if fits(slot, workers, server) else chosen


class Caps:
    """Caps of a setup, and what each capped tenant has committed to so far in USD at list price."""

    def __init__(self, setup: Setup) -> None:
        self._setup = setup
        self.spent: dict[str, float] = {}

    @property
    def any(self) -> bool:
        """Whether any tenant has a cap."""
        return bool(self._setup.spend_caps)

    def excess_reason(self, tenant: str, usd: float, jobs: int) -> str:
        """Reason why a tenant may not spend this much on its jobs in the current slot, or ""."""
        cap = self._setup.cap_of(tenant)
        if cap is None:
            return ""
        who = f"tenant {tenant!r}" if tenant else "jobs without a tenant"
        count = "1 job costs" if jobs == 1 else f"{jobs} jobs cost"
        cost = f"{count} {usd:.2f} USD in this slot at list price"
        if cap.slot_usd is not None and usd > cap.slot_usd:
            return f"{who} may spend {cap.slot_usd:g} USD per slot; {cost}"
        before = self.spent.get(tenant, 0.0)
        if cap.total_usd is not None and before + usd > cap.total_usd:
            return f"{who} may spend {cap.total_usd:g} USD in total and has spent {before:.2f} USD; {cost}"
        return ""

    def unaffordable(self, jobs: Sequence[Job], usd: Floats) -> list[Verdict]:
        """Verdicts on the newest jobs of tenants over their caps even with their cheapest plans, USD (I,)."""
        verdicts = []
        for tenant, mine in members(jobs).items():
            kept = list(mine)
            while kept and (reason := self.excess_reason(tenant, float(usd[kept].sum()), len(kept))):
                verdicts.append(Verdict(jobs[kept.pop()].index, reason))
        return verdicts

    def over(self, jobs: Sequence[Job], usd: Floats) -> dict[str, str]:
        """Tenants over their caps with plans of these USD (I,), with the reason."""
        found = {}
        for tenant, mine in members(jobs).items():
            if reason := self.excess_reason(tenant, float(usd[mine].sum()), len(mine)):
                found[tenant] = reason
        return found

    def commit(self, jobs: Sequence[Job], usd: Floats) -> None:
        """Count the plans decided in this slot, USD (I,)."""
        for tenant, mine in members(jobs).items():
            if self._setup.cap_of(tenant) is not None:
                self.spent[tenant] = self.spent.get(tenant, 0.0) + float(usd[mine].sum())


def members(jobs: Sequence[Job]) -> dict[str, list[int]]:
    """Tenant -> indices of its jobs, oldest first."""
    found: dict[str, list[int]] = {}
    for i, job in enumerate(jobs):
        found.setdefault(job.tenant, []).append(i)
    return found
