"""Putting rings in and taking them out: greedy by best average marginal gain.

All state is in arrays that the kernels change in place, so that nothing is ever over-allocated: a ring goes in only
where `cheapest` finds one in what is left.

Tuples shared by the kernels (Slot for the shapes):
  facts    (first, need, band, gain, open, home (I, N), stay, bound (I,)): servers where a job ran before (-1: none), by
           how much they look cheaper than they are, so that jobs stay where they are, and 1 for a job that may run on
           exactly these and nowhere else
  left     (room (S, R), link (S,), trunk (G,)) what is still free
  rings    (server (I, N), workers (I, N), size (I,))
  prices   (room (S, R), link (S,), trunk (G,), tie (1,): weight of the room that a server has left)
  scratch  tables of one call of `cheapest`
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import Any

import numpy as np

from tradewind.model.arrays import Floats, Ints
from tradewind.solvers.kernel import kernel
from tradewind.systems.gadget.kernels.price import cheapest, most_workers, trace
from tradewind.systems.gadget.kernels.slot import Prices, Rings, Slot

TIE = 1e-9
"""Weight of leaving little room behind against prices of the size of 1."""


def facts_of(slot: Slot, home: Ints | None = None, stay: float = 0.0) -> Any:
    """The jobs' side of a slot, for the kernels."""
    if home is None:
        home = np.full((slot.jobs, 1), -1, np.int64)
    return (
        slot.first, slot.need, slot.band, slot.gain, slot.open, home, stay, np.zeros(slot.jobs, np.int8),
    )  # fmt: skip


def left_of(slot: Slot) -> Any:
    """A copy of everything that is free."""
    return (slot.room.copy(), slot.link.copy(), slot.trunk.copy())


def rings_of(rings: Rings) -> Any:
    """A copy of rings, for the kernels."""
    return (rings.server.copy(), rings.workers.copy(), rings.size.copy())


def prices_of(prices: Prices) -> Any:
    """Prices, for the kernels."""
    return (prices.room, prices.link, prices.trunk, np.array([TIE]))


@kernel
def scratch_of(spots: int, racks: int, widest: int) -> Any:
    """Tables for `cheapest`."""
    return (
        np.empty(widest + 1), np.empty(widest + 1, np.int64), np.empty(widest + 1, np.int64),
        np.empty((racks, widest + 1)), np.empty((spots, widest + 1), np.int64), np.empty(widest + 1),
        np.empty((racks, widest + 1), np.int64), np.empty(spots), np.empty(spots), np.empty(racks),
    )  # fmt: skip


@kernel
def rack_of(first: Ints, s: int) -> Any:
    """Rack of server s."""
    return np.searchsorted(first, s, side="right") - 1


@kernel
def book(facts: Any, left: Any, rings: Any, i: int, sign: int) -> None:
    """Takes (sign 1) or frees (sign -1) what the ring of job i uses."""
    first, need, band = facts[0], facts[1], facts[2]
    room, link, trunk = left
    server, workers, _ = rings
    several = server.shape[1] > 1 and server[i, 1] >= 0
    before, racks = -1, 0
    for j in range(server.shape[1]):
        s = server[i, j]
        if s < 0:
            break
        for r in range(need.shape[1]):
            room[s, r] -= sign * workers[i, j] * need[i, r]
        if several:
            link[s] -= sign * band[i]
            g = rack_of(first, s)
            if g != before:
                before = g
                racks += 1
    if racks > 1:
        before = -1
        for j in range(server.shape[1]):
            s = server[i, j]
            if s < 0:
                break
            g = rack_of(first, s)
            if g != before:
                before = g
                trunk[g] -= sign * band[i]


@kernel
def clear(rings: Any, i: int) -> None:
    """Job i has no ring."""
    server, workers, size = rings
    for j in range(server.shape[1]):
        server[i, j] = -1
        workers[i, j] = 0
    size[i] = 0


@kernel
def spots_of(servers: Ints) -> int:
    """How many servers a row (N,) names."""
    count = 0
    while count < servers.size and servers[count] >= 0:
        count += 1
    return count


@kernel
def stay_most(facts: Any, left: Any, i: int, widest: int) -> int:
    """Workers that job i could have on exactly the servers where it ran, in what is left; 0 where it cannot."""
    first, need, band, open_, home = facts[0], facts[1], facts[2], facts[4], facts[5]
    room, link, trunk = left
    count = spots_of(home[i])
    # rings go rack by rack, so one that begins and ends in the same rack is in no other
    several = rack_of(first, home[i, 0]) != rack_of(first, home[i, count - 1])
    total = 0
    for j in range(count):
        s = home[i, j]
        most = most_workers(room[s], need[i], widest)
        shut = open_.shape[0] > 0 and open_[i, s] == 0
        if most == 0 or shut or (count > 1 and link[s] < band[i]):
            return 0
        if several and trunk[rack_of(first, s)] < band[i]:
            return 0
        total += most
    return min(total, widest)


@kernel
def _stay_put(facts: Any, left: Any, rings: Any, i: int, k: int) -> None:
    """Writes a ring of k workers on the servers where job i ran: one each, the rest as far as there is room."""
    need, home = facts[1], facts[5]
    server, workers, _ = rings
    count = spots_of(home[i])
    rest = k - count
    for j in range(count):
        s = home[i, j]
        more = min(rest, most_workers(left[0][s], need[i], k) - 1)
        server[i, j], workers[i, j] = s, 1 + more
        rest -= more


@kernel
def look(facts: Any, left: Any, prices: Any, scratch: Any, window: Ints, i: int) -> None:
    """Least costs of all ring sizes of job i in what is left, at prices, into scratch; fuller servers on a tie."""
    first, need, band, gain, open_, home, stay, bound = facts
    room, link, trunk = left
    p_room, p_link, p_trunk, tie = prices
    cost, kind, where, inner, pick, outer, part, fee, toll, gate = scratch
    widest = gain.shape[1] - 1
    while widest > 0 and gain[i, widest] == -np.inf:
        widest -= 1
    if bound[i]:
        most = stay_most(facts, left, i, widest)
        for k in range(cost.size):
            cost[k] = 0.0 if k == 0 or spots_of(home[i]) <= k <= most else np.inf
        return
    for w in range(window.size):
        g = window[w]
        gate[g] = band[i] * p_trunk[g]
        for s in range(first[g], first[g + 1]):
            f = 0.0
            spare = 0.0
            for r in range(need.shape[1]):
                f += need[i, r] * p_room[s, r]
                if need[i, r] > 0:
                    spare += room[s, r] / need[i, r]
            fee[s] = f + tie[0] * min(spare, 1e6)
            toll[s] = band[i] * p_link[s]
    for j in range(home.shape[1]):
        if home[i, j] < 0:
            break
        fee[home[i, j]] -= stay
        toll[home[i, j]] -= stay
    row = open_[i] if open_.shape[0] > 0 else open_[:0].reshape(0)
    cost[widest + 1 :] = np.inf
    cheapest(
        room, link, first, trunk, window, need[i], band[i], widest, fee, toll, gate, row,
        cost, kind, where, inner, pick, outer, part,
    )  # fmt: skip


@kernel
def settle(facts: Any, left: Any, rings: Any, scratch: Any, window: Ints, i: int, k: int) -> None:
    """Gives job i the ring of k workers that `look` found."""
    clear(rings, i)
    server, workers, size = rings
    if facts[7][i]:
        _stay_put(facts, left, rings, i, k)
    else:
        trace(k, facts[0], window, scratch[1], scratch[2], scratch[4], scratch[6], server[i], workers[i])
    size[i] = k
    book(facts, left, rings, i, 1)


@kernel
def densest(gain: Floats, cost: Floats, now: int, weight: float) -> tuple[float, int]:
    """Best average marginal gain per weight of growing from `now` to any size with a finite cost, and that size."""
    top, at = 0.0, 0
    for k in range(now + 1, gain.size):
        if cost[k] < np.inf and gain[k] > -np.inf:
            d = (gain[k] - gain[now]) / ((k - now) * weight)
            if d > top * (1.0 + 1e-12):
                top = d
                at = k
    return top, at


@kernel
def grow(
    facts: Any, left: Any, rings: Any, prices: Any, weight: Floats, window: Ints, chosen: Ints, scratch: Any
) -> None:
    """Greedy: again and again the job of `chosen` with the best average marginal gain grows, its ring embedded anew.

    What a job could gain only falls while others grow, so a job's entry is looked at again when it is on top.
    weight (I,): what a worker of the job counts for.
    """
    gain, size = facts[3], rings[2]
    heap = [(0.0, -1)]
    heappop(heap)
    free = np.zeros(gain.shape[1])
    for n in range(chosen.size):
        i = chosen[n]
        d, k = densest(gain[i], free, size[i], weight[i])
        if k > 0:
            heappush(heap, (-d, i))
    while len(heap) > 0:
        negative, i = heappop(heap)
        now = size[i]
        if now > 0:
            book(facts, left, rings, i, -1)
        look(facts, left, prices, scratch, window, i)
        d, k = densest(gain[i], scratch[0], now, weight[i])
        if k == 0 or d < -negative * (1.0 - 1e-12):
            if now > 0:
                book(facts, left, rings, i, 1)
            if k > 0:
                heappush(heap, (-d, i))
            continue
        settle(facts, left, rings, scratch, window, i, k)
        d, k = densest(gain[i], free, k, weight[i])
        if k > 0:
            heappush(heap, (-d, i))
