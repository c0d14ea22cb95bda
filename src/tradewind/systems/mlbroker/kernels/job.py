"""One job at linear prices: where to put its workers and its parameter server, and how to move its data.

For a server at site p a worker at r costs W_r = wage_r + B d_rp, a site that was not deployed costs c once, and
the data moves at least cost to the capacity P y_r. The search starts from one site and from the fractional optimum
and moves, adds and drops workers; `kernels.tree` proves optimality.
"""

from typing import NamedTuple

import numpy as np

from tradewind.model.arrays import Bools, Floats, Ints
from tradewind.solvers.kernel import kernel
from tradewind.solvers.transport import ship

CANDIDATES = 8  # sites that the local search moves workers to, beside those in use
TOLERANCE = 1e-9  # relative: what counts as cheaper


class PricedJob(NamedTuple):
    """A job at linear prices. S sources with data, R sites.

    move (S, R) USD per GB; supply (S,) GB; chunk [P] GB per worker; talk (R, R) USD per worker of traffic [B d];
    wage (R,) USD per worker; serve (R,) USD for the server; fresh (R,) USD for deploying; most (R,) workers that
    fit; server_ok (R,); need [N] workers; total workers allowed in all.
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
    """Indices in ascending order of value, equals in their order; insertion, because there are few."""
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
    """target = source; a loop compiles several times faster than a slice."""
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
    move = np.empty((len(job.supply), used))  # only the sites in use: few, and the paths are short
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
    """A quick lower bound on the cost of y with the server at p: every source to its nearest site with workers."""
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
    """A lower bound on every plan with the server at p.

    The workers in excess of sum D / P are paid at the cheapest site (this is the cut sum y >= N), the others where
    their data is best processed: N W_min + sum_s D_s min_r (d_sr + (W_r - W_min) / P).
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
    """(R,): the lower bound for every site of the server; infinite where it may not go."""
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
    """Workers (R,) after sending every source where data plus workers are cheapest, rounded up, topped up to N."""
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
                return y  # too little room: the caller sees an infinite cost
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
    """The few sites worth moving workers to: cheapest for all the data, or for the data of one source."""
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
    """Best of moving one, half or all workers from a to b (a < 0: add one; b < 0: drop): (cost, how many).

    Only what can cost less than ``limit`` is worked out.
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
    """Improve y in place by moving, adding or dropping workers until nothing helps; returns the cost."""
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
    """A cheap plan (cost, server site, workers per site): one site, then local search at the most promising servers.

    ``servers``: at how many server sites to search; a site whose lower bound reaches the best cost is skipped, so
    where the bound meets the single-site plan this is exact and free.
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
    """Put all workers at the one site that is cheapest for a server at p; fills y, returns the cost."""
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
