"""Offline bound of ring scheduling: what any schedule could earn over the whole horizon, knowing all arrivals.

It is one LP over worker-slots. Slots between two arrivals are alike and merged. With X_i worker-slots of job i in all,
w_iτ of them in interval τ of L_τ slots:

    maximise   Σ_i majorant_i(X_i)
    subject to X_i = Σ_τ w_iτ,  X_i <= F_i,  w_iτ <= n_i L_τ,  Σ_i need_ir w_iτ <= C_r L_τ     ((2), (3), (4), (6), (11))

n_i is the largest ring of job i that fits into the empty cluster with its links. Worth is taken on a concave majorant
from 0 to what can be reached by the horizon. Bandwidth enters through n_i only; migration is free.

Where ring time acts on progress (equation (1)), worker-slots are those at full speed (shared/pace.py): a worker does at most
one in a slot, and n_i is the most that a ring of up to that size does if it lies on one server.
"""

from __future__ import annotations

import math

import numpy as np

from tradewind.model.arrays import Floats, Ints
from tradewind.model.errors import Unsupported
from tradewind.model.job import Rounds
from tradewind.model.result import Bound
from tradewind.model.scenario import Scenario
from tradewind.model.units import MICRO
from tradewind.model.utility import Utility
from tradewind.solvers.highs import INFINITY, Entry, Program, quiet_solver
from tradewind.systems.gadget.kernels.bound import possible
from tradewind.systems.gadget.kernels.fabric import (
    ENDLESS,
    allowed_sizes,
    read_fabric,
    slot_of,
    whole_capacity,
)
from tradewind.systems.gadget.kernels.gains import upper_hull
from tradewind.systems.gadget.shared.pace import pace_of

SHRINKING = ("node_down", "node_up", "link_down", "link_up", "price", "egress")
"""Changes that never raise capacity above what the setup states."""
GRID, FINEST, LINES = 4096, 64, 64
"""Points of the grid on which a utility that is not concave is read: at most, per worker-slot; lines of its envelope."""
Line = tuple[float, float]
"""Slope and value at 0."""
Piece = tuple[float, float]
"""Length and slope."""


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
        isinstance(job.work, Rounds) and job.work.unit != "round" and job.work.comm == "ring"
        and job.utility is not None and job.utility.of == "progress" and not job.caps
        for job in scenario.jobs
    )  # fmt: skip


def largest_rings(scenario: Scenario) -> Ints:
    """(I,) workers of the largest ring of each job that fits into the empty cluster."""
    fabric, gain = read_fabric(scenario.setup), allowed_sizes(scenario.jobs)
    slot = possible(slot_of(fabric, whole_capacity(scenario.setup, fabric), scenario.jobs, gain))
    most: Ints = (np.isfinite(slot.gain) * np.arange(gain.shape[1])).max(1)
    return most


def majorant(utility: Utility, rate: float, reach: int) -> tuple[float, list[Piece]]:
    """Value at 0 and pieces of a concave function on 0 … reach worker-slots that the utility nowhere exceeds.

    rate: utility progress of a worker-slot. Runs may share a slot between jobs, so progress is any number of millionths of a
    worker-slot, not only whole ones.
    """
    lines = _tangents(utility, rate, reach) if is_concave(utility) else _steps(utility, rate, reach)
    return _lower(sorted(lines, reverse=True), float(reach))


def is_concave(utility: Utility) -> bool:
    """Whether the utility of progress is concave and smooth, so that its tangents lie above it."""
    if utility.shape == "quadratic":
        return utility.args[2] <= 0
    return utility.shape in ("log1p", "sqrt") and utility.args[0] >= 0


def _tangents(utility: Utility, rate: float, reach: int) -> list[Line]:
    """Rising tangents at whole worker-slots and at fractions of the first, the line through the least progress, the peak."""
    points = [4.0**-k for k in range(1, 10)] + [float(x) for x in range(1, reach + 1)]
    lines = []
    for x in points:
        slope = rate * _derivative(utility, rate * x)
        lines.append((slope, utility.value(rate * x) - slope * x))
    first = utility.value(0.0)
    lines.append(((utility.value(rate / MICRO) - first) * MICRO, first))
    most = rate * reach
    if utility.shape == "quadratic" and utility.args[2] < 0:
        most = min(most, max(0.0, -utility.args[1] / (2.0 * utility.args[2])))
    return [*(line for line in lines if line[0] > 0), (0.0, utility.value(most))]


def _derivative(utility: Utility, x: float) -> float:
    height, scale = utility.args[:2]
    if utility.shape == "log1p":
        return height / (scale + x)
    if utility.shape == "sqrt":
        return height / (2.0 * math.sqrt(x * scale))
    return scale + 2.0 * utility.args[2] * x


def _steps(utility: Utility, rate: float, reach: int) -> list[Line]:
    """Lines of the concave envelope of the utility with progress rounded up to a grid of GRID points at most."""
    count = min(GRID, FINEST * reach)
    grid = np.linspace(0.0, reach, count + 1)
    worth = np.maximum.accumulate(np.array([utility.value(rate * x) for x in grid.tolist()]))
    x = np.concatenate(([0.0, 1.0 / MICRO], grid[1:]))
    y = np.concatenate((worth[:1], worth[1:], worth[-1:]))
    corners = upper_hull(x, y)
    slopes = np.diff(y[corners]) / np.diff(x[corners])
    kept = np.unique(np.linspace(0, len(slopes) - 1, min(len(slopes), LINES)).astype(np.int64))
    at = corners[kept]
    lines = list(zip(slopes[kept].tolist(), (y[at] - slopes[kept] * x[at]).tolist(), strict=True))
    return [*lines, (0.0, float(worth[-1]))]


def _lower(lines: list[Line], reach: float) -> tuple[float, list[Piece]]:
    """The least of some lines on 0 … reach: its value at 0 and its rising pieces. Lines by falling slope, one flat."""
    hull: list[Line] = []
    starts: list[float] = []
    for slope, base in lines:
        while hull:
            x = (base - hull[-1][1]) / (hull[-1][0] - slope) if hull[-1][0] > slope else starts[-1]
            if x > starts[-1] or (hull[-1][0] == slope and base >= hull[-1][1]):
                break
            hull.pop()
            starts.pop()
        if hull and hull[-1][0] == slope:
            continue
        starts.append(0.0 if not hull else (base - hull[-1][1]) / (hull[-1][0] - slope))
        hull.append((slope, base))
    ends = [*starts[1:], reach]
    rows = zip(hull, starts, ends, strict=True)
    found = [(min(end, reach) - begin, line[0]) for line, begin, end in rows if begin < reach and line[0] > 0]
    return hull[0][1], found


def horizon(scenario: Scenario, most: Ints) -> float:
    """The LP above, plus the worth of doing nothing."""
    setup, jobs = scenario.setup, scenario.jobs
    whole = whole_capacity(setup, read_fabric(setup)).room.astype(np.float64).sum(0)
    # a policy could start between slots, with the arrival itself: the slot of the arrival counts in full
    begin = np.array([job.arrive_us // setup.slot_us for job in jobs])
    starts = np.unique(begin)
    lengths = np.diff(np.append(starts, setup.slots)).astype(np.float64)
    at = np.searchsorted(starts, begin)
    idle = 0.0
    resources = np.flatnonzero(whole < ENDLESS)
    program = Program()
    total: list[list[Entry]] = [[] for _ in jobs]
    used: list[list[Entry]] = [[] for _ in range(len(starts) * len(resources))]
    for i, job in enumerate(jobs):
        assert job.utility is not None
        if not most[i]:
            idle += job.utility.value(0.0)
            continue
        pace = pace_of(setup, job)
        widest = float(pace.inside[: most[i] + 1].max())
        reach = min(pace.count, math.ceil(widest * lengths[at[i] :].sum()))
        start, pieces = majorant(job.utility, pace.rate, reach)
        idle += start
        for length, slope in pieces:
            total[i].append((program.column(slope, length), 1.0))
        need = dict(job.worker)
        for t in range(int(at[i]), len(starts)):
            column = program.column(0.0, widest * lengths[t])
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
