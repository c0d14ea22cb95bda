"""A job over pooled sites, and its best schedule at given prices: what the configuration LP prices its columns by."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tradewind.model.arrays import Floats, Ints
from tradewind.solvers.kernel import kernel


@dataclass(frozen=True, slots=True, kw_only=True)
class Pooled:
    """A job over pooled sites.

    use (K + 1,): what a worker takes of each pooled resource, in units, and GB of traffic where it is remote;
    server (K,); beside: workers that fit beside the server; widest: workers in a slot; units to train (workers);
    worth (T,): utility of completing in each slot, 0 before the first
    """

    use: Floats
    server: Floats
    beside: int
    widest: int
    units: int
    start: int
    worth: Floats


@kernel
def best_column(
    price: Floats,
    use: Floats,
    server: Floats,
    beside: int,
    widest: int,
    units: int,
    start: int,
    worth: Floats,
) -> tuple[float, int, Ints]:
    """Largest worth minus cost (0: none), its completion slot (-1: none) and the workers per slot (T,).

    price (T, K + 1) USD per unit and slot, the last per GB of traffic; worth (T,) may rise and be negative.
    """
    horizon, kinds = price.shape[0], len(server)
    value = np.full((horizon - start + 1, units + 1), np.inf)
    choice = np.zeros((horizon - start, units + 1), np.int32)
    value[0, 0] = 0.0
    best, last, top = 0.0, -1, min(widest, units)
    curve, still = np.zeros(top + 1), worth.copy()
    for t in range(horizon - 2, start - 1, -1):
        still[t] = max(still[t], still[t + 1])
    for t in range(start, horizon):
        if still[t] <= best:
            break
        each, fixed = 0.0, 0.0
        for k in range(kinds):
            each += use[k] * price[t, k]
            fixed += server[k] * price[t, k]
        away = use[kinds] * price[t, kinds]
        for n in range(1, top + 1):
            curve[n] = fixed + n * each + max(0, n - beside) * away
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
