"""The example of docs/systems/eris.md: the price floor keeps capacity free for better bids."""

from __future__ import annotations

from pathlib import Path

import pytest

import tradewind as tw

EXAMPLE = Path(__file__).parents[3] / "examples" / "eris.yaml"


@pytest.mark.parametrize(
    ("policy", "welfare", "completed"),
    [("eris", 1250.0, 2), ("eris-preemptive", 1340.0, 3), ("fcfs", 605.0, 3)],
)
def test_the_example_runs_and_passes_the_audit(policy: str, welfare: float, completed: int) -> None:
    scenario = tw.load(EXAMPLE)
    run = tw.run(scenario, policy=policy, seed=1, bound=True)
    assert not tw.check(scenario, run)
    assert run.metrics["welfare_usd"] == pytest.approx(welfare)
    assert run.metrics["jobs_completed"] == completed
    assert run.bound is not None
    assert run.metrics["welfare_usd"] <= run.bound.value
