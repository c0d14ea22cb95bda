"""Fewer moves at nearly the same worth: recall rings that left their servers, and let others make room.

A ring has moved if the set of its servers differs from that of the slot before (this is what a restart is charged
for). One turn recalls one or two of them, takes out the rings that block them, puts everything back, on its last servers
where that still works, and lets it grow there. The turn counts if fewer rings have moved, or as many and more is earned.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tradewind.model.arrays import Ints
from tradewind.solvers.kernel import kernel
from tradewind.systems.gadget.kernels.draws import draw, random_of
from tradewind.systems.gadget.kernels.pack import (
    clear,
    count_servers,
    grow,
    most_on_last,
    place,
    price_rings,
    release,
    reserve,
    reserve_if_it_fits,
)
from tradewind.systems.gadget.kernels.slot import Rings, SlotPrices
from tradewind.systems.gadget.kernels.state import State

MOST_OUT = 12
"""Jobs that one turn takes out at most."""


class RecallLimits(NamedTuple):
    """Limits of `recall`: turns at most, least score to keep, share of its gain that a moved ring loses."""

    rounds: int
    floor: float
    lost: float
    seed: int


@kernel(forceinline=True)
def same_servers(one: Ints, other: Ints) -> bool:
    """Whether two rows (N,) name the same servers in any order."""
    count = count_servers(one)
    if count != count_servers(other):
        return False
    for j in range(count):
        found = False
        for n in range(count):
            found = found or other[n] == one[j]
        if not found:
            return False
    return True


@kernel(forceinline=True)
def _moved(last: Ints, rings: Rings, i: int) -> bool:
    """Whether job i runs, ran before, and its servers are others than `last` (I, N)."""
    return rings.size[i] > 0 and last[i, 0] >= 0 and not same_servers(rings.server[i], last[i])


@kernel
def keep_trimmed(state: State, before: Rings, target: Ints) -> None:
    """Give jobs of an empty state the rings of `before` that fit, trimmed to at most `target` workers.

    The fullest servers give up workers first, so that most stay visited.
    """
    gain = state.demand.gain
    server, kept, size = state.rings
    for i in range(target.size):
        if before.size[i] == 0 or target[i] == 0:
            continue
        workers = before.workers[i].copy()
        while workers.sum() > target[i]:
            workers[np.argmax(workers)] -= 1
        total = workers.sum()
        if total >= gain.shape[1] or not gain[i, total] > 0:
            continue
        count = 0
        for j in range(workers.size):
            if workers[j] > 0:
                server[i, count], kept[i, count] = before.server[i, j], workers[j]
                count += 1
        size[i] = total
        reserve_if_it_fits(state, i)


@kernel
def fill(state: State, prices: SlotPrices, order: Ints, target: Ints) -> None:
    """Place the jobs without a ring in this order, each with its target of workers where that fits."""
    for n in range(order.size):
        i = order[n]
        if state.rings.size[i] == 0 and target[i] > 0:
            price_rings(state, prices, i)
            if state.scratch.cost[target[i]] < np.inf:
                place(state, i, target[i])


@kernel
def return_rings(state: State, prices: SlotPrices) -> None:
    """Embed every moved ring anew with the same size; with a large `stay` on its last servers as far as there is room."""
    for i in range(state.rings.size.size):
        if _moved(state.demand.last, state.rings, i):
            release(state, i)
            price_rings(state, prices, i)
            place(state, i, state.rings.size[i])


@kernel
def _score(state: State, names: Ints, lost: float) -> tuple[float, int]:
    """(gains of some jobs, where those that moved lose the share `lost`; how many moved)."""
    gains, last, rings = state.demand.gain, state.demand.last, state.rings
    total, moves = 0.0, 0
    for n in range(names.size):
        i = names[n]
        gain = gains[i, rings.size[i]]
        if _moved(last, rings, i):
            moves += 1
            gain *= 1.0 - lost
        total += gain
    return total, moves


@kernel
def _add_blockers(state: State, i: int, random: Any, out: Ints, count: int) -> int:
    """Add the jobs on the last servers of job i to `out` (unmoved ones half of the time); returns how many there are."""
    last, server, size = state.demand.last, state.rings.server, state.rings.size
    wanted = count_servers(last[i])
    for m in range(server.shape[0]):
        if size[m] == 0 or count >= out.size:
            continue
        meets = False
        for j in range(count_servers(server[m])):
            for n in range(wanted):
                meets = meets or server[m, j] == last[i, n]
        if not meets or (same_servers(server[m], last[m]) and draw(random) % 2 == 0):
            continue
        for n in range(count):
            meets = meets and out[n] != m
        if meets:
            out[count] = m
            count += 1
    return count


@kernel
def _choose(state: State, random: Any, out: Ints) -> int:
    """Write one or two moved jobs and then, shuffled, those that block them to `out`; returns how many."""
    last, rings = state.demand.last, state.rings
    moved = np.empty(rings.size.size, np.int64)
    count = 0
    for i in range(rings.size.size):
        if _moved(last, rings, i):
            moved[count] = i
            count += 1
    out[0], out[1] = moved[draw(random) % count], moved[draw(random) % count]
    first = 1 + int(out[0] != out[1] and draw(random) % 2 == 0)
    total = first
    for n in range(first):
        total = _add_blockers(state, out[n], random, out, total)
    for n in range(first, total):
        m = n + draw(random) % (total - n)
        out[n], out[m] = out[m], out[n]
    return total


@kernel
def _put_back(state: State, prices: SlotPrices, i: int, k: int) -> None:
    """Place job i with k workers or as near to it as there is room: on its last servers where it can, else anywhere."""
    gain, last, pinned = state.demand.gain, state.demand.last, state.demand.pinned
    most = most_on_last(state, i, gain.shape[1] - 1) if last[i, 0] >= 0 else 0
    at = min(max(k, count_servers(last[i])), most)
    pinned[i] = most > 0 and gain[i, at] > 0
    if pinned[i]:
        if at > 0:
            place(state, i, at)
    else:
        place_at_most(state, prices, i, k)


@kernel
def place_at_most(state: State, prices: SlotPrices, i: int, k: int) -> None:
    """Place job i with k workers, or the next smaller number that fits and gains; none where there is none."""
    price_rings(state, prices, i)
    while k > 0 and not (state.scratch.cost[k] < np.inf and state.demand.gain[i, k] > 0):
        k -= 1
    if k > 0:
        place(state, i, k)


@kernel
def recall(state: State, prices: SlotPrices, limits: RecallLimits) -> int:
    """Recall moved rings as long as the score stays at or above the floor; returns how many are still moved.

    The score is the worth of all rings, where one that moved loses the share `lost`.
    """
    server, workers, size = state.rings
    jobs, width = server.shape
    random, every = random_of(limits.seed), np.arange(jobs)
    out, kept_size = np.empty(MOST_OUT, np.int64), np.empty(MOST_OUT, np.int64)
    kept_server, kept_workers = np.empty((MOST_OUT, width), np.int64), np.empty((MOST_OUT, width), np.int64)
    now, moves = _score(state, every, limits.lost)
    for _ in range(limits.rounds):
        if moves == 0:
            break
        total = _choose(state, random, out)
        names = out[:total]
        before, was = _score(state, names, limits.lost)
        for n in range(total):
            i = names[n]
            kept_server[n], kept_workers[n], kept_size[n] = server[i], workers[i], size[i]
            release(state, i)
            clear(state.rings, i)
        for n in range(total):
            _put_back(state, prices, names[n], kept_size[n])
        grow(state, prices, names)
        after, are = _score(state, names, limits.lost)
        fewer = are < was or (are == was and after > before)
        if fewer and now + after - before >= limits.floor:
            now += after - before
            moves += are - was
            continue
        for n in range(total):
            if size[names[n]] > 0:
                release(state, names[n])
        for n in range(total):
            i = names[n]
            server[i], workers[i], size[i] = kept_server[n], kept_workers[n], kept_size[n]
            reserve(state, i)
    for i in range(jobs):
        state.demand.pinned[i] = size[i] > 0 and same_servers(server[i], state.demand.last[i])
    grow(state, prices, every)
    return int(moves)
