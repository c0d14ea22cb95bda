"""Assigns chunks to workers that are already placed, with as few paid moves as possible (Eris (2a), (2b)).

Workers give capacity in chunks, cap (S, R). A chunk trained where it is stored is free; a moved one pays the slot's price
per byte. Unused capacity (slack) is free as well. Choosing which units of capacity to serve locally or leave unused is a
transversal matroid, so taking slots by falling price, local chunks first, then slack, is exact. Slots with too little
bandwidth for their moves are served first in the next attempt.
"""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np

from tradewind.model.arrays import Bools, Floats, Ints
from tradewind.solvers.kernel import kernel


class Assignment(NamedTuple):
    """Chunks trained locally and capacity left unused (S, R), and chunks moved (S,).

    possible: False where the bandwidth does not suffice; the rest then means nothing
    """

    possible: bool
    local: Ints
    idle: Ints
    moved: Ints


@kernel
def capacity(workers: Ints, rate: int, need: int) -> Ints:
    """Whole chunks that workers (S, R) train at each site, rate / need each."""
    if rate % need == 0:  # avoids a slow division per element
        return workers * (rate // need)
    return workers * rate // need


@kernel
def assign(cap: Ints, data: Ints, chunk_usd: Floats, room: Ints) -> Assignment:
    """Assigns all data (R,) to capacity (S, R), both in chunks.

    chunk_usd (S,): USD to move a chunk; room (S,): chunks that may be moved in the slot
    """
    slots = len(cap)
    local, idle, moved = np.zeros_like(cap), np.zeros_like(cap), np.zeros(slots, np.int64)
    if cap.sum() < data.sum():
        return Assignment(False, local, idle, moved)
    first = np.zeros(slots, dtype=np.bool_)
    for _ in range(slots + 1):
        _fill(cap, data, chunk_usd, first, Assignment(True, local, idle, moved))
        fresh, short = False, False
        for s in range(slots):
            if moved[s] > room[s]:
                short = True
                if not first[s]:
                    first[s] = True
                    fresh = True
        if not short:
            return Assignment(True, local, idle, moved)
        if not fresh:
            break
    return Assignment(False, local, idle, moved)


@kernel
def _fill(cap: Ints, data: Ints, chunk_usd: Floats, first: Bools, out: Assignment) -> None:
    """Serves slots one after another, those marked `first` (S,) before the others, dearer moves before cheaper ones."""
    slots, sites = cap.shape
    _, local, idle, moved = out
    left, spare, done = data.copy(), cap.sum() - data.sum(), np.zeros(slots, dtype=np.bool_)
    for _ in range(slots):
        s = -1
        for q in range(slots):
            if not done[q] and (
                s < 0 or (first[q] and not first[s]) or (first[q] == first[s] and chunk_usd[q] > chunk_usd[s])
            ):
                s = q
        done[s] = True
        moved[s] = 0
        for r in range(sites):
            local[s, r] = min(cap[s, r], left[r])
            left[r] -= local[s, r]
            idle[s, r] = min(cap[s, r] - local[s, r], spare)
            spare -= idle[s, r]
            moved[s] += cap[s, r] - local[s, r] - idle[s, r]


@kernel
def moves(cap: Ints, data: Ints, found: Assignment) -> tuple[Ints, Ints]:
    """Rows (source, destination, chunks) slot by slot, and where each slot's rows begin (S + 1,)."""
    slots, sites = cap.shape
    left = data - found.local.sum(axis=0)
    rows, begin = np.empty((2 * slots * sites + sites, 3), np.int64), np.zeros(slots + 1, np.int64)
    count, at = 0, 0
    for s in range(slots):
        for r in range(sites):
            if found.local[s, r] > 0:
                rows[count] = r, r, found.local[s, r]
                count += 1
        for r in range(sites):
            need = cap[s, r] - found.local[s, r] - found.idle[s, r]
            while need > 0:
                while left[at] == 0:
                    at += 1
                take = min(need, left[at])
                rows[count] = at, r, take
                count += 1
                left[at] -= take
                need -= take
        begin[s + 1] = count
    return rows[:count], begin


def by_slot(rows: Ints, begin: Ints) -> list[list[tuple[int, int, int]]]:
    """The rows of `moves` per slot."""
    sources, targets, chunks = rows.T.tolist()
    found = list(zip(sources, targets, chunks, strict=True))
    return [found[a:b] for a, b in pairwise(begin.tolist())]
