"""The bound beside a run: of all jobs; where it turned some away, of what it served; else a word why there is none.

A bound from below counts every job, so it says nothing of a run that serves fewer. What such a run served has a bound of
its own, which belongs to the run and not to the scenario: it is kept among the run's certificates, never as its `bound`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import cast

from tradewind.engine import bounds as offline
from tradewind.model.job import Stream
from tradewind.model.result import Bound, Run
from tradewind.model.scenario import Scenario
from tradewind.model.setup import SENSE
from tradewind.report.summary import Group

NAME = "bound.served"
"""What the bound of a run's served jobs is called among its certificates."""
UNKNOWN = "no bound is known for this scenario"
FEWER = "The least that all jobs cost is no bound for serving fewer; costs of runs that served other jobs do not compare."
OF_SERVED = (
    "to the bound of what was served: every job counts until it was turned away, so it is none of all jobs."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """The certified bound of just what a run served: value > 0, objective / value, of all jobs those turned away."""

    value: float
    ratio: float
    jobs: int
    turned_away: int


def served_of(run: Run) -> Served | None:
    """The bound of what a run served, where it has one."""
    for each in run.certificates:
        if each["name"] == NAME:
            value, data = float(each["value"]), each["data"]
            return Served(value=value, ratio=run.value / value, **data)
    return None


def turned_away(scenario: Scenario, run: Run) -> int:
    """Jobs that a run did not serve to their end; a stream that is still there when the run ends was served."""
    outcomes = run.tables["outcomes"]
    rows = zip(outcomes["job"], outcomes["state"], strict=True)
    streams = sum(
        state == "unfinished" and isinstance(scenario.jobs[cast(int, job)].work, Stream)
        for job, state in rows
    )
    counts = (run.metrics[f"jobs_{state}"] for state in ("refused", "declined", "unfinished"))
    return int(sum(counts)) - streams


def note(scenario: Scenario, run: Run) -> str:
    """Why a run that was to be held against its bound has none of all jobs; empty where it has one."""
    if run.bound is not None:
        return ""
    away = turned_away(scenario, run) if SENSE[run.objective] == "min" else 0
    if not away:
        return UNKNOWN
    lost = f"{away} of {int(run.metrics['jobs'])} jobs were turned away or not finished"
    return f"no bound of all jobs: {lost}. {FEWER}"


def compared(pairs: Sequence[tuple[Scenario, Run]], groups: Sequence[Group]) -> list[str]:
    """Which of the policies that were compared have no bound of all jobs, and why."""
    away = {id(run): turned_away(scenario, run) for scenario, run in pairs}
    lost, part = [], False
    for g in groups:
        short = [run for run in g.runs if away[id(run)]]
        if short and SENSE[g.objective] == "min":
            jobs = sum(int(run.metrics["jobs"]) for run in short)
            lost.append(f"{g.label} {sum(away[id(run)] for run in short)} of {jobs}")
            part = part or any(served_of(run) is not None for run in short)
    said = [f"jobs turned away or not finished: {', '.join(lost)}. {FEWER}"] if lost else []
    if part:
        said.append(f"* {OF_SERVED}")
    if any(note(scenario, run) == UNKNOWN for scenario, run in pairs):
        said.append(UNKNOWN)
    return said


class Bounds:
    """The bounds of one scenario, each computed once, when a run asks for it."""

    def __init__(self, scenario: Scenario) -> None:
        self._scenario = scenario
        self._known: dict[tuple[tuple[int, int], ...], Bound | None] = {}

    def beside(self, run: Run) -> Run:
        """The run with the bound that holds for it: ratio = objective / bound."""
        if SENSE[run.objective] == "min" and turned_away(self._scenario, run):
            return self._with_served(run)
        if () not in self._known:
            self._known[()] = offline.bound(self._scenario)
        found = self._known[()]
        if found is None:
            return run
        zero = 1.0 if run.value == found.value else float("inf")
        return replace(run, bound=replace(found, ratio=run.value / found.value if found.value else zero))

    def _with_served(self, run: Run) -> Run:
        events = run.tables["events"]
        rows = zip(events["kind"], events["job"], events["at_us"], strict=True)
        lost = tuple((cast(int, job), cast(int, at)) for kind, job, at in rows if kind == "refused")
        if lost not in self._known:
            self._known[lost] = offline.bound_of_served(self._scenario, dict(lost))
        found = self._known[lost]
        if found is None or not found.value:
            return run
        data = {"jobs": int(run.metrics["jobs"]), "turned_away": turned_away(self._scenario, run)}
        told = {"name": NAME, "value": found.value, "sense": found.sense, "data": data}
        return replace(run, certificates=(*run.certificates, told))
