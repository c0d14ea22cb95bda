"""What `tradewind show` prints: who ran where and when."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tradewind.cli.show import number, print_json, table_of
from tradewind.cli.terminal import open_console, say
from tradewind.files.row_tables import write_csv
from tradewind.model.errors import InputError
from tradewind.model.result import Run
from tradewind.model.scenario import Scenario
from tradewind.report.placements import CSV_COLUMNS, Placement, csv_rows, joined
from tradewind.report.quantities import duration

MOST_ROWS = 60  # of the table; a file has all of them
MOST_PLACES = 6  # of a row of the table


def write(output: Path, rows: Sequence[Placement], slot_us: int) -> None:
    """Write the rows as CSV."""
    if output.suffix != ".csv":
        raise InputError("the table is a CSV file; end its name in .csv", where=f"-o {output}")
    write_csv(output, CSV_COLUMNS, csv_rows(rows, slot_us))
    say(output)


def table(scenario: Scenario, run: Run, rows: Sequence[Placement], *, whole: bool, as_json: bool) -> None:
    """Print the rows, equal ones in a row joined; whole: they are all rows of the run."""
    slot_us = scenario.setup.slot_us
    if as_json:
        print_json(csv_rows(rows, slot_us))
        return
    short, money, moves = joined(rows), any(row.usd for row in rows), any(row.moves for row in rows)
    head = [
        "job",
        "slots",
        "time",
        "where (workers + servers)",
        *(["moves"] if moves else []),
        *(["USD"] if money else []),
    ]
    shown = table_of(f"{run.policy} on {scenario.name}", *head)
    for column in shown.columns[3 : 5 if moves else 4]:
        column.justify = "left"
    for row in short[:MOST_ROWS]:
        first, last = row.slots(slot_us)
        cells = [
            str(first) if first == last else f"{first}–{last}",
            duration((row.until_us - row.from_us) / 1e6),
        ]
        cells.append(_list(row.places))
        cells += [_list(row.moves)] if moves else []
        shown.add_row(row.job, *cells, *([number(row.usd)] if money else []))
    open_console().print(shown)
    if len(short) > MOST_ROWS:
        say(f"… and {len(short) - MOST_ROWS} more rows; -o FILE.csv writes all, --job and --slot choose some")
    waiting = sorted({job.id for job in scenario.jobs} - {row.job for row in rows})
    if not rows:
        say("nothing ran; `tradewind explain RUN --job ID` says what became of a job")
    elif whole and waiting:
        say(f"not in the table, because they did not run: {_list(waiting)}")


def _list(items: Sequence[object]) -> str:
    more = [f"and {len(items) - MOST_PLACES} more"] if len(items) > MOST_PLACES else []
    return ", ".join([*map(str, items[:MOST_PLACES]), *more])
