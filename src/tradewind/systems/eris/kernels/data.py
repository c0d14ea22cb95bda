"""Which chunk is trained where and when, once workers are placed: as few paid moves as possible (Eris (2a), (2b)).

Workers give capacity in chunks, cap (S, R). A chunk trained where it lies is free; moved, it pays the slot's price per
byte. Unused capacity (slack) is free as well. Choosing which units of capacity to serve locally or leave unused is a
transversal matroid, so taking slots by falling price, local chunks first, then slack, is exact. Slots whose bandwidth
is too small for their moves are served first in the next try.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from tradewind.model.arrays import Floats, Ints
from tradewind.solvers.kernel import kernel


@kernel
def capacity(workers: Ints, rate: int, need: int) -> Ints:
    """Chunks that workers (S, R) train at each site: whole ones, rate / need each."""
    if rate % need == 0:  # a division of each is what takes long here
        return workers * (rate // need)
    return workers * rate // need


@kernel
def assign(
    cap: Ints, data: Ints, chunk_usd: Floats, room: Ints, local: Ints, idle: Ints, moved: Ints
) -> bool:
    """Fills local (S, R), idle (S, R) and moved (S,), all in chunks; False where bandwidth does not suffice.

    cap (S, R) chunks that the workers can train; data (R,) chunks there are; chunk_usd (S,) USD to move one;
    room (S,) chunks that may be moved in the slot.
    """
    slots, sites = cap.shape
    slack = cap.sum() - data.sum()
    if slack < 0:
        return False
    first = np.zeros(slots, dtype=np.bool_)
    for _ in range(slots + 1):
        left, spare, done = data.copy(), slack, np.zeros(slots, dtype=np.bool_)
        for _ in range(slots):
            s = -1
            for q in range(slots):
                if not done[q] and (
                    s < 0
                    or (first[q] and not first[s])
                    or (first[q] == first[s] and chunk_usd[q] > chunk_usd[s])
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
        fresh, short = False, False
        for s in range(slots):
            if moved[s] > room[s]:
                short = True
                if not first[s]:
                    first[s] = True
                    fresh = True
        if not short:
            return True
        if not fresh:
            return False
    return False


@kernel
def moves(cap: Ints, data: Ints, local: Ints, idle: Ints) -> tuple[Ints, Ints]:
    """Rows (source, destination, chunks) slot by slot, and where each slot's rows begin (S + 1,)."""
    slots, sites = cap.shape
    left = data - local.sum(axis=0)
    rows, begin = np.empty((2 * slots * sites + sites, 3), np.int64), np.zeros(slots + 1, np.int64)
    count, at = 0, 0
    for s in range(slots):
        for r in range(sites):
            if local[s, r] > 0:
                rows[count] = r, r, local[s, r]
                count += 1
        for r in range(sites):
            need = cap[s, r] - local[s, r] - idle[s, r]
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


def flows(cap: Ints, data: Ints, local: Ints, idle: Ints) -> list[list[tuple[int, int, int]]]:
    """(source, destination, chunks) per slot from an assignment; local chunks have source = destination."""
    return by_slot(*moves(cap, data, local, idle))
