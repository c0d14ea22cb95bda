"""Offline yardsticks of ring scheduling: the exact optimum of a slot, and a certified bound of the whole horizon.

The horizon's bound is one LP over worker-slots. Slots between two arrivals are alike and merged. With X_i worker-slots
of job i in all, w_iτ of them in interval τ of L_τ slots:

    maximise   Σ_i envelope_i(X_i)
    subject to X_i = Σ_τ w_iτ,  X_i <= F_i,  w_iτ <= n_i L_τ,  Σ_i need_ir w_iτ <= C_r L_τ     ((2), (3), (4), (6), (11))

n_i is the largest ring of job i that the empty cluster holds with its links. Worth is taken on the concave envelope
from 0 to what can be reached by the horizon, through whole worker-slots. Bandwidth enters through n_i only; migration is
free.
"""

from __future__ import annotations

import highspy
import numpy as np

from tradewind.model.arrays import Floats, Ints
from tradewind.model.errors import Unsupported
from tradewind.model.job import Job, Rounds
from tradewind.model.result import Bound
from tradewind.model.scenario import Scenario
from tradewind.model.units import MICRO
from tradewind.solvers.highs import INFINITY, quiet_solver
from tradewind.systems.gadget.kernels.bound import possible
from tradewind.systems.gadget.kernels.exact import Proof, solve_exactly
from tradewind.systems.gadget.kernels.fabric import read_fabric, slot_of, whole_capacity
from tradewind.systems.gadget.kernels.gains import envelope
from tradewind.systems.gadget.kernels.slot import Slot

SHRINKING = ("node_down", "node_up", "link_down", "link_up", "price", "egress")


def bound(scenario: Scenario) -> Bound | None:
    """Upper bound on the utility of any schedule; None where it does not hold (other work, capacity that grows)."""
    if not covered(scenario):
        return None
    try:
        most = largest_rings(scenario)
    except Unsupported:
        return None
    return Bound(value=horizon(scenario, most), sense="max", kind="certified")


def covered(scenario: Scenario) -> bool:
    """Ring jobs with a utility of progress, and changes that only take capacity away and bring it back."""
    if scenario.setup.objective != "utility" or not scenario.jobs:
        return False
    if any(change.kind not in SHRINKING for change in scenario.changes):
        return False
    return all(
        isinstance(job.work, Rounds) and job.work.unit == "worker-slot" and job.work.comm == "ring"
        and job.utility is not None and job.utility.of == "progress" and not job.caps
        for job in scenario.jobs
    )  # fmt: skip


def largest_rings(scenario: Scenario) -> Ints:
    """(I,) workers of the largest ring of each job that the empty cluster holds."""
    fabric = read_fabric(scenario.setup)
    widest = max(job.workers_max for job in scenario.jobs)
    gain = np.full((len(scenario.jobs), widest + 1), -np.inf)
    gain[:, 0] = 0.0
    for i, job in enumerate(scenario.jobs):
        gain[i, job.workers_min : job.workers_max + 1] = 1.0
    whole = whole_capacity(scenario.setup, fabric)
    slot = possible(slot_of(fabric, whole, scenario.jobs, gain, len(scenario.setup.resources)))
    allowed = np.isfinite(slot.gain)
    most: Ints = (allowed * np.arange(widest + 1)).max(1)
    return most


def pieces(job: Job, reach: int) -> list[tuple[float, float]]:
    """(length, slope) of the concave envelope of a job's worth from 0 to `reach` worker-slots."""
    assert isinstance(job.work, Rounds)
    assert job.utility is not None
    worth = np.array([job.utility.value(job.work.rate * x) for x in range(reach + 1)])
    line = envelope(np.maximum.accumulate(worth))
    slopes = np.diff(line)
    result: list[tuple[float, float]] = []
    for slope in slopes[slopes > 0].tolist():
        if result and slope >= result[-1][1] * (1 - 1e-12):
            result[-1] = (result[-1][0] + 1.0, result[-1][1])
        else:
            result.append((1.0, slope))
    return result


def horizon(scenario: Scenario, most: Ints) -> float:
    """The LP above, plus the worth of doing nothing."""
    setup, jobs = scenario.setup, scenario.jobs
    whole = whole_capacity(setup, read_fabric(setup))[0].astype(np.float64).sum(0)
    # a policy could start between slots, with the arrival itself: the slot it falls into counts
    begin = np.array([job.arrive_us // setup.slot_us for job in jobs])
    starts = np.unique(begin)
    lengths = np.diff(np.append(starts, setup.slots)).astype(np.float64)
    at = np.searchsorted(starts, begin)
    idle = sum(job.utility.value(0.0) for job in jobs if job.utility is not None)
    h = quiet_solver(seed=7)
    resources = np.flatnonzero(whole < 1e17)
    count = len(jobs) + len(starts) * len(resources)
    upper = np.zeros(count)
    for t, length in enumerate(lengths):
        upper[len(jobs) + t * len(resources) : len(jobs) + (t + 1) * len(resources)] = length
    h.addRows(
        count,
        np.full(count, -INFINITY),
        upper,
        0,
        np.zeros(count, np.int32),
        np.empty(0, np.int32),
        np.empty(0),
    )
    columns = _Columns()
    for i, job in enumerate(jobs):
        if not most[i]:
            continue
        assert isinstance(job.work, Rounds)
        reach = min(job.work.total // MICRO, int(most[i] * lengths[at[i] :].sum()))
        for length, slope in pieces(job, reach):
            columns.add(slope, length, [i], [1.0])
        need = dict(job.worker)
        use = [need.get(int(r), 0) / whole[r] for r in resources]
        for t in range(int(at[i]), len(starts)):
            first = len(jobs) + t * len(resources)
            columns.add(
                0.0, float(most[i]) * lengths[t], [i, *range(first, first + len(resources))], [-1.0, *use]
            )
    return idle + columns.solve(h)


class _Columns:
    """Columns gathered for HiGHS."""

    def __init__(self) -> None:
        self.cost: list[float] = []
        self.upper: list[float] = []
        self.starts: list[int] = []
        self.index: list[int] = []
        self.value: list[float] = []

    def add(self, cost: float, upper: float, index: list[int], value: list[float]) -> None:
        self.cost.append(cost)
        self.upper.append(upper)
        self.starts.append(len(self.index))
        self.index.extend(index)
        self.value.extend(value)

    def solve(self, h: highspy.Highs) -> float:
        """The value of the LP's dual solution, which bounds the LP whatever the tolerance of its primal side."""
        count = len(self.cost)
        if not count:
            return 0.0
        h.addCols(
            count, np.array(self.cost), np.zeros(count), np.array(self.upper), len(self.index),
            np.array(self.starts, np.int32), np.array(self.index, np.int32), np.array(self.value),
        )  # fmt: skip
        h.changeObjectiveSense(highspy.ObjSense.kMaximize)
        h.run()
        if h.getModelStatus() != highspy.HighsModelStatus.kOptimal:
            raise RuntimeError(f"the horizon's LP ended as {h.getModelStatus()}")
        price: Floats = np.maximum(np.array(h.getSolution().row_dual), 0.0)
        reduced = np.array(self.cost)
        entry = np.repeat(np.arange(count), np.diff([*self.starts, len(self.index)]))
        np.subtract.at(reduced, entry, price[self.index] * np.array(self.value))
        limit = np.array(h.getLp().row_upper_)
        return float(limit @ price + (np.maximum(reduced, 0.0) * np.array(self.upper)).sum())


def exact(slot: Slot, nodes: int = 100_000) -> Proof:
    """The best rings of one slot by mixed-integer programming: Problem (10) with the links of the fabric."""
    return solve_exactly(slot, nodes)
