"""One slot of one bidder: what n workers and their parameter server cost at posted prices (Eris, problem (8)).

With an integer number of chunks per worker and slot, workers are interchangeable units. For every site p of the server
its own workers (no traffic) are merged with workers elsewhere (traffic to p), cheapest first, as long as the slot's
bandwidth lasts; the cost curve is the minimum over p. Where data lies plays no part here: `auction_data` adds it.

| symbol  | shape  | unit | meaning                                                        |
|---------|--------|------|----------------------------------------------------------------|
| price   | (R, K) | USD per milli-unit | posted prices of the slot, beta                  |
| free    | (R, K) | milli-units | what is left                                            |
| most    | (R,)   | workers | that fit at a site; with_server (R,): beside the server, -1: the server does not fit |
"""

from __future__ import annotations

import numpy as np

from tradewind.model.arrays import Floats, Ints
from tradewind.solvers.kernel import kernel

SAME = 1e-12
"""Sums that differ by less than this share are equal but for rounding."""


@kernel
def site_terms(
    price: Floats, free: Ints, worker: Ints, server: Ints, limit: int
) -> tuple[Floats, Floats, Ints, Ints]:
    """Prices of a worker and of a server (R,) in USD, and how many workers fit without and beside the server (R,)."""
    sites, kinds = price.shape
    worker_usd, server_usd = np.zeros(sites), np.zeros(sites)
    most, with_server = np.full(sites, limit), np.full(sites, limit)
    for r in range(sites):
        fits = True
        for k in range(kinds):
            worker_usd[r] += worker[k] * price[r, k]
            server_usd[r] += server[k] * price[r, k]
            have = free[r, k]
            if have < server[k] or have < 0:
                fits = False
            if worker[k] > 0:
                most[r] = min(most[r], max(0, have) // worker[k])
                with_server[r] = min(with_server[r], max(0, have - server[k]) // worker[k])
        if not fits:
            with_server[r] = -1
    return worker_usd, server_usd, most, with_server


@kernel
def remote_limit(room: int, traffic: int, limit: int) -> int:
    """Workers that may run away from their server: traffic bytes each, room bytes in all."""
    if traffic <= 0:
        return limit
    return min(limit, max(0, room // traffic))


@kernel
def remote_limits(room: int, traffic: int, each: int, whole: int, limit: int) -> Ints:
    """Of n = 0..limit workers (limit + 1,) those that may run away from their server; -1: so many cannot run at all.

    room bytes carry traffic bytes for each of them, and `each` bytes of data for every worker, `whole` at most.
    """
    found = np.full(limit + 1, -1)
    for n in range(limit + 1):
        left = room - min(each * n, whole)
        if left < 0:
            break
        found[n] = remote_limit(left, traffic, limit)
    return found


@kernel
def cost_curve(
    worker_usd: Floats,
    server_usd: Floats,
    most: Ints,
    with_server: Ints,
    order: Ints,
    traffic_usd: float,
    remote: Ints,
    limit: int,
) -> tuple[Floats, Ints]:
    """Cost (limit + 1,) of 0..limit workers in USD (inf: impossible) and the server's site (limit + 1,), -1 for none.

    order (R,): sites by rising worker_usd. traffic_usd: USD for a worker away from the server; remote (limit + 1,): how
    many of n may be away (falling with n; -1: n cannot run).
    """
    cost, site = np.full(limit + 1, np.inf), np.full(limit + 1, -1)
    cost[0] = 0.0
    bar = cost * (1 - SAME)
    total, begin, cheaper = _ranked(worker_usd, most, order, traffic_usd, limit)
    widest = _widest(remote, limit)
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    for p in range(len(order)):
        if with_server[p] < 0:
            continue
        # Elsewhere: the ranking without p's own workers, which lie from `first` to `after`.
        own, room, first, after = worker_usd[p], with_server[p], begin[rank[p]], begin[rank[p] + 1]
        elsewhere, before = begin[-1] - (after - first), cheaper[rank[p]]
        last = min(room + elsewhere, widest[min(room, len(widest) - 1)])
        # Up to `alone` workers are all elsewhere, from `full` on the server's site is full; in between it depends.
        alone = min(before, elsewhere, last, widest[0])
        full = min(last, before + room)
        _improve(server_usd[p], total, 0, 0.0, 0, alone, p, cost, site, bar)
        for n in range(alone + 1, full + 1):
            k = min(max(before, n - room), n, elsewhere, remote[n])
            away = total[k] if k <= first else total[k + after - first] - (total[after] - total[first])
            usd = server_usd[p] + (n - k) * own + away
            if usd < bar[n]:
                cost[n], site[n], bar[n] = usd, p, usd * (1 - SAME)
        mine, turn = server_usd[p] + room * own, max(full, min(last, first + room))
        _improve(mine, total, -room, 0.0, full, turn, p, cost, site, bar)
        _improve(
            mine, total, after - first - room, total[after] - total[first], turn, last, p, cost, site, bar
        )
    return cost, site


@kernel
def _improve(
    plus: float, total: Floats, shift: int, minus: float, low: int, high: int, p: int, cost: Floats, site: Ints,
    bar: Floats,
) -> None:  # fmt: skip
    """Server at p where plus + (total[n + shift] - minus) is less than bar[n], for low < n <= high.

    Few sites improve anything, so that is looked for first, which compiles to vector instructions.
    """
    if high <= low:
        return
    found, begin = 0, np.uint64(low + 1)  # unsigned: an index that cannot be negative needs no test
    there = np.uint64(low + 1 + shift)
    for i in range(np.uint64(high - low)):
        found += plus + (total[there + i] - minus) < bar[begin + i]
    if found == 0:
        return
    for n in range(low + 1, high + 1):
        usd = plus + (total[n + shift] - minus)
        if usd < bar[n]:
            cost[n], site[n], bar[n] = usd, p, usd * (1 - SAME)


@kernel
def _widest(remote: Ints, limit: int) -> Ints:
    """Most workers with up to 0, 1, 2, ... of them beside the server (the last entry: any number), as bandwidth allows."""
    top, n = 0, 0
    while top < limit and remote[top + 1] >= 0:
        top += 1
    found = np.empty(top + 1, np.int64)
    for room in range(top + 1):
        while n < top and n + 1 - remote[n + 1] <= room:
            n += 1
        found[room] = n
    return found


@kernel
def _ranked(
    worker_usd: Floats, most: Ints, order: Ints, traffic_usd: float, limit: int
) -> tuple[Floats, Ints, Ints]:
    """Workers away from their server by rising price: what the first k cost in all, where each site's begin in the
    ranking (R + 1,), and how many cost less there than one beside a server at the site (R,), both by rank.
    No more of a site, and of all, than `limit` can make use of."""
    sites, widest = len(order), 0
    for r in range(sites):
        widest = max(widest, min(most[r], limit))
    total, begin, cheaper = (
        np.zeros(limit + widest + 1),
        np.zeros(sites + 1, np.int64),
        np.zeros(sites, np.int64),
    )
    count, less = 0, 0
    for i in range(sites):
        own = worker_usd[order[i]]
        while worker_usd[order[less]] + traffic_usd < own:
            less += 1
        cheaper[i] = begin[less]
        for _ in range(min(most[order[i]], limit, limit + widest - count)):
            total[count + 1] = total[count] + (own + traffic_usd)
            count += 1
        begin[i + 1] = count
    return total, begin, cheaper


@kernel
def deploy(
    worker_usd: Floats,
    most: Ints,
    with_server: Ints,
    order: Ints,
    traffic_usd: float,
    remote: int,
    server: int,
    count: int,
    out: Ints,
) -> None:
    """Writes the workers per site (R,) that the curve priced for `count` workers with the server at `server`."""
    out[:] = 0
    local, away, at = with_server[server], remote, 0
    for _ in range(count):
        while at < len(order) and (order[at] == server or out[order[at]] >= most[order[at]]):
            at += 1
        other = worker_usd[order[at]] + traffic_usd if at < len(order) and away > 0 else np.inf
        if local > 0 and worker_usd[server] <= other:
            local -= 1
            out[server] += 1
        else:
            out[order[at]] += 1
            away -= 1
