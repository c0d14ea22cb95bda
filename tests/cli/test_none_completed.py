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


def test_compare_says_who_left_jobs_unfinished_without_a_bound_too(tmp_path: Path) -> None:
    file = tmp_path / "some.yaml"
    file.write_text(SCENARIO + SHORT)
    text = " ".join(said("compare", str(file), "--policies", "fifo,srtf").split())
    assert "jobs rejected or not finished: fifo 2 of 2, srtf 1 of 2." in text
    assert "none completed" in text
