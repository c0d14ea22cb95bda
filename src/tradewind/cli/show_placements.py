"""What `tradewind show` prints: who ran where and when."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.table import Table

from tradewind.cli.show import same_decimals, table_of
from tradewind.cli.terminal import open_console, print_json, say
from tradewind.engine.intervals import floats, ints
from tradewind.files.row_tables import write_csv
from tradewind.model.errors import InputError
from tradewind.model.result import Run
from tradewind.model.scenario import Scenario
from tradewind.model.units import clock
from tradewind.report.live import measurements
from tradewind.report.placements import CSV_COLUMNS, Placement, csv_rows, joined
from tradewind.report.quantities import duration

MOST_ROWS = 60  # of the table; a file has all of them
MOST_PLACES = 6  # of a row of the table


def write(output: Path, scenario: Scenario, run: Run, rows: Sequence[Placement]) -> None:
    """Write the rows as CSV."""
    if output.suffix != ".csv":
        raise InputError("the table is a CSV file; end its name in .csv", where=f"-o {output}")
    write_csv(output, CSV_COLUMNS, csv_rows(scenario, run, rows))
    say(output)


def table(scenario: Scenario, run: Run, rows: Sequence[Placement], *, whole: bool, as_json: bool) -> None:
    """Print the rows, equal ones in a row joined; whole: they are all rows of the run."""
    slot_us = scenario.setup.slot_us
    if as_json:
        print_json(csv_rows(scenario, run, rows))
        return
    short, money, moves = joined(rows), any(row.usd for row in rows), any(row.moves for row in rows)
    bills = zip(ints(run, "payments", "job"), floats(run, "payments", "usd"), strict=True)
    payments = [(scenario.jobs[job].id, float(usd)) for job, usd in bills]
    paid = dict(zip([job for job, _ in payments], same_decimals([usd for _, usd in payments]), strict=True))
    sells = bool(paid)
    head = [
        "job",
        "slots",
        "start",
        "time",
        "where (workers + servers)",
        *(["moves"] if moves else []),
        *(["USD"] if money else []),
        *(["paid USD"] if sells else []),
    ]
    shown = table_of(f"{run.policy} on {scenario.name}", *head)
    for column in shown.columns[4 : 6 if moves else 5]:
        column.justify = "left"
    for row, usd in zip(
        short[:MOST_ROWS], same_decimals([row.usd for row in short[:MOST_ROWS]]), strict=True
    ):
        first, last = row.slots(slot_us)
        cells = [
            str(first) if first == last else f"{first}–{last}",
            clock(row.from_us),
            duration((row.until_us - row.from_us) / 1e6),
        ]
        cells.append(_list(row.places))
        cells += [_list(row.moves)] if moves else []
        cells += [usd] if money else []
        cells += [paid.pop(row.job, "")] if sells else []  # for the whole job, so in its first row
        shown.add_row(row.job, *cells)
    open_console().print(shown)
    if len(short) > MOST_ROWS:
        say(f"… and {len(short) - MOST_ROWS} more rows; -o FILE.csv writes all, --job and --slot choose some")
    waiting = sorted({job.id for job in scenario.jobs} - {row.job for row in rows})
    if not rows:
        say("nothing ran; `tradewind explain RUN --job ID` says what became of a job")
    elif whole and waiting:
        say(f"not in the table, because they did not run: {_list(waiting)}")
    if whole and "measurements" in run.tables:
        open_console().print(measured_table(scenario, run))


def measured_table(scenario: Scenario, run: Run) -> Table:
    """Measured beside predicted seconds of an iteration, and accuracy, per job and site of a live run."""
    head = ("site", "iterations", "measured s", "predicted s", "ratio", "accuracy", "at site")
    shown = table_of("measured per job and site", "job", *head)
    for row in measurements(run):
        shown.add_row(
            scenario.jobs[row.job].id, scenario.setup.nodes[row.node].name, str(row.iterations),
            f"{row.measured_s:.4g}", f"{row.predicted_s:.4g}", row.ratio, row.accuracy, row.site_accuracy,
        )  # fmt: skip
    return shown


def _list(items: Sequence[object]) -> str:
    more = [f"and {len(items) - MOST_PLACES} more"] if len(items) > MOST_PLACES else []
    return ", ".join([*map(str, items[:MOST_PLACES]), *more])
