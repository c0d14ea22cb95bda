"""A certified lower bound on the cost of a slot: the chord, improved by column generation.

Unit prices beta_ikr of job i for resource k at site r, between the last tier and the list price, are valid when the
pooled rent is never below what the jobs pay at them: for every tier t,

    sum_i H_ik (beta_ikr - usd_krt)+ <= intercept_krt.

Then the sum of the jobs' cheapest plans at their own prices is a lower bound of the slot. Equal prices give the
chord; a restricted master problem over generated plans finds better ones.
"""

from dataclasses import dataclass
from typing import NamedTuple

import highspy
import numpy as np

from tradewind.model.arrays import Floats, Ints
from tradewind.solvers.highs import INFINITY, quiet_solver
from tradewind.solvers.kernel import kernel
from tradewind.systems.mlbroker.kernels.pool import Terms, priced_job, terms
from tradewind.systems.mlbroker.kernels.prices import chord_slopes, most_usage
from tradewind.systems.mlbroker.kernels.slot import Slot
from tradewind.systems.mlbroker.kernels.tree import prove

SMOOTH = 0.5
"""Weight of the best prices so far in the prices tried next (Wentges smoothing)."""
NO_INDEX, NO_VALUE = np.empty(0, dtype=np.int32), np.empty(0)
"""Entries of a row that is empty when it is added."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotBound:
    """Certified lower bound, bound at the chord alone (both USD), rounds of column generation."""

    lower: float
    chord: float
    rounds: int


class PricingResult(NamedTuple):
    """The best plan found for each job at its prices.

    lower    (I,) proven lower bound, USD
    cost     (I,) cost of the plan, USD
    own      (I,) its cost without rent, USD
    workers  (I, R)
    server   (I,)
    """

    lower: Floats
    cost: Floats
    own: Floats
    workers: Ints
    server: Ints


@kernel
def price_out(terms: Terms, price: Floats, nodes: int, found: PricingResult) -> None:
    """Fill `found` with the cheapest plan of every job at its own unit prices (I, R, K)."""
    for i in range(len(found.lower)):
        job = priced_job(terms, i, price[i])
        low, cost, p, y = prove(job, 3, nodes)
        rent = job.server_usd[p] if p >= 0 else 0.0
        for r in range(len(y)):
            found.workers[i, r] = y[r]
            if y[r] > 0:
                rent += y[r] * job.worker_usd[r]
        found.lower[i] = low
        found.cost[i] = cost
        found.server[i] = p
        found.own[i] = cost - rent


class MasterProblem:
    """The restricted master problem: convex combinations of known plans at the convex envelope of the price.

    Columns are added between solves, which start from the last basis and return duals, so it is built on the solver
    itself and not as a `solvers.highs.Program`.
    """

    def __init__(self, slot: Slot, most: Floats) -> None:
        self.slot = slot
        jobs, sites, kinds = slot.shape
        self.shape = (jobs, sites, kinds)
        steps = slot.tiers.usd.shape[2] - 1
        self.steps = steps
        # The price bends only where the pooled demand can reach the second tier.
        reach = (
            most.sum(axis=0)[None, :] > slot.tiers.start[:, :, 1] if steps else np.zeros((sites, kinds), bool)
        )
        self.bends = np.argwhere(reach)
        self.most = most
        self.model = quiet_solver(solver="simplex")
        self._rows()

    def _rows(self) -> None:
        """One row per job: weights add up to 1. One per bend and job: discounted units do not exceed units used."""
        jobs = self.shape[0]
        for _ in range(jobs):
            self.model.addRow(1.0, 1.0, 0, NO_INDEX, NO_VALUE)
        self.use_row = np.full((len(self.bends), jobs), -1)  # -1: the job does not use the resource
        row = jobs
        for b, (_, k) in enumerate(self.bends):
            for i in range(jobs):
                if self.most[i, k] > 0.0:
                    # sum_t x_t - sum_plans h <= 0
                    self.model.addRow(-INFINITY, 0.0, 0, NO_INDEX, NO_VALUE)
                    self.use_row[b, i] = row
                    row += 1
        for b, (r, k) in enumerate(self.bends):
            for t in range(1, self.steps + 1):
                self._tier(b, int(r), int(k), t)

    def _tier(self, b: int, r: int, k: int, t: int) -> None:
        """Columns of one tier: one for reaching it (costs its intercept), and per job the units that it discounts."""
        users = np.flatnonzero(self.use_row[b] >= 0)
        first = self.model.getNumRow()
        for _ in users:
            self.model.addRow(-INFINITY, 0.0, 0, NO_INDEX, NO_VALUE)
        rows = first + np.arange(len(users))
        price = self.slot.tiers
        self._column(float(price.intercept[r, k, t]), rows, -self.most[users, k])
        gain = float(price.usd[r, k, t] - price.usd[r, k, 0])
        for j, i in enumerate(users):
            self._column(gain, [self.use_row[b, i], rows[j]], np.ones(2))

    def _column(self, cost: float, rows: Ints | list[int], values: Floats | list[float]) -> None:
        """A non-negative column with these entries."""
        entries = np.array(rows, dtype=np.int32), np.array(values)
        self.model.addCol(cost, 0.0, INFINITY, len(rows), *entries)

    def add(self, i: int, own: float, usage: Floats) -> None:
        """Add a plan of job i with its own cost and its usage (R, K) at list price; the tiers' columns give the discount."""
        cost = own + float((usage * self.slot.tiers.usd[:, :, 0]).sum())
        rows, values = [i], [1.0]
        for b, (r, k) in enumerate(self.bends):
            if usage[r, k] > 0.0 and self.use_row[b, i] >= 0:
                rows.append(int(self.use_row[b, i]))
                values.append(-float(usage[r, k]))
        self._column(cost, rows, values)

    def solve(self) -> tuple[float, Floats]:
        """Optimal value, and the jobs' unit prices (I, R, K): list price less the duals of the discounts."""
        self.model.run()
        if self.model.getModelStatus() != highspy.HighsModelStatus.kOptimal:
            raise RuntimeError(
                f"the master problem was not solved; HiGHS reports {self.model.getModelStatus()}"
            )
        dual = np.array(self.model.getSolution().row_dual)
        jobs = self.shape[0]
        price = np.repeat(self.slot.tiers.usd[None, :, :, 0], jobs, axis=0)
        for b, (r, k) in enumerate(self.bends):
            users = self.use_row[b] >= 0
            price[users, r, k] += dual[self.use_row[b, users]]
        return float(self.model.getInfo().objective_function_value), price


def valid_prices(slot: Slot, price: Floats, most: Floats) -> Floats:
    """Prices (I, R, K) clipped to the tiers' range and, where a tier's condition fails, lowered until it holds."""
    usd, intercept = slot.tiers.usd, slot.tiers.intercept
    price = np.clip(price, usd[None, :, :, -1], usd[None, :, :, 0])
    for t in range(1, usd.shape[2]):
        over = np.maximum(price - usd[None, :, :, t], 0.0)
        spent = (over * most[:, None, :]).sum(axis=0)
        room = intercept[:, :, t]
        factor = np.where(spent > room, room / np.maximum(spent, 1e-300), 1.0)
        price = price - over * (1.0 - factor)[None]
    valid: Floats = price
    return valid


def lower_bound(slot: Slot, rounds: int = 30, nodes: int = 6000, accuracy: float = 1e-4) -> SlotBound:
    """Certified bound of a slot; deployment counts in full where a job is not deployed.

    rounds    of column generation at most; 0 gives the chord alone
    nodes     of branch and bound per job for the proof at the best prices; a sixteenth of them while prices improve
    accuracy  relative gap to the master problem at which to stop

    Shared capacity is ignored, which can only lower the bound.
    """
    data = terms(slot, 1.0)
    most = most_usage(slot)
    jobs, sites, _ = slot.shape
    if jobs == 0:
        return SlotBound(lower=0.0, chord=0.0, rounds=0)
    counts = np.empty((jobs, sites), dtype=np.int64), np.empty(jobs, dtype=np.int64)
    found = PricingResult(np.empty(jobs), np.empty(jobs), np.empty(jobs), *counts)
    price = best_price = valid_prices(slot, np.repeat(chord_slopes(slot)[None], jobs, axis=0), most)
    quick = nodes // 16 if rounds else nodes
    price_out(data, price, quick, found)
    chord_value = proven = float(found.lower.sum())
    if rounds == 0:
        return SlotBound(lower=proven, chord=chord_value, rounds=0)
    master = MasterProblem(slot, most)
    hoped, done = float(found.cost.sum()), 0
    for turn in range(rounds):
        done = turn + 1
        _add_plans(master, slot, found)
        value, price = master.solve()
        if hoped >= value * (1.0 - accuracy):
            break
        price = valid_prices(slot, SMOOTH * best_price + (1.0 - SMOOTH) * price, most)
        price_out(data, price, quick, found)
        proven = max(proven, float(found.lower.sum()))
        if found.cost.sum() > hoped:
            hoped, best_price = float(found.cost.sum()), price
    price_out(data, best_price, nodes, found)
    return SlotBound(lower=max(proven, float(found.lower.sum())), chord=chord_value, rounds=done)


def _add_plans(master: MasterProblem, slot: Slot, found: PricingResult) -> None:
    """Add the plans just found as columns."""
    for i in range(slot.shape[0]):
        usage = found.workers[i][:, None] * slot.worker[i][None, :]
        usage[found.server[i]] += slot.server[i]
        master.add(i, float(found.own[i]), usage)
