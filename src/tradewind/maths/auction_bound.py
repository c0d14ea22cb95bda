"""What no scheduler of Eris's market can exceed: a configuration LP over pooled sites, by column generation.

Columns are whole schedules of a job. They are priced by a relaxation, so that the bound stays true: sites are pooled
per slot, data may lie anywhere, and of n workers only those beyond the most that fit beside one server use bandwidth.
For prices y >= 0 every feasible solution is worth at most  sum_i mu_i(y) + sum y * capacity  (the Lagrangian value);
the least over all rounds is the bound, wherever the rounds are cut off.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import highspy
import numpy as np
from numba import njit

from tradewind.maths.auction_slot import Floats, Ints

SMOOTH = 0.7
"""Share of the best prices so far in the prices that are tried next (Wentges)."""


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


@njit(cache=True)
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

    price (T, K + 1) USD per unit and slot, the last per GB of traffic.
    """
    horizon, kinds = price.shape[0], len(server)
    value = np.full((horizon - start + 1, units + 1), np.inf)
    choice = np.zeros((horizon - start, units + 1), np.int32)
    value[0, 0] = 0.0
    best, last, top = 0.0, -1, min(widest, units)
    curve = np.zeros(top + 1)
    for t in range(start, horizon):
        if worth[t] <= best:
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


@dataclass(frozen=True, slots=True, kw_only=True)
class PooledBound:
    """bound: never exceeded; master: value of the restricted LP; rounds done; price (T, K + 1) that gave the bound."""

    bound: float
    master: float
    rounds: int
    price: Floats


def configuration_bound(
    jobs: Sequence[Pooled], capacity: Floats, rounds: int, gap: float = 2e-4
) -> PooledBound:
    """The bound for pooled capacity (T, K + 1), units per slot and GB; rounds of pricing at most."""
    master = _Master(capacity, len(jobs))
    horizon = capacity.shape[0]
    price = np.zeros(capacity.shape)
    best, best_price, value = np.inf, price, 0.0
    for done in range(1, rounds + 1):
        tried = price if done <= 2 else SMOOTH * best_price + (1 - SMOOTH) * price
        total, fresh = float((tried * capacity).sum()), 0
        for i, job in enumerate(jobs):
            gain, last, workers = best_column(
                tried, job.use, job.server, job.beside, job.widest, job.units, job.start, job.worth
            )
            total += gain
            if last >= 0:
                fresh += master.add(i, job, last, workers)
        if total < best:
            best, best_price = total, tried
        value, price = master.solve(horizon)
        if best - value <= gap * best:
            break
    return PooledBound(bound=best, master=value, rounds=done, price=best_price)


class _Master:
    """The restricted LP: a row per pooled capacity and per job, a column per schedule found."""

    def __init__(self, capacity: Floats, jobs: int) -> None:
        self._size = capacity.shape
        self._known: set[tuple[int, bytes]] = set()
        self._model = highspy.Highs()
        for key, value in (("output_flag", False), ("threads", 1), ("random_seed", 1)):
            self._model.setOptionValue(key, value)
        self._model.changeObjectiveSense(highspy.ObjSense.kMaximize)
        none = np.array([], dtype=np.int32)
        for limit in np.concatenate((capacity.reshape(-1), np.ones(jobs))):
            self._model.addRow(-highspy.kHighsInf, float(limit), 0, none, np.array([]))

    def add(self, number: int, job: Pooled, last: int, workers: Ints) -> int:
        """Adds a schedule unless it is known."""
        key = (number, workers.tobytes())
        if key in self._known:
            return 0
        self._known.add(key)
        kinds = self._size[1]
        index, value = [], []
        for t in np.flatnonzero(workers).tolist():
            n = int(workers[t])
            amounts = np.append(n * job.use[:-1] + job.server, max(0, n - job.beside) * job.use[-1])
            for k in np.flatnonzero(amounts).tolist():
                index.append(t * kinds + k)
                value.append(float(amounts[k]))
        index.append(self._size[0] * kinds + number)
        value.append(1.0)
        column = (np.array(index, dtype=np.int32), np.array(value))
        self._model.addCol(float(job.worth[last]), 0.0, highspy.kHighsInf, len(index), *column)
        return 1

    def solve(self, horizon: int) -> tuple[float, Floats]:
        """Value and prices (T, K + 1) of the restricted LP."""
        self._model.run()
        dual = np.array(self._model.getSolution().row_dual)[: horizon * self._size[1]]
        return float(self._model.getInfo().objective_function_value), np.maximum(dual, 0.0).reshape(
            self._size
        )
