"""Attaches offline bounds to runs: the bound of all jobs, or that of the served jobs if a run rejected some.

A lower bound on the cost of all jobs says nothing about a run that serves fewer. The served jobs have a bound of their own,
which belongs to the run and not to the scenario: it is kept among the run's certificates, never as its `bound`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import isclose
from typing import cast

from tradewind.engine import bounds as offline
from tradewind.model.job import Stream
from tradewind.model.result import Bound, Run
from tradewind.model.scenario import Scenario
from tradewind.model.setup import SENSE
from tradewind.report.summary import Group

SUMMED = 1e-12
"""Relative error of a sum of floats."""
NAME = "bound.served"
"""Name of the certificate that holds the bound of the served jobs."""
UNKNOWN = "no bound is available for this scenario"
APART = "Runs that serve different jobs are not comparable."
FEWER = "A bound for all jobs does not hold for a run that serves fewer; runs that serve different jobs are not comparable."
OF_SERVED = "ratio to the bound of the served jobs, in which a job counts until it was rejected"


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """The certified bound (> 0) of the jobs that a run served, its ratio, and how many of all jobs were not served."""

    value: float
    ratio: float
    jobs: int
    turned_away: int


def served_of(run: Run) -> Served | None:
    """The bound of the jobs that a run served, if it has one."""
    for each in run.certificates:
        if each["name"] == NAME:
            value, data = float(each["value"]), each["data"]
            return Served(value=value, ratio=run.value / value, **data)
    return None


def turned_away(scenario: Scenario, run: Run) -> int:
    """Number of jobs that a run did not serve to their end; a stream still active when the run ends counts as served."""
    outcomes = run.tables["outcomes"]
    rows = zip(outcomes["job"], outcomes["state"], strict=True)
    streams: int = sum(
        state == "unfinished" and isinstance(scenario.jobs[cast(int, job)].work, Stream)
        for job, state in rows
    )
    counts = (run.metrics[f"jobs_{state}"] for state in ("refused", "declined", "unfinished"))
    return int(sum(counts)) - streams


def _loose(scenario: Scenario) -> str:
    """What makes a bound looser than the true tariffs; empty if nothing does."""
    names = [pool.name for pool in scenario.setup.pools if not pool.is_concave]
    if not names:
        return ""
    return (
        f"the bound takes free and retroactive tiers at their lowest rate (pools {', '.join(names)}); "
        "its gap contains the difference to the true tariff"
    )


def note(scenario: Scenario, run: Run) -> str:
    """Why a run has no bound for all jobs, or what makes it looser; empty if there is nothing to say."""
    if run.bound is not None:
        return _loose(scenario)
    away = turned_away(scenario, run) if SENSE[run.objective] == "min" else 0
    if not away:
        return UNKNOWN
    lost = f"{away} of {int(run.metrics['jobs'])} jobs were rejected or not finished"
    return f"no bound for all jobs: {lost}. {FEWER}"


def not_served(pairs: Sequence[tuple[Scenario, Run]], groups: Sequence[Group]) -> str:
    """Which of the compared policies did not serve all jobs, where lower is better; empty if all did."""
    away = {id(run): turned_away(scenario, run) for scenario, run in pairs}
    lost = []
    for g in groups:
        short = [run for run in g.runs if away[id(run)]]
        if short and SENSE[g.objective] == "min":
            jobs = sum(int(run.metrics["jobs"]) for run in short)
            lost.append(f"{g.label} {sum(away[id(run)] for run in short)} of {jobs}")
    return f"jobs rejected or not finished: {', '.join(lost)}." if lost else ""


def comparison_notes(pairs: Sequence[tuple[Scenario, Run]], groups: Sequence[Group]) -> list[str]:
    """Which of the compared policies have no bound for all jobs, and why."""
    lost = not_served(pairs, groups)
    notes = [f"{lost} {FEWER}"] if lost else []
    if lost and any(served_of(run) is not None for _, run in pairs):
        notes.append(f"* {OF_SERVED}")
    if any(note(scenario, run) == UNKNOWN for scenario, run in pairs):
        notes.append(UNKNOWN)
    loose = (
        _loose(scenario) for scenario, run in pairs if run.bound is not None or served_of(run) is not None
    )
    return notes + sorted({text for text in loose if text})


def _ratio(value: float, bound: Bound) -> float:
    """objective / bound; exactly 1 where they differ by no more than the last digits of sums of floats."""
    if isclose(value, bound.value, rel_tol=SUMMED):
        return 1.0
    return value / bound.value if bound.value else float("inf")


Refusals = tuple[tuple[int, int], ...] | None
"""(job, instant) of the jobs that a run refused, if its bound is that of the served jobs; None: of all jobs."""


def find_bound(scenario: Scenario, refused: Refusals) -> Bound | None:
    """The bound of all jobs, or of those that were served."""
    if refused is None:
        return offline.bound(scenario)
    return offline.bound_of_served(scenario, dict(refused))


class Bounds:
    """The bounds of one scenario, each computed once, on demand."""

    def __init__(self, scenario: Scenario) -> None:
        self._scenario = scenario
        self.known: dict[Refusals, Bound | None] = {}

    def key(self, run: Run) -> Refusals:
        """Which bound applies to a run."""
        if SENSE[run.objective] != "min" or not turned_away(self._scenario, run):
            return None
        events = run.tables["events"]
        rows = zip(events["kind"], events["job"], events["at_us"], strict=True)
        return tuple((cast(int, job), cast(int, at)) for kind, job, at in rows if kind == "refused")

    def attach(self, run: Run) -> Run:
        """The run with the bound that applies to it; ratio is objective / bound."""
        key = self.key(run)
        if key not in self.known:
            self.known[key] = find_bound(self._scenario, key)
        found = self.known[key]
        if found is None:
            return run
        if key is None:
            return replace(run, bound=replace(found, ratio=_ratio(run.value, found)))
        if not found.value:
            return run
        data = {"jobs": int(run.metrics["jobs"]), "turned_away": turned_away(self._scenario, run)}
        certificate = {"name": NAME, "value": found.value, "sense": found.sense, "data": data}
        return replace(run, certificates=(*run.certificates, certificate))
