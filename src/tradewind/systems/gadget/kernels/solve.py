"""A slot from start to end: stay or grow greedily, certify by a bound, else prices and annealed repair."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tradewind.systems.gadget.kernels.bound import knapsack, knapsack_prices, pooled, possible
from tradewind.systems.gadget.kernels.columns import relax
from tradewind.systems.gadget.kernels.improve import Search
from tradewind.systems.gadget.kernels.pool import RingPool
from tradewind.systems.gadget.kernels.recall import RecallLimits
from tradewind.systems.gadget.kernels.slot import Rings, Slot, no_rings, worth

FULL_LP = 150
"""Servers up to which the configuration LP has a row for each of them."""
SMALL, SMALL_STARTS = 20, 3
"""Up to so many servers the search is quick and depends on chance: it starts three times."""
CLEARLY = 1.005
"""How much more changing more rings must be worth to be the start of the search for rings that stay."""
NEXT_START = 7919
"""Distance between the seeds of repeated starts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotEffort:
    """How hard to search.

    rounds  of ruin and recreate; 0: greedy and the knapsack bound only
    enough  share of the bound at which the search stops
    heat    of the annealing, as a share of the mean gain
    stay    what moving a worker must bring, as a share of the largest gain
    moving  share of the slot's gain that a ring loses when it moves
    """

    rounds: int = 15_000
    enough: float = 0.9995
    heat: float = 0.6
    stay: float = 3e-3
    moving: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotSolution:
    """Rings that fit, their worth, a valid upper bound, and which bound it is."""

    rings: Rings
    value: float
    bound: float
    proof: str


def solve(slot: Slot, effort: SlotEffort, *, before: Rings | None = None, seed: int = 0) -> SlotSolution:
    """Rings for a slot and a bound on what any rings could be worth. before: rings of the slot before, to stay with."""
    slot = possible(slot)
    if not slot.jobs or not (slot.gain > 0).any():
        return SlotSolution(rings=no_rings(slot), value=0.0, bound=0.0, proof="nothing fits")
    top = float(np.maximum(slot.gain, 0.0).max())
    stay = effort.stay * top + effort.moving * float(np.maximum(slot.gain, 0.0).max(1).mean())
    pool = RingPool(slot, None if before is None else before.server, 0.0 if before is None else stay)
    bound, proof = knapsack(slot), "knapsack"
    best = pool.start(top, effort.enough * bound)
    seen = worth(slot, best)
    if before is not None:
        best = _kept(pool, before, best, effort, seed)
    value = worth(slot, best)
    if value >= effort.enough * bound or not effort.rounds:
        if before is not None:
            best = _recalled(pool, before, best, max(seen, value), effort, seed)
        return SlotSolution(rings=best, value=worth(slot, best), bound=bound, proof=proof)
    if slot.servers <= FULL_LP or slot.open.size:
        found = relax(slot, [best], gap=max(1e-4, (1.0 - effort.enough) / 4), known=bound)
        limit, prices, how = found.bound, (found.prices, found.reduced), "configuration LP"
    else:
        classes = pooled(slot, value)
        limit, prices, how = classes.bound, (classes.prices, classes.reduced), "pooled prices"
    if limit < bound:
        bound, proof = limit, how
    # heat would move rings that stay
    search = Search(effort.rounds, effort.heat if before is None else 0.0, effort.enough * bound, seed)
    start = best
    for again in range(SMALL_STARTS if slot.servers <= SMALL else 1):
        if value >= search.goal:
            break
        better = pool.repaired(start, prices, search._replace(seed=seed + NEXT_START * again))
        if worth(slot, better) > value:
            best, value = better, worth(slot, better)
    if before is not None:
        best = _recalled(pool, before, best, max(seen, value), effort, seed)
        value = worth(slot, best)
    return SlotSolution(rings=best, value=value, bound=max(bound, value), proof=proof)


def _recalled(
    pool: RingPool, before: Rings, best: Rings, seen: float, effort: SlotEffort, seed: int
) -> Rings:
    """`best` with as many rings as possible back where they were; a share 1 - enough of the worth may go for it."""
    back = pool.returned(best, before)
    lost = effort.moving * pool.moved_gain(before, back)
    floor = min(effort.enough * seen, worth(pool.slot, back)) - lost
    return pool.recalled(back, before, RecallLimits(effort.rounds, floor, effort.moving, seed))


def _kept(pool: RingPool, before: Rings, best: Rings, effort: SlotEffort, seed: int) -> Rings:
    """Rings nearer to those before that are nearly worth `best`; else `best`."""

    def score(rings: Rings) -> float:
        lost = effort.moving * pool.moved_gain(before, rings) if effort.moving else 0.0
        return worth(pool.slot, rings) - lost

    goal = effort.enough * score(best)
    near: Rings | None = None
    for kept in pool.kept(before, best):
        if score(kept) >= goal:
            return kept
        if near is None or score(kept) > CLEARLY * score(near):
            near = kept
    if near is None or not effort.rounds:
        return best
    better = pool.repaired(near, knapsack_prices(pool.slot), Search(effort.rounds, 0.0, goal, seed))
    return better if score(better) >= goal else best
