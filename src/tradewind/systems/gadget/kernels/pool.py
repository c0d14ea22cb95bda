"""The tools of one slot: greedy, rings that stay, annealed repair, over arrays that the kernels share."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from tradewind.model.arrays import Floats, Ints
from tradewind.systems.gadget.kernels.home import recall
from tradewind.systems.gadget.kernels.improve import improve
from tradewind.systems.gadget.kernels.pack import (
    book,
    clear,
    facts_of,
    grow,
    left_of,
    look,
    prices_of,
    rings_of,
    scratch_of,
    settle,
)
from tradewind.systems.gadget.kernels.slot import Prices, Rings, Slot, no_rings, worth

CHANGED = (0.0, 0.05, 0.1, 0.2, 0.4, 1.0)
"""Shares of the running jobs that may change their size, tried in this order."""
HOME = 1e3
"""How much cheaper a worker's old server is than any other when jobs go home."""
ALL_RACKS = 100
"""Servers up to which every repair looks at all racks; above, at two."""


def manners(slot: Slot, top: float) -> list[Prices]:
    """Prices of greedy, several because none is always best; far below `top`, the largest gain: they only break ties.

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


def trimmed(workers: Ints, target: int) -> Ints:
    """Workers by server of a ring with at most `target` left: the fullest servers give first, so that most stay visited."""
    result = workers.copy()
    while result.sum() > target:
        result[int(np.argmax(result))] -= 1
    return result


def inside_racks(slot: Slot, rings: Rings, lost: list[int]) -> Rings:
    """Rings of the jobs in `lost` embedded again within single racks, as wide as before or as nearly as there is room."""
    bench = Bench(replace(slot, trunk=np.zeros_like(slot.trunk)), None, 0.0)
    mine, left = bench.booked(rings)
    for i in lost:
        book(bench.facts, left, mine, i, -1)
        clear(mine, i)
    for i in lost:
        look(bench.facts, left, bench.prices, bench.scratch, bench.window, i)
        for k in range(int(rings.size[i]), 0, -1):
            if bench.scratch[0][k] < np.inf and slot.gain[i, k] > 0:
                settle(bench.facts, left, mine, bench.scratch, bench.window, i, k)
                break
    return Rings(server=mine[0], workers=mine[1], size=mine[2])


class Bench:
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

    def kept(self, before: Rings, best: Rings) -> Iterator[Rings]:
        """Answers between all rings as they are and the sizes of `best`: jobs change in order of what it means to them."""
        change = np.abs(
            self.slot.gain[self.every, best.size]
            - self.slot.gain[self.every, np.minimum(before.size, self.slot.widest)]
        )
        order = np.argsort(np.where(before.size > 0, -change, np.inf), kind="stable")
        running = int((before.size > 0).sum())
        for part in CHANGED:
            target = np.where(before.size > 0, before.size, best.size)
            new = order[: round(part * running)]
            target[new] = best.size[new]
            yield self.stay(before, target)

    def stay(self, before: Rings, target: Ints) -> Rings:
        """Old rings, trimmed where the job should have fewer workers; then the others, then growth."""
        mine, left = rings_of(no_rings(self.slot)), left_of(self.slot)
        for i in np.flatnonzero((before.size > 0) & (target > 0)).tolist():
            workers = trimmed(before.workers[i], int(target[i]))
            size = int(workers.sum())
            if size > self.slot.widest or not self.slot.gain[i, size] > 0:
                continue
            count = int((workers > 0).sum())
            mine[0][i, :count], mine[1][i, :count] = before.server[i][workers > 0], workers[workers > 0]
            mine[2][i] = size
            book(self.facts, left, mine, i, 1)
            if not self._fits(left, before.server[i]):
                book(self.facts, left, mine, i, -1)
                clear(mine, i)
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

    def recall(
        self, rings: Rings, before: Rings, *, rounds: int, floor: float, lost: float, seed: int
    ) -> Rings:
        """Rings that moved called back to the servers of `before`, as many as leave a score of `floor`."""
        mine, left = self.booked(rings)
        facts = facts_of(self.slot, before.server, self.facts[6])
        recall(facts, left, mine, self.prices, self.weight, rounds, floor, lost, seed)
        return Rings(server=mine[0], workers=mine[1], size=mine[2])

    def moved_gain(self, before: Rings, rings: Rings) -> float:
        """Gains of the rings that run on other servers than before."""
        both = (before.size > 0) & (rings.size > 0)
        other = (np.sort(before.server, 1) != np.sort(rings.server, 1)).any(1)
        return float(self.slot.gain[self.every, rings.size][both & other].sum())

    def repair(
        self, rings: Rings, prices: tuple[Prices, Floats], rounds: int, heat: float, goal: float, seed: int
    ) -> Rings:
        """Ruin and recreate from `rings` at prices, with the reduced value of every job; heat: share of the mean gain."""
        large = self.slot.servers > ALL_RACKS
        loss = 0.0 if large else heat * goal / max(1, int((rings.size > 0).sum()))
        mine, left = self.booked(rings)
        improve(
            self.facts, left, mine, prices_of(prices[0]), self.weight, prices[1], rounds, 2 if large else 0, loss, seed,
            goal,
        )  # fmt: skip
        return Rings(server=mine[0], workers=mine[1], size=mine[2])
