"""The state of a price learner as plain arrays, which can be saved and restored exactly, and its settings."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tradewind.model.arrays import Bytes, Floats, Ints
from tradewind.systems.dps.kernels.demand import Prior, prior_moments
from tradewind.systems.dps.kernels.dual import CELLS, CHEAPEST
from tradewind.systems.dps.kernels.noise import one_group

# Entries of LearnerState.counts
SEEN, PRICED, NEXT_REFIT, NEXT_NOISE_FIT, PENDING = 0, 1, 2, 3, 4
NO_PRICE, NO, YES = -1, 0, 1


class Tuning(NamedTuple):
    """Constants of the learner; tuned on markets that are not reported."""

    thompson: float = 0.5
    """Share of the posterior standard deviation that is sampled."""
    probe_half: float = 60.0
    """An offer is a random probe around the expected value with probability (1 + offers so far / this)^-1.5."""
    probe_floor: float = 0.005
    """Least probability of a probe."""
    probe_arrivals: float = 50.0
    """Expected arrivals from which on all these probes are made; where fewer can use the answers, fewer in proportion."""
    probe_reach: float = 0.8
    """Half the width of the range of probes, in logs."""
    sd: float = 0.5
    """Standard deviation of the noise before the first fit."""
    first_refit: int = 60
    """Answers before the first full refit; each later one waits for twice as many."""
    noise_every: int = 250
    """Answers between fits of the noise alone."""
    penalty: float = 4.0
    """Log likelihood that two groups of noise must gain over one."""
    pair: float = 0.35
    """Prior standard deviation of pair effects, where they are on."""
    wander: float = 3e-5
    """Variance of the level's drift per arrival, where it is on."""
    window: int = 3000
    """Arrivals over which capacity prices are found."""
    sweep_every: int = 20
    """Arrivals between steps of the capacity prices."""
    pace: float = 0.3
    """Size of such a step."""
    target: float = 0.6
    """Share of the capacity that capacity prices aim to sell; below 1 because arrivals are bursty."""
    steep: float = 2.0
    """Growth of the surcharge on capacity with the share in use."""
    calm: float = 0.68
    """Share in use at which that surcharge is zero."""
    relax: float = 540.0
    """Slots over which current crowding matters."""
    edge: float = 6.0
    """Further surcharge when nothing is idle."""
    edge_width: float = 0.05
    """Idle share over which the further surcharge fades."""


class Market(NamedTuple):
    """Public data: items of each kind (K,), (M,), the horizon in slots and the arrivals expected until then.

    slots is inf where the market has no end; arrivals are then counted, not expected.
    log_top: log of the highest unit price; 0 where the scale of prices is known
    """

    cap_k: Floats
    cap_m: Floats
    slots: float
    arrivals: float
    log_top: float = 0.0


class Settings(NamedTuple):
    """Everything a learner knows before the first arrival."""

    tuning: Tuning
    market: Market
    prior: Prior


class LearnerState(NamedTuple):
    """Everything the learner has learned, and the last H arrivals in a ring buffer."""

    mean: Floats
    """(D,) posterior mean of theta, and in `cov` (D, D) its covariance; see demand.py."""
    cov: Floats
    noise: Floats
    """(2, 3) groups of the noise: share, mean, standard deviation."""
    rival: Floats
    """(2, 3) the alternative hypothesis about the noise; `doubt` (1,) is its probability."""
    doubt: Floats
    response: Floats
    """(CELLS,) best log price by cost, tabulated for the current noise; see dual.py."""
    price: Floats
    """(K + M,) price of one item for one slot."""
    centre: Floats
    """(2,) log runtime and log demand at which their effects are zero."""
    hyper: Floats
    """(2,) prior standard deviation of pair effects, variance of the level's drift per arrival."""
    counts: Ints
    """(5,) see SEEN and following."""
    kinds: Ints
    """(H, 2) kinds k and m."""
    demand: Floats
    """(H, 2) items d_k and d_m."""
    logs: Floats
    """(H, 2) log of the spread runtime and of d_k."""
    paid: Floats
    """(H,) log of how often each item is paid."""
    hold: Floats
    """(H,) slots the bundle would hold its items."""
    came: Floats
    """(H,) slot of arrival."""
    offer: Floats
    """(H, 3) log price, its gap over the location predicted at the time, and the variance of that prediction."""
    answer: Bytes
    """(H,) NO_PRICE, NO or YES."""
    state: NDArray[np.uint64]
    """(1,) state of the random numbers."""


def new_learner(settings: Settings, seed: int, history: int = 16384) -> LearnerState:
    """A learner before the first arrival."""
    tuning, market, prior = settings
    kinds_k, kinds_m = len(market.cap_k), len(market.cap_m)
    mean, cov = prior_moments(prior, kinds_k, kinds_m)
    count = np.zeros(5, dtype=np.int64)
    count[NEXT_REFIT], count[NEXT_NOISE_FIT], count[PENDING] = tuning.first_refit, tuning.noise_every, -1
    return LearnerState(
        mean=mean,
        cov=cov,
        noise=one_group(tuning.sd),
        rival=one_group(tuning.sd),
        doubt=np.zeros(1),
        response=np.zeros(CELLS),
        price=np.full(kinds_k + kinds_m, CHEAPEST),
        centre=np.zeros(2),
        hyper=np.array([prior.pair, prior.wander]),
        counts=count,
        kinds=np.zeros((history, 2), dtype=np.int64),
        demand=np.zeros((history, 2)),
        logs=np.zeros((history, 2)),
        paid=np.zeros(history),
        hold=np.zeros(history),
        came=np.zeros(history),
        offer=np.zeros((history, 3)),
        answer=np.full(history, NO_PRICE, dtype=np.int8),
        state=np.array([np.uint64(seed)], dtype=np.uint64),
    )
