"""Caps on what a tenant may spend, per slot and in all, kept by every brokerage policy.

What counts is the tenant's spend at list price (docs/decisions/005): it adds up job by job and does not depend on the
others. Data of a slot must be processed in the slot, so a job cannot be postponed: a tenant whose jobs do not fit its
cap even at their cheapest loses its newest one for good; one whose jobs fit at their cheapest gets just that.
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
from tradewind.systems.mlbroker.kernels.limits import usage_of
from tradewind.systems.mlbroker.kernels.rivals import selfish
from tradewind.systems.mlbroker.kernels.slot import Slot


@dataclass(frozen=True, slots=True, kw_only=True)
class CheapestPlans:
    """Every job's cheapest plan at list price: workers (I, R), server (I,) or -1, USD (I,)."""

    workers: Ints
    server: Ints
    usd: Floats

    def only(self, keep: Ints) -> CheapestPlans:
        """The same for these jobs alone."""
        return CheapestPlans(workers=self.workers[keep], server=self.server[keep], usd=self.usd[keep])


def cheapest_plans(slot: Slot) -> CheapestPlans:
    """For a slot at true prices (weights of 1)."""
    workers, server = selfish(slot)
    return CheapestPlans(workers=workers, server=server, usd=list_cost(slot, workers, server))


def pinned_slot(slot: Slot, pinned: Bools, plans: CheapestPlans) -> Slot:
    """The slot with the pinned jobs (I,) confined to the sites of their cheapest plans, so that others can join them."""
    if not pinned.any() or np.isfinite(slot.capacity).any():  # a confined job might find its sites full
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
    """A decision in which the pinned jobs have their cheapest plans, where the capacity allows it."""
    swap = pinned & (plans.server >= 0)
    if not swap.any():
        return chosen
    workers = np.where(swap[:, None], plans.workers, chosen[0])
    server = np.where(swap, plans.server, chosen[1])
    fits = (usage_of(slot, workers, server) <= slot.capacity + 1e-9).all()
    return (workers, server) if fits else chosen


class Caps:
    """What each capped tenant has committed to so far, in USD at list price."""

    def __init__(self, setup: Setup) -> None:
        self._setup = setup
        self.spent: dict[str, float] = {}

    @property
    def any(self) -> bool:
        """Whether some tenant has a cap."""
        return bool(self._setup.spend_caps)

    def excess_reason(self, tenant: str, usd: float, jobs: int) -> str:
        """Why a tenant may not spend this much for its jobs in the slot at hand; empty where it may."""
        cap = self._setup.cap_of(tenant)
        if cap is None:
            return ""
        who = f"its tenant {tenant!r}" if tenant else "whoever has no tenant"
        cost = f"{jobs} job{'s' if jobs > 1 else ''} of this slot cost{'' if jobs > 1 else 's'} {usd:.2f} USD at list price"
        if cap.slot_usd is not None and usd > cap.slot_usd:
            return f"{who} may spend {cap.slot_usd:g} USD in a slot; {cost}"
        before = self.spent.get(tenant, 0.0)
        if cap.total_usd is not None and before + usd > cap.total_usd:
            return f"{who} may spend {cap.total_usd:g} USD in all and has spent {before:.2f}; {cost}"
        return ""

    def dropped(self, jobs: Sequence[Job], usd: Floats) -> list[Verdict]:
        """The newest jobs of tenants that cannot afford all of theirs even at the cheapest (I,), and why."""
        verdicts = []
        for tenant, mine in members(jobs).items():
            kept = list(mine)
            while kept and (reason := self.excess_reason(tenant, float(usd[kept].sum()), len(kept))):
                verdicts.append(Verdict(jobs[kept.pop()].index, reason))
        return verdicts

    def over(self, jobs: Sequence[Job], usd: Floats) -> dict[str, str]:
        """Tenants that spend too much with these plans (I,), and why."""
        found = {}
        for tenant, mine in members(jobs).items():
            if reason := self.excess_reason(tenant, float(usd[mine].sum()), len(mine)):
                found[tenant] = reason
        return found

    def book(self, jobs: Sequence[Job], usd: Floats) -> None:
        """The plans of this slot are decided."""
        for tenant, mine in members(jobs).items():
            if self._setup.cap_of(tenant) is not None:
                self.spent[tenant] = self.spent.get(tenant, 0.0) + float(usd[mine].sum())


def members(jobs: Sequence[Job]) -> dict[str, list[int]]:
    """Tenant -> places of its jobs, oldest first."""
    found: dict[str, list[int]] = {}
    for i, job in enumerate(jobs):
        found.setdefault(job.tenant, []).append(i)
    return found
