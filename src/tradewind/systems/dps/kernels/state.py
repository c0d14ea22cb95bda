"""The memory of a price learner as plain arrays, and its settings: it can be saved and restored exactly."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tradewind.model.arrays import Floats, Ints
from tradewind.systems.dps.kernels.demand import Prior, prior_moments
from tradewind.systems.dps.kernels.dual import CELLS, CHEAPEST
from tradewind.systems.dps.kernels.law import one_group

# Entries of Mind.counts
SEEN, PRICED, NEXT_STUDY, NEXT_LAW, PENDING = 0, 1, 2, 3, 4
NO_PRICE, NO, YES = -1, 0, 1


class Tuning(NamedTuple):
    """How the learner behaves; chosen on markets that are not reported."""

    thompson: float = 0.5
    probe_half: float = 60.0
    """Offers are probes, drawn at random around the expected value, with a chance (1 + offers so far / this)^-1.5."""
    probe_floor: float = 0.005
    probe_reach: float = 0.8
    """Half the width of the probes' range, in logs."""
    sd: float = 0.5
    """Noise assumed before the first fit."""
    first_study: int = 60
    law_every: int = 250
    penalty: float = 4.0
    pair: float = 0.35
    wander: float = 3e-5
    window: int = 3000
    sweep_every: int = 20
    pace: float = 0.3
    target: float = 0.6
    """Share of the capacity that the capacity prices aim to sell; less than 1 because arrivals come in bursts."""
    steep: float = 2.0
    calm: float = 0.68
    relax: float = 540.0
    """Slots over which today's crowding matters: the time in which a crowd dissolves."""
    edge: float = 6.0
    edge_width: float = 0.05


class Market(NamedTuple):
    """What is public beforehand: items of each kind (K,), (M,), the horizon in slots and the expected arrivals."""

    cap_k: Floats
    cap_m: Floats
    slots: float
    arrivals: float


class Mind(NamedTuple):
    """All that the learner knows; H arrivals of history in a ring."""

    mean: Floats
    cov: Floats
    law: Floats
    rival: Floats
    """(2, 3) the other hypothesis about the noise, and in `doubt` (1,) its probability."""
    doubt: Floats
    response: Floats
    price: Floats
    """(K + M,) price of one item for one slot."""
    centre: Floats
    """(2,) logs of the runtime and the demand at which their effects are zero."""
    hyper: Floats
    """(2,) prior standard deviation of pair effects, wander of the level."""
    counts: Ints
    kinds: Ints
    """(H, 2)"""
    demand: Floats
    """(H, 2)"""
    logs: Floats
    """(H, 2) log of the spread runtime and of d_k."""
    hold: Floats
    """(H,) slots the bundle would hold its items."""
    offer: Floats
    """(H, 3): log price, its gap over the location predicted then, and the variance of that prediction."""
    answer: NDArray[np.int8]
    state: NDArray[np.uint64]


def new_mind(market: Market, tuning: Tuning, prior: Prior, seed: int, history: int = 16384) -> Mind:
    """A learner that has seen nothing."""
    kinds_k, kinds_m = len(market.cap_k), len(market.cap_m)
    mean, cov = prior_moments(prior, kinds_k, kinds_m)
    count = np.zeros(5, dtype=np.int64)
    count[NEXT_STUDY], count[NEXT_LAW], count[PENDING] = tuning.first_study, tuning.law_every, -1
    mind = Mind(
        mean=mean,
        cov=cov,
        law=one_group(tuning.sd),
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
        hold=np.zeros(history),
        offer=np.zeros((history, 3)),
        answer=np.full(history, NO_PRICE, dtype=np.int8),
        state=np.array([np.uint64(seed)], dtype=np.uint64),
    )
    return mind
