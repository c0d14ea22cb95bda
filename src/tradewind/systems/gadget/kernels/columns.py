"""The configuration LP of a slot by column generation: one column per ring, one persistent HiGHS model.

    maximise   Σ_i Σ_c gain_i(|c|) x_ic
    subject to Σ_c x_ic <= 1                                   for every job
               Σ use of the rings <= room, link, trunk        for every server and resource, link and trunk

Unlike the paper's (12)-(19), whose flow equations (15) vanish when every worker is spread alike, each column is a real
ring: a server holds what it holds and is visited once. For prices p >= 0 the Lagrangian
Σ capacity · p + Σ_i max(0, best reduced value) is a valid upper bound at any time; the smallest one is kept.
"""

from __future__ import annotations

from dataclasses import dataclass

import highspy
import numpy as np

from tradewind.model.arrays import Floats, Ints
from tradewind.solvers.highs import INFINITY, quiet_solver
from tradewind.systems.gadget.kernels.price import price_jobs
from tradewind.systems.gadget.kernels.slot import Rings, Slot, SlotPrices, no_prices, no_rings


@dataclass(frozen=True, slots=True, kw_only=True)
class Relaxed:
    """The end of column generation.

    bound    valid upper bound on the worth
    prices   that gave it
    reduced  (I,) reduced value of every job's best ring there
    columns  servers and workers of the rings of all columns; job (C,) and share (C,) of each
    value    of the restricted LP
    rounds   of pricing
    """

    bound: float
    prices: SlotPrices
    reduced: Floats
    columns: list[tuple[Ints, Ints]]
    job: Ints
    share: Floats
    value: float
    rounds: int


def lagrangian(slot: Slot, prices: SlotPrices) -> tuple[float, Floats, Rings]:
    """Upper bound at prices, reduced value of every job's best ring, and those rings."""
    rings, best = no_rings(slot), np.zeros(slot.jobs)
    price_jobs(slot, prices, best, rings)
    paid = (
        (slot.room * prices.room).sum() + (slot.link * prices.link).sum() + (slot.trunk * prices.trunk).sum()
    )
    return float(paid) + float(best.sum()), best, rings


class Master:
    """The restricted LP, one HiGHS model that grows by columns. Rows are scaled to capacity 1, so that duals are worths."""

    def __init__(self, slot: Slot) -> None:
        self.slot, self.rack = slot, slot.rack
        spots, resources = slot.room.shape
        self.capacity = np.concatenate([slot.room.ravel(), slot.link, slot.trunk]).astype(np.float64)
        self.link_at, self.trunk_at = spots * resources, spots * resources + spots
        self.columns: list[tuple[Ints, Ints]] = []
        self.job: list[int] = []
        self.known: set[tuple[int, bytes, bytes]] = set()
        self.solver = h = quiet_solver(seed=7, presolve="off", solver="simplex", simplex_strategy=4)
        count = slot.jobs + len(self.capacity)
        h.addRows(
            count, np.full(count, -INFINITY), np.ones(count), 0, np.zeros(count, np.int32), np.empty(0, np.int32),
            np.empty(0),
        )  # fmt: skip
        h.changeObjectiveSense(highspy.ObjSense.kMaximize)

    def add(self, rings: Rings, jobs: Ints) -> int:
        """Add the rings of these jobs; returns how many were new."""
        slot = self.slot
        costs: list[float] = []
        starts: list[int] = []
        index: list[int] = []
        value: list[float] = []
        for i in jobs.tolist():
            here = rings.server[i] >= 0
            servers, workers = rings.server[i][here], rings.workers[i][here]
            key = (i, servers.tobytes(), workers.tobytes())
            if not len(servers) or key in self.known:
                continue
            self.known.add(key)
            self.columns.append((servers, workers))
            self.job.append(i)
            starts.append(len(index))
            costs.append(float(slot.gain[i, int(workers.sum())]))
            index.append(i)
            value.append(1.0)
            rows, used = self._use(i, servers, workers)
            index.extend((rows + slot.jobs).tolist())
            value.extend((used / self.capacity[rows]).tolist())
        new = len(costs)
        if new:
            self.solver.addCols(
                new, np.array(costs), np.zeros(new), np.full(new, INFINITY), len(index),
                np.array(starts, np.int32), np.array(index, np.int32), np.array(value),
            )  # fmt: skip
        return new

    def _use(self, i: int, servers: Ints, workers: Ints) -> tuple[Ints, Floats]:
        """Rows that a ring uses, and how much of each."""
        slot = self.slot
        resources = np.flatnonzero(slot.need[i])
        rows = [(servers[:, None] * slot.room.shape[1] + resources).ravel()]
        used = [(workers[:, None] * slot.need[i, resources]).ravel().astype(np.float64)]
        if len(servers) > 1:
            rows.append(servers + self.link_at)
            used.append(np.full(len(servers), float(slot.band[i])))
            racks = np.unique(self.rack[servers])
            if len(racks) > 1:
                rows.append(racks + self.trunk_at)
                used.append(np.full(len(racks), float(slot.band[i])))
        return np.concatenate(rows), np.concatenate(used)

    def solve(self) -> tuple[float, SlotPrices]:
        """Optimal value and duals as prices."""
        h = self.solver
        h.run()
        if h.getModelStatus() != highspy.HighsModelStatus.kOptimal:
            raise RuntimeError(f"the restricted LP was not solved: HiGHS reports {h.getModelStatus()}")
        dual = np.maximum(np.array(h.getSolution().row_dual), 0.0)
        return float(h.getInfo().objective_function_value), self.prices(dual[self.slot.jobs :])

    def prices(self, dual: Floats) -> SlotPrices:
        """Duals of the scaled rows as prices of amounts."""
        p = np.divide(dual, self.capacity, out=np.zeros_like(dual), where=self.capacity > 0)
        return SlotPrices(
            room=p[: self.link_at].reshape(self.slot.room.shape),
            link=p[self.link_at : self.trunk_at],
            trunk=p[self.trunk_at :],
        )

    def shares(self) -> Floats:
        """(C,) value of every column."""
        return np.array(self.solver.getSolution().col_value)


def mixed(a: SlotPrices, b: SlotPrices, part: float) -> SlotPrices:
    """part · a + (1 - part) · b."""
    return SlotPrices(
        room=part * a.room + (1 - part) * b.room,
        link=part * a.link + (1 - part) * b.link,
        trunk=part * a.trunk + (1 - part) * b.trunk,
    )


def relax(
    slot: Slot,
    start: list[Rings],
    *,
    gap: float = 1e-4,
    rounds: int = 200,
    smooth: float = 0.6,
    known: float = np.inf,
) -> Relaxed:
    """Generate columns from the rings in `start` until bound <= value · (1 + gap), with smoothed duals.

    known: another upper bound; once the LP's value meets it, better prices cannot lower the bound.
    smooth: weight of the prices of the best bound so far. Where smoothed prices find no new ring, the plain duals are
    tried, so that the end is exact.
    """
    master = Master(slot)
    every = np.arange(slot.jobs)
    for rings in start:
        master.add(rings, every)
    kept = no_prices(slot)
    best, reduced, found = lagrangian(slot, kept)
    centre: SlotPrices | None = None
    master.add(found, np.flatnonzero(reduced > 0))
    value, used = 0.0, 0
    while used < rounds and master.job:
        used += 1
        value, prices = master.solve()
        fresh = 0
        for part in (smooth, 0.0) if centre is not None else (0.0,):
            tried = prices if centre is None or part == 0.0 else mixed(centre, prices, part)
            bound, values, found = lagrangian(slot, tried)
            if bound < best:
                best, reduced, kept, centre = bound, values, tried, tried
            fresh = master.add(found, np.flatnonzero(values > 0.0))
            if fresh or min(best, known) <= value * (1 + gap):
                break
        if centre is None:
            centre = prices
        if min(best, known) <= value * (1 + gap) or not fresh:
            break
    return Relaxed(
        bound=best, prices=kept, reduced=reduced, columns=master.columns, job=np.array(master.job, np.int64),
        share=master.shares() if master.job else np.empty(0), value=value, rounds=used,
    )  # fmt: skip
