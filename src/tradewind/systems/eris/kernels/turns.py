"""A slot allocated in a fixed order, and when a bidder would have completed with a smaller bid.

Jobs are served by level, within a level in order of arrival; levels follow from bids alone, never from what was served.
So a job is not affected by those behind it, and a larger bid only removes rivals from the end of those ahead: in every
slot it finds at least as much capacity. A job's progress is one number, its chunks left, because it gets bandwidth for
every chunk that it trains, wherever that is stored, and in every slot it trains as many as possible (`serve` is exact).
More capacity then never means less training or a later completion: service is monotone in the bid, as Myerson's payments
require (`delays`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tradewind.model.arrays import Bools, Floats, Ints
from tradewind.solvers.kernel import kernel


class BidTable(NamedTuple):
    """Jobs in order of arrival; all (N,) but worker, server (N, K) and allowed (N, R).

    worker         milli-units of a unit, which is `size` workers that train `per_unit` whole chunks in a slot
    server         milli-units of the parameter server
    allowed        sites that the job may use
    chunks         of the whole job; chunk_bytes of each
    rate, need     a worker trains rate / need chunks in a slot
    traffic_bytes  of a worker away from its server, in a slot
    top            maximum units in a slot
    first, last    first slot in which it may run, last slot in which completing is worth enough
    share          slots that it would fill alone
    level          higher levels are served first
    """

    worker: Ints
    server: Ints
    allowed: Bools
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
    """Whether a job is active and could still complete in time if it had the network to itself."""
    if left <= 0 or slot < bids.first[j]:
        return False
    alone = max(1, int(np.ceil(left * bids.share[j] / bids.chunks[j])))
    return bool(slot + alone - 1 <= bids.last[j])


@kernel
def _fit(free: Ints, worker: Ints, server: Ints, limit: int) -> tuple[int, int]:
    """Units that fit in free capacity (K,), at most `limit`, without the server and beside it (-1: it does not fit).

    Nothing fits where something is negative: the site is down.
    """
    most, beside = limit, limit
    for k in range(len(free)):
        if free[k] < 0:
            most = 0
        if worker[k] > 0:
            most = min(most, max(0, free[k]) // worker[k])
            beside = min(beside, max(0, free[k] - server[k]) // worker[k])
    for k in range(len(free)):
        if free[k] < server[k] or free[k] < 0:
            beside = -1
    return most, beside


@kernel
def serve(bids: BidTable, j: int, left: int, free: Ints, room: int, out: Ints) -> tuple[int, int]:
    """As many chunks of a job as can be trained in a slot: (server's site, chunks), or (-1, 0).

    free (R, K), room in bytes. Writes chunks per site (R,). Ties go to the fewest units away from the server.
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
            continue  # the server does not fit, or an earlier site is at least as good
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
    """Adds chunks (R,) away from the server, at sites with fewest free units first, to keep large gaps whole."""
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
    """Bytes that a turn reserves: parameters, and every chunk as if it were moved."""
    workers = workers_of(bids, j, trained)
    away = workers.sum() - workers[server]
    return int(away * bids.traffic_bytes[j] + trained.sum() * bids.chunk_bytes[j])


@kernel
def _take(bids: BidTable, j: int, server: int, trained: Ints, free: Ints) -> None:
    """Subtracts the workers and the server of a turn from free capacity (R, K)."""
    workers = workers_of(bids, j, trained)
    free[server] -= bids.server[j]
    for r in range(len(free)):
        if workers[r]:
            free[r] -= workers[r] * (bids.worker[j] // bids.size[j])


@kernel
def _is_full(bids: BidTable, j: int, widest: Ints, room: int) -> bool:
    """Whether a job cannot run if no site has more than `widest` (K,) free and `room` bytes are left."""
    full = room < bids.chunk_bytes[j]
    for k in range(len(widest)):
        full = full or bids.worker[j, k] > widest[k] or bids.server[j, k] > widest[k]
    return bool(full)


@kernel
def _widest(free: Ints, out: Ints) -> None:
    """Writes the largest free amount of each resource at any site (K,)."""
    for k in range(len(out)):
        out[k] = free[:, k].max()


@kernel
def delays(bids: BidTable, i: int, order: Ints, left: Ints, levels: Ints, capacity: Ints, band: Ints) -> Ints:
    """Slots (M,) in which job i would complete at each of these falling levels; -1: never.

    order: its rivals in order of service; left (N,): chunks of each job when i arrived, overwritten; capacity (T, R, K),
    band (T,). Rivals are simulated without i, because it does not affect those ahead of it.
    """
    done, own = np.full(len(levels), -1), np.full(len(levels), bids.chunks[i])
    trained, widest = np.zeros(capacity.shape[1], np.int64), np.zeros(capacity.shape[2], np.int64)
    undecided = len(levels)
    """All levels from this one on are complete or given up; rivals behind the others do not matter."""
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
                    own[m] -= serve(bids, i, own[m], free, room, trained)[1]
                    if own[m] == 0:
                        done[m] = slot
                m += 1
            if m == undecided:
                break
            if is_alive(bids, j, slot, left[j]) and not _is_full(bids, j, widest, room):
                server, count = serve(bids, j, left[j], free, room, trained)
                if server >= 0:
                    _take(bids, j, server, trained, free)
                    _widest(free, widest)
                    room -= reserved(bids, j, server, trained)
                    left[j] -= count
    return done
