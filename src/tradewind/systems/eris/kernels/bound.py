"""Upper bound on welfare: a configuration LP over pooled sites, by column generation and cuts.

Columns are whole schedules of a job. They are priced by a relaxation, so that the bound stays valid: sites are pooled
per slot, data may be anywhere, and of n workers only those beyond the most that fit beside one server use bandwidth.
Cuts (cuts.py) hold for all whole schedules. For prices y >= 0 of capacity and z >= 0 of cuts every feasible solution is
worth at most  sum_i mu_i(y, z) + sum y * capacity + sum z * limit  (the Lagrangian value, computed here and not by the
LP solver); the least over all rounds is the bound, wherever the rounds stop.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import highspy
import numpy as np

from tradewind.model.arrays import Floats, Ints
from tradewind.solvers.highs import INFINITY, quiet_solver
from tradewind.systems.eris.kernels.column import Pooled, best_column
from tradewind.systems.eris.kernels.cuts import Cut, violated

SMOOTH = 0.7
"""Weight of the best prices so far in the next prices (Wentges smoothing)."""
LITTLE = 1e-4
"""A round of cuts must lower the bound by this share for another to follow."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PooledBound:
    """bound: upper bound; master: value of the restricted LP; rounds done; price (T, K + 1) that gave the bound."""

    bound: float
    master: float
    rounds: int
    price: Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundEffort:
    """Effort of the bound.

    rounds  of pricing, before the first cuts and after each of up to `cuts` rounds of cuts
    gap     share of the bound at which pricing stops
    """

    rounds: int
    cuts: int = 0
    gap: float = 2e-4


def configuration_bound(jobs: Sequence[Pooled], capacity: Floats, effort: BoundEffort) -> PooledBound:
    """The bound for pooled capacity (T, K + 1), units per slot and GB."""
    search = _Search(jobs, capacity)
    done = search.descend(effort.rounds, effort.gap)
    for _ in range(effort.cuts if jobs else 0):
        before = search.best
        if not search.cut():
            break
        done += search.descend(effort.rounds, effort.gap)
        if before - search.best < LITTLE * before:
            break
    return PooledBound(bound=search.best, master=search.value, rounds=done, price=search.best_price[0])


_Prices = tuple[Floats, Floats]
"""USD per unit and slot (T, K + 1), and per unit of each cut."""


class _Search:
    """Prices that fall towards the least Lagrangian value: best, reached at best_price; value of the restricted LP."""

    def __init__(self, jobs: Sequence[Pooled], capacity: Floats) -> None:
        self._jobs, self._capacity = jobs, capacity
        self._master = _Master(capacity, len(jobs))
        self._price: _Prices = (np.zeros(capacity.shape), np.zeros(0))
        self.best, self.best_price, self.value = np.inf, self._price, 0.0
        self._steps = 0

    def descend(self, rounds: int, gap: float) -> int:
        """Prices columns until the LP's value is within `gap` of the bound; returns the rounds done."""
        for done in range(1, rounds + 1):
            self._steps += 1
            tried = self._price if self._steps <= 2 else self._between()
            total = self._round(tried)
            if total < self.best:
                self.best, self.best_price = total, tried
            self.value, self._price = self._master.solve()
            if self.best - self.value <= gap * self.best:
                return done
        return rounds

    def _between(self) -> _Prices:
        old, new = self.best_price, self._price
        return SMOOTH * old[0] + (1 - SMOOTH) * new[0], SMOOTH * old[1] + (1 - SMOOTH) * new[1]

    def _round(self, price: _Prices) -> float:
        """The Lagrangian value at these prices; adds every job's best schedule to the LP."""
        total = float((price[0] * self._capacity).sum())
        limit, charge = self._master.charges(price[1], len(self._capacity))
        total += limit
        for i, job in enumerate(self._jobs):
            gain, last, workers = best_column(price[0], job, job.worth - charge[i])
            total += gain
            if last >= 0:
                self._master.add(i, job, last, workers)
        return total

    def cut(self) -> bool:
        """Adds violated cuts of the resources with a positive price; whether there were any."""
        scarce = np.flatnonzero(self.best_price[0].max(axis=0) > 1e-9).tolist()
        shares = self._master.shares(len(self._jobs))
        cuts = violated(self._jobs, self._capacity, shares, scarce)
        for cut in cuts:
            self._master.restrict(cut)
        self.best_price = (self.best_price[0], np.append(self.best_price[1], np.zeros(len(cuts))))
        self.value, self._price = self._master.solve()
        return bool(cuts)


class _Master:
    """The restricted LP: a row per pooled capacity, per job and per cut, a column per schedule found."""

    def __init__(self, capacity: Floats, jobs: int) -> None:
        self._size, self._jobs = capacity.shape, jobs
        self._known: set[tuple[int, int, bytes]] = set()
        self._columns: list[tuple[int, int]] = []
        self._cuts: list[Cut] = []
        self._rows: dict[tuple[int, int], list[tuple[int, float]]] = defaultdict(list)
        """Rows and factors of the cuts by job and completion slot."""
        self._share = np.zeros(0)
        self._model = quiet_solver()
        self._model.changeObjectiveSense(highspy.ObjSense.kMaximize)
        none = np.array([], dtype=np.int32)
        for limit in np.concatenate((capacity.reshape(-1), np.ones(jobs))):
            self._model.addRow(-INFINITY, float(limit), 0, none, np.array([]))

    def add(self, number: int, job: Pooled, last: int, workers: Ints) -> None:
        """Adds a schedule unless it is known."""
        key = (number, last, workers.tobytes())
        if key in self._known:
            return
        self._known.add(key)
        self._columns.append((number, last))
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
        for row, factor in self._rows[number, last]:
            index.append(row)
            value.append(factor)
        column = (np.array(index, dtype=np.int32), np.array(value))
        self._model.addCol(float(job.worth[last]), 0.0, INFINITY, len(index), *column)

    def restrict(self, cut: Cut) -> None:
        """Adds a cut."""
        row = self._size[0] * self._size[1] + self._jobs + len(self._cuts)
        self._cuts.append(cut)
        factors = dict(
            zip(zip(cut.job.tolist(), cut.slot.tolist(), strict=True), cut.factor.tolist(), strict=True)
        )
        for key, factor in factors.items():
            self._rows[key].append((row, factor))
        index = [c for c, key in enumerate(self._columns) if key in factors]
        value = np.array([factors[self._columns[c]] for c in index])
        self._model.addRow(-INFINITY, cut.limit, len(index), np.array(index, dtype=np.int32), value)

    def charges(self, price: Floats, slots: int) -> tuple[float, Floats]:
        """Value of the cuts' limits at these prices, and their charge (J, T) for completing in each slot."""
        charge, limit = np.zeros((self._jobs, slots)), 0.0
        for cut, usd in zip(self._cuts, price.tolist(), strict=True):
            charge[cut.job, cut.slot] += usd * cut.factor
            limit += usd * cut.limit
        return limit, charge

    def shares(self, jobs: int) -> Floats:
        """Part of each job that completes in each slot (J, T) in the last solution."""
        found = np.zeros((jobs, self._size[0]))
        for (number, last), share in zip(self._columns, self._share.tolist(), strict=True):
            found[number, last] += share
        return found

    def solve(self) -> tuple[float, _Prices]:
        """Value and prices of the restricted LP."""
        self._model.run()
        solution = self._model.getSolution()
        dual = np.maximum(np.array(solution.row_dual), 0.0)
        self._share = np.array(solution.col_value)
        rows = self._size[0] * self._size[1]
        prices = dual[:rows].reshape(self._size), dual[rows + self._jobs :]
        return float(self._model.getInfo().objective_function_value), prices
