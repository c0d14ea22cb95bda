"""Tariffs beyond plain discounts: retroactive and free tiers, several billing periods, commitments; scarce machines."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tradewind.model.pool import Pool
from tradewind.model.result import Bound
from tradewind.model.scenario import Scenario
from tradewind.model.units import US_PER_HOUR
from tradewind.report.bounds import comparison_notes, note
from tradewind.systems.broker.bound.certified import Effort, certify, solved
from tradewind.systems.broker.bound.problem import whole
from tradewind.systems.broker.offline import offline
from tradewind.systems.broker.policy import planned
from tradewind.systems.broker.rivals import SELFISH
from tradewind.systems.broker.shared.plan import cost, with_plans
from tradewind.systems.broker.workload.generator import BROKER as MARKET
from tradewind.worlds.planned import planned as played
from tradewind.worlds.simulate import simulate

QUICK = Effort(rounds=60, steps=150, turns=20, nodes=5)


def made(family: str, **more: Any) -> Scenario:
    return MARKET.make({"family": family, "jobs": 8, "regions": 3, "slots": 36, **more}, 1)


def with_pools(change: Any) -> Scenario:
    given = made("Bm")
    return replace(given, setup=replace(given.setup, pools=tuple(change(pool) for pool in given.setup.pools)))


def retroactive(pool: Pool) -> Pool:
    return replace(pool, tariff=replace(pool.tariff, rule="retroactive"))


def free(pool: Pool) -> Pool:
    return replace(pool, free_usd=30.0)


def short(pool: Pool) -> Pool:
    return replace(pool, period_us=12 * US_PER_HOUR)


def carried(pool: Pool) -> Pool:
    return replace(pool, carried_usd=100.0)


@pytest.mark.parametrize("change", [retroactive, free, short, carried])
def test_plans_know_the_true_tariff_and_the_bound_stays_below(change: Any) -> None:
    given = with_pools(change)
    result = certify(given, QUICK)
    plan = offline(given, 1)
    assert plan is not None
    assert plan.bound is not None
    usd = simulate(given, played("plan", plan)).metrics["total_usd"]
    assert result.bound <= usd
    assert plan.bound <= usd
    found = whole(given)
    first = cost(found.problem, planned(found.market, found.problem, found.before, 0))
    assert usd <= first * (1 + 1e-6)


@pytest.mark.parametrize(("change", "is_loose"), [(free, True), (retroactive, True), (carried, False)])
def test_bounds_of_free_and_retroactive_tiers_say_that_they_are_loose(change: Any, is_loose: bool) -> None:
    given = with_pools(change)
    run = replace(simulate(given, SELFISH), bound=Bound(value=1.0, sense="min", kind="certified", ratio=2.0))
    assert ("free and retroactive tiers" in note(given, run)) is is_loose
    notes = comparison_notes([(given, run)], [])
    assert [text for text in notes if "free and retroactive tiers" in text] == (
        [note(given, run)] if is_loose else []
    )


def test_a_free_tier_and_a_carried_month_lower_the_bill_and_shorter_months_raise_it() -> None:
    usual, gratis, month, twelve = (
        certify(each, QUICK).usd
        for each in (made("Bm"), with_pools(free), with_pools(carried), with_pools(short))
    )
    assert gratis < usual
    assert month < usual
    assert twelve > usual


def test_a_month_in_two_parts_with_its_spend_carried_costs_what_one_long_run_costs() -> None:
    """The jobs of a plan in two lots: the second lot is billed on top of what the first one spent in each pool."""
    given = made("Bm")
    found = whole(given)
    p, before = found.problem, found.before
    plan = planned(found.market, p, before, 0).plan
    assert (plan[:, 0] >= 0).all()
    early = plan.copy()
    early[4:, 0] = -1
    first = with_plans(p, before, early)
    pools = tuple(
        replace(pool, carried_usd=float(first.spent[np.flatnonzero(p.tariff == q)].sum()))
        for q, pool in enumerate(given.setup.pools)
    )
    assert any(pool.carried_usd > 0 for pool in pools)
    rest = whole(replace(given, setup=replace(given.setup, pools=pools)))
    late = plan.copy()
    late[:4, 0] = -1
    second = with_plans(rest.problem, rest.before, late)
    lost = float(p.unserved.sum())
    both = cost(p, first) + cost(rest.problem, second) - lost
    assert both == pytest.approx(cost(p, with_plans(p, before, plan)), rel=1e-9)
    alone = with_plans(p, before, late)
    assert cost(p, first) + cost(p, alone) - lost > both


def test_a_commitment_is_a_node_without_rent_and_is_used_first() -> None:
    """The first machine of an offer in every slot costs nothing: a node of its own beside the offer."""
    given = made("A")
    before, found = certify(given, QUICK), whole(given)
    offer = int(found.problem.offer[before.books.plan[0, 0]])
    sold = given.setup.nodes[found.market.nodes[offer]]
    owned = replace(sold, name=f"{sold.name}-committed", capacity_milli=(1000,))
    committed = replace(given, setup=replace(given.setup, nodes=(*given.setup.nodes, owned)))
    plan = offline(committed, 1)
    assert plan is not None
    assert plan.bound is not None
    run = simulate(committed, played("plan", plan))
    assert plan.bound <= run.metrics["total_usd"] < before.usd
    steps = [step for plans in plan.plans.values() for each in plans for step in each.steps]
    assert any(step.nodes == (len(given.setup.nodes),) for step in steps)


def test_column_generation_raises_the_bound_where_machines_are_scarce() -> None:
    found = whole(made("D", jobs=16))
    steps = Effort(rounds=60, steps=80, turns=0, nodes=5)
    without, generated = solved(found, steps), solved(found, steps._replace(turns=60))
    assert generated.bound > without.bound * (1 + 1e-6)
    assert generated.bound <= min(generated.usd, without.usd) * (1 + 1e-9)
