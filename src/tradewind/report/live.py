"""The section of a report about live runs: attempts with measured and predicted times, and alarms."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

from tradewind.model.result import Run
from tradewind.model.scenario import Scenario
from tradewind.report import quantities
from tradewind.report.html import Cell, section, table

MOST_ROWS = 200


def measured(scenario: Scenario, run: Run) -> str:
    """The section as HTML; empty for a simulated run."""
    if run.world == "simulated":
        return ""
    rows = _attempts(scenario, run)
    some = [i for i in range(len(HEADS)) if any(cells[i] != quantities.DASH for _, cells in rows)]
    parts = []
    if rows:  # empty columns are left out
        body = [(kind, [cells[i] for i in some]) for kind, cells in rows]
        parts.append(table([HEADS[i] for i in some], body, "Attempts of all jobs", "panel"))
    if alarms := _alarms(scenario, run):
        parts.append(table(["Time", "Job", "Alarm"], alarms, "Alarms", "panel"))
    where = f" on a cluster ({escape(run.fleet)})" if run.fleet else ""
    note = (
        f"Completions and progress of this run were measured{where}. An attempt is one start of all ranks of a job. "
        "Measured and predicted are seconds per iteration: the median by the wall clock, and what the model predicts for "
        "this placement."
    )
    return section("Measured", *parts, note=note)


HEADS = [
    "Job", "slot", "ranks", "ended", "iterations", "measured", "predicted", "ratio", "sent", "loss",
]  # fmt: skip


def _rows(run: Run, name: str, *columns: str) -> Sequence[tuple[Any, ...]]:
    table = run.tables.get(name, {})
    return list(zip(*(table.get(column, []) for column in columns), strict=True))


def _attempts(scenario: Scenario, run: Run) -> list[tuple[str, list[Cell]]]:
    names = ("job", "slot", "places", "why", "iterations", "measured_s", "predicted_s", "bytes_sent", "loss")
    rows = []
    for job, slot, places, why, iterations, measured_s, predicted_s, sent, loss in _rows(
        run, "attempts", *names
    )[:MOST_ROWS]:
        known = iterations > 0
        rows.append(
            (
                "",
                [
                    escape(scenario.jobs[job].id),
                    str(slot),
                    escape(places),
                    escape(why),
                    str(iterations) if known else quantities.DASH,
                    quantities.duration(measured_s) if known else quantities.DASH,
                    quantities.duration(predicted_s) if predicted_s else quantities.DASH,
                    f"{measured_s / predicted_s:.2f}" if known and predicted_s else quantities.DASH,
                    f"{sent / 1e6:.1f} MB" if sent else quantities.DASH,
                    f"{loss:.4g}" if known else quantities.DASH,
                ],
            )
        )
    return rows


def _alarms(scenario: Scenario, run: Run) -> list[tuple[str, list[Cell]]]:
    rows = _rows(run, "alarms", "at_us", "job", "text")[:MOST_ROWS]
    return [
        ("", [quantities.duration(at / 1e6), escape(scenario.jobs[job].id) if job >= 0 else "", escape(text)])
        for at, job, text in rows
    ]
