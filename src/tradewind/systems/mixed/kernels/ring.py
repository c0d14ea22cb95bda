"""The best schedule of elastic work in worker-slots: min-plus over slots on progress."""

from __future__ import annotations

import numpy as np

from tradewind.model.arrays import Floats, Ints
from tradewind.solvers.kernel import kernel
from tradewind.systems.mixed.kernels.market import Market, placed, spread, table


@kernel
def best_ring(
    m: Market, need: Floats, places: Ints, workers: Ints, limits: tuple[int, int], gain: Floats, worth: Floats,
    together: bool,
) -> tuple[float, float]:  # fmt: skip
    """Fill workers (T, H); return (profit, value). Exact at linear prices.

    limits fewest and most workers
    gain   (P + 1,) value of p more worker-slots by the end
    worth  (T,) value of a completion in each slot, on top of it
    """
    total, hosts, full = m.linear.shape[0], m.linear.shape[1], len(gain) - 1
    least, most = limits
    cost = np.empty((total, hosts, most + 1))
    table(m, need, places, most, cost)
    best = np.empty((total, most + 1))
    pick = np.zeros((total, hosts, most + 1), dtype=np.int64)
    usd = np.full((total + 1, full + 1), np.inf)
    usd[0, 0] = 0.0
    taken = np.zeros((total + 1, full + 1), dtype=np.int64)
    profit, value, at, done = -np.inf, 0.0, 0, 0
    for t in range(total):
        spread(cost[t], together, best[t], pick[t])
        for p in range(full + 1):
            usd[t + 1, p] = usd[t, p]
            for n in range(least, min(most, p) + 1):
                found = usd[t, p - n] + best[t, n]
                if found < usd[t + 1, p]:
                    usd[t + 1, p] = found
                    taken[t + 1, p] = n
        if taken[t + 1, full] and gain[full] + worth[t] - usd[t + 1, full] > profit:
            value = gain[full] + worth[t]
            profit, at, done = value - usd[t + 1, full], t + 1, full
    for p in range(1, full):
        if gain[p] - usd[total, p] > profit:
            profit, value, at, done = gain[p] - usd[total, p], gain[p], total, p
    while at > 0:
        n = taken[at, done]
        if n:
            placed(pick[at - 1], together, n, workers[at - 1])
        done -= n
        at -= 1
    return profit, value
