"""Text of scenarios, runs and programs reaches terminals and spreadsheets as text."""

from __future__ import annotations

import csv
import io
from dataclasses import asdict
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.table import Table

from tests.builders import job, node, scenario, setup
from tradewind import api
from tradewind.cli import main as cli
from tradewind.cli import show
from tradewind.cli.console import PlainConsole
from tradewind.cli.guard import guarded
from tradewind.files import row_tables, scenario_file
from tradewind.model.errors import InputError
from tradewind.model.text import shown
from tradewind.registry import policies
from tradewind.report.bills import Bill, BillLine, BillPayment
from tradewind.service.models import BillAnswer, BillPage
from tradewind.service.routes_records import csv_of
from tradewind.worlds.simulate import simulate

NAMES = (
    "[/x]",
    "[link=https://example.org]here[/link]",
    "[bold]",
    ":smile:",
    "\x1b]0;title\x07",
    "\x9b31m",
    "\u202eab",
    "\u2028ab",
    "a\udcff",
)


@settings(deadline=None, max_examples=200)
@given(st.text(st.characters(codec="utf-8"), max_size=30) | st.sampled_from(NAMES))
def test_a_cell_is_printed_as_it_is_and_controls_nothing(text: str) -> None:
    out = io.StringIO()
    console = PlainConsole(file=out, width=400, force_terminal=True, color_system=None)
    table = Table(text or "-")
    table.add_row(text)
    console.print(table)
    console.print(text)
    assert not {c for c in out.getvalue() if c != "\n"} & {
        chr(c) for c in [*range(32), *range(0x7F, 0xA0), 0x2028, 0x202E, 0xDCFF]
    }
    if text.isascii() and text.isprintable() and text.strip() == text:
        assert text in out.getvalue()


@pytest.mark.parametrize("name", NAMES)
def test_job_ids_and_errors_are_shown_escaped(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    where = setup([node("a", 1)])
    jobs = scenario([job(0, id=name, worker=((0, 9000),)), job(1)], where=where)
    run = simulate(jobs, policies.find("fifo"), {})
    show.run(run, jobs, as_json=False, saved=Path(f"{name}.json"))

    def fail() -> None:
        raise InputError(f"{name} is wrong", where=name)

    assert guarded(fail) == 2
    assert guarded(lambda: cli.app(["run", f"{name}.yaml", "--policy", "fifo"], standalone_mode=False)) == 2
    printed = capsys.readouterr()
    assert shown(name) in printed.out.replace("\n", "")
    assert shown(name) in printed.err
    assert not {"\x1b", "\x07", "\x9b", "\u202e", "\u2028", "\udcff"} & {*printed.out, *printed.err}


@pytest.mark.parametrize("name", ["=HYPERLINK(1)", "+1+1", "-x", "@sum", "'=x", "'", "plain", "-5"])
def test_cells_that_spreadsheets_would_compute_are_written_as_text_and_read_back(
    name: str, tmp_path: Path
) -> None:
    made = scenario([job(0, id=name), job(1)], where=setup([node("a", 1)]))
    scenario_file.dump(made, tmp_path / "s.yaml", tables="csv")
    with (tmp_path / "s.jobs.csv").open(newline="") as file:
        cells = [cell for line in csv.reader(file) for cell in line]
    assert not [cell for cell in cells if cell.startswith(("=", "+", "-", "@")) and cell != "-5"]
    assert api.load(tmp_path / "s.yaml").jobs[0].id == name


@pytest.mark.parametrize("name", ["=HYPERLINK(1)", "+1+1", "-x", "@sum"])
def test_bills_of_the_service_have_no_cells_that_spreadsheets_would_compute(name: str) -> None:
    line = BillLine(job=name, kind="rent", where="a", what="gpu", amount=1.0, unit="h", usd=-2.0)
    paid = BillPayment(job=name, at_us=0, usd=-3.0)
    bill = Bill(tenant=name, lines=(line,), payments=(paid,), refunds=(paid,))
    page = BillPage(
        period="2026", from_s=0.0, to_s=1.0, market="queue", policy="fifo", price_list="",
        bills=[BillAnswer(**asdict(bill))],
    )  # fmt: skip
    lines = list(csv.reader(io.StringIO(bytes(csv_of(page).body).decode())))
    cells = [cell for line in lines for cell in line]
    assert "'" + name in cells
    assert "-3.0" in cells
    assert not [cell for cell in cells if cell.startswith(("=", "+", "@", "-x"))]


@given(st.text(st.characters(codec="ascii"), max_size=8))
def test_every_text_cell_is_read_as_it_was_written(text: str) -> None:
    written = row_tables.csv_cell(text)
    assert row_tables._as_meant(written) == text
