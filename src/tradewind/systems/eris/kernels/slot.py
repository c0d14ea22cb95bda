"""One slot of one bidder: what n workers and their parameter server cost at posted prices (Eris, problem (8)).

With a whole number of chunks per worker and slot, workers are interchangeable. For every site p of the server, its own
workers (no traffic) are merged with workers elsewhere (traffic to p), cheapest first, as long as the slot's bandwidth
lasts; the cost curve is the minimum over p. The location of the data plays no part here: data.py adds it.

| symbol | shape  | unit               | meaning                        |
|--------|--------|--------------------|--------------------------------|
| price  | (R, K) | USD per milli-unit | posted prices of the slot, beta |
| free   | (R, K) | milli-units        | free capacity; negative: nothing may run there |
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tradewind.model.arrays import Floats, Ints
from tradewind.solvers.kernel import kernel

SAME = 1e-12
"""Relative difference up to which two sums count as equal."""
NOT_AT_ALL = -1
"""In `remote_limits`: so many workers cannot run. In `with_server`: the server does not fit. As a site: none."""


class SlotSites(NamedTuple):
    """The sites in one slot.

    worker_usd, server_usd  (R,) USD of a worker and of the server at each site
    most                    (R,) workers that fit
    with_server             (R,) workers that fit beside the server; NOT_AT_ALL: the server does not fit
    order                   (R,) sites by rising worker_usd
    traffic_usd             USD for the parameters of a worker away from its server
    """

    worker_usd: Floats
    server_usd: Floats
    most: Ints
    with_server: Ints
    order: Ints
    traffic_usd: float


@kernel
def site_terms(
    price: Floats, free: Ints, worker: Ints, server: Ints, limit: int
) -> tuple[Floats, Floats, Ints, Ints]:
    """The first four fields of `SlotSites`: worker_usd, server_usd, most and with_server, at most `limit` workers."""
    sites, kinds = price.shape
    worker_usd, server_usd = np.zeros(sites), np.zeros(sites)
    most, with_server = np.full(sites, limit), np.full(sites, limit)
    for r in range(sites):
        fits = True
        for k in range(kinds):
            worker_usd[r] += worker[k] * price[r, k]
            server_usd[r] += server[k] * price[r, k]
            have = free[r, k]
            if have < 0:  # no site for this job
                most[r] = 0
            if have < server[k] or have < 0:
                fits = False
            if worker[k] > 0:
                most[r] = min(most[r], max(0, have) // worker[k])
                with_server[r] = min(with_server[r], max(0, have - server[k]) // worker[k])
        if not fits:
            with_server[r] = NOT_AT_ALL
    return worker_usd, server_usd, most, with_server


@kernel
def remote_limit(room: int, traffic: int, limit: int) -> int:
    """Workers that may run away from their server: `traffic` bytes each, `room` bytes in all."""
    if traffic <= 0:
        return limit
    return min(limit, max(0, room // traffic))


@kernel
def remote_limits(room: int, traffic: int, each: int, whole: int, limit: int) -> Ints:
    """How many of n = 0..limit workers may run away from their server (limit + 1,); NOT_AT_ALL: n cannot run.

    `room` bytes carry `traffic` bytes for each remote worker and `each` bytes of data per worker, at most `whole`.
    """
    found = np.full(limit + 1, NOT_AT_ALL)
    for n in range(limit + 1):
        left = room - min(each * n, whole)
        if left < 0:
            break
        found[n] = remote_limit(left, traffic, limit)
    return found


class _Curve(NamedTuple):
    """Least cost (limit + 1,) of n workers, the server's site, and the cost that another site must undercut."""

    cost: Floats
    site: Ints
    bar: Floats


class _Segment(NamedTuple):
    """Costs plus + (total[n + shift] - minus) of n = low + 1..high workers with the server at one site."""

    plus: float
    shift: int
    minus: float
    low: int
    high: int


@kernel
def cost_curve(sites: SlotSites, remote: Ints, limit: int) -> tuple[Floats, Ints]:
    """Cost (limit + 1,) of 0..limit workers in USD (inf: impossible) and the server's site (limit + 1,) or NOT_AT_ALL.

    remote (limit + 1,): how many of n workers may be away from the server, falling with n; see `remote_limits`.
    """
    cost, site, bar = np.full(limit + 1, np.inf), np.full(limit + 1, NOT_AT_ALL), np.full(limit + 1, np.inf)
    cost[0], bar[0] = 0.0, 0.0
    curve = _Curve(cost, site, bar)
    worker_usd, server_usd, _, with_server, order, _ = sites
    total, begin, cheaper = _ranked(sites, limit)
    widest = _widest(remote, limit)
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    for p in range(len(order)):
        room = with_server[p]
        if room < 0:
            continue
        # Elsewhere: the ranking without p's own workers, which are at `first` to `after`.
        own, first, after = worker_usd[p], begin[rank[p]], begin[rank[p] + 1]
        elsewhere, before = begin[-1] - (after - first), cheaper[rank[p]]
        last = min(room + elsewhere, widest[min(room, len(widest) - 1)])
        # Up to `alone` workers are all elsewhere, from `full` on the server's site is full; in between it depends.
        alone = min(before, elsewhere, last, widest[0])
        full = min(last, before + room)
        _improve(curve, total, p, _Segment(server_usd[p], 0, 0.0, 0, alone))
        for n in range(alone + 1, full + 1):
            k = min(max(before, n - room), n, elsewhere, remote[n])
            away = total[k] if k <= first else total[k + after - first] - (total[after] - total[first])
            usd = server_usd[p] + (n - k) * own + away
            if usd < bar[n]:
                cost[n], site[n], bar[n] = usd, p, usd * (1 - SAME)
        mine, turn = server_usd[p] + room * own, max(full, min(last, first + room))
        _improve(curve, total, p, _Segment(mine, -room, 0.0, full, turn))
        skipped = total[after] - total[first]
        _improve(curve, total, p, _Segment(mine, after - first - room, skipped, turn, last))
    return cost, site


@kernel
def _improve(curve: _Curve, total: Floats, p: int, segment: _Segment) -> None:
    """Puts the server at p wherever a segment costs less than the bar.

    Few sites improve anything, so the first loop only tests for that; it compiles to vector instructions.
    """
    plus, shift, minus, low, high = segment
    cost, site, bar = curve
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
def _ranked(sites: SlotSites, limit: int) -> tuple[Floats, Ints, Ints]:
    """Workers away from their server by rising price, no more of a site and in all than `limit` can use.

    Returns the total cost of the first k, where each site's workers begin in the ranking (R + 1,), and how many workers
    cost less there than one beside a server at the site (R,), both by rank.
    """
    worker_usd, _, most, _, order, traffic_usd = sites
    count, widest = len(order), 0
    for r in range(count):
        widest = max(widest, min(most[r], limit))
    total, begin = np.zeros(limit + widest + 1), np.zeros(count + 1, np.int64)
    cheaper = np.zeros(count, np.int64)
    ranked, less = 0, 0
    for i in range(count):
        own = worker_usd[order[i]]
        while worker_usd[order[less]] + traffic_usd < own:
            less += 1
        cheaper[i] = begin[less]
        for _ in range(min(most[order[i]], limit, limit + widest - ranked)):
            total[ranked + 1] = total[ranked] + (own + traffic_usd)
            ranked += 1
        begin[i + 1] = ranked
    return total, begin, cheaper


@kernel
def deploy(sites: SlotSites, remote: int, server: int, count: int, out: Ints) -> None:
    """Writes the workers per site (R,) that the curve priced for `count` workers with the server at `server`."""
    worker_usd, _, most, with_server, order, traffic_usd = sites
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
