"""Quote one bundle, hear yes or no, learn: the price learner step by step, compiled.

The order for one arrival is `quote` and then `hear`, or `pass_by` if there was no room for it (which is not an answer
about the price). Everything the steps read or write is in `Mind`.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tradewind.solvers.kernel import kernel
from tradewind.systems.dps.kernels.demand import (
    HEAD,
    Buyer,
    Prior,
    absorb,
    accept_chance,
    best_offer,
    locate,
    reset_moments,
    tilt,
    variance,
)
from tradewind.systems.dps.kernels.dual import fill_response, nudge, respond
from tradewind.systems.dps.kernels.law import fit_law, tally
from tradewind.systems.dps.kernels.place import next_uniform
from tradewind.systems.dps.kernels.state import (
    NEXT_LAW,
    NEXT_STUDY,
    NO,
    NO_PRICE,
    PENDING,
    PRICED,
    SEEN,
    YES,
    Market,
    Mind,
    Tuning,
)


class Arrival(NamedTuple):
    """A bundle and the moment: kinds, demands, slot, planned and spread runtime, idle items of its two kinds."""

    k: int
    m: int
    d_k: int
    d_m: int
    slot: int
    runtime: int
    spread: int
    idle_k: int
    idle_m: int


class Offered(NamedTuple):
    """A quote with its reasons: payment, expected acceptance, capacity cost, and the value the model expects.

    A payment of zero is no offer: the capacity is worth more to those to come than any price up to 1 per item.
    """

    payment: float
    chance: float
    cost: float
    value: float


@kernel
def quote(mind: Mind, tuning: Tuning, market: Market, prior: Prior, it: Arrival) -> Offered:
    """The payment to ask, at most 1 per item; remembers the offer until `hear` (a payment of 0 has no answer)."""
    row = _remember(mind, tuning, market, prior, it)
    where, weight = np.empty(6, dtype=np.int64), np.empty(6)
    buyer = _buyer(mind, row)
    f = locate(mind.mean, buyer, market.cap_k.shape[0], market.cap_m.shape[0], where, weight)
    spread = variance(mind.cov, where, weight)
    cost = capacity_cost(mind, tuning, market, it)
    log_cap = math.log(it.d_k + it.d_m)
    if cost > it.d_k + it.d_m:
        return Offered(0.0, 0.0, cost, math.exp(f))
    sampled = f + tuning.thompson * math.sqrt(spread) * _normal(mind.state)
    left = (1.0 - tuning.thompson**2) * spread
    # Thompson again: the rival law is believed as often as it is probable, which is also what tests it.
    doubtful = next_uniform(mind.state) < mind.doubt[0]
    gap, _ = best_offer(sampled, left, cost, log_cap, mind.rival if doubtful else mind.law)
    probe = max(tuning.probe_floor, (1.0 + mind.counts[PRICED] / tuning.probe_half) ** -1.5)
    if next_uniform(mind.state) < probe:
        gap = tuning.probe_reach * (2.0 * next_uniform(mind.state) - 1.0)
    x = min(log_cap, sampled + gap)
    mind.offer[row, 0], mind.offer[row, 1], mind.offer[row, 2] = x, x - f, spread
    mind.counts[PENDING] = row
    return Offered(math.exp(x), accept_chance(x - f, spread, mind.law), cost, math.exp(f))


@kernel
def reprice(mind: Mind, payment: float) -> float:
    """Another payment is asked than the one quoted (a floor, a cap, a contract): its expected acceptance.

    The answer will be learned from what was really asked.
    """
    row = mind.counts[PENDING]
    f = mind.offer[row, 0] - mind.offer[row, 1]
    mind.offer[row, 0] = math.log(max(payment, 1e-12))
    mind.offer[row, 1] = mind.offer[row, 0] - f
    return float(accept_chance(mind.offer[row, 1], mind.offer[row, 2], mind.law))


@kernel
def hear(mind: Mind, tuning: Tuning, market: Market, prior: Prior, yes: bool) -> None:
    """The answer to the pending offer."""
    row = mind.counts[PENDING]
    mind.counts[PENDING] = -1
    mind.answer[row] = YES if yes else NO
    mind.counts[PRICED] += 1
    _learn(mind, market, row)
    if mind.counts[PRICED] >= mind.counts[NEXT_STUDY]:
        mind.counts[NEXT_STUDY] *= 2
        mind.counts[NEXT_LAW] = mind.counts[PRICED] + tuning.law_every
        study(mind, tuning, market, prior)
    elif mind.counts[PRICED] >= mind.counts[NEXT_LAW]:
        mind.counts[NEXT_LAW] += tuning.law_every
        _refit_law(mind, tuning)


@kernel
def pass_by(mind: Mind, tuning: Tuning, market: Market, prior: Prior, it: Arrival) -> None:
    """The bundle found no room: it counts as demand, not as an answer."""
    _remember(mind, tuning, market, prior, it)


@kernel
def capacity_cost(mind: Mind, tuning: Tuning, market: Market, it: Arrival) -> float:
    """What the bundle's items could earn elsewhere while it holds them; nothing is worth anything after the horizon."""
    hold = max(1.0, min(it.runtime + 1.0, market.slots - it.slot))
    near = tuning.relax * (1.0 - math.exp(-hold / tuning.relax))
    cap_k, cap_m = market.cap_k[it.k], market.cap_m[it.m]
    crowd_k = _crowding(tuning, (it.idle_k - 0.5 * it.d_k) / cap_k)
    crowd_m = _crowding(tuning, (it.idle_m - 0.5 * it.d_m) / cap_m)
    price_k, price_m = mind.price[it.k], mind.price[market.cap_k.shape[0] + it.m]
    cost_k = it.d_k * price_k * max(0.0, hold + near * crowd_k)
    return float(cost_k + it.d_m * price_m * max(0.0, hold + near * crowd_m))


@kernel
def _crowding(tuning: Tuning, free: float) -> float:
    """How much dearer than usual capacity is when the share `free` is idle: 0 at the calm level, steep near full."""
    crowd = math.exp(tuning.steep * (1.0 - free - tuning.calm)) - 1.0
    return crowd + tuning.edge * math.exp(-free / tuning.edge_width)


@kernel
def _remember(mind: Mind, tuning: Tuning, market: Market, prior: Prior, it: Arrival) -> int:
    """Enter an arrival into the history; now and then adjust the capacity prices."""
    row = mind.counts[SEEN] % mind.hold.shape[0]
    mind.kinds[row, 0], mind.kinds[row, 1] = it.k, it.m
    mind.demand[row, 0], mind.demand[row, 1] = it.d_k, it.d_m
    mind.logs[row, 0], mind.logs[row, 1] = math.log(max(1, it.spread)), math.log(it.d_k)
    mind.hold[row] = it.runtime + 1.0
    mind.answer[row] = NO_PRICE
    if mind.counts[SEEN] == 0:
        mind.centre[:] = mind.logs[row]
        fill_response(mind.law, mind.response)
    mind.counts[SEEN] += 1
    mind.cov[0, 0] += mind.hyper[1]
    if mind.counts[SEEN] % tuning.sweep_every == 0:
        sweep(mind, tuning, market)
    return int(row)


@kernel
def _buyer(mind: Mind, row: int) -> Buyer:
    return Buyer(
        mind.kinds[row, 0],
        mind.kinds[row, 1],
        mind.demand[row, 0],
        mind.demand[row, 1],
        mind.logs[row, 0] - mind.centre[0],
        mind.logs[row, 1] - mind.centre[1],
    )


@kernel
def _active(mind: Mind, market: Market) -> int:
    """How many entries of theta can move: without pair effects, only the first."""
    few = HEAD + market.cap_k.shape[0] + market.cap_m.shape[0]
    return int(mind.mean.shape[0] if mind.hyper[0] > 0.0 else few)


@kernel
def _learn(mind: Mind, market: Market, row: int) -> float:
    """Absorb one answer; the log of its probability before it was heard."""
    where, weight = np.empty(6, dtype=np.int64), np.empty(6)
    f = locate(mind.mean, _buyer(mind, row), market.cap_k.shape[0], market.cap_m.shape[0], where, weight)
    spread = variance(mind.cov, where, weight)
    gap = mind.offer[row, 0] - f
    mind.offer[row, 1], mind.offer[row, 2] = gap, spread
    log_z, d1, d2 = tilt(gap, spread, mind.law, mind.answer[row] == YES)
    absorb(mind.mean, mind.cov, _active(mind, market), where, weight, d1, d2)
    return float(log_z)


@kernel
def sweep(mind: Mind, tuning: Tuning, market: Market) -> None:
    """One tatonnement step of the capacity prices over the window of recent arrivals."""
    ring = mind.hold.shape[0]
    span = min(mind.counts[SEEN], tuning.window, ring)
    kinds_k, kinds_m = market.cap_k.shape[0], market.cap_m.shape[0]
    use, room = np.zeros(kinds_k + kinds_m), np.zeros(kinds_k + kinds_m)
    where, weight = np.empty(6, dtype=np.int64), np.empty(6)
    for back in range(span):
        row = (mind.counts[SEEN] - 1 - back) % ring
        k, m = mind.kinds[row, 0], mind.kinds[row, 1]
        d_k, d_m = mind.demand[row, 0], mind.demand[row, 1]
        if d_k > market.cap_k[k] or d_m > market.cap_m[m]:
            continue
        f = locate(mind.mean, _buyer(mind, row), kinds_k, kinds_m, where, weight)
        per_slot = d_k * mind.price[k] + d_m * mind.price[kinds_k + m]
        _, chance = respond(f, mind.hold[row] * per_slot, math.log(d_k + d_m), mind.law, mind.response)
        use[k] += mind.hold[row] * d_k * chance
        use[kinds_k + m] += mind.hold[row] * d_m * chance
    slots = span * market.slots / max(1.0, market.arrivals)
    room[:kinds_k] = market.cap_k * slots * tuning.target
    room[kinds_k:] = market.cap_m * slots * tuning.target
    nudge(mind.price, use, room, tuning.pace)


@kernel
def study(mind: Mind, tuning: Tuning, market: Market, prior: Prior) -> None:
    """Go over the whole history again: refit the noise, choose between hypotheses by their evidence, settle prices."""
    seen = min(mind.counts[SEEN], mind.hold.shape[0])
    mind.centre[0], mind.centre[1] = mind.logs[:seen, 0].mean(), mind.logs[:seen, 1].mean()
    for _ in range(2):
        replay(mind, market, prior)
        _refit_law(mind, tuning)
    best_value, best_pair, best_wander = -1e300, 0.0, 0.0
    for pair in (0.0, tuning.pair):
        for wander in (0.0, tuning.wander):
            mind.hyper[0], mind.hyper[1] = pair, wander
            value = replay(mind, market, prior)
            if value > best_value:
                best_value, best_pair, best_wander = value, pair, wander
    if mind.hyper[0] != best_pair or mind.hyper[1] != best_wander:
        mind.hyper[0], mind.hyper[1] = best_pair, best_wander
        replay(mind, market, prior)
    _refit_law(mind, tuning)
    for _ in range(20):
        sweep(mind, tuning, market)


@kernel
def replay(mind: Mind, market: Market, prior: Prior) -> float:
    """Start from the prior and hear every answer again, in order; the log evidence of the hypothesis in `hyper`."""
    ring, seen = mind.hold.shape[0], mind.counts[SEEN]
    hypothesis = Prior(
        prior.level,
        prior.g,
        prior.gamma,
        prior.zeta,
        prior.kind_k,
        prior.kind_m,
        mind.hyper[0],
        mind.hyper[1],
    )
    reset_moments(mind.mean, mind.cov, hypothesis, market.cap_k.shape[0], market.cap_m.shape[0])
    evidence = 0.0
    for step in range(max(0, seen - ring), seen):
        row = step % ring
        mind.cov[0, 0] += mind.hyper[1]
        if mind.answer[row] != NO_PRICE:
            evidence += _learn(mind, market, row)
    return evidence


@kernel
def _refit_law(mind: Mind, tuning: Tuning) -> None:
    """Fit the noise to the prequential gaps of the whole history."""
    seen = min(mind.counts[SEEN], mind.hold.shape[0])
    asked = np.flatnonzero(mind.answer[:seen] != NO_PRICE)
    gap, spread, answers = tally(mind.offer[asked, 1], mind.offer[asked, 2], mind.answer[asked] == YES)
    mind.law[:], mind.rival[:], mind.doubt[0] = fit_law(mind.law, gap, spread, answers, tuning.penalty)
    fill_response(mind.law, mind.response)


@kernel
def _normal(state: NDArray[np.uint64]) -> float:
    """A standard normal number (Box and Muller)."""
    radius = math.sqrt(-2.0 * math.log(1.0 - next_uniform(state)))
    return radius * math.cos(2.0 * math.pi * next_uniform(state))
