"""The example of docs/systems/mlbroker.md."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import pytest

import tradewind as tw
from tradewind.systems.mlbroker.explain.slots import places_of

EXAMPLE = Path(__file__).parents[3] / "examples" / "mlbroker.yaml"


def test_the_example_runs_audited_and_costs_what_the_page_shows() -> None:
    scenario = tw.load(EXAMPLE)
    run = tw.run(scenario, policy="mlbroker", bound=True)
    assert tw.check(scenario, run) == ()
    assert run.metrics["cost_usd"] == pytest.approx(233.10)
    assert run.bound is not None
    assert run.bound.value == pytest.approx(231.00, abs=0.01)


def test_the_teams_share_a_region_and_each_pays_less_than_alone() -> None:
    """All in Oregon for three hours, then all in Tokyo, where most of the data is."""
    scenario = tw.load(EXAMPLE)
    run = tw.run(scenario, policy="mlbroker")
    names = [node.name for node in scenario.setup.nodes]
    used = [set[str]() for _ in range(4)]
    for (slot, _), places in places_of(scenario, run).items():
        used[slot] |= {names[node] for node, _, _ in places}
    assert used == [{"oregon"}, {"oregon"}, {"oregon"}, {"tokyo"}]
    bills = run.tables["bills"]
    usd = dict(zip(zip(bills["tenant"], bills["kind"], strict=True), bills["usd"], strict=True))
    for tenant in ("search-team", "speech-team", "vision-team"):
        assert cast(float, usd[tenant, "pooled"]) < 0.9 * cast(float, usd[tenant, "alone"])


@pytest.mark.parametrize("policy", ["central", "selfish", "local"])
def test_the_baselines_cost_more_on_the_example(policy: str) -> None:
    scenario = tw.load(EXAMPLE)
    ours, other = (tw.run(scenario, policy=name) for name in ("mlbroker", policy))
    assert tw.check(scenario, other) == ()
    assert other.metrics["cost_usd"] > 1.1 * ours.metrics["cost_usd"]
