"""The best run of a fixed job: a window for a gang that may not be interrupted, else the cheapest slots."""

from __future__ import annotations

import numpy as np

from tradewind.model.arrays import Floats, Ints
from tradewind.solvers.kernel import kernel
from tradewind.systems.mixed.kernels.market import Market, placed, spread, table


@kernel
def best_gang(
    m: Market,
    need: Floats,
    places: Ints,
    workers: Ints,
    run: tuple[int, int],
    worth: Floats,
    pauses: bool,
    together: bool,
) -> tuple[float, float]:
    """Fill workers (T, H); return (profit, value). run: workers and slots; worth (T,): value of a completion in each slot.

    At linear prices it is exact: a window's places are chosen on its summed prices; of the slots up to a completion the
    cheapest are taken.
    """
    size, slots = run
    total, hosts = m.linear.shape[0], m.linear.shape[1]
    cost = np.empty((total, hosts, size + 1))
    table(m, need, places, size, cost)
    best, pick = np.empty(size + 1), np.zeros((hosts, size + 1), dtype=np.int64)
    profit, value, at = -np.inf, 0.0, -1
    if not pauses:
        summed = np.empty((hosts, size + 1))
        for begin in range(total - slots + 1):
            last = worth[begin + slots - 1]
            if last <= profit:
                continue
            summed[:, :] = 0.0
            for t in range(begin, begin + slots):
                summed += cost[t]
            spread(summed, together, best, pick)
            if last - best[size] > profit:
                profit, value, at = last - best[size], last, begin
                workers[begin] = 0
                placed(pick, together, size, workers[begin])
        if at >= 0:
            chosen = workers[at].copy()
            workers[:, :] = 0
            for t in range(at, at + slots):
                workers[t] = chosen
        return profit, value
    each = np.empty(total)
    for t in range(total):
        spread(cost[t], together, best, pick)
        each[t] = best[size]
    kept = np.empty(slots)  # the cheapest slots before the last, rising
    count, spent, limit = 0, 0.0, -1.0
    for t in range(total):
        if count == slots - 1 and each[t] < np.inf and worth[t] - spent - each[t] > profit:
            profit, value, at = worth[t] - spent - each[t], worth[t], t
            limit = kept[count - 1] if count else -1.0
        if slots > 1 and each[t] < np.inf and (count < slots - 1 or each[t] < kept[count - 1]):
            if count == slots - 1:
                spent -= kept[count - 1]
                count -= 1
            k = count
            while k > 0 and kept[k - 1] > each[t]:
                kept[k] = kept[k - 1]
                k -= 1
            kept[k] = each[t]
            count += 1
            spent += each[t]
    if at >= 0:
        left = slots - 1
        for cheaper in (True, False):  # all slots below the limit, then as many at it as are needed
            for t in range(at):
                if left and (each[t] < limit if cheaper else each[t] == limit):
                    spread(cost[t], together, best, pick)
                    placed(pick, together, size, workers[t])
                    left -= 1
        spread(cost[at], together, best, pick)
        placed(pick, together, size, workers[at])
    return profit, value
