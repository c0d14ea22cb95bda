"""What the command line says of runs that completed nothing, or not all jobs."""

from __future__ import annotations

import json
from pathlib import Path

from typer.testing import CliRunner

from tradewind.cli.main import app

SCENARIO = """tradewind_scenario: 1
objective: jct_mean_s
slot_us: 1 s
horizon_us: 10 s
nodes:
- {name: a, capacity: {gpu: 1}}
jobs:
- {id: long, worker: {gpu: 1}, work: {kind: fixed, runtime_us: 100 s}}
"""
SHORT = "- {id: short, arrive_us: 1 s, worker: {gpu: 1}, work: {kind: fixed, runtime_us: 2 s}}\n"


def said(*words: str) -> str:
    done = CliRunner().invoke(app, list(words))
    assert done.exit_code == 0, done.output
    return done.output


def test_nothing_completed_is_not_shown_as_a_time_of_zero(tmp_path: Path) -> None:
    file = tmp_path / "none.yaml"
    file.write_text(SCENARIO)
    assert "none completed" in said("run", str(file), "--policy", "fifo")
    assert said("compare", str(file), "--policies", "fifo,fifo-backfill").count("none completed") == 2
    found = json.loads(said("compare", str(file), "--policies", "fifo,fifo-backfill", "--json"))
    assert [each["objective"]["mean"] for each in found["summary"]] == [None, None]
    assert [each["objective"]["value"] for each in found["runs"]] == [None, None]
    found = json.loads(said("run", str(file), "--policy", "fifo", "--json"))
    assert found["objective"]["value"] is None
    assert found["metrics"]["jct_mean_s"] is None
    assert found["metrics"]["jobs_completed"] == 0
    table, page = tmp_path / "table.json", tmp_path / "page.html"
    said("compare", str(file), "--policies", "fifo,las", "-o", str(table))
    assert [row["value"] for row in json.loads(table.read_text())] == [None, None]
    said("compare", str(file), "--policies", "fifo,las", "-o", str(page))
    assert page.read_text().count("jct_mean_s</small></th><td>–</td>") == 2


def test_a_what_if_compares_no_completion_time_where_one_run_completed_nothing(tmp_path: Path) -> None:
    file, run = tmp_path / "some.yaml", tmp_path / "run.json"
    file.write_text(SCENARIO + SHORT)
    said("run", str(file), "--policy", "fifo", "-o", str(run))
    told = said("whatif", str(run), "--policy", "srtf", "--scenario", str(file))
    row = next(line for line in told.splitlines() if "jct_mean_s" in line)
    assert [cell.strip() for cell in row.split("│")[2:-1]] == ["–", "2", "–"]


def test_a_policy_without_a_ratio_to_the_bound_shows_a_dash(tmp_path: Path) -> None:
    wide = "- {id: wide, workers: 2, worker: {gpu: 1}, work: {kind: fixed, runtime_us: 1 s}}\n"
    file = tmp_path / "blocked.yaml"  # fifo lets short wait for wide, and wide for long
    file.write_text(
        SCENARIO.replace("gpu: 1}}\njobs", "gpu: 2}}\njobs").replace("100 s", "8 s")
        + wide
        + SHORT.replace("2 s}", "4 s}")
    )
    told = said("compare", str(file), "--policies", "fifo,fifo-backfill", "--bound")
    ratios = [line.split("│")[3].strip() for line in told.splitlines() if line.startswith("│")]
    assert ratios[0] == "–"
    assert float(ratios[1]) >= 1


def test_compare_says_who_left_jobs_unfinished_without_a_bound_too(tmp_path: Path) -> None:
    file = tmp_path / "some.yaml"
    file.write_text(SCENARIO + SHORT)
    text = " ".join(said("compare", str(file), "--policies", "fifo,srtf").split())
    assert "jobs rejected or not finished: fifo 2 of 2, srtf 1 of 2." in text
    assert "none completed" in text
