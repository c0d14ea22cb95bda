"""mixed against answers that share nothing with its searches, and against the specialists on their own families."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tradewind import api
from tradewind.registry import policies, workloads
from tradewind.systems.mixed.bound.exact import exact
from tradewind.systems.mixed.bound.whole import whole
from tradewind.systems.mixed.shared.exchange import OFFLINE, Effort, exchange
from tradewind.worlds.simulate import simulate

TINY = {"jobs": 5, "sites": 2, "slots": 6}


@pytest.mark.parametrize("seed", [2, 3])
@pytest.mark.parametrize("load", ["tight", "very"])
def test_on_tiny_scenarios_the_bound_is_above_the_optimum_and_the_optimum_above_the_plan(
    seed: int, load: str
) -> None:
    scenario = workloads.generate("mixed", {**TINY, "load": load}, seed)
    best, found = exact(scenario), whole(scenario)
    plan = exchange(found.frame, found.asks, found.market, OFFLINE, (1,))
    assert best.optimal
    assert plan.priced.bound >= best.value - 1e-6
    assert best.value >= plan.books.welfare - 1e-6
    assert plan.books.welfare >= 0.975 * best.value


@pytest.mark.parametrize("kind", ["stream", "ring", "dataset", "fixed"])
@pytest.mark.parametrize("seed", [1, 3])
def test_at_flat_rent_the_answer_of_a_job_alone_is_the_optimum(kind: str, seed: int) -> None:
    size = {"jobs": 1, "sites": 2, "slots": 8, "kind": kind, "load": "slack", "tiers": False}
    scenario = workloads.generate("mixed", size, seed)
    found = whole(scenario)
    answer = found.asks[0].reply(found.market)
    assert (0.0 if answer is None else answer.profit) == pytest.approx(exact(scenario).value, abs=1e-6)


@pytest.mark.parametrize(
    ("specialist", "params", "objective"),
    [
        ("gadget", {"family": "vtight", "jobs": 10, "servers": 6, "slots": 20}, "utility"),
        ("eris", {"jobs": 10}, "welfare_usd"),
        ("mlbroker", {"sites": 3, "slots": 4, "jobs_per_slot": 6}, "cost_usd"),
    ],
)
def test_on_a_specialists_own_family_it_is_as_good(
    specialist: str, params: dict[str, object], objective: str
) -> None:
    scenario = workloads.generate(specialist, params, 1)
    theirs = simulate(scenario, policies.find(specialist)).metrics[objective]
    run = simulate(scenario, policies.find("mixed"), {"replies": 5})
    assert not api.check(scenario, run)
    ratio = run.metrics[objective] / theirs
    assert ratio <= 1.005 if objective == "cost_usd" else ratio >= 0.995


def test_an_empty_site_lowers_no_bound() -> None:
    scenario = workloads.generate("mixed", {**TINY, "load": "very"}, 2)
    setup = scenario.setup
    nothing = replace(setup.nodes[0], name="empty", capacity_milli=(0, 0))
    rent = {**setup.rent, (2, 0): setup.rent[0, 0], (2, 1): setup.rent[0, 1]}
    wider = replace(scenario, setup=replace(setup, nodes=(*setup.nodes, nothing), rent=rent))
    limits = []
    for each in (scenario, wider):
        found = whole(each)
        limits.append(exchange(found.frame, found.asks, found.market, Effort(replies=0), (1,)).priced.bound)
    assert limits[1] == pytest.approx(limits[0], rel=2e-3)
