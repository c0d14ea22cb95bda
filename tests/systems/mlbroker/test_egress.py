"""Prices between sites that fall with volume: counted by the decision, billed exactly, bounded by their chord."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.systems.mlbroker.test_policy import ALL, made
from tradewind.engine.bounds import bound as engine_bound
from tradewind.files.scenario_file import parse
from tradewind.files.scenario_write import document
from tradewind.model.errors import Unsupported
from tradewind.model.pool import Pool
from tradewind.model.scenario import Scenario
from tradewind.model.setup import Setup
from tradewind.model.spec import Spec
from tradewind.model.tariff import Tariff
from tradewind.systems.mlbroker.bound.certified import bound
from tradewind.systems.mlbroker.bound.exact import exact
from tradewind.systems.mlbroker.explain.bills import tenant_bills
from tradewind.systems.mlbroker.explain.slots import decided_slots
from tradewind.systems.mlbroker.kernels.costs import cost_parts
from tradewind.systems.mlbroker.kernels.egress import moved
from tradewind.systems.mlbroker.kernels.search import SearchEffort
from tradewind.systems.mlbroker.kernels.sites import Weights
from tradewind.systems.mlbroker.policy import MLBROKER, TierSearch
from tradewind.systems.mlbroker.rivals.local import LOCAL
from tradewind.systems.mlbroker.shared.policy import SlotPolicy
from tradewind.worlds.simulate import simulate


def tiered(scenario: Scenario, start_gb: float, part: float) -> Scenario:
    """The scenario with prices between sites tripled, and falling to `part` of that from `start_gb` on."""
    egress = {
        pair: Tariff(starts=(0.0, start_gb), usd=(3 * tariff.usd[0], 3 * part * tariff.usd[0]))
        for pair, tariff in scenario.setup.egress.items()
    }
    return replace(scenario, setup=replace(scenario.setup, egress=egress))


def first_tier_only(setup: Setup, params: Mapping[str, Any], rng: np.random.Generator) -> SlotPolicy:
    """mlbroker without knowledge of further tiers."""
    del params, rng
    return SlotPolicy(setup, TierSearch(0.5, SearchEffort()), Weights())


@pytest.mark.parametrize("seed", [0, 2, 4])
def test_the_bound_holds_and_a_slot_never_costs_more_for_knowing_tiers(seed: int) -> None:
    given = tiered(made(seed, family="cpu", jobs_per_slot=5, slots=1), 60.0, 0.2)
    aware, unaware = simulate(given, MLBROKER), simulate(given, replace(MLBROKER, factory=first_tier_only))
    certified = bound(given)
    assert certified is not None
    assert certified.value <= aware.value <= unaware.value * (1 + 1e-9)


def test_knowing_tiers_pays_off_where_data_can_travel_together() -> None:
    given = tiered(made(2, family="cpu", jobs_per_slot=8), 60.0, 0.1)
    aware, unaware = simulate(given, MLBROKER), simulate(given, replace(MLBROKER, factory=first_tier_only))
    assert aware.value < 0.99 * unaware.value


def test_costs_and_bills_at_tiered_prices_add_up() -> None:
    given = tiered(made(2, family="cpu", jobs_per_slot=5), 60.0, 0.2)
    run = simulate(given, MLBROKER)
    total = np.zeros(4)
    for decided in decided_slots(given, run):
        total += cost_parts(decided.slot, decided.workers, decided.server)
    assert total.sum() == pytest.approx(run.value, rel=1e-9)
    assert sum(each.pooled_usd for each in tenant_bills(given, run)) == pytest.approx(run.value, rel=1e-9)


def test_the_volume_a_decision_moves_explains_its_cost() -> None:
    given = made(2, family="cpu", jobs_per_slot=5)
    for decided in decided_slots(given, simulate(given, MLBROKER)):
        data, _, _, traffic = cost_parts(decided.slot, decided.workers, decided.server)
        volume = moved(decided.slot, decided.workers, decided.server)
        assert (volume * decided.slot.move_usd).sum() == pytest.approx(data + traffic, rel=1e-9)


def test_the_exact_program_refuses_tiers() -> None:
    with pytest.raises(Unsupported, match="tiers"):
        exact(tiered(made(), 60.0, 0.5))


def by_month(scenario: Scenario, *, nodes: int = 1) -> Scenario:
    """The scenario with its egress in tiers per two slots, and so many nodes at every site."""
    setup = scenario.setup
    pool = Pool(
        name="egress",
        egress=tuple(setup.egress),
        period_us=2 * setup.slot_us,
        tariff=Tariff(starts=(0.0, 1.0, 3.0), usd=(1.0, 0.8, 0.5)),
    )
    raw = document(replace(scenario, setup=replace(setup, pools=(pool,))))
    if nodes > 1:
        sites = raw["nodes"]
        raw["nodes"] = [{"name": site["name"]} for site in sites] + [
            {**site, "name": f"{site['name']}-{n}", "parent": site["name"]}
            for site in sites
            for n in range(nodes)
        ]
        raw["volumes"]["node"] = [f"{name}-{n % nodes}" for n, name in enumerate(raw["volumes"]["node"])]
    return parse(raw)


@pytest.mark.parametrize("nodes", [1, 2])
@pytest.mark.parametrize("spec", ALL, ids=lambda spec: spec.name)
def test_monthly_egress_and_several_nodes_per_site_are_audited_bounded_and_billed(
    spec: Spec, nodes: int
) -> None:
    given = by_month(made(2, family="cpu", jobs_per_slot=3, slots=4, sites=3), nodes=nodes)
    run = simulate(given, spec)
    certified = engine_bound(given)
    assert certified is not None
    assert certified.value <= run.value * (1 + 1e-9)
    if spec is not LOCAL:
        assert run.metrics["cost_discount_usd"] < 0
    bills = tenant_bills(given, run)
    assert sum(each.pooled_usd for each in bills) == pytest.approx(run.value, rel=1e-9)
    assert all(0 <= each.pooled_usd <= each.alone_usd * (1 + 1e-9) for each in bills if spec is MLBROKER)


def test_bills_at_tiered_prices_add_up_with_several_nodes_per_site() -> None:
    given = by_month(tiered(made(2, family="cpu", jobs_per_slot=5, slots=4, sites=3), 60.0, 0.2), nodes=2)
    run = simulate(given, MLBROKER)
    assert sum(each.pooled_usd for each in tenant_bills(given, run)) == pytest.approx(run.value, rel=1e-9)


def test_the_broker_keeps_its_margin_of_what_pools_take_off() -> None:
    given = by_month(made(2, family="cpu", jobs_per_slot=5, slots=4, sites=3))
    run = simulate(given, MLBROKER)
    off = -run.metrics["cost_discount_usd"]
    none, half = (sum(b.pooled_usd for b in tenant_bills(given, run, margin=m)) for m in (0.0, 0.5))
    assert off > 0
    assert half - none >= 0.5 * off * (1 - 1e-9)
