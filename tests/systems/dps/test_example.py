"""The example of docs/systems/dps.md: eight jobs with private budgets on two servers."""

from __future__ import annotations

from pathlib import Path

import pytest

import tradewind as tw

EXAMPLE = Path(__file__).parents[3] / "examples" / "dps.yaml"


@pytest.mark.parametrize(
    ("policy", "profit", "completed"),
    [
        ("dps", 5.460, 5),
        ("dps-paper", 0.0, 0),
        ("dps-simple", 0.0, 0),
        ("top", 5.032, 5),
        ("random", 1.490, 1),
        ("bfp", 8.464, 5),
    ],
)
def test_the_example_runs_and_passes_the_audit(policy: str, profit: float, completed: int) -> None:
    scenario = tw.load(EXAMPLE)
    run = tw.run(scenario, policy=policy)
    assert not tw.check(scenario, run)
    assert run.metrics["profit_usd"] == pytest.approx(profit, abs=0.0005)
    assert run.metrics["jobs_completed"] == completed
