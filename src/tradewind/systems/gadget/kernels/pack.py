"""Place and remove rings; greedy growth by best average marginal gain.

All state is in arrays that the kernels change in place. Nothing is ever over-allocated: a ring is placed only where
`cheapest` finds one in what is free.
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import Any

import numpy as np

from tradewind.model.arrays import Floats, Ints
from tradewind.solvers.kernel import kernel
from tradewind.systems.gadget.kernels.price import Request, cheapest, most_workers, open_row, trace
from tradewind.systems.gadget.kernels.slot import Rings, SlotPrices
from tradewind.systems.gadget.kernels.state import State

MOST_SPARE = 1e6
"""Workers that a server may have room for before more room no longer matters to ties."""


@kernel(forceinline=True)
def rack_of(first: Ints, s: int) -> Any:
    """Rack of server s."""
    return np.searchsorted(first, s, side="right") - 1


@kernel(forceinline=True)
def _take(state: State, i: int, sign: int) -> None:
    """Subtract sign times the use of job i's ring from what is free."""
    need, band = state.demand.need, state.demand.band
    room, link, first, trunk = state.free
    server, workers = state.rings.server, state.rings.workers
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


@kernel(forceinline=True)
def reserve(state: State, i: int) -> None:
    """Reserve what the ring of job i uses."""
    _take(state, i, 1)


@kernel(forceinline=True)
def release(state: State, i: int) -> None:
    """Free what the ring of job i uses."""
    _take(state, i, -1)


@kernel
def reserve_all(state: State) -> None:
    """Reserve what all rings use."""
    for i in range(state.rings.size.size):
        if state.rings.size[i] > 0:
            _take(state, i, 1)


@kernel
def _none_negative(values: Ints) -> bool:
    """Whether no value is below 0."""
    found = False
    for n in range(values.size):
        found = found or values[n] < 0
    return not found


@kernel
def reserve_if_it_fits(state: State, i: int) -> bool:
    """Reserve the ring that was written for job i, or remove it where there is too little of anything."""
    room, link, _, trunk = state.free
    server = state.rings.server
    _take(state, i, 1)
    fits = _none_negative(trunk)
    for j in range(server.shape[1]):
        s = server[i, j]
        if s < 0:
            break
        fits = fits and link[s] >= 0 and _none_negative(room[s])
    if not fits:
        _take(state, i, -1)
        clear(state.rings, i)
    return fits


@kernel(forceinline=True)
def clear(rings: Rings, i: int) -> None:
    """Remove the ring of job i."""
    for j in range(rings.server.shape[1]):
        rings.server[i, j] = -1
        rings.workers[i, j] = 0
    rings.size[i] = 0


@kernel(forceinline=True)
def count_servers(servers: Ints) -> int:
    """Number of servers in a row (N,)."""
    count = 0
    while count < servers.size and servers[count] >= 0:
        count += 1
    return count


@kernel
def most_on_last(state: State, i: int, widest: int) -> int:
    """Workers that job i could have on exactly the servers where it ran, in what is free; 0 where it cannot."""
    need, band, open_, last = state.demand.need, state.demand.band, state.demand.open, state.demand.last
    room, link, first, trunk = state.free
    count = count_servers(last[i])
    # rings go rack by rack, so one that begins and ends in the same rack is in no other
    several = rack_of(first, last[i, 0]) != rack_of(first, last[i, count - 1])
    total = 0
    for j in range(count):
        s = last[i, j]
        most = most_workers(room[s], need[i], widest)
        shut = open_.shape[0] > 0 and open_[i, s] == 0
        if most == 0 or shut or (count > 1 and link[s] < band[i]):
            return 0
        if several and trunk[rack_of(first, s)] < band[i]:
            return 0
        total += most
    return min(total, widest)


@kernel
def _write_on_last(state: State, i: int, k: int) -> None:
    """Write a ring of k workers on the servers where job i ran: one each, the rest as far as there is room."""
    server, workers, last = state.rings.server, state.rings.workers, state.demand.last
    count = count_servers(last[i])
    rest = k - count
    for j in range(count):
        s = last[i, j]
        more = min(rest, most_workers(state.free.room[s], state.demand.need[i], k) - 1)
        server[i, j], workers[i, j] = s, 1 + more
        rest -= more


@kernel
def price_rings(state: State, prices: SlotPrices, i: int) -> None:
    """Least costs of all ring sizes of job i in what is free, into scratch; fuller servers on a tie."""
    cost, gain, last = state.scratch.cost, state.demand.gain, state.demand.last
    widest = gain.shape[1] - 1
    while widest > 0 and gain[i, widest] == -np.inf:
        widest -= 1
    if state.demand.pinned[i]:
        most = most_on_last(state, i, widest)
        for k in range(cost.size):
            cost[k] = 0.0 if k == 0 or count_servers(last[i]) <= k <= most else np.inf
        return
    _write_fees(state, prices, i)
    cost[widest + 1 :] = np.inf
    request = Request(state.demand.need[i], state.demand.band[i], widest, open_row(state.demand.open, i))
    cheapest(state.free, state.window, request, state.scratch)


@kernel(forceinline=True)
def _write_fees(state: State, prices: SlotPrices, i: int) -> None:
    """What workers of job i and visits cost on the racks of the window; less where the job ran before."""
    need, band, last = state.demand.need, state.demand.band, state.demand.last
    room, first = state.free.room, state.free.first
    per_worker, per_server = state.scratch.per_worker, state.scratch.per_server
    for w in range(state.window.size):
        g = state.window[w]
        state.scratch.per_rack[g] = band[i] * prices.trunk[g]
        for s in range(first[g], first[g + 1]):
            fee = 0.0
            spare = 0.0
            for r in range(need.shape[1]):
                fee += need[i, r] * prices.room[s, r]
                if need[i, r] > 0:
                    spare += room[s, r] / need[i, r]
            per_worker[s] = fee + state.tie[0] * min(spare, MOST_SPARE)
            per_server[s] = band[i] * prices.link[s]
    for j in range(last.shape[1]):
        if last[i, j] < 0:
            break
        per_worker[last[i, j]] -= state.demand.stay
        per_server[last[i, j]] -= state.demand.stay


@kernel
def place(state: State, i: int, k: int) -> None:
    """Give job i, which has no ring reserved, the ring of k workers that `price_rings` found."""
    clear(state.rings, i)
    if state.demand.pinned[i]:
        _write_on_last(state, i, k)
    else:
        trace(k, state.free.first, state.window, state.scratch, state.rings.server[i], state.rings.workers[i])
    state.rings.size[i] = k
    _take(state, i, 1)


@kernel
def resize(state: State, prices: SlotPrices, i: int, k: int) -> bool:
    """Embed job i anew with k workers; False where no ring of that size fits, and nothing changes."""
    running = state.rings.size[i] > 0
    if running:
        release(state, i)
    price_rings(state, prices, i)
    if k < state.scratch.cost.size and state.scratch.cost[k] < np.inf:
        place(state, i, k)
        return True
    if running:
        reserve(state, i)
    return False


@kernel
def best_growth(gain: Floats, cost: Floats, now: int, weight: float) -> tuple[float, int]:
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
def grow(state: State, prices: SlotPrices, chosen: Ints) -> None:
    """Greedy: grow the job of `chosen` with the best average marginal gain, its ring embedded anew, while one gains.

    What a job could gain only falls while others grow, so its entry is checked again when it is on top.
    """
    gain, weight, size = state.demand.gain, state.demand.weight, state.rings.size
    heap = [(0.0, -1)]
    heappop(heap)
    anything = np.zeros(gain.shape[1])
    for n in range(chosen.size):
        i = chosen[n]
        d, k = best_growth(gain[i], anything, size[i], weight[i])
        if k > 0:
            heappush(heap, (-d, i))
    while len(heap) > 0:
        negative, i = heappop(heap)
        now = size[i]
        if now > 0:
            release(state, i)
        price_rings(state, prices, i)
        d, k = best_growth(gain[i], state.scratch.cost, now, weight[i])
        if k == 0 or d < -negative * (1.0 - 1e-12):
            if now > 0:
                reserve(state, i)
            if k > 0:
                heappush(heap, (-d, i))
            continue
        place(state, i, k)
        d, k = best_growth(gain[i], anything, k, weight[i])
        if k > 0:
            heappush(heap, (-d, i))
