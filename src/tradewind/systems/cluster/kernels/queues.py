"""Preemptive queues: entries with a key or a level that run while they are served, and who is served next.

Tables are indexed by entry number; `order` and `lines` hold entry numbers. `state` says 0 waits, 1 runs, 2 is gone
(removed at the next call). Who is served is decided greedily: entries in order, each that still fits into `room`.
"""

from __future__ import annotations

import numpy as np

from tradewind.model.arrays import Bytes, Floats, Ints
from tradewind.solvers.kernel import kernel

WAITS, RUNS, GONE = 0, 1, 2


@kernel
def resort(
    order: Ints,
    sizes: tuple[int, int, int],
    now: int,
    since: Ints,
    left: Ints,
    weight: Floats,
    key: Floats,
    state: Bytes,
) -> int:
    """Lets time pass for running entries and restores the order by key = left * weight; equal keys keep their order.

    order  (n,) entry numbers
    sizes  (how many of them are in use, how many at their end are new, how many run or are gone)
    since  up to when `left` is booked for a running entry (the future: it does not get anywhere before)
    Returns the new size. Waiting entries do not change, so only running and new ones are moved: a running entry's
    key only falls, and everything behind the last running entry is in order already.
    """
    size, fresh, busy = sizes
    old = size - fresh
    w = i = 0
    while i < old and busy > 0:
        e = order[i]
        i += 1
        if state[e] != WAITS:
            busy -= 1
            if state[e] == GONE:
                continue
            if now > since[e]:
                left[e] -= now - since[e]
                since[e] = now
                key[e] = left[e] * weight[e]
        _insert(order, w, e, key)
        w += 1
    if w < i:
        for k in range(i, size):
            order[k - i + w] = order[k]
    old -= i - w
    size -= i - w
    for k in range(old, size):
        e = order[k]
        key[e] = left[e] * weight[e]
        _insert(order, k, e, key)
    return size


@kernel
def _insert(order: Ints, at: int, e: int, key: Floats) -> None:
    """Moves entry e, which belongs to place `at` or before, behind the last entry whose key is not larger."""
    k = key[e]
    while at > 0 and key[order[at - 1]] > k:
        order[at] = order[at - 1]
        at -= 1
    order[at] = e


@kernel
def serve(
    order: Ints, size: int, running: int, room: int, need: Ints, state: Bytes, out: Ints
) -> tuple[int, int, int, int, int]:
    """Greedy in order: each entry that still fits runs.

    running  how many of the entries run before
    out      (2, n): numbers of those that start are put into row 0, of those that stop into row 1
    Returns (starts, stops, how far the scan went, running entries not yet seen, room left); states are updated.
    """
    starts = stops = i = 0
    while i < size and (room > 0 or running > 0):
        e = order[i]
        i += 1
        runs = state[e] == RUNS
        if runs:
            running -= 1
        if need[e] <= room:
            room -= need[e]
            if not runs:
                state[e] = RUNS
                out[0, starts] = e
                starts += 1
        elif runs:
            state[e] = WAITS
            out[1, stops] = e
            stops += 1
    return starts, stops, i, running, room


@kernel
def demote(
    lines: Ints,
    sizes: Ints,
    now: int,
    since: Ints,
    got: Ints,
    rate: Ints,
    limit: Ints,
    state: Bytes,
    level: Ints,
) -> None:
    """Books service and moves running entries that reached their line's limit to the end of the next line.

    lines  (Q, n) entry numbers, the first sizes[q] of row q in use
    since  up to when service is booked; now becomes the new value
    got    service of each entry: grows by rate per unit of time while it runs in a line with a limit
    limit  (Q - 1,) service at which an entry leaves line q; the last line has no limit
    level  line of each entry
    Entries that are gone leave. One line down per call; those that move together are sorted by number.
    """
    count = lines.shape[0]
    for q in range(count - 1, -1, -1):
        w = 0
        first = sizes[q + 1] if q + 1 < count else 0
        for i in range(sizes[q]):
            e = lines[q, i]
            if state[e] == GONE:
                continue
            if state[e] == RUNS and q < count - 1:
                got[e] += rate[e] * (now - since[e])
                since[e] = now
                if got[e] >= limit[q]:
                    level[e] = q + 1
                    _append_sorted(lines[q + 1], first, sizes[q + 1], e)
                    sizes[q + 1] += 1
                    continue
            lines[q, w] = e
            w += 1
        sizes[q] = w


@kernel
def _append_sorted(line: Ints, first: int, size: int, e: int) -> None:
    """Adds e to line[first:size], which is sorted by number."""
    at = size
    while at > first and line[at - 1] > e:
        line[at] = line[at - 1]
        at -= 1
    line[at] = e


@kernel
def serve_lines(
    lines: Ints, sizes: Ints, running: int, room: int, need: Ints, state: Bytes, out: Ints
) -> tuple[int, int]:
    """Greedy line after line, then in each line those that run stand ahead of those that wait; see `serve`."""
    starts = stops = 0
    for q in range(lines.shape[0]):
        more, fewer, seen, running, room = serve(
            lines[q], sizes[q], running, room, need, state, out[:, max(starts, stops) :]
        )
        base = max(starts, stops)
        for k in range(more):
            out[0, starts + k] = out[0, base + k]
        for k in range(fewer):
            out[1, stops + k] = out[1, base + k]
        starts += more
        stops += fewer
        running_first(lines[q], seen, state)
    return starts, stops


@kernel
def running_first(line: Ints, size: int, state: Bytes) -> None:
    """Stable: running entries ahead of waiting ones within the first `size` of `line`."""
    waiting = np.empty(size, np.int64)
    w = k = 0
    for i in range(size):
        if state[line[i]] == RUNS:
            line[w] = line[i]
            w += 1
        else:
            waiting[k] = line[i]
            k += 1
    line[w:size] = waiting[:k]


@kernel
def next_jump(lines: Ints, sizes: Ints, got: Ints, rate: Ints, limit: Ints, state: Bytes, tick: int) -> int:
    """Time until the first running entry reaches its line's limit, in whole ticks; -1 where none does."""
    best = np.int64(-1)
    for q in range(limit.shape[0]):
        for i in range(sizes[q]):
            e = lines[q, i]
            if state[e] == RUNS and rate[e] > 0:
                wait = -(-(limit[q] - got[e]) // rate[e])
                wait = max(1, -(-wait // tick)) * tick
                if best < 0 or wait < best:
                    best = wait
    return int(best)


@kernel
def turn_sorted(
    order: Ints,
    sizes: tuple[int, int, int],
    now: int,
    running: int,
    room: int,
    since: Ints,
    left: Ints,
    weight: Floats,
    key: Floats,
    need: Ints,
    state: Bytes,
    out: Ints,
) -> tuple[int, int, int]:
    """`resort`, then `serve`, in one call: returns (new size, starts, stops)."""
    size = resort(order, sizes, now, since, left, weight, key, state)
    starts, stops, _, _, _ = serve(order, size, running, room, need, state, out)
    return size, starts, stops


@kernel
def turn_lines(
    lines: Ints,
    sizes: Ints,
    now: int,
    tick: int,
    running: int,
    room: int,
    since: Ints,
    got: Ints,
    rate: Ints,
    limit: Ints,
    level: Ints,
    need: Ints,
    state: Bytes,
    out: Ints,
) -> tuple[int, int, int]:
    """`demote`, `serve_lines` and `next_jump` in one call: returns (starts, stops, time until the next jump)."""
    demote(lines, sizes, now, since, got, rate, limit, state, level)
    starts, stops = serve_lines(lines, sizes, running, room, need, state, out)
    return starts, stops, next_jump(lines, sizes, got, rate, limit, state, tick)
