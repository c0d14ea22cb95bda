"""Pairwise Frank-Wolfe for one job whose sources are spread over pairs (site, server site).

The best pair has a closed form: the cheapest server for each site, then the cheapest site for each source.
"""

from typing import NamedTuple

import numpy as np

from tradewind.model.arrays import Floats, Ints
from tradewind.solvers.kernel import kernel

ATOMS = 64
"""Pairs that a source is spread over at most, or the number of sites if that is larger."""


@kernel
def regulariser_slope(v: float, v0: float, c: float, eps: float) -> float:
    """Slope of the regulariser: (c / sigma) ln((v + eps) / (v0 + eps)) above v0, zero below.

    The paper's (10) has the same slope below v0, where it is negative and rewards staying. Presence up to v0 is free
    and C3 is (v - v0)+, so the slope is zero there.
    """
    if v <= v0:
        return 0.0
    return float(c / np.log(1.0 + 1.0 / eps) * np.log((v + eps) / (v0 + eps)))


@kernel
def regulariser(v: float, v0: float, c: float, eps: float) -> float:
    """(c / sigma) ((v + eps) ln((v + eps) / (v0 + eps)) + v0 - v) above v0, zero below; USD."""
    if v <= v0:
        return 0.0
    return float(c / np.log(1.0 + 1.0 / eps) * ((v + eps) * np.log((v + eps) / (v0 + eps)) + v0 - v))


class PairCosts(NamedTuple):
    """Costs of one job. S sources, the last a dummy without data; R sites. Infinite where a worker or server may not go.

    move_usd           (S, R) USD per worker at r for the data of s
    amount             (S,) workers of each source; they add up to N
    same_site_usd      (R,) USD per worker with the server at the same site
    worker_usd         (R,) rent of a worker
    server_usd         (R,) rent of the server, per worker
    traffic_usd        (R, R) USD per unit of traffic
    least_traffic_usd  (R,) USD per unit of traffic to the nearest other site
    traffic            units of traffic per worker
    v0                 (R,) presence in the previous slot
    c, eps             deployment cost in USD and epsilon of the regulariser
    per_worker         presence that a worker adds at its site: 1 / (N + 1)
    per_server         presence that a worker adds at its server's site: per_worker / N
    """

    move_usd: Floats
    amount: Floats
    same_site_usd: Floats
    worker_usd: Floats
    server_usd: Floats
    traffic_usd: Floats
    least_traffic_usd: Floats
    traffic: float
    v0: Floats
    c: float
    eps: float
    per_worker: float
    per_server: float


@kernel
def pair_usd(cost: PairCosts, r: int, p: int) -> float:
    """USD per worker at r with the server at p, without data and presence."""
    if r == p:
        return float(cost.same_site_usd[r])
    return float(cost.worker_usd[r] + cost.traffic * cost.traffic_usd[r, p] + cost.server_usd[p])


class Mix(NamedTuple):
    """A fractional plan: each source's weights on up to A pairs.

    site, server, weight  (S, A) the pairs and their weights
    atoms                 (S,) pairs in use
    v, slope              (R,) presence, and the regulariser's slope there
    """

    site: Ints
    server: Ints
    weight: Floats
    atoms: Ints
    v: Floats
    slope: Floats


@kernel
def oracle(cost: PairCosts, mix: Mix, hat: Floats, server: Ints) -> None:
    """Fill hat (R,), the least USD of a worker at each site with its presence, and server (R,), the best server site.

    Other server sites are tried only where the nearest one with the cheapest server would beat the same site.
    """
    sites = len(hat)
    per_worker, per_server = cost.per_worker, cost.per_server
    cheap = np.inf
    for p in range(sites):
        cheap = min(cheap, cost.server_usd[p] + mix.slope[p] * per_server)
    for r in range(sites):
        best = cost.same_site_usd[r] + mix.slope[r] * per_server
        server[r] = r
        if cost.worker_usd[r] + cost.traffic * cost.least_traffic_usd[r] + cheap < best:
            for p in range(sites):
                value = pair_usd(cost, r, p) + mix.slope[p] * per_server
                if value < best:
                    best = value
                    server[r] = p
        hat[r] = best + mix.slope[r] * per_worker


@kernel
def gap_of(cost: PairCosts, mix: Mix, hat: Floats, best: Ints) -> tuple[float, float]:
    """Frank-Wolfe gap and linear value of the mix, USD; fills best (S,) with each source's cheapest site."""
    sources, sites = cost.move_usd.shape
    per_worker, per_server = cost.per_worker, cost.per_server
    gap = 0.0
    total = 0.0
    for s in range(sources):
        at = 0
        for r in range(1, sites):
            if cost.move_usd[s, r] + hat[r] < cost.move_usd[s, at] + hat[at]:
                at = r
        best[s] = at
        mine = 0.0
        for a in range(mix.atoms[s]):
            r, p = mix.site[s, a], mix.server[s, a]
            value = (
                cost.move_usd[s, r]
                + pair_usd(cost, r, p)
                + mix.slope[r] * per_worker
                + mix.slope[p] * per_server
            )
            mine += mix.weight[s, a] * value
        total += cost.amount[s] * mine
        gap += cost.amount[s] * (mine - cost.move_usd[s, at] - hat[at])
    return gap, total


@kernel
def _line(cost: PairCosts, mix: Mix, sides: Ints, rate: Floats, slope: float, most: float) -> float:
    """Best t in [0, most] along v[sides] + rate t (4 sites): Newton steps with bisection on the derivative."""
    scale = cost.c / np.log(1.0 + 1.0 / cost.eps)
    site = np.empty(4, dtype=np.int64)
    pace = np.empty(4)
    count = 0
    for j in range(4):
        known = -1
        for m in range(count):  # the same site may appear several times
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


@kernel
def step_to(cost: PairCosts, mix: Mix, s: int, to_r: int, to_p: int) -> None:
    """Move source s from its most expensive pair towards (to_r, to_p) by exact line search."""
    per_worker, per_server = cost.per_worker, cost.per_server
    worst, place = 0, -1
    highest = -np.inf
    for a in range(mix.atoms[s]):
        r, p = mix.site[s, a], mix.server[s, a]
        value = (
            cost.move_usd[s, r] + pair_usd(cost, r, p) + mix.slope[r] * per_worker + mix.slope[p] * per_server
        )
        if value > highest:
            highest = value
            worst = a
        if r == to_r and p == to_p:
            place = a
    if place == worst or (place < 0 and mix.atoms[s] == mix.site.shape[1]):
        return
    r, p = mix.site[s, worst], mix.server[s, worst]
    sides = np.empty(4, dtype=np.int64)
    rate = np.empty(4)
    sides[0], sides[1], sides[2], sides[3] = r, p, to_r, to_p
    rate[0], rate[1], rate[2], rate[3] = -per_worker, -per_server, per_worker, per_server
    slope = cost.move_usd[s, to_r] + pair_usd(cost, to_r, to_p) - cost.move_usd[s, r] - pair_usd(cost, r, p)
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
        mix.slope[sides[j]] = regulariser_slope(mix.v[sides[j]], cost.v0[sides[j]], cost.c, cost.eps)
    if mix.weight[s, worst] <= 1e-15:
        last = mix.atoms[s] - 1
        mix.atoms[s] = last
        mix.site[s, worst], mix.server[s, worst] = mix.site[s, last], mix.server[s, last]
        mix.weight[s, worst] = mix.weight[s, last]


@kernel
def rebalance(cost: PairCosts, mix: Mix, s: int) -> None:
    """Move source s from its most expensive to its cheapest pair among those in use."""
    low, at = np.inf, 0
    for a in range(mix.atoms[s]):
        r, p = mix.site[s, a], mix.server[s, a]
        value = cost.move_usd[s, r] + pair_usd(cost, r, p)
        value += mix.slope[r] * cost.per_worker + mix.slope[p] * cost.per_server
        if value < low:
            low, at = value, a
    if mix.atoms[s] > 1:
        step_to(cost, mix, s, mix.site[s, at], mix.server[s, at])


@kernel
def blank_mix(sources: int, sites: int) -> Mix:
    """A mix without any pairs."""
    most = max(ATOMS, sites)
    return Mix(
        np.empty((sources, most), dtype=np.int64),
        np.empty((sources, most), dtype=np.int64),
        np.empty((sources, most)),
        np.zeros(sources, dtype=np.int64),
        np.zeros(sites),
        np.zeros(sites),
    )


@kernel
def add_pair(cost: PairCosts, mix: Mix, s: int, pair: tuple[int, int], weight: float) -> None:
    """Give source s a new pair."""
    at = mix.atoms[s]
    mix.site[s, at], mix.server[s, at], mix.weight[s, at] = pair[0], pair[1], weight
    mix.atoms[s] += 1
    mix.v[pair[0]] += weight * cost.amount[s] * cost.per_worker
    mix.v[pair[1]] += weight * cost.amount[s] * cost.per_server
