"""The noise of the willingness to pay, fitted to offers and answers by maximum likelihood.

The data are prequential: each gap is a log price minus the location predicted *before* the answer was heard, with the
variance of that prediction. In-sample gaps would make the noise look smaller than it is.
"""

import math

import numpy as np
from numpy.typing import NDArray

from tradewind.model.arrays import Floats
from tradewind.solvers.kernel import kernel
from tradewind.systems.dps.kernels.demand import accept_chance

GROUPS = 2
_GAPS, _REACH = 201, 2.0
_LEVELS, _LEVEL_WIDTH = 6, 0.07


@kernel
def one_group(sd: float) -> Floats:
    """The law (2, 3) of a single normal group; the second group has no share."""
    law = np.zeros((GROUPS, 3))
    law[0, 0], law[0, 2], law[1, 2] = 1.0, sd, 1.0
    return law


@kernel
def two_groups(share: float, apart: float, sd_low: float, sd_high: float) -> Floats:
    """Two groups whose mixture has mean zero: the location belongs to the demand model, not to the law."""
    law = np.zeros((GROUPS, 3))
    law[0] = np.array([share, -(1.0 - share) * apart, sd_low])
    law[1] = np.array([1.0 - share, share * apart, sd_high])
    return law


@kernel
def log_likelihood(law: Floats, gap: Floats, spread: Floats, answers: Floats) -> float:
    """Sum of the log probabilities of the answers: gap (n,), spread (n,), numbers of no and yes (n, 2)."""
    total = 0.0
    for i in range(gap.shape[0]):
        chance = accept_chance(gap[i], spread[i], law)
        if answers[i, 1] > 0.0:
            total += answers[i, 1] * math.log(max(chance, 1e-9))
        if answers[i, 0] > 0.0:
            total += answers[i, 0] * math.log(max(1.0 - chance, 1e-9))
    return total


@kernel
def tally(gap: Floats, spread: Floats, yes: NDArray[np.bool_]) -> tuple[Floats, Floats, Floats]:
    """Pool like offers: mean gap and mean variance (c,) and numbers of no and yes (c, 2) of the cells that are in use."""
    cells = np.zeros((_GAPS * _LEVELS, 4))
    for i in range(gap.shape[0]):
        across = int((min(max(gap[i], -_REACH), _REACH) + _REACH) / (2.0 * _REACH) * (_GAPS - 1) + 0.5)
        level = int(min(math.sqrt(spread[i]) / _LEVEL_WIDTH, _LEVELS - 1.0))
        cell = cells[level * _GAPS + across]
        cell[0] += gap[i]
        cell[1] += spread[i]
        cell[3 if yes[i] else 2] += 1.0
    used = np.empty(cells.shape[0], dtype=np.int64)
    n = 0
    for c in range(cells.shape[0]):
        if cells[c, 2] + cells[c, 3] > 0.0:
            used[n] = c
            n += 1
    kept = cells[used[:n]]
    size = kept[:, 2] + kept[:, 3]
    return kept[:, 0] / size, kept[:, 1] / size, kept[:, 2:].copy()


@kernel
def fit_law(
    start: Floats, gap: Floats, spread: Floats, answers: Floats, penalty: float
) -> tuple[Floats, Floats, float]:
    """The better of one and two groups, the other one, and the probability of that rival.

    Two groups have three numbers more to fit; `penalty` is the log likelihood that they must gain to be even.
    """
    single, single_value = _fit_single(gap, spread, answers)
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
        value = _polish(point, gap, spread, answers)
        if value > best_value:
            best_value = value
            best[:] = point
    lead = best_value - single_value - penalty
    rival = 1.0 / (1.0 + math.exp(min(abs(lead), 50.0)))
    if lead > 0.0:
        return _law_at(best), single, rival
    return single, _law_at(best), rival


@kernel
def _fit_single(gap: Floats, spread: Floats, answers: Floats) -> tuple[Floats, float]:
    low, high = math.log(0.08), math.log(1.5)
    golden = 0.3819660112501051
    for _ in range(14):
        a, b = low + golden * (high - low), high - golden * (high - low)
        value_a = log_likelihood(one_group(math.exp(a)), gap, spread, answers)
        value_b = log_likelihood(one_group(math.exp(b)), gap, spread, answers)
        if value_a < value_b:
            low = a
        else:
            high = b
    law = one_group(math.exp(0.5 * (low + high)))
    return law, log_likelihood(law, gap, spread, answers)


@kernel
def _law_at(point: Floats) -> Floats:
    """Point (4,): logit of the low group's share, distance, logs of both standard deviations; kept in sane ranges."""
    share = 1.0 / (1.0 + math.exp(-min(max(point[0], -2.5), 2.5)))
    apart = min(max(point[1], 0.0), 2.0)
    sd_low = math.exp(min(max(point[2], -2.5), 0.4))
    sd_high = math.exp(min(max(point[3], -2.5), 0.4))
    law: Floats = two_groups(share, apart, sd_low, sd_high)
    return law


@kernel
def _polish(point: Floats, gap: Floats, spread: Floats, answers: Floats) -> float:
    """Pattern search from `point` (4,), overwritten."""
    best: float = log_likelihood(_law_at(point), gap, spread, answers)
    step = 0.4
    for _ in range(5):
        for c in range(4):
            for sign in (1.0, -1.0):
                old = point[c]
                point[c] = old + sign * step
                value = log_likelihood(_law_at(point), gap, spread, answers)
                if value > best:
                    best = value
                    break
                point[c] = old
        step *= 0.6
    return best
