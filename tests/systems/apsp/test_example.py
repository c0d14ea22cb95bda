"""The example of docs/systems/apsp.md."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import tradewind as tw

EXAMPLE = Path(__file__).parents[3] / "examples" / "apsp.yaml"


def servers(scenario: tw.Scenario, run: tw.Run) -> list[str]:
    """Sites of the server, in order of time."""
    places = run.tables["places"]
    rows = zip(places["node"], places["servers"], strict=True)
    return [scenario.setup.nodes[int(str(node))].name for node, count in rows if count]


def test_the_example_runs_audited_and_its_server_moves_when_a_link_narrows() -> None:
    scenario = tw.load(EXAMPLE)
    run = tw.run(scenario, policy="apsp", bound=True)
    assert tw.check(scenario, run) == ()
    assert servers(scenario, run) == ["Paris", "Frankfurt"]
    assert run.metrics["epoch_s"] == pytest.approx(4.014, abs=0.001)
    assert run.bound is not None
    assert 1 <= run.bound.ratio < 1.01


@pytest.mark.parametrize("policy", ["apsp-paper", "most-connected", "shortest-path", "load-balancing"])
def test_the_rivals_are_slower_on_the_example(policy: str) -> None:
    scenario = tw.load(EXAMPLE)
    ours, other = (tw.run(scenario, policy=name).metrics["epoch_s"] for name in ("apsp", policy))
    assert other > ours


def test_a_scenario_whose_numbers_are_too_odd_to_be_exact_has_no_bound() -> None:
    scenario = tw.load(EXAMPLE)
    setup = scenario.setup
    links = tuple(
        replace(link, ab_bps=link.ab_bps - 7 * k, ba_bps=link.ba_bps) for k, link in enumerate(setup.links)
    )
    job = replace(scenario.jobs[0], model_bytes=10**15 + 1, site_bytes=((0, 10**15 + 3),))
    assert tw.bound(replace(scenario, setup=replace(setup, links=links), jobs=(job,))) is None
