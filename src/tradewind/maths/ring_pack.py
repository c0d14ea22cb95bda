"""Putting rings in and taking them out: greedy by best average marginal gain, annealed ruin and recreate.

All state is in arrays that the kernels change in place, so that nothing is ever over-allocated: a ring goes in only
where `cheapest` finds one in what is left.

Tuples shared by the kernels (Slot for the shapes):
  facts    (first, need, band, gain, open, home (I, N), stay): servers where a job ran before (-1: none), and by how
           much they look cheaper than they are, so that jobs stay where they are
  left     (room (S, R), link (S,), trunk (G,)) what is still free
  rings    (server (I, N), workers (I, N), size (I,))
  prices   (room (S, R), link (S,), trunk (G,), tie (1,): weight of the room that a server has left)
  scratch  tables of one call of `cheapest`
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import Any

import numpy as np
from numba import njit

from tradewind.maths.ring_price import cheapest, trace
from tradewind.maths.ring_slot import Floats, Ints, Prices, Rings, Slot

TIE = 1e-9
"""Weight of leaving little room behind against prices of the size of 1."""


def facts_of(slot: Slot, home: Ints | None = None, stay: float = 0.0) -> Any:
    """The jobs' side of a slot, for the kernels."""
    if home is None:
        home = np.full((slot.jobs, 1), -1, np.int64)
    return (slot.first, slot.need, slot.band, slot.gain, slot.open, home, stay)


def left_of(slot: Slot) -> Any:
    """A copy of everything that is free."""
    return (slot.room.copy(), slot.link.copy(), slot.trunk.copy())


def rings_of(rings: Rings) -> Any:
    """A copy of rings, for the kernels."""
    return (rings.server.copy(), rings.workers.copy(), rings.size.copy())


def prices_of(prices: Prices) -> Any:
    """Prices, for the kernels."""
    return (prices.room, prices.link, prices.trunk, np.array([TIE]))


@njit(cache=True)
def scratch_of(spots: int, racks: int, widest: int) -> Any:
    """Tables for `cheapest`."""
    return (
        np.empty(widest + 1), np.empty(widest + 1, np.int64), np.empty(widest + 1, np.int64),
        np.empty((racks, widest + 1)), np.empty((spots, widest + 1), np.int64), np.empty(widest + 1),
        np.empty((racks, widest + 1), np.int64), np.empty(spots), np.empty(spots), np.empty(racks),
    )  # fmt: skip


@njit(cache=True)
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
            g = np.searchsorted(first, s, side="right") - 1
            if g != before:
                before = g
                racks += 1
    if racks > 1:
        before = -1
        for j in range(server.shape[1]):
            s = server[i, j]
            if s < 0:
                break
            g = np.searchsorted(first, s, side="right") - 1
            if g != before:
                before = g
                trunk[g] -= sign * band[i]


@njit(cache=True)
def clear(rings: Any, i: int) -> None:
    """Job i has no ring."""
    server, workers, size = rings
    for j in range(server.shape[1]):
        server[i, j] = -1
        workers[i, j] = 0
    size[i] = 0


@njit(cache=True)
def look(facts: Any, left: Any, prices: Any, scratch: Any, window: Ints, i: int) -> None:
    """Least costs of all ring sizes of job i in what is left, at prices, into scratch; fuller servers on a tie."""
    first, need, band, gain, open_, home, stay = facts
    room, link, trunk = left
    p_room, p_link, p_trunk, tie = prices
    cost, kind, where, inner, pick, outer, part, fee, toll, gate = scratch
    widest = gain.shape[1] - 1
    while widest > 0 and gain[i, widest] == -np.inf:
        widest -= 1
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


@njit(cache=True)
def settle(facts: Any, left: Any, rings: Any, scratch: Any, window: Ints, i: int, k: int) -> None:
    """Gives job i the ring of k workers that `look` found."""
    clear(rings, i)
    server, workers, size = rings
    trace(k, facts[0], window, scratch[1], scratch[2], scratch[4], scratch[6], server[i], workers[i])
    size[i] = k
    book(facts, left, rings, i, 1)


@njit(cache=True)
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


@njit(cache=True)
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


@njit(cache=True)
def _random(seed: Any) -> Any:
    """xorshift64*: the next positive 62-bit number; seed (1,) uint64."""
    x = seed[0]
    x ^= x >> np.uint64(12)
    x ^= x << np.uint64(25)
    x ^= x >> np.uint64(27)
    seed[0] = x
    return np.int64((x * np.uint64(2685821657736338717)) >> np.uint64(2))


@njit(cache=True)
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


@njit(cache=True)
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


@njit(cache=True)
def _ruin(lists: Any, width: int, seed: Any, spots: Ints, most: int, out: Ints) -> int:
    """Up to `most` jobs to take out: those on server spots[0], then some on random ones of spots[1] … spots[2] - 1."""
    head, after, _ = lists
    count = 0
    for turn in range(1 + 2 * most):
        s = spots[0] if turn == 0 else spots[1] + _random(seed) % (spots[2] - spots[1])
        entry = head[s]
        while entry >= 0 and count < most:
            i = entry // width
            fresh = turn == 0 or _random(seed) % 2 == 0
            for n in range(count):
                fresh = fresh and out[n] != i
            if fresh:
                out[count] = i
                count += 1
            entry = after[entry]
        if count >= most:
            break
    return count


@njit(cache=True)
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


@njit(cache=True)
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


@njit(cache=True)
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
    window = np.arange(racks)
    if 0 < wide < racks:
        window = np.arange(wide)
    out, names = np.empty(jobs, np.int64), np.empty(jobs, np.int64)
    keep_s, keep_w, keep_k = (
        np.empty((jobs, width), np.int64),
        np.empty((jobs, width), np.int64),
        np.empty(jobs, np.int64),
    )
    tie = np.array([TIE])
    full = (prices[0], prices[1], prices[2], tie)
    half = (0.5 * prices[0], 0.5 * prices[1], 0.5 * prices[2], tie)
    cheap = (1e-3 * prices[0], 1e-3 * prices[1], 1e-3 * prices[2], tie)
    now = 0.0
    for i in range(jobs):
        now += gain[i, size[i]]
    best, best_s, best_w, best_k = now, server.copy(), workers.copy(), size.copy()
    lists = (np.full(spots, -1), np.full(jobs * width, -1), np.full(jobs * width, -1))
    for i in range(jobs):
        _enter(lists, rings, i)
    near = np.empty(3, np.int64)
    for turn in range(rounds):
        if best >= goal:
            break
        spot = _random(seed) % spots
        home = np.searchsorted(first, spot, side="right") - 1
        if window.size < racks:
            window[0] = home
            for w in range(1, window.size):
                window[w] = (window[w - 1] + 1 + _random(seed) % (racks - window.size)) % racks
            window.sort()
            at = np.searchsorted(window, home)
            window[at] = window[0]
            window[0] = home
        most = 2 + _random(seed) % (20 if turn % 8 == 7 else 6)
        dice = _random(seed) % 8
        dear = full if dice > 2 else half if dice > 0 else cheap
        tie[0] = TIE * (1 - _random(seed) % 3)  # tight, any or roomy servers first
        near[0], near[1], near[2] = spot, first[home], first[home + 1]
        if window.size == racks and _random(seed) % 2 == 0:
            near[1], near[2] = 0, spots
        count = _ruin(lists, width, seed, near, most, out)
        touched = 0
        for n in range(count):
            i = out[n]
            if window.size < racks and not _inside(facts, rings, i, window):
                continue
            names[touched] = i
            touched += 1
        ruined = touched
        # idle and unfinished jobs join in, those with more hope more often
        for _ in range(4 * most):
            i = _random(seed) % jobs
            j = _random(seed) % jobs
            if hope[j] > hope[i]:
                i = j
            if (size[i] > 0 and gain[i, size[i]] >= gain[i].max()) or touched >= ruined + most:
                continue
            fresh = True
            for n in range(touched):
                fresh = fresh and names[n] != i
            if fresh and (size[i] == 0 or window.size == racks or _inside(facts, rings, i, window)):
                names[touched] = i
                touched += 1
        before = 0.0
        for n in range(touched):
            i = names[n]
            keep_s[n], keep_w[n], keep_k[n] = server[i], workers[i], size[i]
            before += gain[i, size[i]]
            if size[i] > 0:
                _leave(lists, rings, i)
                book(facts, left, rings, i, -1)
                clear(rings, i)
        rank, order = np.empty(touched), _random(seed) % 4
        for n in range(touched):
            noise = 0.6 + 0.8 * ((_random(seed) % 1000003) / 1000003.0)
            i = names[n]
            if order < 2:
                rank[n] = -(hope[i] + 1e-9) * noise
            elif order == 2:
                rank[n] = -gain[i].max() * noise
            else:
                rank[n] = noise
        for n in np.argsort(rank):
            i = names[n]
            look(facts, left, dear, scratch, window, i)
            top, at = 0.0, 0
            for k in range(1, gain.shape[1]):
                v = gain[i, k] - scratch[0][k]
                if v > top:
                    top = v
                    at = k
            if at > 0:
                settle(facts, left, rings, scratch, window, i, at)
        grow(facts, left, rings, cheap, weight, window, names[:touched], scratch)
        after, bonus = 0.0, 0.0
        for n in range(touched):
            after += gain[names[n], size[names[n]]]
            bonus += _at_home(facts, names[n], server[names[n]]) - _at_home(facts, names[n], keep_s[n])
        allowed = heat * (1.0 - turn / rounds) * ((_random(seed) % 1000003) / 1000003.0)
        if after + bonus >= before - allowed:
            for n in range(touched):
                _enter(lists, rings, names[n])
            now += after - before
            if now > best + 1e-12:
                best = now
                if heat > 0.0:  # without heat the rings at the end are the best ones
                    best_s[:], best_w[:], best_k[:] = server, workers, size
        else:
            for n in range(touched):
                i = names[n]
                if size[i] > 0:
                    book(facts, left, rings, i, -1)
            for n in range(touched):
                i = names[n]
                server[i], workers[i], size[i] = keep_s[n], keep_w[n], keep_k[n]
                if size[i] > 0:
                    book(facts, left, rings, i, 1)
                    _enter(lists, rings, i)
    if heat > 0.0:
        server[:], workers[:], size[:] = best_s, best_w, best_k
    return best
