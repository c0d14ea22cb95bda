"""The queues of las over a whole run: the turns of `level_queues` in a time that depends on what changes, not on how many
jobs are present.

A queue's running entries stand ahead of its waiting ones. Those that run are a list, of which a turn visits the end that no
longer fits; those that wait are lists by need, of which a turn visits the first; and those that sink come from a heap.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tradewind.model.arrays import Ints
from tradewind.solvers.kernel import kernel
from tradewind.systems.cluster.kernels.heap import Small, pop, sift


class Entries(NamedTuple):
    """Fields (n,) of the jobs."""

    need: Ints
    """Units."""
    rate: Ints
    """Service per unit of time."""
    shape: Ints
    """Number of its need."""
    since: Ints
    """When it last started or sank."""
    got: Ints
    """Service attained until then."""
    level: Ints
    """Its queue."""
    sinks: Ints
    """When it reaches the limit of its queue, while it runs in one that has a limit."""
    key: Ints
    """Its rank among those that wait in its queue."""


class Queues(NamedTuple):
    """Q queues of n entries with S needs.

    limit (Q - 1,)  service at which an entry leaves its queue; the last queue has no limit
    ahead, behind   neighbours (n,) of an entry that runs, -1 for none; last (Q,) the last of each queue; held (Q,) its units
    follow          the next (n,) of an entry that waits; first, end (Q, S) of each queue and need; waits (Q,) their number
    ranks           (2, Q) the lowest key, and the next one at the end
    heap, place     the entries that sink by time, of which the first size[0] are in use, and their places (n,)
    due             room for those that sink now
    """

    limit: Ints
    ahead: Small
    behind: Small
    last: Small
    held: Ints
    follow: Small
    first: Small
    end: Small
    waits: Ints
    ranks: Ints
    heap: Small
    place: Small
    size: Ints
    due: Ints


@kernel
def empty_queues(limit: Ints, n: int, shapes: int) -> Queues:
    """Queues that nobody is in."""
    count = limit.size + 1
    return Queues(
        limit, np.empty(n, np.int32), np.empty(n, np.int32), np.full(count, -1, np.int32), np.zeros(count, np.int64),
        np.empty(n, np.int32), np.full((count, shapes), -1, np.int32), np.full((count, shapes), -1, np.int32),
        np.zeros(count, np.int64), np.zeros((2, count), np.int64),
        np.empty(n, np.int32), np.full(n, -1, np.int32), np.zeros(1, np.int64), np.empty(n, np.int64),
    )  # fmt: skip


@kernel
def arrive(queues: Queues, entries: Entries, e: int) -> None:
    """Add an entry to those that wait, at the end."""
    q, s = entries.level[e], entries.shape[e]
    entries.key[e] = queues.ranks[1, q]
    queues.ranks[1, q] += 1
    queues.follow[e] = -1
    if queues.end[q, s] < 0:
        queues.first[q, s] = e
    else:
        queues.follow[queues.end[q, s]] = e
    queues.end[q, s] = e
    queues.waits[q] += 1


@kernel
def _return(queues: Queues, entries: Entries, e: int) -> None:
    """Add an entry to those that wait, ahead of all."""
    q, s = entries.level[e], entries.shape[e]
    queues.ranks[0, q] -= 1
    entries.key[e] = queues.ranks[0, q]
    queues.follow[e] = queues.first[q, s]
    if queues.first[q, s] < 0:
        queues.end[q, s] = e
    queues.first[q, s] = e
    queues.waits[q] += 1


@kernel
def _run(queues: Queues, entries: Entries, e: int, now: int) -> None:
    """Add an entry to those that run, at the end, and to those that will sink."""
    q = entries.level[e]
    queues.ahead[e], queues.behind[e] = queues.last[q], -1
    if queues.last[q] >= 0:
        queues.behind[queues.last[q]] = e
    queues.last[q] = e
    queues.held[q] += entries.need[e]
    entries.since[e] = now
    if q < queues.limit.size and entries.rate[e] > 0:
        entries.sinks[e] = now - (-(queues.limit[q] - entries.got[e]) // entries.rate[e])
        size = queues.size[0]
        queues.heap[size] = e
        queues.place[e] = size
        queues.size[0] = size + 1
        sift(queues.heap, queues.place, entries.sinks, size + 1, size)


@kernel
def leave(queues: Queues, entries: Entries, e: int, now: int) -> None:
    """Take out an entry that runs."""
    q, ahead, behind = entries.level[e], queues.ahead[e], queues.behind[e]
    if ahead >= 0:
        queues.behind[ahead] = behind
    if behind >= 0:
        queues.ahead[behind] = ahead
    else:
        queues.last[q] = ahead
    queues.held[q] -= entries.need[e]
    if q < queues.limit.size:
        entries.got[e] += entries.rate[e] * (now - entries.since[e])
        if queues.place[e] >= 0:
            queues.size[0] = pop(queues.heap, queues.place, entries.sinks, queues.size[0], e)


@kernel
def turn(queues: Queues, entries: Entries, now: int, room: int, out: Ints) -> tuple[int, int]:
    """Sink those that have reached their limit, then run each entry that still fits.

    room: units that are free or held by running entries. Returns (starts, stops), as `serve_levels` with the same `out`.
    """
    due, sinking = queues.due, 0
    while queues.size[0] > 0 and entries.sinks[queues.heap[0]] <= now:
        due[sinking] = queues.heap[0]
        leave(queues, entries, due[sinking], now)
        entries.level[due[sinking]] += 1
        sinking += 1
    if sinking > 1:
        due[:sinking].sort()
    starts = stops = 0
    for q in range(queues.last.size):
        kept = stops
        stops = _stop(queues, entries, (q, now, room), out, stops)
        room -= queues.held[q]
        while queues.waits[q] > 0 and room > 0:
            e = _next(queues, entries, q, room)
            if e < 0:
                break
            room -= entries.need[e]
            _run(queues, entries, e, now)
            out[0, starts] = e
            starts += 1
        for k in range(stops - 1, kept - 1, -1):
            _return(queues, entries, out[1, k])
        for k in range(sinking):
            e = due[k]
            if entries.level[e] == q:
                if entries.need[e] <= room:
                    room -= entries.need[e]
                    _run(queues, entries, e, now)
                else:
                    arrive(queues, entries, e)
                    out[1, stops] = e
                    stops += 1
    return starts, stops


@kernel
def _stop(queues: Queues, entries: Entries, at: tuple[int, int, int], out: Ints, stops: int) -> int:
    """Take out the entries of a queue that run and no longer fit, one after the other; returns how many stopped so far."""
    q, now, room = at
    left, e, after = queues.held[q], queues.last[q], -1
    while left > room:  # those ahead of these fit
        left -= entries.need[e]
        e, after = queues.ahead[e], e
    while after >= 0:
        e, after = after, queues.behind[after]
        if left + entries.need[e] <= room:
            left += entries.need[e]
        else:
            leave(queues, entries, e, now)
            out[1, stops] = e
            stops += 1
    return stops


@kernel
def _next(queues: Queues, entries: Entries, q: int, room: int) -> int:
    """Take out the first entry that waits in a queue and fits; -1 if there is none."""
    best = -1
    for s in range(queues.first.shape[1]):
        e = queues.first[q, s]
        if e >= 0 and entries.need[e] <= room and (best < 0 or entries.key[e] < entries.key[best]):
            best = e
    if best >= 0:
        s = entries.shape[best]
        queues.first[q, s] = queues.follow[best]
        if queues.follow[best] < 0:
            queues.end[q, s] = -1
        queues.waits[q] -= 1
    return int(best)


@kernel
def next_sinking(queues: Queues, entries: Entries, now: int, tick: int) -> int:
    """Time until the first entry sinks, in whole ticks; -1 where none does."""
    if queues.size[0] == 0:
        return -1
    wait = entries.sinks[queues.heap[0]] - now
    return int(max(1, -(-wait // tick)) * tick)
