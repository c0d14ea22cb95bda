"""The regularised fractional step of the mlBroker paper (Algorithm 1) by water-filling and pairwise Frank-Wolfe.

At the chord of the concave price the slot program (10) separates per job. Each source of data (and a dummy one, so
that sum y = N) spreads its workers over pairs (site r, server site p). The regulariser acts on
v_r = (y_r + s_r) / (N + 1), constraint (8g) with its smallest U. Plans with every worker beside its server are solved
exactly first (`kernels.water`); Frank-Wolfe steps (`kernels.pairs`) follow where the gap over all pairs is too large.
"""

from dataclasses import dataclass

import numpy as np

from tradewind.model.arrays import Floats, Ints
from tradewind.solvers.kernel import kernel
from tradewind.systems.mlbroker.kernels.pairs import (
    Mix,
    PairCosts,
    add_pair,
    blank_mix,
    gap_of,
    oracle,
    rebalance,
    regulariser,
    regulariser_slope,
    step_to,
)
from tradewind.systems.mlbroker.kernels.pool import Terms, terms
from tradewind.systems.mlbroker.kernels.prices import chord_slopes
from tradewind.systems.mlbroker.kernels.slot import Slot
from tradewind.systems.mlbroker.kernels.water import fill_all, start_filling

SWEEPS = 1000
"""Frank-Wolfe passes at most."""
INNER = 4
"""Passes over the pairs in use between two passes over all pairs."""
CLOSE = 0.1
"""Accuracy of the water-filling as a part of the accuracy asked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FractionalDecision:
    """The fractional decision of a slot.

    workers   [y] (I, R)
    server    [s] (I, R)
    presence  [v] (I, R)
    parts     (I, 4) USD for data, rent at the chord, the regulariser, traffic
    gap       (I,) Frank-Wolfe gap: an upper bound on the distance to the optimum, USD
    """

    workers: Floats
    server: Floats
    presence: Floats
    parts: Floats
    gap: Floats


@kernel
def _open(cost: PairCosts, hat: Floats, server: Ints, mix: Mix) -> None:
    """Start with every source at its cheapest pair, presence not counted."""
    sources, sites = cost.move_usd.shape
    oracle(cost, mix, hat, server)
    for s in range(sources):
        at = 0
        for r in range(1, sites):
            if cost.move_usd[s, r] + hat[r] < cost.move_usd[s, at] + hat[at]:
                at = r
        add_pair(cost, mix, s, (at, server[at]), 1.0)


@kernel
def _open_together(cost: PairCosts, accuracy: float, mix: Mix) -> bool:
    """Start with the optimum over plans with worker and server together; False where a source has none, or c = 0."""
    sources, sites = cost.move_usd.shape
    unit = np.empty((sources, sites))
    for s in range(sources):
        least = np.inf
        for r in range(sites):
            unit[s, r] = cost.move_usd[s, r] + cost.same_site_usd[r]
            least = min(least, unit[s, r])
        if not np.isfinite(least):
            return False
    if cost.c <= 0.0:
        return False
    water = start_filling(unit, cost.amount, cost.v0, cost.c, cost.eps, cost.per_worker + cost.per_server)
    fill_all(water, CLOSE * accuracy)
    for s in range(sources):
        total = 0.0
        for j in range(water.reach[s]):
            total += water.brought[s, water.order[s, j]]
        for j in range(water.reach[s]):
            r = water.order[s, j]
            if water.brought[s, r] > 0.0:
                add_pair(cost, mix, s, (r, r), water.brought[s, r] / total)
    return True


@kernel
def spread_job(cost: PairCosts, accuracy: float) -> tuple[Mix, float]:
    """The optimal mix of one job and its gap in USD; stops at a relative gap of `accuracy` or after SWEEPS."""
    sources, sites = cost.move_usd.shape
    hat = np.empty(sites)
    server = np.empty(sites, dtype=np.int64)
    best = np.empty(sources, dtype=np.int64)
    mix = blank_mix(sources, sites)
    if not _open_together(cost, accuracy, mix):
        _open(cost, hat, server, mix)
    for r in range(sites):
        mix.slope[r] = regulariser_slope(mix.v[r], cost.v0[r], cost.c, cost.eps)
    gap = np.inf
    for _sweep in range(SWEEPS):
        oracle(cost, mix, hat, server)
        gap, total = gap_of(cost, mix, hat, best)
        if gap <= accuracy * abs(total):
            break
        for s in range(sources):
            if cost.amount[s] > 0.0:
                step_to(cost, mix, s, best[s], server[best[s]])
        for _ in range(INNER):
            for s in range(sources):
                rebalance(cost, mix, s)
    return mix, gap


@kernel
def _cost_of(terms: Terms, i: int, price: Floats, near: Floats, v0: Floats, eps: float) -> PairCosts:
    """Costs of job i at chord prices (R, K). A job without data needs only its server: one unit without a worker."""
    sites, kinds = price.shape
    sources = 0
    for r in range(sites):
        sources += terms.data[i, r] > 0.0
    need = max(terms.need[i], 1)
    move = np.zeros((sources + 1, sites))
    amount = np.zeros(sources + 1)
    same_site_usd, worker_usd, server_usd = np.empty(sites), np.zeros(sites), np.zeros(sites)
    left, s = float(need), 0
    for r in range(sites):
        for k in range(kinds):
            worker_usd[r] += terms.worker[i, k] * price[r, k]
            server_usd[r] += terms.server[i, k] * price[r, k] / need
        if terms.most[i, r] <= 0:
            worker_usd[r] = np.inf
        if not terms.server_ok[i, r]:
            server_usd[r] = np.inf
        same_site_usd[r] = server_usd[r] if terms.need[i] == 0 else worker_usd[r] + server_usd[r]
        if terms.data[i, r] > 0.0:
            amount[s] = terms.data[i, r] / terms.chunk[i]
            left -= amount[s]
            for q in range(sites):
                move[s, q] = terms.move_usd[r, q] * terms.chunk[i]
            s += 1
    amount[sources] = max(left, 0.0)
    total = need + max(-left, 0.0)
    per_worker = 1.0 / (total + 1.0)
    return PairCosts(
        move,
        amount,
        same_site_usd,
        worker_usd,
        server_usd,
        terms.traffic_usd,
        near,
        terms.traffic[i],
        v0,
        terms.deploy_usd[i].max(),
        eps,
        per_worker,
        per_worker / total,
    )


@kernel
def spread_all(
    terms: Terms,
    price: Floats,
    v0: Floats,
    eps: float,
    accuracy: float,
    out: tuple[Floats, Floats, Floats, Floats],
) -> None:
    """Solve all jobs; fills `out` = (workers (I, R), server (I, R), parts (I, 4), gap (I,))."""
    workers, server, parts, gaps = out
    near = np.full(len(price), np.inf)
    for r in range(len(price)):
        for p in range(len(price)):
            if p != r:
                near[r] = min(near[r], terms.traffic_usd[r, p])
    for i in range(len(gaps)):
        cost = _cost_of(terms, i, price, near, v0[i], eps)
        mix, gaps[i] = spread_job(cost, accuracy)
        need = max(terms.need[i], 1)
        for s in range(len(cost.amount)):
            for a in range(mix.atoms[s]):
                r, p = mix.site[s, a], mix.server[s, a]
                w = mix.weight[s, a] * cost.amount[s]
                server[i, p] += w / need
                parts[i, 1] += w * cost.server_usd[p]
                parts[i, 0] += w * cost.move_usd[s, r]
                if terms.need[i] > 0:
                    workers[i, r] += w
                    parts[i, 1] += w * cost.worker_usd[r]
                    parts[i, 3] += w * cost.traffic * terms.traffic_usd[r, p]
        for r in range(len(mix.v)):
            parts[i, 2] += regulariser(mix.v[r], v0[i, r], cost.c, eps)


def fractional_step(
    slot: Slot, presence: Floats, eps: float = 0.01, accuracy: float = 1e-7
) -> FractionalDecision:
    """Algorithm 1 of the paper for one slot, at the chord of the price.

    presence (I, R): the fractional v of the previous slot, zero for new jobs; `slot.deployed` is not used.
    """
    jobs, sites, _ = slot.shape
    data = terms(slot, 1.0)._replace(deploy_usd=np.repeat(slot.deploy_usd[:, None], sites, axis=1))
    out = (np.zeros((jobs, sites)), np.zeros((jobs, sites)), np.zeros((jobs, 4)), np.zeros(jobs))
    spread_all(data, chord_slopes(slot), np.ascontiguousarray(presence), eps, accuracy, out)
    workers, server, parts, gap = out
    v = (workers + server) / (slot.needed[:, None] + 1.0)
    return FractionalDecision(workers=workers, server=server, presence=v, parts=parts, gap=gap)
