"""Branch and bound over the workers per site: proves a plan of one job at linear prices optimal.

The relaxation of a node (least <= y <= most) is a transport problem: capacity P least_r is already paid, further
capacity costs W_r / P per unit of data, and a dummy source of N P - sum D enforces sum y >= N. Shortest augmenting
paths solve it exactly, so the value of every node is a valid lower bound.
"""

import numpy as np

from tradewind.model.arrays import Floats, Ints
from tradewind.solvers.kernel import kernel
from tradewind.solvers.transport import ship
from tradewind.systems.mlbroker.kernels.job import (
    TOLERANCE,
    PricedJob,
    ascending,
    copy,
    cost_with_server,
    floors,
    solve,
)

WHOLE = 1e-7
"""A worker count this close to an integer counts as that integer."""
FEW_SITES, FEW_NODES = 6, 2_000
"""Up to so many sites a proof takes less than a millisecond; it has never needed so many relaxations."""
LEAF, INFEASIBLE = -1, -2
"""Results of :func:`_split` other than a site: the node is a plan; no plan in it has few enough workers."""


@kernel
def relaxed(job: PricedJob, p: int, least: Ints, most: Ints, y: Floats) -> float:
    """Value of a node's relaxation with the server at p; fills y (R,) with fractional workers."""
    sites = len(least)
    sources = len(job.supply)
    supply = np.empty(sources + 1)
    left = job.need * job.chunk
    for s in range(sources):
        supply[s] = job.supply[s]
        left -= job.supply[s]
    supply[sources] = max(left, 0.0)
    cost = np.full((sources + 1, 2 * sites), np.inf)
    room = np.zeros(2 * sites)
    bill = job.server_usd[p] + job.deploy_usd[p]
    for r in range(sites):
        if most[r] == 0:
            continue
        extra = job.worker_usd[r] + job.traffic_usd[r, p]
        if least[r] > 0:
            bill += least[r] * extra
            if r != p:
                bill += job.deploy_usd[r]
        elif r != p:
            extra += job.deploy_usd[r] / most[r]
        room[r] = least[r] * job.chunk
        room[sites + r] = (most[r] - least[r]) * job.chunk
        for s in range(sources):
            cost[s, r] = job.move_usd[s, r]
            cost[s, sites + r] = job.move_usd[s, r] + extra / job.chunk
        cost[sources, r] = 0.0
        cost[sources, sites + r] = extra / job.chunk
    flow = np.empty(cost.shape)
    bill += ship(cost, supply, room, flow)
    for r in range(sites):
        extra = 0.0
        for s in range(sources + 1):
            extra += flow[s, sites + r]
        y[r] = least[r] + extra / job.chunk
    return float(bill)


@kernel
def _split(job: PricedJob, p: int, y: Floats, least: Ints, most: Ints) -> tuple[int, int]:
    """Site and count to branch on (y_r <= count or y_r > count), or LEAF or INFEASIBLE instead of a site."""
    at = LEAF
    far = WHOLE
    workers = 0.0
    for r in range(len(y)):
        workers += y[r]
        off = abs(y[r] - np.round(y[r]))
        if off > far:
            far = off
            at = r
    if at >= 0:
        return at, int(np.floor(y[at]))
    if workers > job.total + WHOLE:  # integral but too many: halve the widest range
        for r in range(len(y)):
            if most[r] > least[r] and (at < 0 or most[r] - least[r] > most[at] - least[at]):
                at = r
        if at >= 0:
            return at, (least[at] + most[at]) // 2
        return INFEASIBLE, 0
    for r in range(len(y)):  # integral, but deployment is still charged by the worker
        if y[r] > WHOLE and least[r] == 0 and r != p and job.deploy_usd[r] > 0.0:
            return r, 0
    return LEAF, 0


@kernel
def _tree(job: PricedJob, p: int, best: float, plan: Ints, nodes: int) -> tuple[float, float, int]:
    """Search all plans with the server at p: (lower bound, best cost, nodes used); fills `plan` when it improves."""
    sites = len(plan)
    depth = nodes + 2
    lows = np.empty((depth, sites), dtype=np.int64)
    highs = np.empty((depth, sites), dtype=np.int64)
    bounds = np.empty(depth)
    for r in range(sites):
        lows[0, r] = 0
        highs[0, r] = min(job.most[r], job.need)
    bounds[0] = -np.inf  # the caller has a bound of the root
    top = 1
    used = 0
    missed = np.inf
    y = np.empty(sites)
    least = np.empty(sites, dtype=np.int64)
    most = np.empty(sites, dtype=np.int64)
    trial = np.empty(sites, dtype=np.int64)
    while top > 0 and used < nodes:
        top -= 1
        if not bounds[top] < best * (1.0 - TOLERANCE):
            continue
        taken = 0
        for r in range(sites):
            least[r] = lows[top, r]
            most[r] = highs[top, r]
            taken += least[r]
        used += 1
        value = relaxed(job, p, least, most, y)
        if not value < best * (1.0 - TOLERANCE) or taken > job.total:
            continue
        at, count = _split(job, p, y, least, most)
        for r in range(sites):
            trial[r] = int(np.ceil(y[r] - WHOLE))
        cost = cost_with_server(job, p, trial)
        if cost < best:
            best = cost
            copy(trial, plan)
        if at < 0:
            if at == LEAF and cost > value * (1.0 + TOLERANCE):
                missed = min(missed, value)  # integral up to rounding: the node's value still is a bound
            continue
        for side in range(2):  # push the side nearer to the relaxation last: it is searched first
            up = (side == 1) == (y[at] - count > 0.5)
            copy(least, lows[top])
            copy(most, highs[top])
            if up:
                lows[top, at] = count + 1
            else:
                highs[top, at] = count
            bounds[top] = value
            top += 1
    lower = min(best, missed)
    for j in range(top):
        lower = min(lower, bounds[j])
    return lower, best, used


@kernel
def prove(job: PricedJob, servers: int, nodes: int) -> tuple[float, float, int, Ints]:
    """Lower bound over all plans, and cost, server site and workers per site of the best plan found.

    The bound equals the cost (up to 1e-9) unless `nodes` relaxations were not enough.
    """
    cost, p, y = solve(job, servers)
    if job.need == 0:
        return cost, cost, p, y
    low = floors(job)
    order = ascending(low)
    lower = np.inf
    left = nodes
    plan = y.copy()
    for j in range(len(order)):
        q = order[j]
        if not low[q] < cost * (1.0 - TOLERANCE):
            break
        proven, value, used = _tree(job, q, cost, plan, left)
        left -= used
        lower = min(lower, max(proven, low[q]))
        if value < cost:
            cost, p = value, q
            copy(plan, y)
    return min(lower, cost), cost, p, y


@kernel
def cheapest(job: PricedJob, servers: int) -> tuple[float, int, Ints]:
    """A cheap plan (cost, server site, workers per site): the proven optimum on few sites, elsewhere that of `solve`."""
    if len(job.worker_usd) > FEW_SITES:
        return solve(job, servers)
    _, cost, p, y = prove(job, servers, FEW_NODES)
    return cost, p, y
