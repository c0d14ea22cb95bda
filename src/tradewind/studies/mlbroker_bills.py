"""What each tenant pays: alone at list price, and its share of the pooled bill."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tradewind.maths.broker_books import job_parts
from tradewind.maths.broker_prices import bill
from tradewind.maths.broker_rivals import selfish
from tradewind.maths.broker_share import proportional, shapley
from tradewind.maths.broker_slot import Floats, Slot
from tradewind.model.errors import InputError
from tradewind.model.result import Run, Table
from tradewind.model.scenario import Scenario
from tradewind.studies.mlbroker_run import Decided, decided_slots

RULES = ("proportional", "shapley")


@dataclass(frozen=True, slots=True, kw_only=True)
class TenantBill:
    """USD over the whole run: alone at list price, its share of the pooled bill, what it used of the saving."""

    tenant: str
    alone_usd: float
    pooled_usd: float


def alone_cost(slot: Slot) -> Floats:
    """What each job would pay by itself (I,), from the same state: its cheapest plan at list price."""
    workers, server = selfish(slot)
    parts, _ = job_parts(slot, workers, server)
    rent = np.zeros(len(server))
    for i in np.flatnonzero(server >= 0).tolist():
        usage = workers[i][:, None] * slot.worker[i][None, :]
        usage[server[i]] += slot.server[i]
        rent[i] = float((usage * slot.tiers.usd[:, :, 0]).sum())
    total: Floats = parts.sum(axis=1) + rent
    return total


def shares(
    decided: Decided, rule: str = "proportional", margin: float = 0.0
) -> tuple[list[str], Floats, Floats]:
    """(tenants, alone (G,), pooled (G,)) of one slot in USD; jobs that were not placed pay nothing."""
    if rule not in RULES:
        raise InputError(f"found {rule!r}; allowed are {', '.join(RULES)}", where="bills.rule")
    placed = np.flatnonzero(decided.server >= 0)
    slot = decided.slot.only(placed)
    workers, server = decided.workers[placed], decided.server[placed]
    names = [decided.jobs[int(i)].tenant for i in placed]
    tenants = sorted(set(names))
    member = np.array([[name == tenant for name in names] for tenant in tenants], dtype=np.float64)
    parts, usage = job_parts(slot, workers, server)
    alone: Floats = member @ alone_cost(slot)
    cost = float(parts.sum()) + float(bill(usage, slot.tiers.usd, slot.tiers.intercept))
    if rule == "proportional":
        return tenants, alone, proportional(alone, cost, margin)
    each = workers[:, :, None] * slot.worker[:, None, :]
    each[np.arange(len(server)), server] += slot.server
    pooled = np.tensordot(member, each, axes=1)
    return tenants, alone, shapley(member @ parts.sum(axis=1), pooled, slot.tiers, alone, margin)


def tenant_bills(
    scenario: Scenario, run: Run, rule: str = "proportional", margin: float = 0.0
) -> list[TenantBill]:
    """Each tenant's bill alone and pooled, added up over the slots, tenants in alphabetical order."""
    alone: dict[str, float] = {}
    pooled: dict[str, float] = {}
    for decided in decided_slots(scenario, run):
        if not (decided.server >= 0).any():
            continue
        for tenant, one, share in zip(*shares(decided, rule, margin), strict=True):
            alone[tenant] = alone.get(tenant, 0.0) + float(one)
            pooled[tenant] = pooled.get(tenant, 0.0) + float(share)
    return [TenantBill(tenant=t, alone_usd=alone[t], pooled_usd=pooled[t]) for t in sorted(alone)]


def bills_table(found: list[TenantBill]) -> Table:
    """The rows of a run's ``bills`` table: two per tenant."""
    return {
        "tenant": [each.tenant for each in found for _ in range(2)],
        "kind": ["alone", "pooled"] * len(found),
        "usd": [usd for each in found for usd in (each.alone_usd, each.pooled_usd)],
    }
