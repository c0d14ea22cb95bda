"""The cost of a slot's decision in its four parts: Eqs. (1), (3), (5) and (6)."""

import numpy as np

from tradewind.model.arrays import Floats, Ints
from tradewind.solvers.kernel import kernel
from tradewind.solvers.transport import ship
from tradewind.systems.mlbroker.kernels.pool import Terms, priced_job, terms
from tradewind.systems.mlbroker.kernels.prices import bill
from tradewind.systems.mlbroker.kernels.slot import Slot


@kernel
def _parts(terms: Terms, workers: Ints, server: Ints, parts: Floats, usage: Floats) -> None:
    """Add each job's USD for data, deployment and traffic to `parts` (I, 3), and its use to `usage` (R, K)."""
    nothing = np.zeros(usage.shape)
    for i in range(len(server)):
        p = server[i]
        if p < 0:
            continue
        job = priced_job(terms, i, nothing)
        used = 0
        for r in range(usage.shape[0]):
            used += workers[i, r] > 0
        room = np.empty(used)
        move = np.empty((len(job.supply), used))
        j = 0
        parts[i, 1] += job.deploy_usd[p]
        for k in range(usage.shape[1]):
            usage[p, k] += terms.server[i, k]
        for r in range(usage.shape[0]):
            y = workers[i, r]
            if y > 0:
                room[j] = y * job.chunk
                for s in range(len(job.supply)):
                    move[s, j] = job.move_usd[s, r]
                j += 1
                parts[i, 2] += y * job.traffic_usd[r, p]
                if r != p:
                    parts[i, 1] += job.deploy_usd[r]
                for k in range(usage.shape[1]):
                    usage[r, k] += y * terms.worker[i, k]
        if len(job.supply) > 0:
            parts[i, 0] = ship(move, job.supply, room, np.empty(move.shape)) if used > 0 else np.inf


def job_parts(slot: Slot, workers: Ints, server: Ints) -> tuple[Floats, Floats]:
    """Each job's own costs (I, 3) in USD (data, deployment, traffic) and the pooled usage (R, K)."""
    jobs, sites, kinds = slot.shape
    parts, usage = np.zeros((jobs, 3)), np.zeros((sites, kinds))
    _parts(
        terms(slot, 1.0), np.ascontiguousarray(workers, np.int64), np.ascontiguousarray(server), parts, usage
    )
    return parts, usage


def cost_parts(slot: Slot, workers: Ints, server: Ints) -> tuple[float, float, float, float]:
    """(C1, C2, C3, C4) in USD of workers (I, R) and server sites (I,) or NO_SITE; C1 is infinite when data does not fit.

    Every worker pays its traffic to the server, g = y s: the printed (8i)-(8j) let surplus workers connect to a site
    without a server for free.
    """
    parts, usage = job_parts(slot, workers, server)
    data, deployment, traffic = (float(x) for x in parts.sum(axis=0))
    return data, float(bill(usage, slot.tiers.usd, slot.tiers.intercept)), deployment, traffic
