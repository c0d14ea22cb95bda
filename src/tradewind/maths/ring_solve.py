"""A slot from start to end: stay or grow greedily, certify by a bound, else prices and annealed repair."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tradewind.maths.ring_bound import knapsack, pooled, possible
from tradewind.maths.ring_columns import relax
from tradewind.maths.ring_pack import (
    book,
    facts_of,
    grow,
    improve,
    left_of,
    look,
    prices_of,
    rings_of,
    scratch_of,
    settle,
)
from tradewind.maths.ring_slot import Floats, Ints, Prices, Rings, Slot, no_rings, worth

FULL_LP = 150
"""Servers up to which the configuration LP has a row for each of them."""
SMALL, SMALL_STARTS = 20, 3
"""Up to so many servers the search is quick and its luck matters: it starts three times."""
HOME = 1e3
"""How much cheaper a worker's old server is than any other when jobs go home."""
ALL_RACKS = 100
"""Servers up to which every repair looks at all racks; above, at two."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Effort:
    """How hard to try.

    rounds  of ruin and recreate; 0: greedy and the knapsack bound only
    enough  share of the bound at which the search stops
    heat    of the annealing, as a share of the mean gain
    stay    what moving a worker must bring, as a share of the largest gain
    """

    rounds: int = 15_000
    enough: float = 0.9995
    heat: float = 0.6
    stay: float = 1e-3


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """rings that fit, their worth, a valid upper bound, and which bound it was."""

    rings: Rings
    value: float
    bound: float
    proof: str


def manners(slot: Slot, top: float) -> list[Prices]:
    """Prices of greedy, several because none is always best; far below `top`, the largest gain, so that they only break ties.

    Trunks cost by how small they are, so that rings stay in a rack. Wide links are kept for jobs that need them: they
    cost by visit, or by worker, or nothing.
    """
    trunk = 1e-4 * top / np.maximum(slot.trunk, 1)
    wide = slot.link / max(1, int(slot.link.max()))
    none, free = np.zeros(slot.room.shape), np.zeros(slot.servers)
    visit = 1e-7 * top * wide / max(1, int(slot.band.max()))
    worker = 1e-5 * top * wide[:, None] / np.maximum(slot.need.max(0), 1)
    return [
        Prices(room=none, link=visit, trunk=trunk),
        Prices(room=worker, link=free, trunk=trunk),
        Prices(room=none, link=free, trunk=trunk),
    ]


def weights(slot: Slot) -> Floats:
    """(I,) what a worker counts for: the sum of its shares of all resources."""
    share: Floats = (slot.need / np.maximum(slot.room.sum(0), 1)).sum(1)
    return np.maximum(share, 1e-12)


class _Bench:
    """Arrays of one slot that the kernels share."""

    def __init__(self, slot: Slot, home: Ints | None, stay: float) -> None:
        self.slot, self.weight = slot, weights(slot)
        self.facts = facts_of(slot, home, stay)
        self.scratch = scratch_of(slot.servers, len(slot.trunk), slot.widest)
        self.window, self.every = np.arange(len(slot.trunk)), np.arange(slot.jobs)
        self.prices = prices_of(manners(slot, 1.0)[0])

    def start(self, top: float, enough: float) -> Rings:
        """The best of greedy in several manners, whose prices are kept; the first that is worth `enough`."""
        best, value, kept = no_rings(self.slot), -1.0, self.prices
        for prices in manners(self.slot, top):
            self.prices = prices_of(prices)
            found = self.greedy(*self.booked(no_rings(self.slot)))
            if worth(self.slot, found) > value:
                best, value, kept = found, worth(self.slot, found), self.prices
            if value >= enough:
                break
        self.prices = kept
        return best

    def greedy(self, rings: Any, left: Any) -> Rings:
        """Grows from what is there."""
        grow(self.facts, left, rings, self.prices, self.weight, self.window, self.every, self.scratch)
        return Rings(server=rings[0], workers=rings[1], size=rings[2])

    def booked(self, rings: Rings) -> tuple[Any, Any]:
        """Rings and what they leave free."""
        mine, left = rings_of(rings), left_of(self.slot)
        for i in np.flatnonzero(rings.size).tolist():
            book(self.facts, left, mine, i, 1)
        return mine, left

    def stay(self, before: Rings, target: Ints) -> Rings:
        """Old rings of jobs that should have at least as many workers; then the others, then growth."""
        mine, left = rings_of(no_rings(self.slot)), left_of(self.slot)
        old = np.minimum(before.size, self.slot.widest)
        worthy = (old > 0) & (target >= before.size) & (self.slot.gain[self.every, old] > 0)
        for i in np.flatnonzero(worthy).tolist():
            mine[0][i], mine[1][i], mine[2][i] = before.server[i], before.workers[i], before.size[i]
            book(self.facts, left, mine, i, 1)
            if not self._fits(left, before.server[i]):
                book(self.facts, left, mine, i, -1)
                mine[0][i], mine[1][i], mine[2][i] = -1, 0, 0
        order = np.argsort(-self.slot.gain[self.every, target], kind="stable")
        for i in order.tolist():
            if mine[2][i] == 0 and target[i] > 0:
                look(self.facts, left, self.prices, self.scratch, self.window, i)
                if self.scratch[0][target[i]] < np.inf:
                    settle(self.facts, left, mine, self.scratch, self.window, i, int(target[i]))
        return self.greedy(mine, left)

    def _fits(self, left: Any, servers: Ints) -> bool:
        here = servers[servers >= 0]
        return bool((left[0][here] >= 0).all() and (left[1][here] >= 0).all() and (left[2] >= 0).all())

    def go_home(self, rings: Rings, before: Rings) -> Rings:
        """The same sizes, each job back on its old servers as far as there is room: worth the same, moves fewer."""
        mine, left = self.booked(rings)
        drawn = facts_of(self.slot, before.server, HOME)
        for i in np.flatnonzero((before.size > 0) & (rings.size > 0)).tolist():
            if set(before.server[i].tolist()) == set(mine[0][i].tolist()):
                continue
            book(drawn, left, mine, i, -1)
            look(drawn, left, self.prices, self.scratch, self.window, i)
            settle(drawn, left, mine, self.scratch, self.window, i, int(rings.size[i]))
        return Rings(server=mine[0], workers=mine[1], size=mine[2])

    def repair(
        self, rings: Rings, prices: Prices, hope: Floats, effort: Effort, goal: float, seed: int
    ) -> Rings:
        """Annealed ruin and recreate from `rings`."""
        large = self.slot.servers > ALL_RACKS
        heat = 0.0 if large else effort.heat * goal / max(1, int((rings.size > 0).sum()))
        mine, left = self.booked(rings)
        improve(
            self.facts, left, mine, prices_of(prices), self.weight, hope, effort.rounds, 2 if large else 0, heat,
            seed, goal,
        )  # fmt: skip
        return Rings(server=mine[0], workers=mine[1], size=mine[2])


def solve(slot: Slot, effort: Effort, *, before: Rings | None = None, seed: int = 0) -> Answer:
    """Rings for a slot and a bound on what any rings could be worth. before: rings of the slot before, to stay with."""
    slot = possible(slot)
    if not slot.jobs or not (slot.gain > 0).any():
        return Answer(rings=no_rings(slot), value=0.0, bound=0.0, proof="nothing fits")
    top = float(np.maximum(slot.gain, 0.0).max())
    bench = _Bench(slot, None if before is None else before.server, effort.stay * top if before else 0.0)
    bound, proof = knapsack(slot), "knapsack"
    best = bench.start(top, effort.enough * bound)
    value = worth(slot, best)
    if before is not None:
        # all rings as they are, if that is good enough; else those that should not shrink
        for target in (np.where(before.size > 0, before.size, best.size), best.size):
            kept = bench.stay(before, target)
            if worth(slot, kept) >= effort.enough * value:
                best, value = kept, worth(slot, kept)
                break
    if value >= effort.enough * bound or not effort.rounds:
        best = best if before is None else bench.go_home(best, before)
        return Answer(rings=best, value=value, bound=bound, proof=proof)
    if slot.servers <= FULL_LP or slot.open.size:
        found = relax(slot, [best], gap=max(1e-4, (1.0 - effort.enough) / 4), known=bound)
        limit, prices, hope, how = found.bound, found.prices, found.hope, "configuration LP"
    else:
        pool = pooled(slot, value)
        limit, prices, hope, how = pool.bound, pool.prices, pool.hope, "pooled prices"
    if limit < bound:
        bound, proof = limit, how
    start = best
    for again in range(SMALL_STARTS if slot.servers <= SMALL else 1):
        if value >= effort.enough * bound:
            break
        better = bench.repair(start, prices, hope, effort, effort.enough * bound, seed + 7919 * again)
        if worth(slot, better) > value:
            best, value = better, worth(slot, better)
    best = best if before is None else bench.go_home(best, before)
    return Answer(rings=best, value=value, bound=max(bound, value), proof=proof)
