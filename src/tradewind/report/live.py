"""The section of a report about live runs: attempts with measured and predicted times, and alarms."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any, NamedTuple

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
        parts.append(table([HEADS[i] for i in some], body, "Attempts of all jobs", "panel", WORDS))
    if body := _measurements(scenario, run):
        parts.append(table(MEASURED, body, "Iteration times per job and site", "panel", WORDS))
    if alarms := _alarms(scenario, run):
        parts.append(table(["Time", "Job", "Alarm"], alarms, "Alarms", "panel", WORDS))
    where = f" on a cluster ({escape(run.fleet)})" if run.fleet else ""
    note = (
        f"Completions and progress of this run were measured{where}. An attempt is one start of all ranks of a job. "
        "Measured and predicted are seconds per iteration: the median by the wall clock, and what the model predicts for "
        "this placement. Per job and site, measured is the mean without the first tenth of each attempt, and the ratio of "
        "measured to predicted has the standard error of this mean."
    )
    return section("Measured", *parts, note=note)


HEADS = [
    "Job", "slot", "ranks", "ended", "iterations", "measured", "predicted", "ratio", "sent", "loss",
]  # fmt: skip


WORDS = frozenset(("ranks", "ended", "site", "Job", "Alarm"))
MEASURED = ["Job", "site", "iterations", "measured", "predicted", "ratio", "accuracy", "accuracy at the site"]


class Measurement(NamedTuple):
    """A row of the table `measurements` for people."""

    job: int
    node: int
    iterations: int
    measured_s: float
    predicted_s: float
    ratio: str
    accuracy: str
    site_accuracy: str


def measurements(run: Run) -> list[Measurement]:
    """What ranks measured, per job and site; the ratio is measured over predicted, with its standard error."""
    names = ("job", "node", "iterations", "measured_s", "error_s", "predicted_s", "accuracy", "site_accuracy")
    found = []
    for job, node, count, measured_s, error_s, predicted_s, *accuracies in _rows(run, "measurements", *names):
        error = f" ± {error_s / predicted_s:.2g}" if error_s >= 0 else ""
        words = [f"{value:.3f}" if value >= 0 else quantities.DASH for value in accuracies]
        ratio = f"{measured_s / predicted_s:.3g}{error}"
        found.append(Measurement(job, node, count, measured_s, predicted_s, ratio, *words))
    return found


def _measurements(scenario: Scenario, run: Run) -> list[tuple[str, list[Cell]]]:
    return [
        (
            "",
            [
                escape(scenario.jobs[row.job].id), escape(scenario.setup.nodes[row.node].name), str(row.iterations),
                quantities.duration(row.measured_s), quantities.duration(row.predicted_s),
                row.ratio, row.accuracy, row.site_accuracy,
            ],
        )
        for row in measurements(run)[:MOST_ROWS]
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
                    f"{loss:.4g}" if loss else quantities.DASH,
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
