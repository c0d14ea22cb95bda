"""The example of docs/systems/cluster.md: eight jobs of two tenants on two servers."""

from __future__ import annotations

from pathlib import Path

import pytest

import tradewind as tw

EXAMPLE = Path(__file__).parents[3] / "examples" / "cluster.yaml"


@pytest.mark.parametrize(
    ("policy", "mean_s", "ratio"),
    [
        ("fifo", 10_612.5, 3.724),
        ("fifo-backfill", 6_375.0, 2.237),
        ("las", 5_089.25, 1.786),
        ("srtf", 3_937.5, 1.382),
        ("srsf", 3_825.0, 1.342),
        ("drf", 7_050.0, 2.474),
    ],
)
def test_the_example_runs_and_passes_the_audit(policy: str, mean_s: float, ratio: float) -> None:
    scenario = tw.load(EXAMPLE)
    run = tw.run(scenario, policy=policy, bound=True)
    assert not tw.check(scenario, run)
    assert run.metrics["jct_mean_s"] == pytest.approx(mean_s)
    assert run.bound is not None
    assert run.bound.ratio == pytest.approx(ratio, abs=0.0005)
