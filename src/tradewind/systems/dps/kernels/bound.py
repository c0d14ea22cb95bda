"""A bound on expected profit: a fluid relaxation that knows the distribution of the budgets but no budget."""

import math
from typing import NamedTuple

import numpy as np

from tradewind.model.arrays import Bools, Floats
from tradewind.solvers.kernel import kernel
from tradewind.systems.dps.kernels.demand import best_offer
from tradewind.systems.dps.kernels.dual import nudge
from tradewind.systems.dps.kernels.occupancy import Cluster, Stream


class Dual(NamedTuple):
    """A bound and the capacity prices (K + M,) that prove it."""

    value: float
    price: Floats


def least_hold(stream: Stream, cluster: Cluster, slots: int) -> Floats:
    """Least slots (N,) that a bundle holds its items within the horizon; spread only where no empty bin takes it whole."""
    x, z = cluster.idle_k[stream.k], cluster.idle_m[stream.m]
    can = ((x >= stream.d_k[:, None]) & (z >= stream.d_m[:, None])).any(axis=1)
    tau = np.where(can, stream.together, stream.spread)
    return np.asarray(np.clip(np.minimum(tau + 1, slots - stream.arrive), 1, None).astype(np.float64))


def fluid_bound(
    stream: Stream, cluster: Cluster, slots: int, demand: tuple[Floats, Floats], rounds: int = 80
) -> Dual:
    """min over prices lambda >= 0 of sum_i max_P E[(P - lambda d_i h_i) 1(v_i >= P)] + T sum_r lambda_r C_r.

    demand = (location of the log budget (N,), noise (G, 3)). By weak duality every lambda gives an upper bound on the
    expected profit of any seller that does not know the budgets, placed at best; `rounds` of tatonnement make it small.
    """
    log_value, noise = demand
    hold = least_hold(stream, cluster, slots)
    items = np.concatenate([cluster.idle_k.sum(axis=1), cluster.idle_m.sum(axis=1)]).astype(np.float64)
    fits = (stream.d_k <= items[stream.k]) & (stream.d_m <= items[len(cluster.idle_k) + stream.m])
    price = np.full(len(items), 1e-4)
    best, proof = np.inf, price.copy()
    for turn in range(rounds):
        before = price.copy()
        value, use = _fluid(stream, hold, fits, log_value, noise, price, len(cluster.idle_k))
        value += slots * float(price @ items)
        if value < best:
            best, proof = value, before
        nudge(price, use, items * slots, 0.6 / (1.0 + turn / 25.0))
    return Dual(float(best), proof)


@kernel
def _fluid(
    stream: Stream,
    hold: Floats,
    fits: Bools,
    log_value: Floats,
    noise: Floats,
    price: Floats,
    kinds_k: int,
) -> tuple[float, Floats]:
    """Sum over bundles of the best expected margin, and the item-slots that it would use (R,)."""
    use = np.zeros(price.shape[0])
    total = 0.0
    for i in range(log_value.shape[0]):
        if not fits[i]:
            continue
        a, b = stream.k[i], kinds_k + stream.m[i]
        cost = hold[i] * (stream.d_k[i] * price[a] + stream.d_m[i] * price[b])
        cap = float(stream.d_k[i] + stream.d_m[i])
        if cost >= cap:
            continue
        gap, chance = best_offer(log_value[i], 0.0, cost, math.log(cap), noise)
        margin = (math.exp(log_value[i] + gap) - cost) * chance
        if margin > 0.0:
            total += margin
            use[a] += hold[i] * stream.d_k[i] * chance
            use[b] += hold[i] * stream.d_m[i] * chance
    return total, use
