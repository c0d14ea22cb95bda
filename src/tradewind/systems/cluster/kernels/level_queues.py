"""Preemptive queues by level: entries sink to the next queue as they attain service (multi-level feedback)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tradewind.model.arrays import Ints
from tradewind.solvers.kernel import kernel
from tradewind.systems.cluster.kernels.serve import GONE, RUNS, Turn, serve


class LevelTables(NamedTuple):
    """Fields (n,) of the entries: the rows of `ints` (7, n)."""

    number: Ints
    """Number of the job."""
    need: Ints
    """Units of room that an entry takes."""
    since: Ints
    """Time up to which `got` is updated for a running entry."""
    state: Ints
    got: Ints
    """Attained service; grows by `rate` per unit of time while it runs in a queue with a limit."""
    rate: Ints
    level: Ints
    """Its queue."""


class Levels(NamedTuple):
    """The Q queues."""

    lines: Ints
    """(Q, n) entries, of which the first sizes[q] of row q are in use."""
    sizes: Ints
    limit: Ints
    """(Q - 1,) attained service at which an entry leaves its queue; the last queue has no limit."""


@kernel
def turn_levels(
    lines: Ints, sizes: Ints, limit: Ints, tick: int, ints: Ints, turn: Turn, out: Ints
) -> tuple[int, int, int]:
    """`demote`, `serve_levels` and `next_demotion`: returns (starts, stops, time until the next demotion)."""
    queues = Levels(lines, sizes, limit)
    tables = LevelTables(ints[0], ints[1], ints[2], ints[3], ints[4], ints[5], ints[6])
    demote(queues, tables, turn[0])
    starts, stops = serve_levels(queues, tables, turn, out)
    return starts, stops, next_demotion(queues, tables, tick)


@kernel
def demote(levels: Levels, tables: LevelTables, now: int) -> None:
    """Update attained service and move running entries that reached their limit to the end of the next queue.

    Entries that are gone are dropped. An entry sinks one queue per call; those that move together are sorted by number.
    """
    lines, sizes, limit = levels.lines, levels.sizes, levels.limit
    since, got, rate, state = tables.since, tables.got, tables.rate, tables.state
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
                    tables.level[e] = q + 1
                    _append_sorted(lines[q + 1], first, sizes[q + 1], e, tables.number)
                    sizes[q + 1] += 1
                    continue
            lines[q, w] = e
            w += 1
        sizes[q] = w


@kernel
def _append_sorted(line: Ints, first: int, size: int, e: int, number: Ints) -> None:
    """Add e to line[first:size], which is sorted by number."""
    at = size
    while at > first and number[line[at - 1]] > number[e]:
        line[at] = line[at - 1]
        at -= 1
    line[at] = e


@kernel
def serve_levels(levels: Levels, tables: LevelTables, turn: Turn, out: Ints) -> tuple[int, int]:
    """`serve` queue after queue; afterwards running entries stand ahead of waiting ones in each. Returns (starts, stops)."""
    lines, sizes = levels.lines, levels.sizes
    _, running, room = turn
    starts = stops = 0
    for q in range(lines.shape[0]):
        base = max(starts, stops)
        more, fewer, scanned, running, room = serve(
            lines[q], sizes[q], running, room, tables.need, tables.state, out[:, base:]
        )
        for k in range(more):
            out[0, starts + k] = out[0, base + k]
        for k in range(fewer):
            out[1, stops + k] = out[1, base + k]
        starts += more
        stops += fewer
        running_first(lines[q], scanned, tables.state)
    return starts, stops


@kernel
def running_first(line: Ints, size: int, state: Ints) -> None:
    """Move running entries ahead of waiting ones within the first `size` of `line`, keeping their order otherwise."""
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
def next_demotion(levels: Levels, tables: LevelTables, tick: int) -> int:
    """Time until the first running entry reaches its limit, in whole ticks; -1 where none does."""
    lines, limit = levels.lines, levels.limit
    got, rate, state = tables.got, tables.rate, tables.state
    best = np.int64(-1)
    for q in range(limit.shape[0]):
        for i in range(levels.sizes[q]):
            e = lines[q, i]
            if state[e] == RUNS and rate[e] > 0:
                wait = -(-(limit[q] - got[e]) // rate[e])
                wait = max(1, -(-wait // tick)) * tick
                if best < 0 or wait < best:
                    best = wait
    return int(best)
