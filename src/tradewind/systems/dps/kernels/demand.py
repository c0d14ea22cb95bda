"""The demand model: what a bundle is worth to its buyer, learned from accepted and declined offers.

Model: log of the willingness to pay y = f(theta) + noise, with
f = log(e^(g + a_k) d_k + e^(g + b_m) d_m) + gamma log(tau / tau0) + zeta log(d_k / d0) + c_km + log(paid),
theta = (g, gamma, zeta, a (K), b (M), c (K M)) Gaussian with full covariance. The noise is a mixture of normals,
`noise` (G, 3): share, mean, standard deviation. An offer at log price x is taken if x <= y. Because the noise is a normal
mixture, the moments of f after a yes or a no have a closed form (assumed-density filtering needs no quadrature).
"""

import math
from typing import NamedTuple

import numpy as np

from tradewind.model.arrays import Floats, Ints
from tradewind.solvers.kernel import kernel

HEAD = 3
"""Entries of theta before the per-kind effects: g, gamma, zeta."""
NO_CAP = 50.0
"""A log price that no payment reaches."""

_ROOT_HALF = 0.7071067811865476
_INV_ROOT_2PI = 0.3989422804014327


class Prior(NamedTuple):
    """Mean of g, and standard deviations of the effects before anything was sold (all of logs)."""

    level: float = -1.0
    g: float = 0.6
    gamma: float = 0.3
    zeta: float = 0.1
    kind_k: float = 0.4
    kind_m: float = 0.4
    pair: float = 0.0
    """Zero leaves the pair effects out, which is also six times faster."""
    wander: float = 0.0
    """Variance that g gains between two arrivals: how fast the whole market may drift."""


class Buyer(NamedTuple):
    """One arrival as the model sees it: kinds, demands, centred logs of runtime and demand, log of times paid."""

    k: int
    m: int
    d_k: float
    d_m: float
    log_tau: float
    log_d: float
    log_paid: float


def prior_moments(prior: Prior, kinds_k: int, kinds_m: int) -> tuple[Floats, Floats]:
    """Mean (D,) and covariance (D, D) of theta, D = 3 + K + M + K M."""
    size = HEAD + kinds_k + kinds_m + kinds_k * kinds_m
    mean, cov = np.zeros(size), np.zeros((size, size))
    reset_moments(mean, cov, prior, kinds_k, kinds_m)
    return mean, cov


@kernel
def reset_moments(mean: Floats, cov: Floats, prior: Prior, kinds_k: int, kinds_m: int) -> None:
    """Write the prior into `mean` (D,) and `cov` (D, D)."""
    mean[:] = 0.0
    cov[:] = 0.0
    mean[0] = prior.level
    cov[0, 0], cov[1, 1], cov[2, 2] = prior.g**2, prior.gamma**2, prior.zeta**2
    for k in range(kinds_k):
        cov[HEAD + k, HEAD + k] = prior.kind_k**2
    for m in range(kinds_m):
        cov[HEAD + kinds_k + m, HEAD + kinds_k + m] = prior.kind_m**2
    for j in range(HEAD + kinds_k + kinds_m, mean.shape[0]):
        cov[j, j] = prior.pair**2


@kernel
def locate(mean: Floats, buyer: Buyer, kinds_k: int, kinds_m: int, where: Ints, weight: Floats) -> float:
    """f at the mean of theta; its gradient goes to `where` (6,) and `weight` (6,) as a sparse row."""
    at_k, at_m = HEAD + buyer.k, HEAD + kinds_k + buyer.m
    worth_k = math.exp(mean[at_k]) * buyer.d_k
    worth_m = math.exp(mean[at_m]) * buyer.d_m
    share = worth_k / (worth_k + worth_m)
    at_pair = HEAD + kinds_k + kinds_m + buyer.k * kinds_m + buyer.m
    where[0], where[1], where[2], where[3], where[4], where[5] = 0, 1, 2, at_k, at_m, at_pair
    weight[0], weight[1], weight[2] = 1.0, buyer.log_tau, buyer.log_d
    weight[3], weight[4], weight[5] = share, 1.0 - share, 1.0
    return float(
        mean[0]
        + math.log(worth_k + worth_m)
        + mean[1] * buyer.log_tau
        + mean[2] * buyer.log_d
        + mean[at_pair]
        + buyer.log_paid
    )


@kernel
def variance(cov: Floats, where: Ints, weight: Floats) -> float:
    """Variance of f given its sparse gradient."""
    total = 0.0
    for a in range(6):
        row = 0.0
        for b in range(6):
            row += cov[where[a], where[b]] * weight[b]
        total += weight[a] * row
    return max(total, 0.0)


@kernel
def accept_chance(gap: float, spread: float, noise: Floats) -> float:
    """Pr(yes) at a log price `gap` above f, whose variance is `spread`."""
    chance = 0.0
    for g in range(noise.shape[0]):
        if noise[g, 0] > 0.0:
            sd = math.sqrt(noise[g, 2] ** 2 + spread)
            chance += noise[g, 0] * 0.5 * math.erfc((gap - noise[g, 1]) / sd * _ROOT_HALF)
    return chance


@kernel
def tilt(gap: float, spread: float, noise: Floats, yes: bool) -> tuple[float, float, float]:
    """log Z and its first two derivatives in f, where Z is the probability of the answer."""
    z = d1 = d2 = 0.0
    for g in range(noise.shape[0]):
        if noise[g, 0] > 0.0:
            sd = math.sqrt(noise[g, 2] ** 2 + spread)
            u = (noise[g, 1] - gap) / sd
            bell = noise[g, 0] * _INV_ROOT_2PI * math.exp(-0.5 * u * u) / sd
            z += noise[g, 0] * 0.5 * math.erfc(-u * _ROOT_HALF)
            d1 += bell
            d2 -= bell * u / sd
    if not yes:
        z, d1, d2 = 1.0 - z, -d1, -d2
    z = max(z, 1e-9)
    return math.log(z), d1 / z, d2 / z - (d1 / z) ** 2


@kernel(fastmath=False)
def absorb(mean: Floats, cov: Floats, size: int, where: Ints, weight: Floats, d1: float, d2: float) -> None:
    """Moment matching: theta given one answer, a rank-one change of the first `size` entries."""
    reach = np.zeros(size)
    for a in range(6):
        if where[a] < size and weight[a] != 0.0:
            w = weight[a]
            row = cov[where[a]]
            for j in range(size):
                reach[j] += w * row[j]
    for j in range(size):
        mean[j] += reach[j] * d1
        scale = reach[j] * d2
        row = cov[j]
        for i in range(size):
            row[i] += scale * reach[i]


@kernel
def best_offer(f: float, spread: float, cost: float, log_cap: float, noise: Floats) -> tuple[float, float]:
    """argmax over x <= log_cap of (e^x - cost) Pr(yes at x): x - f and Pr(yes).

    A grid comes first, because there may be two peaks.
    """
    low, high, steps = -2.2, 2.2, 22
    width = (high - low) / steps
    top = log_cap - f
    base = cost * math.exp(-f) if f > -500.0 else 0.0
    best_x = min(top, low)
    best_v = (math.exp(best_x) - base) * accept_chance(best_x, spread, noise)
    for j in range(1, steps + 1):
        x = min(top, low + j * width)
        v = (math.exp(x) - base) * accept_chance(x, spread, noise)
        if v > best_v:
            best_v, best_x = v, x
        if x == top:
            break
    for _ in range(4):
        width *= 0.5
        for x in (best_x - width, min(top, best_x + width)):
            v = (math.exp(x) - base) * accept_chance(x, spread, noise)
            if v > best_v:
                best_v, best_x = v, x
    return best_x, accept_chance(best_x, spread, noise)
