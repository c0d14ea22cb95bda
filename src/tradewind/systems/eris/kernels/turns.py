"""A slot shared out in a fixed order, and what a bidder of that order would have had with a smaller bid.

Jobs are served by level, those of one level in the order in which they came; levels follow from bids alone, never from
what was served. So nobody is touched by those behind, and a larger bid only takes rivals away from the end of those
ahead: in every slot it finds at least as much left. Here a job's progress is one number, its chunks left, because it is
given bandwidth for every chunk that it trains, wherever that lies, and in every slot it trains as many as can be
(`turn` is exact); then more left over means never less trained, and completion never later. Service is monotone in the
bid by construction, as Myerson's payments need (`delays`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tradewind.model.arrays import Floats, Ints
from tradewind.solvers.kernel import kernel


class BidTable(NamedTuple):
    """Jobs in order of arrival; all (N,) but worker, server (N, K) and allowed (N, R).

    worker         milli-units of a unit, which is `size` workers that train `per_unit` whole chunks in a slot
    server         milli-units of the parameter server
    allowed        sites that the job may use
    chunks         of the whole job; chunk_bytes of each
    rate, need     a worker trains rate / need chunks in a slot
    traffic_bytes  of a worker away from its server, in a slot
    top            units in a slot at most
    first          slot from which it may run; last: latest slot in which completing is worth its while
    share          slots that it would fill alone
    level          rank: higher ones are served first
    """

    worker: Ints
    server: Ints
    allowed: NDArray[np.bool_]
    size: Ints
    per_unit: Ints
    chunks: Ints
    chunk_bytes: Ints
    rate: Ints
    need: Ints
    traffic_bytes: Ints
    top: Ints
    first: Ints
    last: Ints
    share: Floats
    level: Ints


@kernel
def is_alive(bids: BidTable, j: int, slot: int, left: int) -> bool:
    """Whether a job is there and could still be complete in time if it had the network to itself."""
    if left <= 0 or slot < bids.first[j]:
        return False
    alone = max(1, int(np.ceil(left * bids.share[j] / bids.chunks[j])))
    return bool(slot + alone - 1 <= bids.last[j])


@kernel
def _fit(free: Ints, worker: Ints, server: Ints, limit: int) -> tuple[int, int]:
    """Units that fit in what is free (K,), at most `limit`, without a server and beside it (-1: no room for it)."""
    most, beside = limit, limit
    for k in range(len(free)):
        if worker[k] > 0:
            most = min(most, max(0, free[k]) // worker[k])
            beside = min(beside, max(0, free[k] - server[k]) // worker[k])
    for k in range(len(free)):
        if free[k] < server[k]:
            beside = -1
    return most, beside


@kernel
def turn(bids: BidTable, j: int, left: int, free: Ints, room: int, out: Ints) -> tuple[int, int]:
    """As many chunks of a job as can be trained in a slot: (server's site, chunks); (-1, 0) where none can.

    free (R, K), room in bytes. Writes chunks per site (R,). Of equally many, those with fewest units away from the server.
    """
    sites, size, each = len(free), bids.size[j], bids.per_unit[j]
    out[:] = 0
    limit = min(bids.top[j], -(-left // each))
    most, beside = np.zeros(sites, np.int64), np.full(sites, -1)
    for r in range(sites):
        if bids.allowed[j, r]:
            most[r], beside[r] = _fit(free[r], bids.worker[j], bids.server[j], limit)
    total, traffic = most.sum(), bids.traffic_bytes[j] * size
    best, away, server, tried = 0, 0, -1, -1
    for p in range(sites):
        if beside[p] < 0 or (tried >= 0 and beside[p] <= beside[tried] and most[p] >= most[tried]):
            continue  # no room for a server, or an earlier site does all that this one does
        if tried < 0 or beside[p] > beside[tried]:
            tried = p
        for m in range(min(limit, total - most[p]) + 1):
            carried = (room - traffic * m) // bids.chunk_bytes[j]
            n = min(left, each * min(limit, beside[p] + m), carried)
            if n > best or (n == best and n > 0 and m < away):
                best, away, server = n, m, p
            if n == left or carried <= best:
                break
    if server < 0:
        return -1, 0
    out[server] = min(best, each * min(limit - away, beside[server]))
    _elsewhere(out, most, server, best - out[server], each)
    return server, best


@kernel
def _elsewhere(out: Ints, most: Ints, server: int, chunks: int, each: int) -> None:
    """Adds chunks (R,) away from the server, at the sites with fewest units free first, so that wide ones stay whole."""
    for r in np.argsort(most, kind="mergesort"):
        if r != server and chunks > 0:
            out[r] = min(chunks, each * most[r])
            chunks -= out[r]


@kernel
def workers_of(bids: BidTable, j: int, trained: Ints) -> Ints:
    """Workers (R,) that train these chunks (R,)."""
    found: Ints = -(-trained * bids.need[j] // bids.rate[j])
    return found


@kernel
def reserved(bids: BidTable, j: int, server: int, trained: Ints) -> int:
    """Bytes that a turn keeps for itself: parameters, and every chunk as if it came from elsewhere."""
    workers = workers_of(bids, j, trained)
    away = workers.sum() - workers[server]
    return int(away * bids.traffic_bytes[j] + trained.sum() * bids.chunk_bytes[j])


@kernel
def _take(bids: BidTable, j: int, server: int, trained: Ints, free: Ints) -> None:
    """Takes the workers and the server of a turn off what is free (R, K)."""
    workers = workers_of(bids, j, trained)
    free[server] -= bids.server[j]
    for r in range(len(free)):
        if workers[r]:
            free[r] -= workers[r] * (bids.worker[j] // bids.size[j])


@kernel
def _is_full(bids: BidTable, j: int, widest: Ints, room: int) -> bool:
    """Whether a job finds nothing where no site has more free than this (K,), with this many bytes of room."""
    full = room < bids.chunk_bytes[j]
    for k in range(len(widest)):
        full = full or bids.worker[j, k] > widest[k] or bids.server[j, k] > widest[k]
    return bool(full)


@kernel
def _widest(free: Ints, out: Ints) -> None:
    """Writes the most that any site has free of each resource (K,)."""
    for k in range(len(out)):
        out[k] = free[:, k].max()


@kernel
def delays(bids: BidTable, i: int, order: Ints, left: Ints, levels: Ints, capacity: Ints, band: Ints) -> Ints:
    """Slots (M,) in which job i would be complete at each of these falling levels; -1: never.

    order: its rivals as they are served; left (N,): chunks of each job when i came, which is used up;
    capacity (T, R, K), band (T,). The rivals live on without i: whoever is ahead of it is not touched by it anyway.
    """
    done, own = np.full(len(levels), -1), np.full(len(levels), bids.chunks[i])
    trained, widest = np.zeros(capacity.shape[1], np.int64), np.zeros(capacity.shape[2], np.int64)
    undecided = len(levels)
    """The first level from which on all are complete or given up; whoever is behind all others does not matter."""
    for slot in range(bids.first[i], min(len(band), bids.last[i] + 1)):
        while undecided and not is_alive(bids, i, slot, own[undecided - 1]):
            undecided -= 1
        if not undecided:
            break
        free, room, m = capacity[slot].copy(), band[slot], 0
        _widest(free, widest)
        for place in range(len(order) + 1):
            j = order[place] if place < len(order) else -1
            while m < undecided and (
                j < 0 or levels[m] > bids.level[j] or (levels[m] == bids.level[j] and i < j)
            ):
                if is_alive(bids, i, slot, own[m]) and not _is_full(bids, i, widest, room):
                    own[m] -= turn(bids, i, own[m], free, room, trained)[1]
                    if own[m] == 0:
                        done[m] = slot
                m += 1
            if m == undecided:
                break
            if is_alive(bids, j, slot, left[j]) and not _is_full(bids, j, widest, room):
                server, count = turn(bids, j, left[j], free, room, trained)
                if server >= 0:
                    _take(bids, j, server, trained, free)
                    _widest(free, widest)
                    room -= reserved(bids, j, server, trained)
                    left[j] -= count
    return done
