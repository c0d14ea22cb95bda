"""The baselines' placements on arrays: each job by itself, without regard to pooled volume.

All return (workers (I, R), server (I,)), with server NO_SITE where a job has no such placement.
"""

import numpy as np

from tradewind.model.arrays import Floats, Ints
from tradewind.solvers.kernel import kernel
from tradewind.solvers.transport import transport
from tradewind.systems.mlbroker.kernels.job import best_at_one_site, gather_costs
from tradewind.systems.mlbroker.kernels.pool import Terms, priced_job, terms
from tradewind.systems.mlbroker.kernels.slot import NO_SITE, Slot, chunks
from tradewind.systems.mlbroker.kernels.tree import cheapest


@kernel
def _each_alone(terms: Terms, price: Floats, servers: int, workers: Ints, server: Ints) -> None:
    """Fill in every job's cheapest plan at unit prices (R, K)."""
    for i in range(len(server)):
        _, p, y = cheapest(priced_job(terms, i, price), servers)
        server[i] = p
        for r in range(len(y)):
            workers[i, r] = y[r]


@kernel
def _each_at_one_site(terms: Terms, price: Floats, workers: Ints, server: Ints) -> None:
    """Fill in every job's cheapest plan with workers and server at one site."""
    for i in range(len(server)):
        job = priced_job(terms, i, price)
        gather = gather_costs(job)
        best = np.inf
        server[i] = NO_SITE
        for r in range(price.shape[0]):
            if not job.server_ok[r] or job.most[r] < job.need or job.need > job.total:
                continue
            cost = job.server_usd[r] + job.deploy_usd[r] + job.need * job.worker_usd[r] + gather[r]
            if cost < best:
                best = cost
                server[i] = r
        for r in range(price.shape[0]):
            workers[i, r] = 0
        if server[i] >= 0:
            workers[i, server[i]] = job.need


def selfish(slot: Slot, servers: int = 3) -> tuple[Ints, Ints]:
    """Each job's cheapest plan by itself at list prices."""
    workers, server = _blank(slot)
    _each_alone(terms(slot, 1.0), np.ascontiguousarray(slot.tiers.usd[:, :, 0]), servers, workers, server)
    return workers, server


def central(slot: Slot) -> tuple[Ints, Ints]:
    """Each job's workers and server at the single site that is cheapest at list prices (Sec. 6.3, Cen)."""
    workers, server = _blank(slot)
    _each_at_one_site(terms(slot, 1.0), np.ascontiguousarray(slot.tiers.usd[:, :, 0]), workers, server)
    return workers, server


def cheapest_rent(slot: Slot, price: Floats, ties: np.random.Generator | None = None) -> tuple[Ints, Ints]:
    """OASiS (Sec. 6.3): the lowest rent at current unit prices (R, K), ignoring data and traffic.

    Of equally cheap sites the first, or one that `ties` draws for each job.
    """
    data = terms(slot, 1.0)
    rent_only = data._replace(
        move_usd=np.zeros_like(data.move_usd),
        traffic=np.zeros_like(data.traffic),
        deploy_usd=np.zeros_like(data.deploy_usd),
    )
    workers, server = _blank(slot)
    for i in range(len(server)):
        near = 1.0 if ties is None else 1.0 + 1e-9 * ties.random((len(price), 1))
        job = priced_job(rent_only, i, np.ascontiguousarray(price * near))
        _, at, _ = best_at_one_site(job)
        if at < 0:  # no site holds all its workers
            workers[i] = _cheapest_first(job.worker_usd, job.most, int(job.need))
        else:
            workers[i, at] = job.need
        server[i] = int(np.argmin(np.where(job.server_ok, job.server_usd, np.inf)))
    return workers, server


def _cheapest_first(worker_usd: Floats, most: Ints, need: int) -> Ints:
    """Workers (R,), cheapest sites first."""
    y = np.zeros(len(worker_usd), dtype=np.int64)
    for r in np.argsort(worker_usd, kind="stable"):
        y[r] = min(int(most[r]), need)
        need -= int(y[r])
    return y


def local(slot: Slot, rng: np.random.Generator) -> tuple[Ints, Ints]:
    """Data is processed where it is, the server is at a random site (Sec. 6.3, Lo), so C1 = 0.

    Data at a site where the job may have no workers goes to the nearest allowed site.
    """
    data = terms(slot, 1.0)
    workers, server = _blank(slot)
    for i in range(len(server)):
        sites = np.flatnonzero(data.server_ok[i])
        server[i] = int(sites[rng.integers(len(sites))]) if len(sites) else NO_SITE
        cost = np.where(data.most[i] > 0, slot.move_usd, np.inf)
        flow, _ = transport(cost, slot.data[i], data.most[i] * slot.chunk[i])
        load = flow.sum(axis=0)
        workers[i] = np.maximum(chunks(load, slot.chunk[i]), 0).astype(np.int64)
        missing = int(slot.needed[i] - workers[i].sum())
        if missing > 0:
            workers[i, int(np.argmax(load))] += missing
    return workers, server


def _blank(slot: Slot) -> tuple[Ints, Ints]:
    """No workers and no servers."""
    jobs, sites, _ = slot.shape
    return np.zeros((jobs, sites), dtype=np.int64), np.full(jobs, NO_SITE, dtype=np.int64)
