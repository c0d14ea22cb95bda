"""The regularised fractional step of the mlBroker paper (Algorithm 1) by pairwise Frank-Wolfe, job by job.

With the chord of the concave price as unit price the slot program (10) separates per job. Each source of data (and
a dummy one, so that sum y = N) spreads its workers over pairs (site r, server site p); the best pair has a closed
form. The regulariser acts on v_r = (y_r + s_r) / (N + 1), constraint (8g) with its smallest U.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numba import njit

from tradewind.maths.broker_pool import Terms, task, terms
from tradewind.maths.broker_prices import chord_slopes
from tradewind.maths.broker_slot import Floats, Ints, Slot

ATOMS = 64  # most pairs that a source is spread over at a time
INNER = 4  # passes over the pairs at hand between two looks at all pairs


@dataclass(frozen=True, slots=True, kw_only=True)
class Fraction:
    """Fractional decision: workers [y] (I, R), server [s] (I, R), presence [v] (I, R).

    parts (I, 4): USD for data, rent at the chord, the regulariser, traffic; gap (I,): Frank-Wolfe gap, an upper
    bound on the distance to the optimum in USD.
    """

    workers: Floats
    server: Floats
    presence: Floats
    parts: Floats
    gap: Floats


@njit(cache=True)
def _steep(v: float, v0: float, c: float, eps: float) -> float:
    """Slope of the regulariser: (c / sigma) ln((v + eps) / (v0 + eps)) above v0.

    Paper (10) keeps the slope below v0, where it is negative: a reward for staying. Here it is zero there, because
    v may be taken as large as v0 for free and C3 is (v - v0)+.
    """
    if v <= v0:
        return 0.0
    return float(c / np.log(1.0 + 1.0 / eps) * np.log((v + eps) / (v0 + eps)))


@njit(cache=True)
def regulariser(v: float, v0: float, c: float, eps: float) -> float:
    """(c / sigma) ((v + eps) ln((v + eps) / (v0 + eps)) + v0 - v) above v0, zero below; USD."""
    if v <= v0:
        return 0.0
    return float(c / np.log(1.0 + 1.0 / eps) * ((v + eps) * np.log((v + eps) / (v0 + eps)) + v0 - v))


class Cost(NamedTuple):
    """What a job pays. S sources (the last one a dummy without data), R sites.

    move (S, R): USD per worker at r for the data of s; amount (S,): workers of each source, summing to N; pair
    (R, R): USD per worker at r with the server at p; v0 (R,): presence in the slot before; c USD; eps. A worker adds
    per_worker = 1 / (N + 1) to the presence of its site, and per_server = per_worker / N to that of its server's.
    """

    move: Floats
    amount: Floats
    pair: Floats
    v0: Floats
    c: float
    eps: float
    per_worker: float
    per_server: float


class Mix(NamedTuple):
    """Where the sources are: weights on pairs (site, server), (S, ATOMS); atoms (S,) in use; presence v and slope (R,)."""

    site: Ints
    server: Ints
    weight: Floats
    atoms: Ints
    v: Floats
    slope: Floats


@njit(cache=True)
def _oracle(cost: Cost, mix: Mix, hat: Floats, server: Ints) -> None:
    """hat_r = wage + slope / (N + 1) + min over p of traffic and server with its slope; the minimising p."""
    sites = len(hat)
    per_worker, per_server = cost.per_worker, cost.per_server
    for r in range(sites):
        best = np.inf
        for p in range(sites):
            value = cost.pair[r, p] + mix.slope[p] * per_server
            if value < best:
                best = value
                server[r] = p
        hat[r] = best + mix.slope[r] * per_worker


@njit(cache=True)
def _gap(cost: Cost, mix: Mix, hat: Floats, best: Ints) -> tuple[float, float]:
    """Frank-Wolfe gap and linear value of the mix, USD; fills best (S,) with each source's cheapest site."""
    sources, sites = cost.move.shape
    per_worker, per_server = cost.per_worker, cost.per_server
    gap = 0.0
    total = 0.0
    for s in range(sources):
        at = 0
        for r in range(1, sites):
            if cost.move[s, r] + hat[r] < cost.move[s, at] + hat[at]:
                at = r
        best[s] = at
        mine = 0.0
        for a in range(mix.atoms[s]):
            r, p = mix.site[s, a], mix.server[s, a]
            value = cost.move[s, r] + cost.pair[r, p] + mix.slope[r] * per_worker + mix.slope[p] * per_server
            mine += mix.weight[s, a] * value
        total += cost.amount[s] * mine
        gap += cost.amount[s] * (mine - cost.move[s, at] - hat[at])
    return gap, total


@njit(cache=True)
def _line(cost: Cost, mix: Mix, sides: Ints, rate: Floats, slope: float, most: float) -> float:
    """Best amount t in [0, most] to move: Newton with bisection on the derivative along v[sides] + rate t (4 sites)."""
    scale = cost.c / np.log(1.0 + 1.0 / cost.eps)
    site = np.empty(4, dtype=np.int64)
    pace = np.empty(4)
    count = 0
    for j in range(4):
        known = -1
        for m in range(count):  # the same site may be on several sides
            if site[m] == sides[j]:
                known = m
        if known >= 0:
            pace[known] += rate[j]
        else:
            site[count], pace[count] = sides[j], rate[j]
            count += 1
    low, high, t = 0.0, most, most
    for turn in range(60):
        at, bend = slope, 0.0
        for m in range(count):
            v, v0 = mix.v[site[m]] + pace[m] * t, cost.v0[site[m]]
            if v > v0:
                at += pace[m] * scale * np.log((v + cost.eps) / (v0 + cost.eps))
                bend += pace[m] * pace[m] * scale / (v + cost.eps)
        if at > 0.0:
            high = t
        elif turn == 0:
            return most
        else:
            low = t
        if high - low <= 1e-12 * most:
            break
        step = t - at / bend if bend > 0.0 else -1.0
        if low < step < high and abs(step - t) <= 1e-13 * most:
            return step
        t = step if low < step < high else 0.5 * (low + high)
    return low


@njit(cache=True)
def _step(cost: Cost, mix: Mix, s: int, to_r: int, to_p: int) -> None:
    """Move source s from its dearest pair towards (to_r, to_p) by an exact line search."""
    per_worker, per_server = cost.per_worker, cost.per_server
    worst, place = 0, -1
    dear = -np.inf
    for a in range(mix.atoms[s]):
        r, p = mix.site[s, a], mix.server[s, a]
        value = cost.move[s, r] + cost.pair[r, p] + mix.slope[r] * per_worker + mix.slope[p] * per_server
        if value > dear:
            dear = value
            worst = a
        if r == to_r and p == to_p:
            place = a
    if place == worst or (place < 0 and mix.atoms[s] == ATOMS):
        return
    r, p = mix.site[s, worst], mix.server[s, worst]
    sides = np.empty(4, dtype=np.int64)
    rate = np.empty(4)
    sides[0], sides[1], sides[2], sides[3] = r, p, to_r, to_p
    rate[0], rate[1], rate[2], rate[3] = -per_worker, -per_server, per_worker, per_server
    slope = cost.move[s, to_r] + cost.pair[to_r, to_p] - cost.move[s, r] - cost.pair[r, p]
    moved = _line(cost, mix, sides, rate, slope, mix.weight[s, worst] * cost.amount[s])
    if moved <= 0.0:
        return
    if place < 0:
        place = mix.atoms[s]
        mix.atoms[s] += 1
        mix.site[s, place], mix.server[s, place], mix.weight[s, place] = to_r, to_p, 0.0
    mix.weight[s, place] += moved / cost.amount[s]
    mix.weight[s, worst] -= moved / cost.amount[s]
    for j in range(4):
        mix.v[sides[j]] += rate[j] * moved
    for j in range(4):
        mix.slope[sides[j]] = _steep(mix.v[sides[j]], cost.v0[sides[j]], cost.c, cost.eps)
    if mix.weight[s, worst] <= 1e-15:
        last = mix.atoms[s] - 1
        mix.atoms[s] = last
        mix.site[s, worst], mix.server[s, worst] = mix.site[s, last], mix.server[s, last]
        mix.weight[s, worst] = mix.weight[s, last]


@njit(cache=True)
def _settle(cost: Cost, mix: Mix, s: int) -> None:
    """Move source s from its dearest to its cheapest pair among those it has."""
    low, at = np.inf, 0
    for a in range(mix.atoms[s]):
        r, p = mix.site[s, a], mix.server[s, a]
        value = cost.move[s, r] + cost.pair[r, p]
        value += mix.slope[r] * cost.per_worker + mix.slope[p] * cost.per_server
        if value < low:
            low, at = value, a
    if mix.atoms[s] > 1:
        _step(cost, mix, s, mix.site[s, at], mix.server[s, at])


@njit(cache=True)
def _open(cost: Cost, hat: Floats, server: Ints) -> Mix:
    """Every source at its cheapest pair when presence is free."""
    sources, sites = cost.move.shape
    mix = Mix(
        np.zeros((sources, ATOMS), dtype=np.int64),
        np.zeros((sources, ATOMS), dtype=np.int64),
        np.zeros((sources, ATOMS)),
        np.ones(sources, dtype=np.int64),
        np.zeros(sites),
        np.zeros(sites),
    )
    per_worker, per_server = cost.per_worker, cost.per_server
    _oracle(cost, mix, hat, server)
    for s in range(sources):
        at = 0
        for r in range(1, sites):
            if cost.move[s, r] + hat[r] < cost.move[s, at] + hat[at]:
                at = r
        mix.site[s, 0], mix.server[s, 0], mix.weight[s, 0] = at, server[at], 1.0
        mix.v[at] += cost.amount[s] * per_worker
        mix.v[server[at]] += cost.amount[s] * per_server
    for r in range(sites):
        mix.slope[r] = _steep(mix.v[r], cost.v0[r], cost.c, cost.eps)
    return mix


@njit(cache=True)
def spread_job(cost: Cost, accuracy: float) -> tuple[Mix, float]:
    """The optimal mix of one job and its gap in USD; stops at ``accuracy`` relative, or after 1000 sweeps."""
    sources, sites = cost.move.shape
    hat = np.empty(sites)
    server = np.empty(sites, dtype=np.int64)
    best = np.empty(sources, dtype=np.int64)
    mix = _open(cost, hat, server)
    gap = np.inf
    for _sweep in range(1000):
        _oracle(cost, mix, hat, server)
        gap, total = _gap(cost, mix, hat, best)
        if gap <= accuracy * abs(total):
            break
        for s in range(sources):
            if cost.amount[s] > 0.0:
                _step(cost, mix, s, best[s], server[best[s]])
        for _ in range(INNER):
            for s in range(sources):
                _settle(cost, mix, s)
    return mix, gap


@njit(cache=True)
def _cost_of(terms: Terms, i: int, price: Floats, v0: Floats, eps: float) -> Cost:
    """Job i at chord prices (R, K). A job without data needs only its server: one unit that is nowhere a worker."""
    job = task(terms, i, price)
    sources, sites = job.move.shape
    need = max(job.need, 1)
    move = np.zeros((sources + 1, sites))
    amount = np.zeros(sources + 1)
    left = float(need)
    for s in range(sources):
        amount[s] = job.supply[s] / job.chunk
        left -= amount[s]
        for r in range(sites):
            move[s, r] = job.move[s, r] * job.chunk
    amount[sources] = max(left, 0.0)
    total = need + max(-left, 0.0)
    c = 0.0
    pair = np.empty((sites, sites))
    for r in range(sites):
        c = max(c, terms.charge[i, r])
        for p in range(sites):
            pair[r, p] = np.inf
            if not job.server_ok[p]:
                continue
            if job.need == 0 and r == p:
                pair[r, p] = job.serve[p]
            elif job.most[r] > 0:
                pair[r, p] = job.wage[r] + job.talk[r, p] + job.serve[p] / need
    per_worker = 1.0 / (total + 1.0)
    return Cost(move, amount, pair, v0, c, eps, per_worker, per_worker / total)


@njit(cache=True)
def spread_all(
    terms: Terms,
    price: Floats,
    v0: Floats,
    eps: float,
    accuracy: float,
    out: tuple[Floats, Floats, Floats, Floats],
) -> None:
    """All jobs: fills out = (workers (I, R), server (I, R), parts (I, 4), gap (I,))."""
    workers, server, parts, gaps = out
    for i in range(len(gaps)):
        cost = _cost_of(terms, i, price, v0[i], eps)
        mix, gaps[i] = spread_job(cost, accuracy)
        job = task(terms, i, price)
        need = max(job.need, 1)
        for s in range(len(cost.amount)):
            for a in range(mix.atoms[s]):
                r, p = mix.site[s, a], mix.server[s, a]
                w = mix.weight[s, a] * cost.amount[s]
                server[i, p] += w / need
                parts[i, 1] += w * job.serve[p] / need
                parts[i, 0] += w * cost.move[s, r]
                if job.need > 0:
                    workers[i, r] += w
                    parts[i, 1] += w * job.wage[r]
                    parts[i, 3] += w * job.talk[r, p]
        for r in range(len(mix.v)):
            parts[i, 2] += regulariser(mix.v[r], v0[i, r], cost.c, eps)


def fractional_step(slot: Slot, presence: Floats, eps: float = 0.01, accuracy: float = 1e-7) -> Fraction:
    """Algorithm 1 of the paper for one slot, at the chord of the price.

    presence (I, R): the fractional v of the slot before (zero for new jobs); ``slot.deployed`` is not used.
    """
    jobs, sites, _ = slot.shape
    data = terms(slot, 1.0)._replace(charge=np.repeat(slot.deploy_usd[:, None], sites, axis=1))
    out = (np.zeros((jobs, sites)), np.zeros((jobs, sites)), np.zeros((jobs, 4)), np.zeros(jobs))
    spread_all(data, chord_slopes(slot), np.ascontiguousarray(presence), eps, accuracy, out)
    workers, server, parts, gap = out
    v = (workers + server) / (slot.needed[:, None] + 1.0)
    return Fraction(workers=workers, server=server, presence=v, parts=parts, gap=gap)
