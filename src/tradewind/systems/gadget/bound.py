"""Offline bound of ring scheduling: what any schedule could earn over the whole horizon, knowing all arrivals.

It is one LP over worker-slots. Slots between two arrivals are alike and merged. With X_i worker-slots of job i in all,
w_iτ of them in interval τ of L_τ slots:

    maximise   Σ_i envelope_i(X_i)
    subject to X_i = Σ_τ w_iτ,  X_i <= F_i,  w_iτ <= n_i L_τ,  Σ_i need_ir w_iτ <= C_r L_τ     ((2), (3), (4), (6), (11))

n_i is the largest ring of job i that fits into the empty cluster with its links. Worth is taken on the concave envelope
from 0 to what can be reached by the horizon, at whole worker-slots. Bandwidth enters through n_i only; migration is free.
"""

from __future__ import annotations

import numpy as np

from tradewind.model.arrays import Floats, Ints
from tradewind.model.errors import Unsupported
from tradewind.model.job import Job, Rounds
from tradewind.model.result import Bound
from tradewind.model.scenario import Scenario
from tradewind.model.units import MICRO
from tradewind.solvers.highs import INFINITY, Entry, Program, quiet_solver
from tradewind.systems.gadget.kernels.bound import possible
from tradewind.systems.gadget.kernels.fabric import (
    ENDLESS,
    allowed_sizes,
    read_fabric,
    slot_of,
    whole_capacity,
)
from tradewind.systems.gadget.kernels.gains import envelope

SHRINKING = ("node_down", "node_up", "link_down", "link_up", "price", "egress")
"""Changes that never raise capacity above what the setup states."""


def bound(scenario: Scenario) -> Bound | None:
    """Upper bound on the utility of any schedule; None where it does not hold (other jobs, capacity that grows)."""
    if not covered(scenario):
        return None
    try:
        most = largest_rings(scenario)
    except Unsupported:
        return None
    return Bound(value=horizon(scenario, most), sense="max", kind="certified")


def covered(scenario: Scenario) -> bool:
    """Whether all jobs are rings with a utility of progress, and changes only remove capacity and bring it back."""
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
    """(I,) workers of the largest ring of each job that fits into the empty cluster."""
    fabric, gain = read_fabric(scenario.setup), allowed_sizes(scenario.jobs)
    slot = possible(slot_of(fabric, whole_capacity(scenario.setup, fabric), scenario.jobs, gain))
    most: Ints = (np.isfinite(slot.gain) * np.arange(gain.shape[1])).max(1)
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
    whole = whole_capacity(setup, read_fabric(setup)).room.astype(np.float64).sum(0)
    # a policy could start between slots, with the arrival itself: the slot of the arrival counts in full
    begin = np.array([job.arrive_us // setup.slot_us for job in jobs])
    starts = np.unique(begin)
    lengths = np.diff(np.append(starts, setup.slots)).astype(np.float64)
    at = np.searchsorted(starts, begin)
    idle = sum(job.utility.value(0.0) for job in jobs if job.utility is not None)
    resources = np.flatnonzero(whole < ENDLESS)
    program = Program()
    total: list[list[Entry]] = [[] for _ in jobs]
    used: list[list[Entry]] = [[] for _ in range(len(starts) * len(resources))]
    for i, job in enumerate(jobs):
        if not most[i]:
            continue
        assert isinstance(job.work, Rounds)
        reach = min(job.work.total // MICRO, int(most[i] * lengths[at[i] :].sum()))
        for length, slope in pieces(job, reach):
            total[i].append((program.column(slope, length), 1.0))
        need = dict(job.worker)
        for t in range(int(at[i]), len(starts)):
            column = program.column(0.0, float(most[i]) * lengths[t])
            total[i].append((column, -1.0))
            for n, r in enumerate(resources.tolist()):
                used[t * len(resources) + n].append((column, need.get(r, 0) / whole[r]))
    for entries in total:
        program.row(-INFINITY, 0.0, entries)
    for entries, length in zip(used, np.repeat(lengths, len(resources)).tolist(), strict=True):
        program.row(-INFINITY, length, entries)
    return idle + _dual_value(program)


def _dual_value(program: Program) -> float:
    """Value of the LP's dual solution, which bounds the LP whatever the tolerance of its primal side."""
    if not program.cost:
        return 0.0
    model = quiet_solver(seed=7)
    if not program.solve(model, maximise=True).optimal:
        raise RuntimeError(f"the LP of the horizon was not solved: HiGHS reports {model.getModelStatus()}")
    price: Floats = np.maximum(np.array(model.getSolution().row_dual), 0.0)
    reduced = np.array(program.cost)
    row = np.repeat(np.arange(len(program.row_high)), np.diff(program.starts))
    np.subtract.at(reduced, program.index, price[row] * np.array(program.value))
    return float(
        np.array(program.row_high) @ price + (np.maximum(reduced, 0.0) * np.array(program.high)).sum()
    )
