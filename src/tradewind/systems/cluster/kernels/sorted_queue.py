"""A preemptive queue sorted by key = left * weight: shortest remaining time or service first."""

from __future__ import annotations

from typing import NamedTuple

from tradewind.model.arrays import Floats, Ints
from tradewind.solvers.kernel import kernel
from tradewind.systems.cluster.kernels.serve import GONE, WAITS, Turn, serve


class SortedTables(NamedTuple):
    """Fields (n,) of the entries; the first five are rows of `ints` (5, n), the others of `floats` (2, n)."""

    number: Ints
    """Number of the job."""
    need: Ints
    """Units of room that an entry takes."""
    since: Ints
    """Time up to which `left` is updated for a running entry; in the future while it restarts."""
    state: Ints
    left: Ints
    """Remaining running time."""
    weight: Floats
    key: Floats


Sizes = tuple[int, int, int]
"""Entries in the queue, how many at its end are new, and how many run or are gone."""


@kernel
def turn_sorted(
    order: Ints, sizes: Sizes, ints: Ints, floats: Floats, turn: Turn, out: Ints
) -> tuple[int, int, int]:
    """`resort`, then `serve`: returns (new size, starts, stops)."""
    now, running, room = turn
    tables = SortedTables(ints[0], ints[1], ints[2], ints[3], ints[4], floats[0], floats[1])
    size = resort(order, sizes, tables, now)
    starts, stops, _, _, _ = serve(order, size, running, room, tables.need, tables.state, out)
    return size, starts, stops


@kernel
def resort(order: Ints, sizes: Sizes, tables: SortedTables, now: int) -> int:
    """Update running entries to `now` and restore the order by key; equal keys keep their order. Returns the new size.

    Only running and new entries move: waiting ones keep their key, the key of a running one only falls, and everything
    behind the last running entry is in order already.
    """
    since, left, weight, key, state = tables.since, tables.left, tables.weight, tables.key, tables.state
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
    """Insert entry e at place `at` or earlier, behind the last entry whose key is not larger."""
    k = key[e]
    while at > 0 and key[order[at - 1]] > k:
        order[at] = order[at - 1]
        at -= 1
    order[at] = e
