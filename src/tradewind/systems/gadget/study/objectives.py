"""The objectives of Sec. IV that the paper names and does not measure: energy, with early stopping, and fairness."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from tradewind.engine import bounds
from tradewind.engine.intervals import ints
from tradewind.lab.study import Effort, Judged, PaperFigure, Row, spreads
from tradewind.model.arrays import Floats
from tradewind.model.job import Job, Rounds
from tradewind.model.result import Run
from tradewind.model.scenario import Scenario
from tradewind.model.units import MICRO
from tradewind.model.utility import Utility
from tradewind.systems.gadget.study.runs import RIVALS, by_seed, chart_of, claim, made, played, seeds_of

NAMES = ("gadget", "gadget-paper", *RIVALS)
PRINTED, LESS_COST = "as printed", "worth less cost"
SEEDS = 5
LATE = 0.02
"""Share of the work that may lie past the point from which on a job's utility falls: whole workers in whole slots."""


def _worker_slots(run: Run) -> Floats:
    """(I,) worker-slots that every job had."""
    return ints(run, "outcomes", "work") / MICRO


def _rate(job: Job) -> float:
    assert isinstance(job.work, Rounds)
    return job.work.rate


def peak_of(job: Job) -> float:
    """Worker-slots at which the utility of a job is largest."""
    assert job.utility is not None
    assert isinstance(job.work, Rounds)
    _, slope, curvature = job.utility.args
    return min(float(job.work.count), -slope / (2 * curvature) / job.work.rate)


def as_printed(scenario: Scenario) -> Scenario:
    """The same with the utility that Sec. IV prints for energy: minus the quadratic cost."""
    jobs = []
    for job in scenario.jobs:
        assert job.utility is not None
        cost = Utility(of="progress", shape="quadratic", args=(0.0, 0.0, job.utility.args[2]))
        jobs.append(replace(job, utility=cost))
    return replace(scenario, jobs=tuple(jobs), name=f"{scenario.name}-printed")


def energy_of(effort: Effort, seed: int) -> list[Row]:
    """Utility, energy and work past the peak under both readings of the energy objective, one seed."""
    rows: list[Row] = []
    size = effort.pick({}, {"slots": 60, "jobs": 600})
    given = made(effort, seed, objective="energy", **size)
    for case, scenario in ((LESS_COST, given), (PRINTED, as_printed(given))):
        bound = bounds.bound(scenario)
        assert bound is not None
        runs = {name: played(scenario, name, seed) for name in NAMES}
        best = max(runs[name].metrics["utility"] for name in RIVALS)
        kwh = np.array([_rate(job) for job in scenario.jobs])
        peak = np.array([peak_of(job) for job in scenario.jobs])
        for name, run in runs.items():
            done = _worker_slots(run)
            rows.append(
                {"case": case, "policy": name, "utility": run.metrics["utility"], "gained": run.metrics["utility"] - best,
                 "of bound": run.metrics["utility"] / bound.value if bound.value > 0 else 0.0, "kWh": float(kwh @ done),
                 "late": float(np.maximum(0.0, done - peak).sum() / max(1.0, done.sum()))}
            )  # fmt: skip
    return rows


def join_energy(effort: Effort, parts: Sequence[Sequence[Row]]) -> list[Row]:
    """Means over the seeds."""
    del effort
    rows = [row for part in parts for row in part]
    return spreads(rows, ("case", "policy"), "utility", "gained", "of bound", "kWh", "late")


def energy_rows(effort: Effort) -> list[Row]:
    """Utility and energy by policy."""
    return join_energy(effort, [energy_of(effort, seed) for seed in seeds_of(effort, SEEDS, 3)])


def _row(rows: Sequence[Row], policy: str, case: str) -> Row:
    return next(r for r in rows if r["policy"] == policy and r["case"] == case)


def earns_most(case: str, rows: Sequence[Row], policy: str) -> Judged:
    """More utility than every rival of the same seed, beyond the interval."""
    row = _row(rows, policy, case)
    others = ", ".join(f"{n} {float(_row(rows, n, case)['of bound']):.3f}" for n in RIVALS)
    return Judged(
        float(row["gained low"]) > 0,
        f"{float(row['of bound']):.3f} of the offline bound ({others}); {float(row['gained']):+,.1f} "
        f"({float(row['gained low']):+,.1f} to {float(row['gained high']):+,.1f}) on the best rival",
    )


def stops_early(rows: Sequence[Row], policy: str) -> Judged:
    """Next to no work past the point from which on the utility of a job falls."""
    row = _row(rows, policy, LESS_COST)
    others = ", ".join(
        f"{n} {float(r['late']):.1%} and {float(r['kWh']):,.0f} kWh"
        for n in RIVALS
        for r in [_row(rows, n, LESS_COST)]
    )
    return Judged(
        float(row["late high"]) <= LATE,
        f"{float(row['late']):.1%} of the work lies past the peak of its utility, {float(row['kWh']):,.0f} kWh ({others})",
    )


def printed_trains(rows: Sequence[Row], policy: str) -> Judged:
    """With the printed utility something is trained."""
    kwh = float(_row(rows, policy, PRINTED)["kWh"])
    return Judged(kwh > 0, f"{kwh:,.1f} kWh: {'work is done' if kwh > 0 else 'doing nothing is optimal'}")


def fairness_of(effort: Effort, seed: int) -> list[Row]:
    """Proportional fairness, Jain's index of the worker-slots and jobs without any, one seed."""
    given = made(
        effort, seed, objective="fairness", **effort.pick({"jobs": 300}, {"slots": 60, "jobs": 1200})
    )
    bound = bounds.bound(given)
    assert bound is not None
    runs = {name: played(given, name, seed) for name in NAMES}
    best = max(runs[name].metrics["utility"] for name in RIVALS)
    rows: list[Row] = []
    for name, run in runs.items():
        x, value = _worker_slots(run), run.metrics["utility"]
        rows.append(
            {"case": "fairness", "policy": name, "utility": value, "gained": value - best, "of bound": value / bound.value,
             "Jain": float(x.sum() ** 2 / max(1e-9, len(x) * (x**2).sum())), "without": float((x == 0).mean())}
        )  # fmt: skip
    return rows


def join_fairness(effort: Effort, parts: Sequence[Sequence[Row]]) -> list[Row]:
    """Means over the seeds."""
    del effort
    rows = [row for part in parts for row in part]
    return spreads(rows, ("case", "policy"), "utility", "gained", "of bound", "Jain", "without")


def fairness_rows(effort: Effort) -> list[Row]:
    """Fairness by policy."""
    return join_fairness(effort, [fairness_of(effort, seed) for seed in seeds_of(effort, SEEDS, 3)])


def _shares(rows: Sequence[Row]) -> str:
    return "Jain's index of worker-slots and share of jobs without any: " + ", ".join(
        f"{r['policy']} {float(r['Jain']):.2f} and {float(r['without']):.1%}" for r in rows
    )


FIGURES = (
    PaperFigure(
        name="table-energy",
        title="Sec. IV: energy, with early stopping",
        claims=(
            claim(
                "printed utility",
                "Sec. IV-3: energy by the utility -c(zeta sum y), c quadratic. Here: something is trained.",
                printed_trains,
            ),
            claim(
                "earns most",
                "Abstract, Sec. IV-3: the framework covers energy efficiency (not measured). Here: worth less cost, "
                "more than FIFO, DRF and LAS.",
                partial(earns_most, LESS_COST),
            ),
            claim(
                "stops early",
                "Sec. I, IV-3: no more training than pays. Here: at most 2% of the work past a job's peak utility.",
                stops_early,
            ),
        ),
        rows=energy_rows,
        pieces=by_seed(energy_of, join_energy, SEEDS, 3),
        chart=chart_of("case", "utility", "policy", kind="bar"),
    ),
    PaperFigure(
        name="table-fairness",
        title="Sec. IV: proportional fairness",
        claims=(
            claim(
                "earns most",
                "Abstract, Sec. IV-3: the framework covers fairness by sum log (not measured). Here: more of it than "
                "FIFO, DRF and LAS.",
                partial(earns_most, "fairness"),
            ),
        ),
        rows=fairness_rows,
        summary=_shares,
        pieces=by_seed(fairness_of, join_fairness, SEEDS, 3),
        chart=chart_of("policy", "utility", "case", kind="bar", y_label="sum of ln(1 + worker-slots)"),
    ),
)
