"""The rings of one slot and the searches that change them: greedy, rings that stay, annealed repair."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tradewind.model.arrays import Floats, Ints
from tradewind.systems.gadget.kernels.improve import Search, improve
from tradewind.systems.gadget.kernels.pack import clear, grow, release, reserve_all
from tradewind.systems.gadget.kernels.recall import (
    RecallLimits,
    fill,
    keep_trimmed,
    place_at_most,
    recall,
    return_rings,
)
from tradewind.systems.gadget.kernels.slot import Rings, Slot, SlotPrices, no_prices, no_rings, worth
from tradewind.systems.gadget.kernels.state import Demand, State, demand_of, scratch_of, state_of

CHANGED = (0.0, 0.05, 0.1, 0.2, 0.4, 1.0)
"""Shares of the running jobs that may change their size, tried in this order."""
RETURN = 1e3
"""How much cheaper a worker's last server is than any other when rings return."""
ALL_RACKS = 100
"""Servers up to which every repair looks at all racks; above, at two."""


def greedy_prices(slot: Slot, top: float) -> list[SlotPrices]:
    """Prices of greedy, several because none is always best; far below `top`, the largest gain: they only break ties.

    Trunks cost by how small they are, so that rings stay in a rack. Wide links are kept for jobs that need them: they
    cost by visit, or by worker, or nothing.
    """
    trunk = 1e-4 * top / np.maximum(slot.trunk, 1)
    wide = slot.link / max(1, int(slot.link.max()))
    none = no_prices(slot)
    visit = 1e-7 * top * wide / max(1, int(slot.band.max()))
    worker = 1e-5 * top * wide[:, None] / np.maximum(slot.need.max(0), 1)
    return [
        SlotPrices(room=none.room, link=visit, trunk=trunk),
        SlotPrices(room=worker, link=none.link, trunk=trunk),
        SlotPrices(room=none.room, link=none.link, trunk=trunk),
    ]


def inside_racks(slot: Slot, rings: Rings, lost: list[int]) -> Rings:
    """Embed the jobs in `lost` anew within single racks, as wide as before or as nearly as there is room."""
    pool = RingPool(slot._replace(trunk=np.zeros_like(slot.trunk)), None, 0.0)
    state = pool.state(rings)
    for i in lost:
        release(state, i)
        clear(state.rings, i)
    for i in lost:
        place_at_most(state, pool.prices, i, int(rings.size[i]))
    return state.rings


class RingPool:
    """Rings of one slot; searches share tables and the prices of greedy."""

    def __init__(self, slot: Slot, last: Ints | None, stay: float) -> None:
        self.slot, self.demand, self._scratch = slot, demand_of(slot, last, stay), scratch_of(slot)
        self.every = np.arange(slot.jobs)
        self.prices = greedy_prices(slot, 1.0)[0]

    def state(self, rings: Rings, demand: Demand | None = None) -> State:
        """A copy of `rings` with what they leave free."""
        state = state_of(self.slot, rings, demand or self.demand, self._scratch)
        reserve_all(state)
        return state

    def start(self, top: float, enough: float) -> Rings:
        """The best of greedy at several prices, which are kept; the first that is worth `enough`."""
        best, value, kept = no_rings(self.slot), -1.0, self.prices
        for prices in greedy_prices(self.slot, top):
            state = self.state(no_rings(self.slot))
            grow(state, prices, self.every)
            if worth(self.slot, state.rings) > value:
                best, value, kept = state.rings, worth(self.slot, state.rings), prices
            if value >= enough:
                break
        self.prices = kept
        return best

    def kept(self, before: Rings, best: Rings) -> Iterator[Rings]:
        """Rings between `before` and the sizes of `best`: jobs change in order of what it means to them."""
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
        state = self.state(no_rings(self.slot))
        keep_trimmed(state, before, target)
        order = np.argsort(-self.slot.gain[self.every, target], kind="stable")
        fill(state, self.prices, order, target)
        grow(state, self.prices, self.every)
        return state.rings

    def returned(self, rings: Rings, before: Rings) -> Rings:
        """The same sizes, each job back on its old servers as far as there is room: worth the same, moves fewer."""
        state = self.state(rings, demand_of(self.slot, before.server, RETURN))
        return_rings(state, self.prices)
        return state.rings

    def recalled(self, rings: Rings, before: Rings, limits: RecallLimits) -> Rings:
        """Moved rings recalled to the servers of `before`, as many as keep the score at or above the floor."""
        state = self.state(rings, demand_of(self.slot, before.server, self.demand.stay))
        recall(state, self.prices, limits)
        return state.rings

    def moved_gain(self, before: Rings, rings: Rings) -> float:
        """Gains of the rings that run on other servers than before."""
        both = (before.size > 0) & (rings.size > 0)
        other = (np.sort(before.server, 1) != np.sort(rings.server, 1)).any(1)
        return float(self.slot.gain[self.every, rings.size][both & other].sum())

    def repaired(self, rings: Rings, prices: tuple[SlotPrices, Floats], search: Search) -> Rings:
        """Ruin and recreate from `rings` at prices with the reduced value of every job; heat is a share of the mean gain."""
        large = self.slot.servers > ALL_RACKS
        heat = 0.0 if large else search.heat * search.goal / max(1, int((rings.size > 0).sum()))
        state = self.state(rings)
        if large and len(self.slot.trunk) > 2:
            state = state._replace(window=np.arange(2))
        improve(state, prices[0], prices[1], search._replace(heat=heat))
        return state.rings
