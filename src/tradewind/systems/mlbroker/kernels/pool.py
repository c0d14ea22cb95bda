"""A pool of plans per job, filled as the search finds them; `kernels.choice` chooses among them.

A plan is a server site and workers at a few sites. Its rent depends on the pooled volume; the rest of its cost (data,
traffic, deployment) does not and is stored as one number.
"""

from typing import NamedTuple

import numpy as np

from tradewind.model.arrays import Bools, Floats, Ints, Shorts
from tradewind.solvers.kernel import kernel
from tradewind.systems.mlbroker.kernels.job import PricedJob, cost_with_server, gather_costs
from tradewind.systems.mlbroker.kernels.slot import NO_LIMIT, Slot
from tradewind.systems.mlbroker.kernels.tree import cheapest

MOST_SITES = 16
"""Worker sites of a pooled plan at most; wider plans are not kept."""
UNLIMITED_WORKERS = np.int64(1) << 40
"""Stands for no limit on workers."""


class Terms(NamedTuple):
    """A slot as the compiled kernels take it; names and units as in :class:`Slot` but for these.

    deploy_usd  (I, R) USD that deploying counts for in the decision, 0 where deployed
    most        (I, R) workers that a job may have at a site
    need        [N] (I,) workers needed
    total       (I,) workers that a job may have in all
    """

    worker: Floats
    server: Floats
    chunk: Floats
    traffic: Floats
    deploy_usd: Floats
    data: Floats
    move_usd: Floats
    traffic_usd: Floats
    most: Ints
    server_ok: Bools
    need: Ints
    total: Ints
    usd: Floats
    intercept: Floats


class Pool(NamedTuple):
    """Up to A plans per job, with up to W sites each.

    plans    (I,) number of plans
    server   (I, A) server site
    sites    (I, A, W) worker sites, padded
    workers  (I, A, W) workers there
    width    (I, A) number of worker sites
    own      (I, A) cost without rent, USD
    """

    plans: Ints
    server: Shorts
    sites: Shorts
    workers: Shorts
    width: Shorts
    own: Floats


def terms(slot: Slot, deploy_weight: float) -> Terms:
    """Kernel arrays of a slot; `deploy_weight`: the part of the deployment cost that the decision counts."""
    need = slot.needed
    most = np.where(slot.worker_ok, need[:, None], 0)
    limited = np.isfinite(slot.capacity).any()
    if limited:
        most = np.minimum(most, workers_that_fit(slot.worker, slot.capacity))
    server_ok = slot.server_ok
    if limited:
        fits = (slot.server[:, None, :] <= slot.capacity[None] + 1e-9).all(axis=2)
        server_ok = server_ok & fits
    whole = np.ascontiguousarray  # kernels are compiled for one memory layout
    return Terms(
        worker=whole(slot.worker),
        server=whole(slot.server),
        chunk=whole(slot.chunk),
        traffic=whole(slot.traffic),
        deploy_usd=whole(np.where(slot.deployed, 0.0, deploy_weight * slot.deploy_usd[:, None])),
        data=whole(slot.data),
        move_usd=whole(slot.move_usd),
        traffic_usd=whole(slot.traffic_usd),
        most=whole(most, dtype=np.int64),
        server_ok=whole(server_ok),
        need=need,
        total=np.where(slot.most_workers == NO_LIMIT, UNLIMITED_WORKERS, slot.most_workers),
        usd=whole(slot.tiers.usd),
        intercept=whole(slot.tiers.intercept),
    )


def workers_that_fit(worker: Floats, room: Floats) -> Ints:
    """(I, R): workers with demand (I, K) that fit into room (R, K), or UNLIMITED_WORKERS."""
    with np.errstate(divide="ignore", invalid="ignore"):
        each = np.where(worker[:, None, :] > 0.0, room[None] / worker[:, None, :], np.inf).min(axis=2)
    whole: Ints = np.minimum(np.floor(np.maximum(each, 0.0) + 1e-9), float(UNLIMITED_WORKERS)).astype(
        np.int64
    )
    return whole


@kernel
def priced_job(terms: Terms, i: int, price: Floats) -> PricedJob:
    """Job i of the slot at unit prices (R, K)."""
    sites, kinds = price.shape
    sources = 0
    for r in range(sites):
        sources += terms.data[i, r] > 0.0
    move_usd = np.empty((sources, sites))
    supply = np.empty(sources)
    worker_usd = np.zeros(sites)
    server_usd = np.zeros(sites)
    traffic_usd = np.empty((sites, sites))
    s = 0
    for r in range(sites):
        for q in range(sites):
            traffic_usd[r, q] = terms.traffic_usd[r, q] * terms.traffic[i]
        if terms.data[i, r] > 0.0:
            supply[s] = terms.data[i, r]
            for q in range(sites):
                move_usd[s, q] = terms.move_usd[r, q]
            s += 1
        for k in range(kinds):
            worker_usd[r] += terms.worker[i, k] * price[r, k]
            server_usd[r] += terms.server[i, k] * price[r, k]
    return PricedJob(
        move_usd,
        supply,
        terms.chunk[i],
        traffic_usd,
        worker_usd,
        server_usd,
        terms.deploy_usd[i],
        terms.most[i],
        terms.server_ok[i],
        terms.need[i],
        terms.total[i],
    )


def empty_pool(jobs: int, plans: int) -> Pool:
    """A pool with room for `plans` plans per job."""
    # A site and its workers are adjacent: most plans have one site, so a plan is one cache line.
    cells = np.zeros((jobs, plans, MOST_SITES, 2), dtype=np.int32)
    return Pool(
        np.zeros(jobs, dtype=np.int64),
        np.zeros((jobs, plans), dtype=np.int32),
        cells[..., 0],
        cells[..., 1],
        np.zeros((jobs, plans), dtype=np.int32),
        np.zeros((jobs, plans)),
    )


@kernel
def add(pool: Pool, i: int, p: int, y: Ints, own: float) -> int:
    """Add a plan of job i; returns its index, also of an equal one already there, or -1 when it does not fit."""
    width = 0
    for r in range(len(y)):
        width += y[r] > 0
    if width > MOST_SITES or not own < np.inf:
        return -1
    for a in range(pool.plans[i]):
        if pool.server[i, a] != p or pool.width[i, a] != width:
            continue
        same = True
        for z in range(width):
            if y[pool.sites[i, a, z]] != pool.workers[i, a, z]:
                same = False
        if same:
            return a
    a = pool.plans[i]
    if a >= pool.server.shape[1]:
        return -1
    pool.server[i, a] = p
    pool.width[i, a] = width
    pool.own[i, a] = own
    z = 0
    for r in range(len(y)):
        if y[r] > 0:
            pool.sites[i, a, z] = r
            pool.workers[i, a, z] = y[r]
            z += 1
    pool.plans[i] = a + 1
    return int(a)


@kernel
def own_cost(terms: Terms, i: int, p: int, y: Ints) -> float:
    """Cost of plan (p, y) of job i without rent, USD; infinite when the data does not fit."""
    nothing = np.zeros(terms.usd.shape[:2])
    return float(cost_with_server(priced_job(terms, i, nothing), p, y))


@kernel
def add_single_sites(terms: Terms, pool: Pool) -> None:
    """Add, for every job and site, the plan with all workers and the server there, where allowed."""
    sites = terms.data.shape[1]
    nothing = np.zeros(terms.usd.shape[:2])
    y = np.zeros(sites, dtype=np.int64)
    for i in range(terms.data.shape[0]):
        job = priced_job(terms, i, nothing)
        gather = gather_costs(job)
        for r in range(sites):
            if job.server_ok[r] and job.most[r] >= job.need and job.need <= job.total:
                y[r] = job.need
                add(pool, i, r, y, job.deploy_usd[r] + gather[r])
                y[r] = 0


@kernel
def add_responses(terms: Terms, pool: Pool, price: Floats, servers: int, choice: Ints) -> None:
    """Add every job's cheapest plan at unit prices (R, K); sets `choice` (I,) where it was kept."""
    nothing = np.zeros(terms.usd.shape[:2])
    for i in range(terms.data.shape[0]):
        _, p, y = cheapest(priced_job(terms, i, price), servers)
        if p >= 0:
            a = add(pool, i, p, y, cost_with_server(priced_job(terms, i, nothing), p, y))
            if a >= 0:
                choice[i] = a
