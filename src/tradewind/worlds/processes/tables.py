"""Tables of a live run: attempts with measured and predicted times, and alarms."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from tradewind.model.job import Rounds
from tradewind.model.progress import comm_us
from tradewind.model.result import Column, Table
from tradewind.model.scenario import Scenario
from tradewind.model.setup import Setup
from tradewind.model.tables import TABLES
from tradewind.worlds.processes.gang import Attempt, Gang
from tradewind.worlds.processes.reports import IterationReport, ReportReader
from tradewind.worlds.processes.world import ProcessWorld


def live_tables(
    scenario: Scenario, world: ProcessWorld, alarms: Sequence[Mapping[str, Any]], pace: float
) -> dict[str, Table]:
    """The tables `attempts` and `alarms`. pace: scenario microseconds per wall-clock second."""
    rows = [
        row for _, gang in sorted(world.gangs.items()) for row in _attempts(scenario.setup, world, gang, pace)
    ]
    texts = [(alarm["at_us"], alarm["job"], alarm["text"]) for alarm in alarms]
    return {"attempts": _columns("attempts", rows), "alarms": _columns("alarms", texts)}


def _columns(table: str, rows: Sequence[Sequence[Any]]) -> dict[str, Column]:
    columns: dict[str, Column] = {name: [] for name in TABLES[table]}
    for name, values in zip(columns, zip(*rows, strict=True), strict=False):
        columns[name] = list(values)
    return columns


def _attempts(setup: Setup, world: ProcessWorld, gang: Gang, pace: float) -> list[tuple[Any, ...]]:
    ranks = max((len(attempt.launch.ranks) for attempt in gang.attempts), default=0)
    lines = read_reports(world.launcher.report(gang.job, rank) for rank in range(ranks))
    rows = []
    ends = [*(attempt.began for attempt in gang.attempts[1:]), float("inf")]
    for attempt, until in zip(gang.attempts, ends, strict=False):
        mine = {
            path: [line for line in each if attempt.began <= line.at < until] for path, each in lines.items()
        }
        rows.append(_row(setup, attempt, mine, pace))
    return rows


def read_reports(paths: Iterable[Path]) -> dict[Path, list[IterationReport]]:
    """All reports of a job's ranks, by file."""
    found: dict[Path, list[IterationReport]] = {}
    reports, wanted = ReportReader(), list(paths)
    while new := reports.read(wanted):
        for path, line in new:
            found.setdefault(path, []).append(line)
    return found


def _row(
    setup: Setup, attempt: Attempt, lines: Mapping[Path, list[IterationReport]], pace: float
) -> tuple[Any, ...]:
    """Row of one attempt; iterations and times of the rank with the most reports (all ranks step together)."""
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
        placement(setup, attempt),
        attempt.why or "running",
        len(most),
        float(median(seconds)) if seconds else 0.0,
        predicted_us(setup, attempt) / pace,
        float(sent),
        most[-1].loss if most else 0.0,
    )


def placement(setup: Setup, attempt: Attempt) -> str:
    """Sites of the ranks, in rank order: `ps@a 2@b`."""
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
    """Predicted time of an iteration in scenario microseconds; 0 for fixed, stream and dataset work."""
    job = attempt.launch.job
    if not isinstance(job.work, Rounds):
        return 0
    return job.work.compute_us + comm_us(setup, job, attempt.step)
