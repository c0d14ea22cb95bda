"""The noise of the willingness to pay, fitted to offers and answers by maximum likelihood.

The data are prequential: each gap is a log price minus the location predicted *before* the answer was heard, with the
variance of that prediction. In-sample gaps would make the noise look smaller than it is.
"""

import math

import numpy as np
from numba import njit
from numpy.typing import NDArray

from tradewind.maths.market_demand import accept_chance

Floats = NDArray[np.float64]

GROUPS = 2


@njit(cache=True)
def one_group(sd: float) -> Floats:
    """The law (2, 3) of a single normal group; the second group has no share."""
    law = np.zeros((GROUPS, 3))
    law[0, 0], law[0, 2], law[1, 2] = 1.0, sd, 1.0
    return law


@njit(cache=True)
def two_groups(share: float, apart: float, sd_low: float, sd_high: float) -> Floats:
    """Two groups whose mixture has mean zero: the location belongs to the demand model, not to the law."""
    law = np.zeros((GROUPS, 3))
    law[0] = np.array([share, -(1.0 - share) * apart, sd_low])
    law[1] = np.array([1.0 - share, share * apart, sd_high])
    return law


@njit(cache=True)
def log_likelihood(law: Floats, gap: Floats, spread: Floats, yes: NDArray[np.bool_]) -> float:
    """Sum of the log probabilities of the answers, (n,) each."""
    total = 0.0
    for i in range(gap.shape[0]):
        chance = accept_chance(gap[i], spread[i], law)
        total += math.log(max(chance if yes[i] else 1.0 - chance, 1e-9))
    return total


@njit(cache=True)
def fit_law(
    start: Floats, gap: Floats, spread: Floats, yes: NDArray[np.bool_], penalty: float
) -> tuple[Floats, float]:
    """The likeliest law and its log likelihood; two groups only if they gain more than `penalty` over one."""
    single, single_value = _fit_single(gap, spread, yes)
    best_value = -1e300
    best = np.zeros(4)
    starts = np.array([[0.0, 0.7, -1.5, -1.5], [0.4, 1.0, -1.8, -1.8], [0.0, 0.4, -1.2, -1.2]])
    for s in range(starts.shape[0] + 1):
        point = np.zeros(4)
        if s < starts.shape[0]:
            point[:] = starts[s]
        elif start[1, 0] > 0.0:
            point[0] = math.log(start[0, 0] / start[1, 0])
            point[1] = start[1, 1] - start[0, 1]
            point[2], point[3] = math.log(start[0, 2]), math.log(start[1, 2])
        else:
            continue
        value = _polish(point, gap, spread, yes)
        if value > best_value:
            best_value = value
            best[:] = point
    if best_value > single_value + penalty:
        return _law_at(best), best_value
    return single, single_value


@njit(cache=True)
def _fit_single(gap: Floats, spread: Floats, yes: NDArray[np.bool_]) -> tuple[Floats, float]:
    low, high = math.log(0.08), math.log(1.5)
    golden = 0.3819660112501051
    for _ in range(14):
        a, b = low + golden * (high - low), high - golden * (high - low)
        value_a = log_likelihood(one_group(math.exp(a)), gap, spread, yes)
        value_b = log_likelihood(one_group(math.exp(b)), gap, spread, yes)
        if value_a < value_b:
            low = a
        else:
            high = b
    law = one_group(math.exp(0.5 * (low + high)))
    return law, log_likelihood(law, gap, spread, yes)


@njit(cache=True)
def _law_at(point: Floats) -> Floats:
    """Point (4,): logit of the low group's share, distance, logs of both standard deviations; kept in sane ranges."""
    share = 1.0 / (1.0 + math.exp(-min(max(point[0], -2.5), 2.5)))
    apart = min(max(point[1], 0.0), 2.0)
    sd_low = math.exp(min(max(point[2], -2.5), 0.4))
    sd_high = math.exp(min(max(point[3], -2.5), 0.4))
    return two_groups(share, apart, sd_low, sd_high)


@njit(cache=True)
def _polish(point: Floats, gap: Floats, spread: Floats, yes: NDArray[np.bool_]) -> float:
    """Pattern search from `point` (4,), overwritten."""
    best = log_likelihood(_law_at(point), gap, spread, yes)
    step = 0.4
    for _ in range(5):
        for c in range(4):
            for sign in (1.0, -1.0):
                old = point[c]
                point[c] = old + sign * step
                value = log_likelihood(_law_at(point), gap, spread, yes)
                if value > best:
                    best = value
                    break
                point[c] = old
        step *= 0.6
    return best
