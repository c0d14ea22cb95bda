"""The integer decision of a slot: a plan for every job such that pooled volume reaches discount tiers.

Concave prices make many sets of reached tiers a local optimum of "jobs respond to prices, prices to volume". The
search therefore starts from prices that trigger tiers: one site at its last tier while the others look expensive.
It then flips single sites to their last tier or pushes jobs away from them, and re-prices jobs exactly.
"""

from dataclasses import dataclass

import numpy as np

from tradewind.model.arrays import Floats, Ints
from tradewind.solvers.kernel import kernel
from tradewind.systems.mlbroker.kernels.choice import Plans, descend, marginal_of, packed, tally, unpack, use
from tradewind.systems.mlbroker.kernels.job import copy
from tradewind.systems.mlbroker.kernels.pool import Terms, add_responses, add_single_sites, empty_pool, terms
from tradewind.systems.mlbroker.kernels.prices import chord_slopes, piece
from tradewind.systems.mlbroker.kernels.slot import Slot

MARKUP = 3.0
"""Factor on list prices that keeps jobs away from a site."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchEffort:
    """How hard to search: rounds of exact re-pricing, and server sites searched per job."""

    rounds: int = 3
    servers: int = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotDecision:
    """Workers (I, R), server site (I,) or NO_SITE, cost in USD as the decision counts it, marginal prices (R, K)."""

    workers: Ints
    server: Ints
    cost: float
    price: Floats


@kernel
def _rise(terms: Terms, usage: Floats, r: int, amounts: Floats, times: float) -> float:
    """Rise of the rent of site r when `times * amounts` (K,) more is used there."""
    more = 0.0
    for k in range(usage.shape[1]):
        if amounts[k] > 0.0:
            usd, intercept = terms.usd[r, k], terms.intercept[r, k]
            old = usage[r, k]
            new = old + times * amounts[k]
            j = piece(usd, intercept, old)
            more -= usd[j] * old + intercept[j]
            j = piece(usd, intercept, new)
            more += usd[j] * new + intercept[j]
    return float(more)


@kernel
def _added(terms: Terms, plans: Plans, i: int, a: int, usage: Floats) -> float:
    """Cost of adding plan a of job i to `usage`: its own cost and the rise of the pooled rent."""
    n = plans.first[i] + a
    p = plans.server[n]
    cost = plans.own[n]
    alone = True
    both = np.empty(usage.shape[1])
    for z in range(plans.cell[n], plans.cell[n + 1]):
        r = plans.site[z]
        if r == p:
            alone = False
            for k in range(len(both)):
                both[k] = terms.server[i, k] + plans.workers[z] * terms.worker[i, k]
            cost += _rise(terms, usage, r, both, 1.0)
        else:
            cost += _rise(terms, usage, r, terms.worker[i], float(plans.workers[z]))
    if alone:
        cost += _rise(terms, usage, p, terms.server[i], 1.0)
    return float(cost)


@kernel
def polish(terms: Terms, plans: Plans, choice: Ints) -> float:
    """Let one job after the other take the plan that lowers the pooled cost most, until none does; returns the cost."""
    usage = np.empty(terms.usd.shape[:2])
    tally(terms, plans, choice, usage)
    moved = True
    sweeps = 0
    while moved and sweeps < 50:
        moved = False
        sweeps += 1
        for i in range(len(choice)):
            use(terms, plans, i, choice[i], -1.0, usage)
            now = _added(terms, plans, i, choice[i], usage)
            best = choice[i]
            for a in range(plans.first[i + 1] - plans.first[i]):
                cost = _added(terms, plans, i, a, usage)
                if cost < now - 1e-10 * abs(now):
                    now = cost
                    best = a
            if best != choice[i]:
                moved = True
                choice[i] = best
            use(terms, plans, i, best, 1.0, usage)
    return float(tally(terms, plans, choice, usage))


@kernel
def trigger_starts(terms: Terms, plans: Plans, choice: Ints, best: float) -> float:
    """Descend from each site at its last tier with the others at MARKUP times list price; keep the best choice."""
    sites, kinds, last = terms.usd.shape
    price = np.empty((sites, kinds))
    trial = np.zeros(len(choice), dtype=np.int64)
    for r in range(sites):
        for q in range(sites):
            for k in range(kinds):
                price[q, k] = terms.usd[q, k, last - 1] if q == r else MARKUP * terms.usd[q, k, 0]
        cost = descend(terms, plans, price, trial)
        if cost < best:
            best = cost
            copy(trial, choice)
    return best


@kernel
def flip_sites(terms: Terms, plans: Plans, choice: Ints, best: float) -> float:
    """Descend from the incumbent's prices with one site at its last tier or at MARKUP times list; keep improvements."""
    sites, kinds, last = terms.usd.shape
    usage = np.empty((sites, kinds))
    base = np.empty((sites, kinds))
    price = np.empty((sites, kinds))
    trial = np.zeros(len(choice), dtype=np.int64)
    marginal_of(terms, plans, choice, usage, base)
    quiet = 0
    step = 0
    while quiet < 2 * sites:
        r = step % sites
        away = (step // sites) % 2 == 1
        step += 1
        quiet += 1
        used = False
        for k in range(kinds):
            used = used or usage[r, k] > 0.0
        if away and not used:
            continue
        for q in range(sites):
            for k in range(kinds):
                price[q, k] = base[q, k]
        for k in range(kinds):
            price[r, k] = MARKUP * terms.usd[r, k, 0] if away else terms.usd[r, k, last - 1]
        cost = descend(terms, plans, price, trial)
        if cost < best - 1e-10 * abs(best):
            best = cost
            copy(trial, choice)
            marginal_of(terms, plans, choice, usage, base)
            quiet = 0
    return best


def start_prices(slot: Slot, before: Floats | None) -> list[Floats]:
    """Unit prices (R, K) whose best responses start the pool: list, last tier, chord, the previous slot's."""
    prices = [slot.tiers.usd[:, :, 0], slot.tiers.usd[:, :, -1], chord_slopes(slot)]
    if before is not None:
        prices.append(before)
    return [np.ascontiguousarray(price) for price in prices]


def search(
    slot: Slot, deploy_weight: float = 1.0, effort: SearchEffort | None = None, before: Floats | None = None
) -> SlotDecision:
    """Decide a slot without shared capacity; `before`: marginal prices (R, K) of the previous slot, if any.

    Every job must have at least one plan (`kernels.limits.conflicts` lists those without).
    """
    effort = effort or SearchEffort()
    data = terms(slot, deploy_weight)
    jobs, sites, kinds = slot.shape
    starts = start_prices(slot, before)
    pool = empty_pool(jobs, sites + 4 * (len(starts) + 2 * effort.rounds))
    add_single_sites(data, pool)
    choice = np.zeros(jobs, dtype=np.int64)
    trial = np.zeros(jobs, dtype=np.int64)
    for price in starts:
        add_responses(data, pool, price, effort.servers, trial)
    plans = packed(pool)
    best = np.inf
    for price in starts:
        cost = descend(data, plans, price.copy(), trial)
        if cost < best:
            best, choice = cost, trial.copy()
    best = trigger_starts(data, plans, choice, best)
    usage = np.empty((sites, kinds))
    price = np.empty((sites, kinds))
    for _ in range(effort.rounds):
        was = best
        best = flip_sites(data, plans, choice, best)
        best = polish(data, plans, choice)
        marginal_of(data, plans, choice, usage, price)
        add_responses(data, pool, price, effort.servers, trial)
        plans = packed(pool)
        best = min(best, polish(data, plans, choice))
        if best >= was * (1.0 - 1e-9):
            break
    marginal_of(data, plans, choice, usage, price)
    workers, server = unpack(plans, choice, sites)
    return SlotDecision(workers=workers, server=server, cost=float(best), price=price)
