"""Fewer moves at nearly the same worth: rings that left their servers are called back, others make room.

A ring has moved if the set of its servers is another one than in the slot before (that is what a restart is charged
for). One turn calls one or two of them home, takes out what is in their way, puts everything back, at home where that
still works, and lets it grow there; it counts if fewer rings have moved, or as many and more is earned.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tradewind.model.arrays import Floats, Ints
from tradewind.solvers.kernel import kernel
from tradewind.systems.gadget.kernels.improve import draw
from tradewind.systems.gadget.kernels.pack import (
    book,
    clear,
    grow,
    look,
    scratch_of,
    settle,
    spots_of,
    stay_most,
)

MOST_OUT = 12
"""Jobs that one turn takes out at most."""


@kernel
def at_home(facts: Any, rings: Any, i: int) -> bool:
    """Whether the servers of job i are those where it ran before, in any order."""
    home, server = facts[5][i], rings[0][i]
    count = spots_of(server)
    if count != spots_of(home):
        return False
    for j in range(count):
        found = False
        for n in range(count):
            found = found or home[n] == server[j]
        if not found:
            return False
    return True


@kernel
def _moved(facts: Any, rings: Any, i: int) -> bool:
    return rings[2][i] > 0 and facts[5][i, 0] >= 0 and not at_home(facts, rings, i)


@kernel
def _score(facts: Any, rings: Any, names: Ints, lost: float) -> tuple[float, int]:
    """(gains of some jobs, those that moved less `lost` of it; how many moved)."""
    total, moves = 0.0, 0
    for n in range(names.size):
        i = names[n]
        gain = facts[3][i, rings[2][i]]
        if _moved(facts, rings, i):
            moves += 1
            gain *= 1.0 - lost
        total += gain
    return total, moves


@kernel
def _in_the_way(facts: Any, rings: Any, i: int, seed: Any, out: Ints, count: int) -> int:
    """Adds the jobs on the old servers of job i to `out` (those at home half of the time); how many there are now."""
    home, server = facts[5][i], rings[0]
    for m in range(server.shape[0]):
        if rings[2][m] == 0 or count >= out.size:
            continue
        meets = False
        for j in range(spots_of(server[m])):
            for n in range(spots_of(home)):
                meets = meets or server[m, j] == home[n]
        if not meets or (at_home(facts, rings, m) and draw(seed) % 2 == 0):
            continue
        for n in range(count):
            meets = meets and out[n] != m
        if meets:
            out[count] = m
            count += 1
    return count


@kernel
def _back(facts: Any, left: Any, rings: Any, prices: Any, scratch: Any, window: Ints, i: int, k: int) -> None:
    """Puts job i back with k workers or as near to it as there is room: at home where it can, else anywhere."""
    gain, home, bound = facts[3], facts[5], facts[7]
    most = stay_most(facts, left, i, gain.shape[1] - 1) if home[i, 0] >= 0 else 0
    at = min(max(k, spots_of(home[i])), most)
    bound[i] = most > 0 and gain[i, at] > 0
    if not bound[i]:
        look(facts, left, prices, scratch, window, i)
        at = k
        while at > 0 and not (scratch[0][at] < np.inf and gain[i, at] > 0):
            at -= 1
    if at > 0:
        settle(facts, left, rings, scratch, window, i, at)


@kernel
def _called(facts: Any, rings: Any, seed: Any, out: Ints) -> int:
    """Writes one or two moved jobs and then, in any order, those in their way to `out`; how many there are."""
    away = np.empty(rings[2].size, np.int64)
    count = 0
    for i in range(rings[2].size):
        if _moved(facts, rings, i):
            away[count] = i
            count += 1
    out[0], out[1] = away[draw(seed) % count], away[draw(seed) % count]
    first = 1 + int(out[0] != out[1] and draw(seed) % 2 == 0)
    total = first
    for n in range(first):
        total = _in_the_way(facts, rings, out[n], seed, out, total)
    for n in range(first, total):
        m = n + draw(seed) % (total - n)
        out[n], out[m] = out[m], out[n]
    return total


@kernel
def recall(
    facts: Any, left: Any, rings: Any, prices: Any, weight: Floats, rounds: int, floor: float, lost: float, number: int
) -> int:  # fmt: skip
    """Calls moved rings home as long as the score stays at or above `floor`; returns how many moved in the end.

    The score is the worth of all rings, where one that moved loses the share `lost`. rounds: turns at most.
    """
    bound = facts[7]
    server, workers, size = rings
    jobs, width = server.shape
    seed = np.array([np.uint64(number * 2654435761 + 88172645463325252)], np.uint64)
    scratch = scratch_of(left[0].shape[0], left[2].size, facts[3].shape[1] - 1)
    window, every = np.arange(left[2].size), np.arange(jobs)
    out, keep_k = np.empty(MOST_OUT, np.int64), np.empty(MOST_OUT, np.int64)
    keep_s, keep_w = np.empty((MOST_OUT, width), np.int64), np.empty((MOST_OUT, width), np.int64)
    now, moves = _score(facts, rings, every, lost)
    for _ in range(rounds):
        if moves == 0:
            break
        total = _called(facts, rings, seed, out)
        names = out[:total]
        before, was = _score(facts, rings, names, lost)
        for n in range(total):
            i = names[n]
            keep_s[n], keep_w[n], keep_k[n] = server[i], workers[i], size[i]
            book(facts, left, rings, i, -1)
            clear(rings, i)
        for n in range(total):
            _back(facts, left, rings, prices, scratch, window, names[n], keep_k[n])
        grow(facts, left, rings, prices, weight, window, names, scratch)
        after, are = _score(facts, rings, names, lost)
        fewer = are < was or (are == was and after > before)
        if fewer and now + after - before >= floor:
            now += after - before
            moves += are - was
            continue
        for n in range(total):
            if size[names[n]] > 0:
                book(facts, left, rings, names[n], -1)
        for n in range(total):
            i = names[n]
            server[i], workers[i], size[i] = keep_s[n], keep_w[n], keep_k[n]
            book(facts, left, rings, i, 1)
    for i in range(jobs):
        bound[i] = size[i] > 0 and at_home(facts, rings, i)
    grow(facts, left, rings, prices, weight, window, every, scratch)
    return int(moves)
