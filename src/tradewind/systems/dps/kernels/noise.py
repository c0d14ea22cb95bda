"""The noise of the willingness to pay, fitted to offers and answers by maximum likelihood.

The data are prequential: each gap is a log price minus the location predicted *before* the answer, with the
variance of that prediction. In-sample gaps would underestimate the noise.
"""

import math

import numpy as np

from tradewind.model.arrays import Bools, Floats
from tradewind.solvers.kernel import kernel
from tradewind.systems.dps.kernels.demand import accept_chance

GROUPS = 2
_GAPS, _REACH = 201, 2.0
_LEVELS, _LEVEL_WIDTH = 6, 0.07


@kernel
def one_group(sd: float) -> Floats:
    """Noise (2, 3) of a single normal group; the second group has share 0."""
    noise = np.zeros((GROUPS, 3))
    noise[0, 0], noise[0, 2], noise[1, 2] = 1.0, sd, 1.0
    return noise


@kernel
def two_groups(share: float, apart: float, sd_low: float, sd_high: float) -> Floats:
    """Two groups whose mixture has mean zero: the location belongs to the demand model."""
    noise = np.zeros((GROUPS, 3))
    noise[0] = np.array([share, -(1.0 - share) * apart, sd_low])
    noise[1] = np.array([1.0 - share, share * apart, sd_high])
    return noise


@kernel
def log_likelihood(noise: Floats, gap: Floats, spread: Floats, answers: Floats) -> float:
    """Sum of the log probabilities of the answers: gap (n,), spread (n,), numbers of no and yes (n, 2)."""
    total = 0.0
    for i in range(gap.shape[0]):
        chance = accept_chance(gap[i], spread[i], noise)
        if answers[i, 1] > 0.0:
            total += answers[i, 1] * math.log(max(chance, 1e-9))
        if answers[i, 0] > 0.0:
            total += answers[i, 0] * math.log(max(1.0 - chance, 1e-9))
    return total


@kernel
def tally(gap: Floats, spread: Floats, yes: Bools) -> tuple[Floats, Floats, Floats]:
    """Pool similar offers: mean gap and variance (c,) and numbers of no and yes (c, 2) of each cell in use."""
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
def fit_noise(
    start: Floats, gap: Floats, spread: Floats, answers: Floats, penalty: float
) -> tuple[Floats, Floats, float]:
    """Fit one and two groups: the better fit, the other one, and the probability of that other one.

    Two groups have three more parameters; `penalty` is the log likelihood they must gain to break even.
    """
    single, single_value = _fit_single(gap, spread, answers)
    best_value = -math.inf
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
        return _noise_at(best), single, rival
    return single, _noise_at(best), rival


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
    noise = one_group(math.exp(0.5 * (low + high)))
    return noise, log_likelihood(noise, gap, spread, answers)


@kernel
def _noise_at(point: Floats) -> Floats:
    """Point (4,): logit of the low group's share, distance, logs of both standard deviations; clipped to sane ranges."""
    share = 1.0 / (1.0 + math.exp(-min(max(point[0], -2.5), 2.5)))
    apart = min(max(point[1], 0.0), 2.0)
    sd_low = math.exp(min(max(point[2], -2.5), 0.4))
    sd_high = math.exp(min(max(point[3], -2.5), 0.4))
    noise: Floats = two_groups(share, apart, sd_low, sd_high)
    return noise


@kernel
def _polish(point: Floats, gap: Floats, spread: Floats, answers: Floats) -> float:
    """Pattern search from `point` (4,), overwritten."""
    best: float = log_likelihood(_noise_at(point), gap, spread, answers)
    step = 0.4
    for _ in range(5):
        for c in range(4):
            for sign in (1.0, -1.0):
                old = point[c]
                point[c] = old + sign * step
                value = log_likelihood(_noise_at(point), gap, spread, answers)
                if value > best:
                    best = value
                    break
                point[c] = old
        step *= 0.6
    return best
