"""The price learner step by step, compiled: quote a bundle, observe the answer, learn.

For each arrival call `quote` and then `observe`; call `observe_unpriced` instead where there was no room, which says nothing
about the price. Everything the steps read or write is in `LearnerState`.
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
from tradewind.systems.dps.kernels.noise import fit_noise, tally
from tradewind.systems.dps.kernels.place import next_uniform
from tradewind.systems.dps.kernels.state import (
    NEXT_NOISE_FIT,
    NEXT_REFIT,
    NO,
    NO_PRICE,
    PENDING,
    PRICED,
    SEEN,
    YES,
    LearnerState,
    Market,
    Settings,
    Tuning,
)


class Arrival(NamedTuple):
    """A bundle on arrival: kinds, demands, slot, planned and spread runtime, idle items of its two kinds.

    log_paid: log of how often each item is paid (hours, where prices are by the hour; 0 where it is paid once)
    """

    k: int
    m: int
    d_k: int
    d_m: int
    slot: int
    runtime: int
    spread: int
    idle_k: int
    idle_m: int
    log_paid: float


class PriceQuote(NamedTuple):
    """A quote with its reasons: payment, acceptance probability, capacity cost, and the value the model expects.

    A payment of 0 means no offer: future jobs are expected to pay more for the capacity than the highest price.
    """

    payment: float
    chance: float
    cost: float
    value: float


@kernel
def quote(learner: LearnerState, settings: Settings, arrival: Arrival) -> PriceQuote:
    """The payment to ask, at most the highest price per item. Pending until `observe`, unless the payment is 0."""
    tuning, market = settings.tuning, settings.market
    row = _remember(learner, settings, arrival)
    where, weight = np.empty(6, dtype=np.int64), np.empty(6)
    buyer = _buyer(learner, row)
    f = locate(learner.mean, buyer, market.cap_k.shape[0], market.cap_m.shape[0], where, weight)
    spread = variance(learner.cov, where, weight)
    cost = capacity_cost(learner, tuning, market, arrival)
    log_cap = math.log(arrival.d_k + arrival.d_m) + arrival.log_paid + market.log_top
    if cost > (arrival.d_k + arrival.d_m) * math.exp(arrival.log_paid + market.log_top):
        return PriceQuote(0.0, 0.0, cost, math.exp(f))
    sampled = f + tuning.thompson * math.sqrt(spread) * _normal(learner.state)
    left = (1.0 - tuning.thompson**2) * spread
    # Thompson sampling: use the alternative noise as often as it is probable, which also tests it.
    doubtful = next_uniform(learner.state) < learner.doubt[0]
    gap, _ = best_offer(sampled, left, cost, log_cap, learner.rival if doubtful else learner.noise)
    probe = max(tuning.probe_floor, (1.0 + learner.counts[PRICED] / tuning.probe_half) ** -1.5)
    worthwhile = 1.0 if market.slots == math.inf else min(1.0, market.arrivals / tuning.probe_arrivals)
    if next_uniform(learner.state) < worthwhile * probe:
        gap = tuning.probe_reach * (2.0 * next_uniform(learner.state) - 1.0)
    x = min(log_cap, sampled + gap)
    learner.offer[row, 0], learner.offer[row, 1], learner.offer[row, 2] = x, x - f, spread
    learner.counts[PENDING] = row
    return PriceQuote(math.exp(x), accept_chance(x - f, spread, learner.noise), cost, math.exp(f))


@kernel
def reprice(learner: LearnerState, payment: float) -> float:
    """Replace the pending payment (by a floor, a cap or a contract); return its acceptance probability.

    The learner then learns from the payment that was really asked.
    """
    row = learner.counts[PENDING]
    f = learner.offer[row, 0] - learner.offer[row, 1]
    learner.offer[row, 0] = math.log(max(payment, 1e-12))
    learner.offer[row, 1] = learner.offer[row, 0] - f
    return float(accept_chance(learner.offer[row, 1], learner.offer[row, 2], learner.noise))


@kernel
def observe(learner: LearnerState, settings: Settings, accepted: bool) -> None:
    """Learn from the answer to the pending offer."""
    tuning = settings.tuning
    row = learner.counts[PENDING]
    learner.counts[PENDING] = -1
    learner.answer[row] = YES if accepted else NO
    learner.counts[PRICED] += 1
    _learn(learner, settings.market, row)
    if learner.counts[PRICED] >= learner.counts[NEXT_REFIT]:
        due, ring = learner.counts[NEXT_REFIT], learner.hold.shape[0]
        endless = settings.market.slots == math.inf  # then at the latest when the history is all new
        learner.counts[NEXT_REFIT] = min(2 * due, due + ring) if endless else 2 * due
        learner.counts[NEXT_NOISE_FIT] = learner.counts[PRICED] + tuning.noise_every
        refit(learner, settings)
    elif learner.counts[PRICED] >= learner.counts[NEXT_NOISE_FIT]:
        learner.counts[NEXT_NOISE_FIT] += tuning.noise_every
        _refit_noise(learner, tuning)


@kernel
def observe_unpriced(learner: LearnerState, settings: Settings, arrival: Arrival) -> None:
    """Count a bundle without room as demand, not as an answer."""
    _remember(learner, settings, arrival)


@kernel
def capacity_cost(learner: LearnerState, tuning: Tuning, market: Market, arrival: Arrival) -> float:
    """What the bundle's items could earn elsewhere while it holds them, until the horizon."""
    hold = max(1.0, min(arrival.runtime + 1.0, market.slots - arrival.slot))
    near = tuning.relax * (1.0 - math.exp(-hold / tuning.relax))
    cap_k, cap_m = market.cap_k[arrival.k], market.cap_m[arrival.m]
    crowd_k = _crowding(tuning, (arrival.idle_k - 0.5 * arrival.d_k) / cap_k)
    crowd_m = _crowding(tuning, (arrival.idle_m - 0.5 * arrival.d_m) / cap_m)
    price_k, price_m = learner.price[arrival.k], learner.price[market.cap_k.shape[0] + arrival.m]
    cost_k = arrival.d_k * price_k * max(0.0, hold + near * crowd_k)
    return float(cost_k + arrival.d_m * price_m * max(0.0, hold + near * crowd_m))


@kernel
def _crowding(tuning: Tuning, free: float) -> float:
    """Relative surcharge on capacity when the share `free` is idle: 0 at the calm level, steep near full."""
    crowd = math.exp(tuning.steep * (1.0 - free - tuning.calm)) - 1.0
    return crowd + tuning.edge * math.exp(-free / tuning.edge_width)


@kernel
def _remember(learner: LearnerState, settings: Settings, arrival: Arrival) -> int:
    """Record an arrival in the history; adjust the capacity prices every few arrivals. Returns its row."""
    row = learner.counts[SEEN] % learner.hold.shape[0]
    learner.kinds[row, 0], learner.kinds[row, 1] = arrival.k, arrival.m
    learner.demand[row, 0], learner.demand[row, 1] = arrival.d_k, arrival.d_m
    learner.logs[row, 0], learner.logs[row, 1] = math.log(max(1, arrival.spread)), math.log(arrival.d_k)
    learner.paid[row] = arrival.log_paid
    learner.hold[row] = arrival.runtime + 1.0
    learner.came[row] = arrival.slot
    learner.answer[row] = NO_PRICE
    if learner.counts[SEEN] == 0:
        learner.centre[:] = learner.logs[row]
        fill_response(learner.noise, learner.response)
    learner.counts[SEEN] += 1
    learner.cov[0, 0] += learner.hyper[1]
    if learner.counts[SEEN] % settings.tuning.sweep_every == 0:
        sweep(learner, settings.tuning, settings.market)
    return int(row)


@kernel
def _buyer(learner: LearnerState, row: int) -> Buyer:
    return Buyer(
        learner.kinds[row, 0],
        learner.kinds[row, 1],
        learner.demand[row, 0],
        learner.demand[row, 1],
        learner.logs[row, 0] - learner.centre[0],
        learner.logs[row, 1] - learner.centre[1],
        learner.paid[row],
    )


@kernel
def _active(learner: LearnerState, market: Market) -> int:
    """Number of leading entries of theta that can move; pair effects come last and may be off."""
    few = HEAD + market.cap_k.shape[0] + market.cap_m.shape[0]
    return int(learner.mean.shape[0] if learner.hyper[0] > 0.0 else few)


@kernel
def _learn(learner: LearnerState, market: Market, row: int) -> float:
    """Absorb one answer; return the log of its predicted probability."""
    where, weight = np.empty(6, dtype=np.int64), np.empty(6)
    f = locate(
        learner.mean, _buyer(learner, row), market.cap_k.shape[0], market.cap_m.shape[0], where, weight
    )
    spread = variance(learner.cov, where, weight)
    gap = learner.offer[row, 0] - f
    learner.offer[row, 1], learner.offer[row, 2] = gap, spread
    log_z, d1, d2 = tilt(gap, spread, learner.noise, learner.answer[row] == YES)
    absorb(learner.mean, learner.cov, _active(learner, market), where, weight, d1, d2)
    return float(log_z)


@kernel
def sweep(learner: LearnerState, tuning: Tuning, market: Market) -> None:
    """One tatonnement step of the capacity prices over the window of recent arrivals."""
    ring = learner.hold.shape[0]
    span = min(learner.counts[SEEN], tuning.window, ring)
    kinds_k, kinds_m = market.cap_k.shape[0], market.cap_m.shape[0]
    use, room = np.zeros(kinds_k + kinds_m), np.zeros(kinds_k + kinds_m)
    where, weight = np.empty(6, dtype=np.int64), np.empty(6)
    for back in range(span):
        row = (learner.counts[SEEN] - 1 - back) % ring
        k, m = learner.kinds[row, 0], learner.kinds[row, 1]
        d_k, d_m = learner.demand[row, 0], learner.demand[row, 1]
        if d_k > market.cap_k[k] or d_m > market.cap_m[m]:
            continue
        f = locate(learner.mean, _buyer(learner, row), kinds_k, kinds_m, where, weight)
        per_slot = d_k * learner.price[k] + d_m * learner.price[kinds_k + m]
        log_cap = math.log(d_k + d_m) + learner.paid[row] + market.log_top
        _, chance = respond(f, learner.hold[row] * per_slot, log_cap, learner.noise, learner.response)
        use[k] += learner.hold[row] * d_k * chance
        use[kinds_k + m] += learner.hold[row] * d_m * chance
    if market.slots == math.inf:
        newest, oldest = (learner.counts[SEEN] - 1) % ring, (learner.counts[SEEN] - span) % ring
        slots = learner.came[newest] - learner.came[oldest] + 1.0
    else:
        slots = span * market.slots / max(1.0, market.arrivals)
    room[:kinds_k] = market.cap_k * slots * tuning.target
    room[kinds_k:] = market.cap_m * slots * tuning.target
    nudge(learner.price, use, room, tuning.pace)


@kernel
def refit(learner: LearnerState, settings: Settings) -> None:
    """Replay the whole history: refit the noise, choose between hypotheses by evidence, settle capacity prices."""
    tuning, market, prior = settings.tuning, settings.market, settings.prior
    seen = min(learner.counts[SEEN], learner.hold.shape[0])
    learner.centre[0], learner.centre[1] = learner.logs[:seen, 0].mean(), learner.logs[:seen, 1].mean()
    for _ in range(2):
        replay(learner, market, prior)
        _refit_noise(learner, tuning)
    best_value, best_pair, best_wander = -math.inf, 0.0, 0.0
    for pair in (0.0, tuning.pair):
        for wander in (0.0, tuning.wander):
            learner.hyper[0], learner.hyper[1] = pair, wander
            value = replay(learner, market, prior)
            if value > best_value:
                best_value, best_pair, best_wander = value, pair, wander
    if learner.hyper[0] != best_pair or learner.hyper[1] != best_wander:
        learner.hyper[0], learner.hyper[1] = best_pair, best_wander
        replay(learner, market, prior)
    _refit_noise(learner, tuning)
    for _ in range(20):
        sweep(learner, tuning, market)


@kernel
def replay(learner: LearnerState, market: Market, prior: Prior) -> float:
    """Learn every answer again, in order, from the prior; return the log evidence of the hypothesis in `hyper`."""
    ring, seen = learner.hold.shape[0], learner.counts[SEEN]
    hypothesis = Prior(
        prior.level,
        prior.g,
        prior.gamma,
        prior.zeta,
        prior.kind_k,
        prior.kind_m,
        learner.hyper[0],
        learner.hyper[1],
    )
    reset_moments(learner.mean, learner.cov, hypothesis, market.cap_k.shape[0], market.cap_m.shape[0])
    evidence = 0.0
    for step in range(max(0, seen - ring), seen):
        row = step % ring
        learner.cov[0, 0] += learner.hyper[1]
        if learner.answer[row] != NO_PRICE:
            evidence += _learn(learner, market, row)
    return evidence


@kernel
def _refit_noise(learner: LearnerState, tuning: Tuning) -> None:
    """Fit the noise to the prequential gaps of the whole history."""
    seen = min(learner.counts[SEEN], learner.hold.shape[0])
    asked = np.flatnonzero(learner.answer[:seen] != NO_PRICE)
    gap, spread, answers = tally(
        learner.offer[asked, 1], learner.offer[asked, 2], learner.answer[asked] == YES
    )
    learner.noise[:], learner.rival[:], learner.doubt[0] = fit_noise(
        learner.noise, gap, spread, answers, tuning.penalty
    )
    fill_response(learner.noise, learner.response)


@kernel
def _normal(state: NDArray[np.uint64]) -> float:
    """A standard normal number (Box and Muller)."""
    radius = math.sqrt(-2.0 * math.log(1.0 - next_uniform(state)))
    return radius * math.cos(2.0 * math.pi * next_uniform(state))
