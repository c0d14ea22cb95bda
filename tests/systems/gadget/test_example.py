"""The example of docs/systems/gadget.md: rings that fit beside each other, and hosts for a launcher."""

from __future__ import annotations

from pathlib import Path

import pytest

import tradewind as tw
from tradewind.systems.gadget.bound import bound
from tradewind.systems.gadget.ranks import ranks_in

EXAMPLE = Path(__file__).parents[3] / "examples" / "gadget.yaml"


@pytest.mark.parametrize(
    ("policy", "utility", "completed"),
    [
        ("gadget", 371.59, 5),
        ("gadget-paper", 257.29, 4),
        ("ring-fifo", 348.16, 4),
        ("ring-drf", 358.66, 4),
        ("ring-las", 348.16, 4),
        ("ring-srtf", 230.04, 3),
    ],
)
def test_the_example_runs_and_passes_the_audit(policy: str, utility: float, completed: int) -> None:
    scenario = tw.load(EXAMPLE)
    run = tw.run(scenario, policy=policy)
    assert not tw.check(scenario, run)
    assert run.metrics["utility"] == pytest.approx(utility, abs=0.005)
    assert run.metrics["jobs_completed"] == completed
    most = bound(scenario)
    assert most is not None
    assert run.metrics["utility"] <= most.value * (1 + 1e-9)


def test_the_example_lists_the_hosts_of_a_ring_for_a_launcher() -> None:
    scenario = tw.load(EXAMPLE)
    (ring,) = ranks_in(scenario, tw.run(scenario, policy="gadget"), 6, "language")
    assert ring.hostfile() == "a3 slots=2\na2 slots=2\na1 slots=2\n"
    assert ring.bottleneck_bps == 10_000_000_000
