"""One job at linear prices: where to put its workers and its parameter server, and how to move its data.

With the server at site p, a worker at r costs W_r = worker_usd_r + B d_rp, a newly deployed site costs c once, and
the data moves at least cost to the capacity P y_r. The search starts from the best single site and from the
fractional optimum, then moves, adds and drops workers; `kernels.tree` proves optimality.
"""

from typing import NamedTuple

import numpy as np

from tradewind.model.arrays import Bools, Floats, Ints
from tradewind.solvers.kernel import kernel
from tradewind.solvers.transport import ship

CANDIDATES = 8
"""Sites, besides those in use, that the local search moves workers to."""
TOLERANCE = 1e-9
"""Relative difference below which a cost does not count as lower."""


class PricedJob(NamedTuple):
    """A job at linear prices. S sources with data, R sites.

    move_usd     (S, R) USD per unit of data
    supply       (S,) data at each source
    chunk        [P] data per worker
    traffic_usd  (R, R) USD for the traffic of one worker [B d]
    worker_usd   (R,) rent of a worker
    server_usd   (R,) rent of the server
    deploy_usd   (R,) cost of deploying, 0 where deployed
    most         (R,) workers that are allowed and fit
    server_ok    (R,) where the server may go
    need         [N] workers needed
    total        workers allowed in all
    """

    move_usd: Floats
    supply: Floats
    chunk: float
    traffic_usd: Floats
    worker_usd: Floats
    server_usd: Floats
    deploy_usd: Floats
    most: Ints
    server_ok: Bools
    need: int
    total: int


@kernel
def ascending(values: Floats) -> Ints:
    """Indices in ascending order of value, ties in index order; insertion sort, because there are few."""
    order = np.empty(len(values), dtype=np.int64)
    for i in range(len(values)):
        j = i
        while j > 0 and values[order[j - 1]] > values[i]:
            order[j] = order[j - 1]
            j -= 1
        order[j] = i
    return order


@kernel
def copy(source: Ints, target: Ints) -> None:
    """Copy `source` into `target`; a loop compiles several times faster than a slice assignment."""
    for j in range(len(source)):
        target[j] = source[j]


@kernel
def cost_with_server(job: PricedJob, p: int, y: Ints) -> float:
    """Full cost of y (R,) workers per site with the server at p; infinite when the data does not fit."""
    sites = len(y)
    bill = job.server_usd[p] + job.deploy_usd[p]
    workers = 0
    used = 0
    for r in range(sites):
        if y[r] > 0:
            used += 1
            workers += y[r]
            bill += y[r] * (job.worker_usd[r] + job.traffic_usd[r, p])
            if r != p:
                bill += job.deploy_usd[r]
    if workers < job.need or workers > job.total:
        return np.inf
    room = np.empty(used)
    move = np.empty((len(job.supply), used))  # only sites in use: few, so augmenting paths are short
    j = 0
    for r in range(sites):
        if y[r] > 0:
            room[j] = y[r] * job.chunk
            for s in range(len(job.supply)):
                move[s, j] = job.move_usd[s, r]
            j += 1
    return float(bill + ship(move, job.supply, room, np.empty(move.shape)))


@kernel
def optimistic_cost(job: PricedJob, p: int, y: Ints) -> float:
    """Lower bound on :func:`cost_with_server`: each source goes to its nearest site with workers."""
    sites = len(y)
    bill = job.server_usd[p] + job.deploy_usd[p]
    workers = 0
    for r in range(sites):
        if y[r] > 0:
            workers += y[r]
            bill += y[r] * (job.worker_usd[r] + job.traffic_usd[r, p])
            if r != p:
                bill += job.deploy_usd[r]
    if workers < job.need or workers > job.total:
        return np.inf
    for s in range(len(job.supply)):
        near = np.inf
        for r in range(sites):
            if y[r] > 0 and job.move_usd[s, r] < near:
                near = job.move_usd[s, r]
        bill += job.supply[s] * near
    return float(bill)


@kernel
def floor_with_server(job: PricedJob, p: int) -> float:
    """Lower bound on every plan with the server at p: N W_min + sum_s D_s min_r (d_sr + (W_r - W_min) / P).

    Workers beyond sum D / P are charged at the cheapest site (the cut sum y >= N), the others where their data is
    processed at least cost.
    """
    sites = len(job.worker_usd)
    least = np.inf
    for r in range(sites):
        if job.most[r] > 0:
            least = min(least, job.worker_usd[r] + job.traffic_usd[r, p])
    bill = job.server_usd[p] + job.deploy_usd[p]
    if job.need == 0:
        return float(bill)
    if least == np.inf:
        return np.inf
    bill += job.need * least
    for s in range(len(job.supply)):
        best = np.inf
        for r in range(sites):
            if job.most[r] > 0:
                best = min(
                    best, job.move_usd[s, r] + (job.worker_usd[r] + job.traffic_usd[r, p] - least) / job.chunk
                )
        bill += job.supply[s] * best
    return float(bill)


@kernel
def floors(job: PricedJob) -> Floats:
    """(R,): lower bound for each site of the server; infinite where it may not go."""
    out = np.full(len(job.worker_usd), np.inf)
    for p in range(len(out)):
        if job.server_ok[p]:
            out[p] = floor_with_server(job, p)
    return out


@kernel
def gather_costs(job: PricedJob) -> Floats:
    """(R,): cost of moving all the data of the job to each site."""
    out = np.zeros(len(job.worker_usd))
    for s in range(len(job.supply)):
        for r in range(len(out)):
            out[r] += job.supply[s] * job.move_usd[s, r]
    return out


@kernel
def best_at_one_site(job: PricedJob) -> tuple[float, int, int]:
    """Cheapest plan with all workers at one site r and the server at p: (cost, r, p); infinite when none fits."""
    sites = len(job.worker_usd)
    gather = gather_costs(job)
    best = np.inf
    at, server = -1, -1
    for r in range(sites):
        if job.need > 0 and (job.most[r] < job.need or job.need > job.total):
            continue
        mine = gather[r] + job.need * job.worker_usd[r] if job.need > 0 else 0.0
        for p in range(sites):
            if not job.server_ok[p]:
                continue
            bill = mine + job.server_usd[p] + job.deploy_usd[p]
            if job.need > 0:
                bill += job.need * job.traffic_usd[r, p]
                if r != p:
                    bill += job.deploy_usd[r]
            if bill < best:
                best, at, server = bill, r, p
    return best, at, server


@kernel
def spread(job: PricedJob, p: int) -> Ints:
    """Workers (R,): each source goes where data and workers together are cheapest; rounded up, then topped up to N."""
    sites = len(job.worker_usd)
    load = np.zeros(sites)
    room = job.most * job.chunk
    y = np.zeros(sites, dtype=np.int64)
    cheapest = -1
    for r in range(sites):
        if job.most[r] > 0:
            w = job.worker_usd[r] + job.traffic_usd[r, p]
            if cheapest < 0 or w < job.worker_usd[cheapest] + job.traffic_usd[cheapest, p]:
                cheapest = r
    for s in range(len(job.supply)):
        left = job.supply[s]
        while left > 1e-12 * job.supply[s]:
            at = -1
            best = np.inf
            for r in range(sites):
                value = job.move_usd[s, r] + (job.worker_usd[r] + job.traffic_usd[r, p]) / job.chunk
                if room[r] - load[r] > 1e-9 * job.chunk and value < best:
                    best = value
                    at = r
            if at < 0:
                return y  # not enough room: the plan's cost will be infinite
            part = min(left, room[at] - load[at])
            load[at] += part
            left -= part
    short = job.need
    for r in range(sites):
        y[r] = int(np.ceil(load[r] / job.chunk - 1e-9))
        short -= y[r]
    while short > 0 and cheapest >= 0 and y[cheapest] < job.most[cheapest]:
        y[cheapest] += 1
        short -= 1
    return y


@kernel
def candidates(job: PricedJob, p: int) -> Ints:
    """Up to CANDIDATES sites worth moving workers to: cheapest for all the data, or for one source."""
    sites = len(job.worker_usd)
    score = np.full(sites, np.inf)
    gather = gather_costs(job)
    total = 1e-300
    for s in range(len(job.supply)):
        total += job.supply[s]
    for r in range(sites):
        if job.most[r] == 0:
            continue
        near = gather[r] / total
        for s in range(len(job.supply)):
            near = min(near, job.move_usd[s, r])
        score[r] = near + (job.worker_usd[r] + job.traffic_usd[r, p]) / job.chunk
    order = ascending(score)
    count = 0
    while count < min(CANDIDATES, sites) and score[order[count]] < np.inf:
        count += 1
    few: Ints = order[:count]
    return few


@kernel
def _shift(job: PricedJob, p: int, y: Ints, a: int, b: int, limit: float) -> tuple[float, int]:
    """Best of moving one, half or all workers from a to b (a < 0: add one; b < 0: drop): (cost, number moved).

    Moves that cannot cost less than `limit` are skipped.
    """
    best = np.inf
    amount = 0
    have = y[a] if a >= 0 else 1
    last = 0
    for kind in range(3):
        take = 1 if kind == 0 else (have // 2 if kind == 1 else have)
        if take <= last or (b >= 0 and y[b] + take > job.most[b]):
            continue
        last = take
        if a >= 0:
            y[a] -= take
        if b >= 0:
            y[b] += take
        cost = cost_with_server(job, p, y) if optimistic_cost(job, p, y) < limit else np.inf
        if a >= 0:
            y[a] += take
        if b >= 0:
            y[b] -= take
        if cost < best:
            best = cost
            amount = take
    return best, amount


@kernel
def improve(job: PricedJob, p: int, y: Ints, cost: float) -> float:
    """Improve y in place by moving, adding or dropping workers to a local optimum; returns its cost."""
    where = candidates(job, p)
    moved = True
    while moved:
        moved = False
        for a in range(-1, len(y)):
            if a >= 0 and y[a] == 0:
                continue
            for j in range(-1, len(where)):
                b = where[j] if j >= 0 else -1
                if a == b or (a >= 0 and y[a] == 0):
                    continue
                found, amount = _shift(job, p, y, a, b, cost * (1.0 - TOLERANCE))
                if found < cost * (1.0 - TOLERANCE):
                    cost = found
                    moved = True
                    if a >= 0:
                        y[a] -= amount
                    if b >= 0:
                        y[b] += amount
    return cost


@kernel
def solve(job: PricedJob, servers: int) -> tuple[float, int, Ints]:
    """A cheap plan (cost, server site, workers per site): best single site, then local search per server site.

    `servers`: number of server sites to search, most promising first. A site whose lower bound is not below the best
    cost is skipped, so where the bound meets the single-site plan the result is exact. Elsewhere it may be a local optimum;
    `kernels.tree` finds the optimum, and is used instead on few sites.
    """
    sites = len(job.worker_usd)
    y = np.zeros(sites, dtype=np.int64)
    cost, at, p = best_at_one_site(job)
    if job.need == 0:
        return cost, p, y
    if p >= 0:
        y[at] = job.need
    low = floors(job)
    order = ascending(low)
    for j in range(min(servers, sites)):
        q = order[j]
        if not low[q] < cost * (1.0 - TOLERANCE):
            break
        trial = spread(job, q)
        value = improve(job, q, trial, cost_with_server(job, q, trial))
        if value < cost * (1.0 - TOLERANCE):
            cost, p = value, q
            copy(trial, y)
        if p == q or j == 0:
            for r in range(sites):
                trial[r] = 0
            mine = best_given_server(job, q, trial)
            value = improve(job, q, trial, mine)
            if value < cost * (1.0 - TOLERANCE):
                cost, p = value, q
                copy(trial, y)
    return cost, p, y


@kernel
def best_given_server(job: PricedJob, p: int, y: Ints) -> float:
    """Put all workers at the single site that is cheapest with the server at p; fills y, returns the cost."""
    gather = gather_costs(job)
    best = np.inf
    at = -1
    for r in range(len(y)):
        if job.most[r] >= job.need and job.need <= job.total:
            bill = gather[r] + job.need * (job.worker_usd[r] + job.traffic_usd[r, p])
            if r != p:
                bill += job.deploy_usd[r]
            if bill < best:
                best = bill
                at = r
    if at < 0:
        return np.inf
    y[at] = job.need
    return float(best + job.server_usd[p] + job.deploy_usd[p])
