"""Offline schedules of a cluster whose jobs take a number of the same unit: a search over the order of service.

Starts from shortest remaining service first, in which a job's rank is its remaining time times its units, and changes the
weight of a few jobs at a time; a change stays if the mean completion time falls.
"""

from __future__ import annotations

import numpy as np

from tradewind.model.arrays import Ints
from tradewind.model.decision import Plan, Step
from tradewind.model.job import Fixed
from tradewind.model.result import Offline
from tradewind.model.scenario import Scenario
from tradewind.model.units import OPEN, UNLIMITED
from tradewind.systems.cluster.kernels.weighted import weighted_schedule

WORK = (2 * 10**7, 2 * 10**8, 2 * 10**9)
"""Schedules tried times the square of the jobs, by effort."""
MOST_JOBS = 2000


def offline(scenario: Scenario, effort: int) -> Offline | None:
    """The best schedule found; None for other objectives and jobs, and for too many jobs."""
    if scenario.setup.objective != "jct_mean_s" or scenario.changes or len(scenario.jobs) > MOST_JOBS:
        return None
    rows = _rows(scenario)
    if rows is None:
        return None
    (arrive, runtime, units), room = rows, _room(scenario)
    capacity = int(room.sum())
    if (units > capacity).any():
        return None
    rng = np.random.default_rng(effort)
    weight = np.ones(len(arrive))
    best = float(weighted_schedule(arrive, runtime, units, weight, capacity)[0].sum())
    for _ in range(WORK[min(effort, len(WORK)) - 1] // len(arrive) ** 2):
        tried = weight.copy()
        some = rng.integers(0, len(arrive), int(rng.integers(1, 4)))
        tried[some] = np.exp(rng.normal(0.0, 1.0, len(some)))
        finish, _, used = weighted_schedule(arrive, runtime, units, tried, capacity)
        if used and finish.sum() < best:
            weight, best = tried, float(finish.sum())
    _, stretches, used = weighted_schedule(arrive, runtime, units, weight, capacity)
    return Offline(plans=_plans(scenario, stretches[:used], units, room)) if used else None


def _rows(scenario: Scenario) -> tuple[Ints, Ints, Ints] | None:
    """Arrival, runtime and units (N,) of all jobs; None where they are not of one kind."""
    jobs, first = scenario.jobs, scenario.jobs[0]
    for job in jobs:
        plain = isinstance(job.work, Fixed) and job.worker == first.worker and len(job.worker) == 1
        if not plain or job.servers or job.nodes is not None or job.caps or job.restart_us:
            return None
    runtime = [
        c.runtime_us or getattr(j.work, "runtime_us", 0)
        for j, c in zip(jobs, scenario.customers, strict=True)
    ]
    arrive, units = [j.arrive_us for j in jobs], [j.workers_max for j in jobs]
    if sorted(arrive) != arrive or any(j.workers_min != j.workers_max for j in jobs):
        return None
    return np.array(arrive), np.array(runtime), np.array(units)


def _room(scenario: Scenario) -> Ints:
    """Units (S,) that each host holds."""
    setup, (resource, milli) = scenario.setup, scenario.jobs[0].worker[0]
    limits = [
        min(setup.nodes[n].capacity_milli[resource] for n in setup.lineage[host]) for host in setup.hosts
    ]
    return np.array([min(limit, UNLIMITED) // milli for limit in limits], dtype=np.int64)


def _plans(scenario: Scenario, stretches: Ints, units: Ints, room: Ints) -> dict[int, list[Plan]]:
    """Starts and stops by instant; what stops frees its units before others start."""
    starts: dict[int, list[int]] = {}
    stops: dict[int, list[int]] = {}
    over = {int(job): int(end) for job, _, end in stretches[np.argsort(stretches[:, 2], kind="stable")]}
    for job, begin, end in stretches.tolist():
        starts.setdefault(begin, []).append(job)
        stops.setdefault(end, []).append(job)
    free = room.copy()
    held: dict[int, Ints] = {}
    plans: dict[int, list[Plan]] = {}
    for now in sorted({*starts, *stops}):
        made = []
        for job in stops.get(now, ()):
            free += held.pop(job)
            if over[job] != now:
                made.append(Plan(job, ()))
        for job in starts.get(now, ()):
            held[job] = taken = _fill(free, int(units[job]))
            free -= taken
            here = np.flatnonzero(taken)
            nodes = tuple(scenario.setup.hosts[s] for s in here.tolist())
            made.append(Plan(job, (Step(now, OPEN, nodes, tuple(taken[here].tolist())),)))
        if made:
            plans[now] = made
    return plans


def _fill(free: Ints, amount: int) -> Ints:
    """Units per host that add up, the roomiest hosts first."""
    found = np.zeros(len(free), dtype=np.int64)
    for host in np.argsort(-free, kind="stable").tolist():
        found[host] = min(amount, int(free[host]))
        amount -= int(found[host])
    return found
