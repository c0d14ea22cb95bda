"""Bills: what each tenant would pay alone at list price, and its share of the pooled cost."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tradewind.model.arrays import Floats
from tradewind.model.errors import InputError
from tradewind.model.result import Run, Table
from tradewind.model.scenario import Scenario
from tradewind.systems.mlbroker.explain.slots import DecidedSlot, decided_slots
from tradewind.systems.mlbroker.kernels.bills import SPLIT_RULES, group_shares


@dataclass(frozen=True, slots=True, kw_only=True)
class TenantBill:
    """USD over the whole run: the tenant's cost alone at list price, and its share of the pooled cost."""

    tenant: str
    alone_usd: float
    pooled_usd: float


def shares(
    decided: DecidedSlot, rule: str = "proportional", margin: float = 0.0
) -> tuple[list[str], Floats, Floats]:
    """(tenants, alone (G,), pooled (G,)) of one slot in USD; jobs that were not placed pay nothing."""
    if rule not in SPLIT_RULES:
        raise InputError(f"found {rule!r}; it must be one of {', '.join(SPLIT_RULES)}", where="bills.rule")
    tenants = [job.tenant for job in decided.jobs]
    return group_shares(decided.slot, decided.workers, decided.server, tenants, rule, margin)


def tenant_bills(
    scenario: Scenario, run: Run, rule: str = "proportional", margin: float = 0.0
) -> list[TenantBill]:
    """Each tenant's bill over all slots, in alphabetical order.

    What pools take off in a period is split in proportion to what the tenants would pay alone in it, less the margin.
    """
    setup = scenario.setup
    alone: dict[str, float] = {}
    pooled: dict[str, float] = {}
    each_slot: dict[str, Floats] = {}
    for decided in decided_slots(scenario, run):
        if not (decided.server >= 0).any():
            continue
        for tenant, one, share in zip(*shares(decided, rule, margin), strict=True):
            alone[tenant] = alone.get(tenant, 0.0) + float(one)
            each_slot.setdefault(tenant, np.zeros(setup.slots))[decided.number] = float(one)
            pooled[tenant] = pooled.get(tenant, 0.0) + float(share)
    costs = run.tables["costs"]
    for slot, kind, pool, off in zip(*(costs[name] for name in ("slot", "kind", "a", "usd")), strict=True):
        if kind == "discount":
            period = slice(int(slot), int(slot) + setup.pools[int(pool)].period_us // setup.slot_us)
            total = sum(float(each[period].sum()) for each in each_slot.values())
            for tenant, each in each_slot.items():
                pooled[tenant] += (1.0 - margin) * float(off) * float(each[period].sum()) / total
    return [TenantBill(tenant=t, alone_usd=alone[t], pooled_usd=pooled[t]) for t in sorted(alone)]


def bills(scenario: Scenario, run: Run) -> Table | None:
    """The `bills` table of a run, two rows per tenant; None where there are not several tenants."""
    if len({job.tenant for job in scenario.jobs}) < 2:
        return None
    rule, margin = str(run.params.get("split", "proportional")), float(run.params.get("margin", 0.0))
    found = tenant_bills(scenario, run, rule, margin)
    return {
        "tenant": [each.tenant for each in found for _ in range(2)],
        "kind": ["alone", "pooled"] * len(found),
        "usd": [usd for each in found for usd in (each.alone_usd, each.pooled_usd)],
    }
