"""Each job's cheapest plan at given unit prices, and the pooled cost of the chosen plans.

The search does this hundreds of times per slot, so plans are packed without gaps: with padding, the time per job grew
with the number of jobs once the pool no longer fit the CPU cache.
"""

from typing import NamedTuple

import numpy as np

from tradewind.model.arrays import Floats, Ints, Shorts
from tradewind.solvers.kernel import kernel
from tradewind.systems.mlbroker.kernels.job import copy
from tradewind.systems.mlbroker.kernels.pool import Pool, Terms
from tradewind.systems.mlbroker.kernels.prices import bill, marginal


class Plans(NamedTuple):
    """A pool without gaps: plan a of job i is n = first[i] + a of P; its workers are cells cell[n] to cell[n + 1] of C.

    first (I + 1,); server, own (P,); cell (P + 1,); site, workers (C,).
    """

    first: Ints
    server: Shorts
    own: Floats
    cell: Ints
    site: Shorts
    workers: Shorts


def packed(pool: Pool) -> Plans:
    """The plans of a pool, in order, without gaps."""
    first = np.zeros(len(pool.plans) + 1, dtype=np.int64)
    np.cumsum(pool.plans, out=first[1:])
    held = np.arange(pool.server.shape[1])[None, :] < pool.plans[:, None]
    width = pool.width[held]
    cell = np.zeros(len(width) + 1, dtype=np.int64)
    np.cumsum(width, out=cell[1:])
    filled = np.arange(pool.sites.shape[2])[None, :] < width[:, None]
    return Plans(
        first, pool.server[held], pool.own[held], cell, pool.sites[held][filled], pool.workers[held][filled]
    )


@kernel
def respond(terms: Terms, plans: Plans, price: Floats, choice: Ints) -> None:
    """Set `choice` (I,) to every job's cheapest plan at unit prices (R, K); ties go to the earliest."""
    sites, kinds = price.shape
    worker_usd = np.empty(sites)
    server_usd = np.empty(sites)
    for i in range(len(choice)):
        for r in range(sites):
            w = 0.0
            m = 0.0
            for k in range(kinds):
                w += terms.worker[i, k] * price[r, k]
                m += terms.server[i, k] * price[r, k]
            worker_usd[r] = w
            server_usd[r] = m
        best = np.inf
        for n in range(plans.first[i], plans.first[i + 1]):
            cost = plans.own[n] + server_usd[plans.server[n]]
            for z in range(plans.cell[n], plans.cell[n + 1]):
                cost += plans.workers[z] * worker_usd[plans.site[z]]
            if cost < best:
                best = cost
                choice[i] = n - plans.first[i]


@kernel
def use(terms: Terms, plans: Plans, i: int, a: int, sign: float, usage: Floats) -> None:
    """Add (sign 1) or remove (-1) what plan a of job i uses in `usage` (R, K)."""
    n = plans.first[i] + a
    for k in range(usage.shape[1]):
        usage[plans.server[n], k] += sign * terms.server[i, k]
        for z in range(plans.cell[n], plans.cell[n + 1]):
            usage[plans.site[z], k] += sign * plans.workers[z] * terms.worker[i, k]


@kernel
def tally(terms: Terms, plans: Plans, choice: Ints, usage: Floats) -> float:
    """Fill `usage` (R, K) and return the full cost of the chosen plans, with the pooled rent."""
    for r in range(usage.shape[0]):
        for k in range(usage.shape[1]):
            usage[r, k] = 0.0
    own = 0.0
    for i in range(len(choice)):
        use(terms, plans, i, choice[i], 1.0, usage)
        own += plans.own[plans.first[i] + choice[i]]
    return float(own + bill(usage, terms.usd, terms.intercept))


@kernel
def descend(terms: Terms, plans: Plans, price: Floats, choice: Ints) -> float:
    """Alternate best responses to prices and prices at the volume reached until the cost stops falling.

    Leaves the final state in `choice` and `price` and returns its cost. No round raises the cost, because the tier
    reached is the cheapest of the linear pieces.
    """
    usage = np.empty(price.shape)
    trial = np.empty(len(choice), dtype=np.int64)
    best = np.inf
    while True:
        respond(terms, plans, price, trial)
        cost = tally(terms, plans, trial, usage)
        if best < np.inf and not cost < best - 1e-12 * abs(best):
            marginal_of(terms, plans, choice, usage, price)
            return best
        best = cost
        copy(trial, choice)
        marginal(usage, terms.usd, terms.intercept, price)


@kernel
def marginal_of(terms: Terms, plans: Plans, choice: Ints, usage: Floats, price: Floats) -> None:
    """Fill `usage` and marginal `price` (both (R, K)) of the chosen plans."""
    tally(terms, plans, choice, usage)
    marginal(usage, terms.usd, terms.intercept, price)


def unpack(plans: Plans, choice: Ints, sites: int) -> tuple[Ints, Ints]:
    """Workers (I, R) and server site (I,) of the chosen plans."""
    number = plans.first[:-1] + choice
    workers = np.zeros((len(choice), sites), dtype=np.int64)
    for i, n in enumerate(number.tolist()):
        held = slice(plans.cell[n], plans.cell[n + 1])
        workers[i, plans.site[held]] = plans.workers[held]
    return workers, plans.server[number].astype(np.int64)
