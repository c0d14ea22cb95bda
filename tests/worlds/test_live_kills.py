"""The control loop is killed more than two hundred times; the results are those of a run without kills."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tradewind.worlds.tables import UNPINNED

KILLS = 55
"""For each of four scenarios."""


@pytest.mark.parametrize(("name", "seed"), [("broker", 1), ("market", 2), ("rings", 3), ("batch", 4)])
def test_a_loop_that_is_killed_many_times_loses_no_job_runs_none_twice_and_has_the_same_results(
    name: str, seed: int, tmp_path: Path
) -> None:
    command = [sys.executable, "-m", "tests.worlds.kill_loops", name, str(seed), str(KILLS), str(tmp_path)]
    done = subprocess.run(
        command, cwd=Path(__file__).parents[2], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads(done.stdout)
    assert found["dead"] >= KILLS
    assert found["different"] == []  # events, decisions, costs, payments, outcomes, metrics
    assert found["twice"] == []
    assert found["left"] == []
    assert found["violations"] == 0
    assert set(found["alarms"]) == ({UNPINNED} if name == "rings" else set())
    assert found["jobs"] >= 2
    assert found["cost_usd"] > 0 or name != "broker"
    assert found["payments_usd"] > 0 or name != "market"
