"""The example of docs/systems/mlbroker.md."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import pytest

import tradewind as tw
from tradewind import api
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


def test_an_explanation_names_the_tiers_of_the_tariff_and_none_where_the_price_is_flat(
    tmp_path: Path,
) -> None:
    """One site has two tiers and the other three: arrays of tiers are padded, explanations must not show that."""
    text = """tradewind_scenario: 1
name: tiers
objective: cost_usd
slot_us: 1 h
horizon_us: 2 h
nodes:
- {name: a, capacity: {gpu: 40, cpu: 40}, rent: {gpu: {starts: [0, 8], usd: [3.0, 2.0]}, cpu: 0.1}}
- {name: b, capacity: {gpu: 40, cpu: 40}, rent: {gpu: {starts: [0, 20, 30], usd: [90.0, 80.0, 70.0]}}}
jobs:
- {id: x, arrive_us: 0, architecture: ps, worker: {gpu: 4, cpu: 1}, workers_max: 3, server: {cpu: 1}, servers: 1,
   work: {kind: stream, bytes_per_worker_slot: 100 MB}, private: {runtime_us: 2 h}}
volumes: {job: [x], slot: [0], node: [a], bytes: [300000000]}
"""
    path = tmp_path / "tiers.yaml"
    path.write_text(text)
    scenario = tw.load(path)
    explained = api.explain(scenario, tw.run(scenario, policy="mlbroker"), "x", 0)
    assert explained.lines[-2:] == (
        "a, gpu: 12 pooled units reach tier 2, the last one.",
        "a, cpu: 3 pooled units at a flat price.",  # the server is at b, where cpu is free
    )
    assert [tier["next_tier_at"] for tier in explained.as_json()["tiers"]] == [None, None]
