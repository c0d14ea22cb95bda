"""Who runs: entries in order, each that still fits into the free room.

An entry is a position in the tables; its `state` is WAITS, RUNS or GONE (dropped from its queue at the next turn).
Python passes tables as one array with a row per field, because a NamedTuple costs 2 microseconds per call; kernels turn it
into a NamedTuple of its rows.
"""

from __future__ import annotations

from tradewind.model.arrays import Ints
from tradewind.solvers.kernel import kernel

WAITS, RUNS, GONE = 0, 1, 2
Turn = tuple[int, int, int]
"""One decision: the time, the number of running entries, and the room that is free or held by running entries."""


@kernel
def serve(
    order: Ints, size: int, running: int, room: int, need: Ints, state: Ints, out: Ints
) -> tuple[int, int, int, int, int]:
    """Walk the first `size` entries of `order` and run each that still fits.

    running  how many of the entries run before
    out      (2, n): entries that start are written into row 0, those that stop into row 1
    Returns (starts, stops, entries scanned, running entries not scanned, room left); states are updated.
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
