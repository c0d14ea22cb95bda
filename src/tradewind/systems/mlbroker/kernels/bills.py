"""Bills of a slot: each group's cost alone at list price, and its share of the pooled cost."""

from collections.abc import Sequence

import numpy as np

from tradewind.model.arrays import Floats, Ints
from tradewind.systems.mlbroker.kernels.costs import job_parts
from tradewind.systems.mlbroker.kernels.prices import bill
from tradewind.systems.mlbroker.kernels.rivals import selfish
from tradewind.systems.mlbroker.kernels.share import proportional, shapley, split_excess
from tradewind.systems.mlbroker.kernels.slot import Slot

SPLIT_RULES = ("proportional", "shapley")
"""Rules that split the saving of pooling."""


def alone_cost(slot: Slot) -> Floats:
    """Each job's cost by itself (I,), USD: its cheapest plan at list price from the same state."""
    return list_cost(slot, *selfish(slot))


def list_cost(slot: Slot, workers: Ints, server: Ints) -> Floats:
    """Cost of each job's plan at list price (I,), USD; 0 for a job that is not placed."""
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
    """Names, cost alone (G,) and share of the pooled cost (G,), USD, of the groups (I,) that the jobs belong to.

    Jobs that are not placed pay nothing. The shares add up to the pooled cost plus the broker's margin. Neither a
    share nor the cost alone exceeds the group's plans at list price.
    """
    if rule not in SPLIT_RULES:
        raise ValueError(f"rule is {rule!r}; it must be one of {', '.join(SPLIT_RULES)}")
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
