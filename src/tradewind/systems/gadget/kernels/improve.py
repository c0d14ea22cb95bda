"""Annealed ruin and recreate of the rings of a slot, over the arrays of `ring_pack`."""

from __future__ import annotations

from typing import Any

import numpy as np

from tradewind.model.arrays import Floats, Ints
from tradewind.solvers.kernel import kernel
from tradewind.systems.gadget.kernels.pack import TIE, book, clear, grow, look, rack_of, scratch_of, settle


@kernel
def draw(seed: Any) -> Any:
    """xorshift64*: the next positive 62-bit number; seed (1,) uint64."""
    x = seed[0]
    x ^= x >> np.uint64(12)
    x ^= x << np.uint64(25)
    x ^= x >> np.uint64(27)
    seed[0] = x
    return np.int64((x * np.uint64(2685821657736338717)) >> np.uint64(2))


@kernel
def _enter(lists: Any, rings: Any, i: int) -> None:
    """Puts the ring of job i into the lists of its servers.

    lists: head (S,) first entry of a server, after and before (I · N,) its neighbours; entry i · N + j is the j-th
    server of job i; -1 is none.
    """
    head, after, before = lists
    server = rings[0]
    width = server.shape[1]
    for j in range(width):
        s = server[i, j]
        if s < 0:
            break
        entry = i * width + j
        after[entry], before[entry] = head[s], -1
        if head[s] >= 0:
            before[head[s]] = entry
        head[s] = entry


@kernel
def _leave(lists: Any, rings: Any, i: int) -> None:
    """Takes the ring of job i out of the lists of its servers."""
    head, after, before = lists
    server = rings[0]
    width = server.shape[1]
    for j in range(width):
        s = server[i, j]
        if s < 0:
            break
        entry = i * width + j
        if before[entry] >= 0:
            after[before[entry]] = after[entry]
        else:
            head[s] = after[entry]
        if after[entry] >= 0:
            before[after[entry]] = before[entry]


@kernel
def _ruin(lists: Any, width: int, seed: Any, spots: Ints, most: int, out: Ints) -> int:
    """Up to `most` jobs to take out: those on server spots[0], then some on random ones of spots[1] … spots[2] - 1."""
    head, after, _ = lists
    count = 0
    for turn in range(1 + 2 * most):
        s = spots[0] if turn == 0 else spots[1] + draw(seed) % (spots[2] - spots[1])
        entry = head[s]
        while entry >= 0 and count < most:
            i = entry // width
            fresh = turn == 0 or draw(seed) % 2 == 0
            for n in range(count):
                fresh = fresh and out[n] != i
            if fresh:
                out[count] = i
                count += 1
            entry = after[entry]
        if count >= most:
            break
    return count


@kernel
def _inside(facts: Any, rings: Any, i: int, window: Ints) -> bool:
    """Whether the whole ring of job i lies in the racks of the window."""
    first, server = facts[0], rings[0]
    for j in range(server.shape[1]):
        s = server[i, j]
        if s < 0:
            break
        found = False
        for w in range(window.size):
            found = found or (first[window[w]] <= s < first[window[w] + 1])
        if not found:
            return False
    return True


@kernel
def _at_home(facts: Any, i: int, servers: Ints) -> float:
    """`stay` for every server (N,) of a ring of job i where it ran before: what moving it away must bring."""
    home, stay = facts[5], facts[6]
    if stay == 0.0:
        return 0.0
    count = 0
    for j in range(servers.size):
        if servers[j] < 0:
            break
        for n in range(home.shape[1]):
            count += home[i, n] == servers[j]
    return float(stay * count)


@kernel
def _open_window(window: Ints, racks: int, home: int, seed: Any) -> None:
    """Writes the rack `home` and random others to the window, in order behind it."""
    window[0] = home
    for w in range(1, window.size):
        window[w] = (window[w - 1] + 1 + draw(seed) % (racks - window.size)) % racks
    window.sort()
    at = np.searchsorted(window, home)
    window[at] = window[0]
    window[0] = home


@kernel
def _join(
    facts: Any, rings: Any, window: Ints, hope: Floats, seed: Any, most: int, names: Ints, count: int
) -> int:
    """Adds idle and unfinished jobs to `names`, those with more hope more often; how many there are now."""
    gain, size, ruined = facts[3], rings[2], count
    everywhere = window.size == facts[0].size - 1
    for _ in range(4 * most):
        i = draw(seed) % size.size
        j = draw(seed) % size.size
        if hope[j] > hope[i]:
            i = j
        if (size[i] > 0 and gain[i, size[i]] >= gain[i].max()) or count >= ruined + most:
            continue
        fresh = True
        for n in range(count):
            fresh = fresh and names[n] != i
        if fresh and (size[i] == 0 or everywhere or _inside(facts, rings, i, window)):
            names[count] = i
            count += 1
    return count


@kernel
def _turns(gain: Floats, hope: Floats, names: Ints, seed: Any) -> Ints:
    """In which order jobs come back: by reduced value (half of the time), by gain or at random, with noise."""
    rank, order = np.empty(names.size), draw(seed) % 4
    for n in range(names.size):
        noise = 0.6 + 0.8 * ((draw(seed) % 1000003) / 1000003.0)
        i = names[n]
        if order < 2:
            rank[n] = -(hope[i] + 1e-9) * noise
        elif order == 2:
            rank[n] = -gain[i].max() * noise
        else:
            rank[n] = noise
    return np.argsort(rank)


@kernel
def _recreate(facts: Any, left: Any, rings: Any, prices: Any, scratch: Any, window: Ints, i: int) -> None:
    """Gives job i the ring that is worth most at prices, if one is worth anything."""
    gain = facts[3]
    look(facts, left, prices, scratch, window, i)
    top, at = 0.0, 0
    for k in range(1, gain.shape[1]):
        v = gain[i, k] - scratch[0][k]
        if v > top:
            top = v
            at = k
    if at > 0:
        settle(facts, left, rings, scratch, window, i, at)


@kernel
def _undo(facts: Any, left: Any, rings: Any, lists: Any, names: Ints, kept: Any) -> None:
    """Puts the rings of some jobs back as they were."""
    server, workers, size = rings
    for n in range(names.size):
        if size[names[n]] > 0:
            book(facts, left, rings, names[n], -1)
    for n in range(names.size):
        i = names[n]
        server[i], workers[i], size[i] = kept[0][n], kept[1][n], kept[2][n]
        if size[i] > 0:
            book(facts, left, rings, i, 1)
            _enter(lists, rings, i)


@kernel
def _victims(
    facts: Any, rings: Any, lists: Any, window: Ints, near: Ints, most: int, seed: Any, names: Ints
) -> int:
    """Writes jobs to take out to `names`: near a server and wholly in the window; how many."""
    out = np.empty(most, np.int64)
    count, found = 0, _ruin(lists, rings[0].shape[1], seed, near, most, out)
    for n in range(found):
        if window.size == facts[0].size - 1 or _inside(facts, rings, out[n], window):
            names[count] = out[n]
            count += 1
    return count


@kernel
def improve(
    facts: Any, left: Any, rings: Any, prices: Any, weight: Floats, hope: Floats, rounds: int, wide: int,
    heat: float, number: int, goal: float,
) -> float:  # fmt: skip
    """Annealed ruin and recreate; returns the worth of the best rings, which are left in `rings` (`left` is spoilt).

    hope (I,): reduced value at the prices; idle jobs are tried in proportion. wide: racks per window (0: all).
    heat: worth that may be lost at the start, falling to 0; goal: enough, stop. Jobs come back in order of
    reduced value with noise, each with its best size at the prices; what is then free is filled greedily,
    nearly at no price.
    """
    first, gain = facts[0], facts[3]
    server, workers, size = rings
    jobs, spots, racks = size.size, first[-1], first.size - 1
    width = server.shape[1]
    seed = np.array([np.uint64(number * 2654435761 + 88172645463325252)], np.uint64)
    scratch = scratch_of(spots, racks, gain.shape[1] - 1)
    window = np.arange(wide) if 0 < wide < racks else np.arange(racks)
    names, near = np.empty(jobs, np.int64), np.empty(3, np.int64)
    kept = (np.empty((jobs, width), np.int64), np.empty((jobs, width), np.int64), np.empty(jobs, np.int64))
    tie = np.array([TIE])
    full = (prices[0], prices[1], prices[2], tie)
    half = (0.5 * prices[0], 0.5 * prices[1], 0.5 * prices[2], tie)
    cheap = (1e-3 * prices[0], 1e-3 * prices[1], 1e-3 * prices[2], tie)
    now = 0.0
    lists = (np.full(spots, -1), np.full(jobs * width, -1), np.full(jobs * width, -1))
    for i in range(jobs):
        now += gain[i, size[i]]
        _enter(lists, rings, i)
    best, best_s, best_w, best_k = now, server.copy(), workers.copy(), size.copy()
    for turn in range(rounds):
        if best >= goal:
            break
        spot = draw(seed) % spots
        home = rack_of(first, spot)
        if window.size < racks:
            _open_window(window, racks, home, seed)
        most = 2 + draw(seed) % (20 if turn % 8 == 7 else 6)
        dice = draw(seed) % 8
        dear = full if dice > 2 else half if dice > 0 else cheap
        tie[0] = TIE * (1 - draw(seed) % 3)  # tight, any or roomy servers first
        near[0], near[1], near[2] = spot, first[home], first[home + 1]
        if window.size == racks and draw(seed) % 2 == 0:
            near[1], near[2] = 0, spots
        touched = _victims(facts, rings, lists, window, near, most, seed, names)
        touched = _join(facts, rings, window, hope, seed, most, names, touched)
        before, after, bonus = 0.0, 0.0, 0.0
        for n in range(touched):
            i = names[n]
            kept[0][n], kept[1][n], kept[2][n] = server[i], workers[i], size[i]
            before += gain[i, size[i]]
            if size[i] > 0:
                _leave(lists, rings, i)
                book(facts, left, rings, i, -1)
                clear(rings, i)
        for n in _turns(gain, hope, names[:touched], seed):
            _recreate(facts, left, rings, dear, scratch, window, names[n])
        grow(facts, left, rings, cheap, weight, window, names[:touched], scratch)
        for n in range(touched):
            after += gain[names[n], size[names[n]]]
            bonus += _at_home(facts, names[n], server[names[n]]) - _at_home(facts, names[n], kept[0][n])
        allowed = heat * (1.0 - turn / rounds) * ((draw(seed) % 1000003) / 1000003.0)
        if after + bonus < before - allowed:
            _undo(facts, left, rings, lists, names[:touched], kept)
            continue
        for n in range(touched):
            _enter(lists, rings, names[n])
        now += after - before
        if now > best + 1e-12:
            best = now
            if heat > 0.0:  # without heat the rings at the end are the best ones
                best_s[:], best_w[:], best_k[:] = server, workers, size
    if heat > 0.0:
        server[:], workers[:], size[:] = best_s, best_w, best_k
    return best
