"""The order of service in a slot: candidate orders are evaluated on futures sampled from the bids so far.

Jobs are pooled as in column.py. The default order is by worth per dominant share: the worth at the earliest possible
completion over the share of the scarcest resource. An order gives each job as many workers as the rest of the slot allows.
Its value is what it completes now plus the mean of what the default order completes afterwards, in futures in which bids
like those seen arrive again (a rollout of the default order: Bertsekas, Tsitsiklis and Wu 1997).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tradewind.model.arrays import Floats, Ints
from tradewind.solvers.kernel import kernel
from tradewind.systems.eris.kernels.column import Pooled

LEADERS, ROUNDS = 8, 3
"""Leading positions that are moved to front and end, and rounds of varying the best order so far."""


class Bids(NamedTuple):
    """Bids seen, pooled: use (N, K + 1), server (N, K + 1), beside, widest, units (N,); worth (N, T) by delay.

    What the horizon cuts off is worth 0.
    """

    use: Floats
    server: Floats
    beside: Ints
    widest: Ints
    units: Ints
    worth: Floats


class Queue(NamedTuple):
    """Waiting jobs: row of the bid, worker-slots left, slots since arrival; all (n,)."""

    bid: Ints
    left: Ints
    age: Ints


class Futures(NamedTuple):
    """Rows of the bids that arrive in each future, in order, and after how many slots (-1: none); both (S, M)."""

    bid: Ints
    after: Ints


def table(jobs: Sequence[Pooled]) -> Bids:
    """Bids as arrays; `worth` of the jobs is by delay."""
    return Bids(
        use=np.array([job.use for job in jobs]),
        server=np.array([np.append(job.server, 0.0) for job in jobs]),
        beside=np.array([job.beside for job in jobs]),
        widest=np.array([job.widest for job in jobs]),
        units=np.array([job.units for job in jobs]),
        worth=np.array([job.worth for job in jobs]),
    )


def futures(rng: np.random.Generator, samples: int, slots: int, per_slot: float, bids: int) -> Futures:
    """Samples futures of `slots` slots with a mean of `per_slot` arrivals, drawn uniformly from the bids seen."""
    count = rng.poisson(per_slot, (samples, slots))
    most = int(count.sum(axis=1).max(initial=0))
    bid, after = rng.integers(0, bids, (samples, most)), np.full((samples, most), -1)
    for s in range(samples):
        after[s, : count[s].sum()] = np.repeat(np.arange(slots), count[s])
    return Futures(bid, after)


@kernel
def _share(bids: Bids, bid: int, left: int, whole: Floats, k: int) -> float:
    """Share of a slot's capacity of k that the rest of a job uses; workers beside the server need no bandwidth."""
    use, beside = bids.use[bid, k], bids.beside[bid] if k == len(whole) - 1 else 0
    return float(left * use / (whole[k] + beside * use))


@kernel
def _rank(bids: Bids, bid: int, left: int, age: int, whole: Floats, kind: int) -> float:
    """Worth per share of capacity: of the dominant resource (kind -1), of one, or of all together (-2)."""
    share, dominant, total = 0.0, 1e-9, 1e-9
    for k in range(len(whole)):
        each = _share(bids, bid, left, whole, k)
        dominant, total = max(dominant, each), total + each
        if k == kind:
            share = each
    done = age + max(int(np.ceil(dominant)), -(-left // bids.widest[bid])) - 1
    if done >= bids.worth.shape[1]:
        return 0.0
    if kind == -1:
        share = dominant
    elif kind == -2:
        share = total
    return float(bids.worth[bid, done] / (share + 0.1 * dominant if kind >= 0 else share))


@kernel
def _serve(bids: Bids, bid: int, left: int, free: Floats) -> int:
    """Workers of a job that fit in free capacity (K + 1,); subtracts them."""
    last = len(free) - 1
    count = min(left, bids.widest[bid])
    for k in range(last):
        if bids.use[bid, k] > 0:
            count = min(count, int((free[k] - bids.server[bid, k]) / bids.use[bid, k] + 1e-9))
        elif free[k] < bids.server[bid, k]:
            count = 0
    if bids.use[bid, last] > 0:
        count = min(count, bids.beside[bid] + int(free[last] / bids.use[bid, last] + 1e-9))
    if count <= 0:
        return 0
    for k in range(last):
        free[k] -= count * bids.use[bid, k] + bids.server[bid, k]
    free[last] -= max(0, count - bids.beside[bid]) * bids.use[bid, last]
    return int(count)


@kernel
def _play(
    bids: Bids, queue: Queue, waiting: int, come: Ints, after: Ints, slots: int, whole: Floats
) -> float:
    """Worth that the default order completes in a future; overwrites the queue, which has room for all arrivals."""
    bid, left, age = queue
    total, n, at = 0.0, waiting, 0
    for t in range(slots):
        while at < len(come) and after[at] == t:
            bid[n], left[n], age[n] = come[at], bids.units[come[at]], 0
            n, at = n + 1, at + 1
        key = np.zeros(n)
        for i in range(n):
            key[i] = -_rank(bids, bid[i], left[i], age[i], whole, -1)
        free = whole.copy()
        for i in np.argsort(key, kind="mergesort"):
            left[i] -= _serve(bids, bid[i], left[i], free)
            if left[i] == 0 and age[i] < bids.worth.shape[1]:
                total += bids.worth[bid[i], age[i]]
        kept = 0
        for i in range(n):
            if left[i] > 0:
                bid[kept], left[kept], age[kept] = bid[i], left[i], age[i] + 1
                kept += 1
        n = kept
    return total


@kernel
def _value(bids: Bids, queue: Queue, served: Ints, drawn: Futures, slots: int, whole: Floats) -> float:
    """Worth completed by serving these workers (n,) now plus the mean of what the default order completes afterwards."""
    n, samples, most = len(queue.bid), drawn.bid.shape[0], drawn.bid.shape[1]
    now, later = 0.0, 0.0
    for i in range(n):
        if served[i] == queue.left[i]:
            now += bids.worth[queue.bid[i], queue.age[i]]
    for s in range(samples):
        bid, left, age = (
            np.zeros(n + most, np.int64),
            np.zeros(n + most, np.int64),
            np.zeros(n + most, np.int64),
        )
        kept = 0
        for i in range(n):
            if served[i] < queue.left[i]:
                bid[kept], left[kept], age[kept] = queue.bid[i], queue.left[i] - served[i], queue.age[i] + 1
                kept += 1
        later += _play(bids, Queue(bid, left, age), kept, drawn.bid[s], drawn.after[s], slots, whole)
    return float(now + later / samples)


@kernel
def _served(bids: Bids, queue: Queue, order: Ints, whole: Floats) -> Ints:
    """Workers (n,) that each job gets in this order."""
    free, served = whole.copy(), np.zeros(len(order), np.int64)
    for i in order:
        served[i] = _serve(bids, queue.bid[i], queue.left[i], free)
    return served


@kernel
def ranked(bids: Bids, queue: Queue, whole: Floats, kind: int) -> Ints:
    """Jobs by falling worth per share (n,)."""
    key = np.zeros(len(queue.bid))
    for i in range(len(key)):
        key[i] = -_rank(bids, queue.bid[i], queue.left[i], queue.age[i], whole, kind)
    order: Ints = np.argsort(key, kind="mergesort")
    return order


@kernel
def _moved(order: Ints, here: int, there: int) -> Ints:
    """The order with one job moved to another position."""
    found = order.copy()
    job = order[here]
    step = 1 if there > here else -1
    for place in range(here, there, step):
        found[place] = order[place + step]
    found[there] = job
    return found


@kernel
def _variants(order: Ints) -> Ints:
    """Orders in which one of the leaders moves to the front, to the end, or up by one."""
    n, leaders = len(order), min(len(order), LEADERS)
    found = np.zeros((3 * leaders, n), np.int64)
    for p in range(leaders):
        found[3 * p] = _moved(order, p, 0)
        found[3 * p + 1] = _moved(order, p, n - 1)
        found[3 * p + 2] = _moved(order, p, max(0, p - 1))
    return found


@kernel
def best_order(bids: Bids, queue: Queue, drawn: Futures, slots: int, whole: Floats) -> Ints:
    """The order of service (n,) with the largest value in the sampled futures; the default order on ties.

    slots: length of the futures; whole (K + 1,): units of each resource in a slot, and GB.
    """
    order: Ints = ranked(bids, queue, whole, -1)
    served = _served(bids, queue, order, whole)
    if (served == queue.left).all():
        return order
    known = [served]
    best = _value(bids, queue, served, drawn, slots, whole)
    for turn in range(ROUNDS):
        tried, better = _variants(order), False
        if turn == 0:
            first = np.zeros((len(whole) + 1, len(order)), np.int64)
            for k in range(len(first)):
                first[k] = ranked(bids, queue, whole, k if k < len(whole) else -2)
            tried = np.concatenate((first, tried))
        for k in range(len(tried)):
            served = _served(bids, queue, tried[k], whole)
            new = True
            for other in known:
                if (other == served).all():
                    new = False
                    break
            if not new:
                continue
            known.append(served)
            value = _value(bids, queue, served, drawn, slots, whole)
            if value > best + 1e-9:
                best, order, better = value, tried[k], True
        if not better:
            break
    return order
