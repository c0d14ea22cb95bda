"""A job over pooled sites and its best schedule at given prices: the pricing problem of the configuration LP."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tradewind.model.arrays import Floats, Ints
from tradewind.solvers.kernel import kernel


class Pooled(NamedTuple):
    """A job over pooled sites.

    use     (K + 1,) units of each pooled resource per worker, and GB of traffic of a remote worker
    server  (K,) units of the parameter server
    beside  workers that fit beside the server
    widest  workers that fit in a slot
    units   worker-slots to train
    start   first slot in which it may run
    worth   (T,) utility of completing in each slot, 0 before the first
    """

    use: Floats
    server: Floats
    beside: int
    widest: int
    units: int
    start: int
    worth: Floats


@kernel
def _curve(price: Floats, job: Pooled, out: Floats) -> None:
    """Writes the cost of 1, 2, ... workers in a slot at prices (K + 1,)."""
    kinds = len(job.server)
    each, fixed = 0.0, 0.0
    for k in range(kinds):
        each += job.use[k] * price[k]
        fixed += job.server[k] * price[k]
    away = job.use[kinds] * price[kinds]
    for n in range(1, len(out)):
        out[n] = fixed + n * each + max(0, n - job.beside) * away


@kernel
def best_column(price: Floats, job: Pooled, worth: Floats) -> tuple[float, int, Ints]:
    """Largest worth minus cost (0: none), its completion slot (-1: none) and the workers per slot (T,).

    price (T, K + 1) USD per unit and slot, the last per GB of traffic; worth (T,), instead of the job's own, may rise
    and be negative.
    """
    horizon, units, start = len(price), job.units, job.start
    value = np.full((horizon - start + 1, units + 1), np.inf)
    choice = np.zeros((horizon - start, units + 1), np.int32)
    value[0, 0] = 0.0
    best, last, top = 0.0, -1, min(job.widest, units)
    curve, still = np.zeros(top + 1), worth.copy()
    for t in range(horizon - 2, start - 1, -1):
        still[t] = max(still[t], still[t + 1])
    for t in range(start, horizon):
        if still[t] <= best:
            break
        _curve(price[t], job, curve)
        row = t - start
        for n in range(units + 1):
            least, take = value[row, n], 0
            for d in range(1, min(top, n) + 1):
                total = value[row, n - d] + curve[d]
                if total < least:
                    least, take = total, d
            value[row + 1, n], choice[row, n] = least, take
        gain = worth[t] - value[row + 1, units]
        if gain > best:
            best, last = gain, t
    workers, n = np.zeros(horizon, np.int64), units
    for t in range(last, start - 1, -1):
        workers[t] = choice[t - start, n]
        n -= workers[t]
    return best, last, workers
