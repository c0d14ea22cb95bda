"""Prices between sites that fall with volume: counted by the decision, billed exactly, bounded by their chord."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.systems.mlbroker.test_policy import made
from tradewind.model.errors import Unsupported
from tradewind.model.scenario import Scenario
from tradewind.model.setup import Setup
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
