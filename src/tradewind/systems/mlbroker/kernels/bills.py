"""Who pays what in a slot: each group's bill alone at list price, and its share of the pooled bill."""

from collections.abc import Sequence

import numpy as np

from tradewind.model.arrays import Floats, Ints
from tradewind.systems.mlbroker.kernels.costs import job_parts
from tradewind.systems.mlbroker.kernels.prices import bill
from tradewind.systems.mlbroker.kernels.rivals import selfish
from tradewind.systems.mlbroker.kernels.share import proportional, shapley, split_excess
from tradewind.systems.mlbroker.kernels.slot import Slot

RULES = ("proportional", "shapley")


def alone_cost(slot: Slot) -> Floats:
    """What each job would pay by itself (I,), from the same state: its cheapest plan at list price."""
    return list_cost(slot, *selfish(slot))


def list_cost(slot: Slot, workers: Ints, server: Ints) -> Floats:
    """What each job's plan costs at list price (I,), USD; 0 for a job that is not placed (server -1)."""
    parts, _ = job_parts(slot, workers, server)
    rent = np.zeros(len(server))
    for i in np.flatnonzero(server >= 0).tolist():
        usage = workers[i][:, None] * slot.worker[i][None, :]
        usage[server[i]] += slot.server[i]
        rent[i] = float((usage * slot.tiers.usd[:, :, 0]).sum())
    total: Floats = parts.sum(axis=1) + rent
    return total


def group_shares(
    slot: Slot,
    workers: Ints,
    server: Ints,
    groups: Sequence[str],
    rule: str = "proportional",
    margin: float = 0.0,
) -> tuple[list[str], Floats, Floats]:
    """(names, alone (G,), pooled (G,)) in USD of the groups (I,) that the jobs belong to.

    Jobs that were not placed (server -1) pay nothing. Shares add up to the pooled cost and the broker's margin; none
    exceeds the group's plans at list price. Alone is never more than that: the plan in force could be had alone.
    """
    if rule not in RULES:
        raise ValueError(f"rule is {rule!r}; allowed are {', '.join(RULES)}")
    placed = np.flatnonzero(server >= 0)
    slot, workers, server = slot.only(placed), workers[placed], server[placed]
    names = sorted({groups[i] for i in placed.tolist()})
    member = np.array([[groups[i] == name for i in placed.tolist()] for name in names], dtype=np.float64)
    member = member.reshape(len(names), len(placed))
    parts, usage = job_parts(slot, workers, server)
    listed = list_cost(slot, workers, server)
    alone: Floats = member @ np.minimum(alone_cost(slot), listed)
    cost = float(parts.sum()) + float(bill(usage, slot.tiers.usd, slot.tiers.intercept))
    if cost > float(alone.sum()):
        return names, alone, split_excess(alone, member @ listed, cost)
    if rule == "proportional":
        return names, alone, proportional(alone, cost, margin)
    each = workers[:, :, None] * slot.worker[:, None, :]
    each[np.arange(len(server)), server] += slot.server
    pooled = np.tensordot(member, each, axes=1)
    return names, alone, shapley(member @ parts.sum(axis=1), pooled, slot.tiers, alone, margin)
