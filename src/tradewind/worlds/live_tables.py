"""What was measured in a live run, beside what the model predicted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from tradewind.model.job import Rounds
from tradewind.model.progress import comm_us
from tradewind.model.result import Column, Table
from tradewind.model.scenario import Scenario
from tradewind.model.setup import Setup
from tradewind.model.tables import TABLES
from tradewind.worlds.processes.gang import Attempt, Crew
from tradewind.worlds.processes.watching import Report, Reports
from tradewind.worlds.processes.world import ProcessWorld


def live_tables(
    scenario: Scenario, world: ProcessWorld, alarms: Sequence[Mapping[str, Any]], pace: float
) -> dict[str, Table]:
    """The tables `attempts` and `alarms`. pace: scenario microseconds per second of the wall."""
    rows = [
        row for _, crew in sorted(world.crews.items()) for row in _attempts(scenario.setup, world, crew, pace)
    ]
    said = [(alarm["at_us"], alarm["job"], alarm["text"]) for alarm in alarms]
    return {"attempts": _columns("attempts", rows), "alarms": _columns("alarms", said)}


def _columns(table: str, rows: Sequence[Sequence[Any]]) -> dict[str, Column]:
    columns: dict[str, Column] = {name: [] for name in TABLES[table]}
    for name, values in zip(columns, zip(*rows, strict=True), strict=False):
        columns[name] = list(values)
    return columns


def _attempts(setup: Setup, world: ProcessWorld, crew: Crew, pace: float) -> list[tuple[Any, ...]]:
    ranks = max((len(attempt.launch.ranks) for attempt in crew.attempts), default=0)
    lines = everything(world.launcher.report(crew.job, rank) for rank in range(ranks))
    rows = []
    ends = [*(attempt.began for attempt in crew.attempts[1:]), float("inf")]
    for attempt, until in zip(crew.attempts, ends, strict=False):
        mine = {
            path: [line for line in each if attempt.began <= line.at < until] for path, each in lines.items()
        }
        rows.append(_row(setup, attempt, mine, pace))
    return rows


def everything(paths: Any) -> dict[Path, list[Report]]:
    """All reports of a job's ranks, file by file."""
    found: dict[Path, list[Report]] = {}
    reports, wanted = Reports(), list(paths)
    while new := reports.read(wanted):
        for path, line in new:
            found.setdefault(path, []).append(line)
    return found


def _row(setup: Setup, attempt: Attempt, lines: Mapping[Path, list[Report]], pace: float) -> tuple[Any, ...]:
    """One attempt. Iterations and their time are those of the rank that reported most (all ranks step together)."""
    launch, step = attempt.launch, attempt.step
    most = max(lines.values(), key=len, default=[])
    seconds = [line.seconds for line in most]
    sent = sum(line.bytes_sent for each in lines.values() for line in each)
    return (
        launch.job.index,
        launch.number,
        launch.slot,
        attempt.at_us,
        attempt.ended_us,
        sum(step.workers),
        places(setup, attempt),
        attempt.why or "running",
        len(most),
        float(median(seconds)) if seconds else 0.0,
        predicted_us(setup, attempt) / pace,
        float(sent),
        most[-1].loss if most else 0.0,
    )


def places(setup: Setup, attempt: Attempt) -> str:
    """Where the ranks are, in rank order: `ps@a 2@b`."""
    found: list[str] = []
    step = attempt.step
    for node, servers in zip(step.nodes, step.servers or (0,) * len(step.nodes), strict=True):
        found += [f"ps@{setup.nodes[node].name}"] * servers
    found += [
        f"{workers}@{setup.nodes[node].name}"
        for node, workers in zip(step.nodes, step.workers, strict=True)
        if workers
    ]
    return " ".join(found)


def predicted_us(setup: Setup, attempt: Attempt) -> int:
    """Time of an iteration by the model, in scenario microseconds; 0 where the work has none (fixed, stream, dataset)."""
    job = attempt.launch.job
    if not isinstance(job.work, Rounds):
        return 0
    return job.work.compute_us + comm_us(setup, job, attempt.step)
