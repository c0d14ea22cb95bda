"""Plans, bills and the bound of small generated markets: what a wrong implementation would get wrong."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest

from tests.offers import EAST_8A, HOUR, PRICE, market, training
from tradewind.model.result import Offline, Run
from tradewind.model.scenario import Scenario
from tradewind.model.tariff import Tariff
from tradewind.model.utility import Utility
from tradewind.systems.broker.bound.certified import Certified, Effort, bound, certify, solved
from tradewind.systems.broker.bound.exact import exact
from tradewind.systems.broker.bound.problem import uncovered, whole
from tradewind.systems.broker.kernels.price import price_job
from tradewind.systems.broker.kernels.problem import PLAN, Charges
from tradewind.systems.broker.kernels.search import take
from tradewind.systems.broker.offline import plans_of
from tradewind.systems.broker.policy import BROKER, planned
from tradewind.systems.broker.rivals import SELFISH, SKYPILOT
from tradewind.systems.broker.shared.plan import books as nobody
from tradewind.systems.broker.shared.plan import central, cost, no_toll, selfish
from tradewind.systems.broker.workload.families import FAMILIES
from tradewind.systems.broker.workload.generator import BROKER as MARKET
from tradewind.worlds.planned import planned as played
from tradewind.worlds.simulate import simulate

QUICK = Effort(rounds=60, steps=150, turns=20, nodes=5)
SMALL = {"jobs": 8, "regions": 3, "slots": 36}


@cache
def made(family: str, seed: int = 1, jobs: int = 8) -> Scenario:
    """A small market of a family."""
    return MARKET.make({**SMALL, "family": family, "jobs": jobs}, seed)


@cache
def certified(family: str, seed: int = 1) -> Certified:
    return certify(made(family, seed), QUICK)


def due(slots: int, value: float = 1000.0) -> Utility:
    return Utility(of="delay_slots", shape="piecewise", args=(slots - 1.0, value, float(slots), 0.0))


def usd_of(scenario: Scenario) -> float:
    found = whole(scenario)
    return cost(found.problem, planned(found.market, found.problem, found.before, 60))


@pytest.mark.parametrize("family", FAMILIES)
def test_an_offline_plan_costs_what_the_audited_run_of_it_costs(family: str) -> None:
    given, answer = made(family), certified(family)
    plans = plans_of(whole(given), answer)
    run = simulate(given, played("plan", Offline(plans=plans, bound=answer.bound)))
    assert plans
    assert run.metrics["total_usd"] == pytest.approx(answer.usd, rel=1e-6)


@pytest.mark.parametrize("family", FAMILIES)
def test_the_plan_is_never_dearer_than_selfish_or_central_and_the_bound_is_below(family: str) -> None:
    found, result = whole(made(family)), certified(family)
    p = found.problem
    assert result.bound <= result.usd * (1 + 1e-9)
    for rival in (selfish(p, found.before), central(p, found.before, found.market.site)):
        assert result.usd <= cost(p, rival) * (1 + 1e-9)


@pytest.mark.parametrize("family", ["A", "Bs", "Bm", "C", "E"])
def test_the_bound_is_below_the_exact_optimum_and_the_plan_above_it(family: str) -> None:
    given = MARKET.make({"family": family, "jobs": 4, "regions": 2, "slots": 24}, 2)
    result = certify(given, QUICK)
    best, proven = exact(given, nodes=30)
    assert proven <= best * (1 + 1e-6)
    assert result.bound <= best * (1 + 1e-6)
    assert proven <= result.usd * (1 + 1e-6)


def test_without_discounts_and_limits_every_job_alone_is_optimal() -> None:
    found, result = whole(made("A")), certified("A")
    assert result.usd == pytest.approx(cost(found.problem, selfish(found.problem, found.before)))
    assert result.bound == pytest.approx(result.usd, rel=1e-4)


def test_discounts_that_nobody_reaches_change_nothing() -> None:
    given = made("Bm")
    far = tuple(replace(pool, tariff=Tariff(starts=(0.0, 1e9), usd=(1.0, 0.5))) for pool in given.setup.pools)
    assert usd_of(replace(given, setup=replace(given.setup, pools=far))) == pytest.approx(
        usd_of(replace(given, setup=replace(given.setup, pools=())))
    )


def test_money_in_another_unit_changes_no_decision() -> None:
    given = made("Bm")
    setup = given.setup

    def times(tariff: Tariff) -> Tariff:
        return replace(tariff, usd=tuple(100 * usd for usd in tariff.usd))

    pools = tuple(
        replace(pool, tariff=replace(pool.tariff, starts=tuple(100 * s for s in pool.tariff.starts)))
        for pool in setup.pools
    )
    dear = replace(
        given,
        setup=replace(
            setup,
            rent={key: times(tariff) for key, tariff in setup.rent.items()},
            egress={key: times(tariff) for key, tariff in setup.egress.items()},
            pools=pools,
        ),
        jobs=tuple(replace(job, utility=_scaled(job.utility)) for job in given.jobs),
    )
    plans = [_plans(each) for each in (given, dear)]
    assert np.array_equal(plans[0], plans[1])
    assert usd_of(dear) == pytest.approx(100 * usd_of(given))


def _scaled(worth: Utility | None) -> Utility:
    assert worth is not None
    return replace(worth, args=tuple(a * (100 if i % 2 else 1) for i, a in enumerate(worth.args)))


def _plans(scenario: Scenario) -> Any:
    found = whole(scenario)
    return planned(found.market, found.problem, found.before, 0).plan


def test_two_equal_jobs_queue_for_one_machine() -> None:
    jobs = [
        training(i, compute_us=8 * HOUR, rounds=1, utility=due(4), restarts=0, nodes=frozenset({EAST_8A}))
        for i in range(3)
    ]
    given = market(jobs, slot_us=HOUR, objective="total_usd")
    run = simulate(given, BROKER)
    ends = sorted(run.tables["outcomes"]["finish_us"])
    assert ends == [HOUR, HOUR, 2 * HOUR]  # two machines
    assert run.metrics["total_usd"] == pytest.approx(3 * PRICE)


@pytest.mark.parametrize("policy", [BROKER, SELFISH, SKYPILOT], ids=lambda spec: spec.name)
def test_lost_spot_machines_are_replaced_and_the_bill_is_audited(policy: Any) -> None:
    given = MARKET.make({**SMALL, "family": "E", "interruptions": True}, 3)
    run: Run = simulate(given, policy)
    assert run.metrics["jobs_completed"] >= 5
    assert "voided" in run.tables["events"]["kind"]


def test_the_broker_serves_online_what_it_can_and_says_what_comes_nearest() -> None:
    late = training(compute_us=8 * HOUR, rounds=9, utility=due(4), restarts=0)
    other = training(1, gpu_speeds=(("Z", 1000),), utility=due(4), restarts=0)
    run = simulate(market([late, other], slot_us=HOUR, objective="total_usd"), BROKER)
    reasons = run.tables["verdicts"]["reason"]
    assert "the fastest, 2 x 8 A at east/8A" in str(reasons[0])
    assert "no offer has a GPU type" in str(reasons[1])


def test_there_is_no_bound_where_jobs_may_move_or_are_interrupted() -> None:
    given = made("Bm")
    free = replace(given, jobs=tuple(replace(job, restarts=None) for job in given.jobs))
    assert bound(free) is None
    assert "interrupted" in uncovered(MARKET.make({**SMALL, "family": "E", "interruptions": True}, 3))
    assert bound(given) is not None


def test_copies_are_used_and_the_bound_knows_them() -> None:
    given = made("C")
    where = given.setup

    def with_copies(left_us: int) -> Scenario:
        def copies(parts: tuple[tuple[int, int], ...]) -> tuple[tuple[int, int, int], ...]:
            pairs = {(a, b) for a, b in where.direct_bps for part, _ in parts if a == part}
            return tuple((a, b, left_us) for a, b in sorted(pairs))

        return replace(given, jobs=tuple(replace(job, copies=copies(job.parts)) for job in given.jobs))

    there, coming = with_copies(0), with_copies(1)
    assert "transfer" in simulate(given, BROKER).tables["costs"]["kind"]
    run, least = simulate(there, BROKER), bound(there)
    assert "transfer" not in run.tables["costs"]["kind"]
    assert least is not None
    assert least.value <= run.metrics["total_usd"]
    assert bound(given) is not None
    assert "on its way" in uncovered(coming)
    assert simulate(coming, BROKER).violations == ()


def test_the_same_seed_gives_the_same_market_and_another_gives_another() -> None:
    assert made("F").jobs == MARKET.make({**SMALL, "family": "F"}, 1).jobs
    assert made("F").jobs != made("F", 2).jobs


def test_the_best_single_site_is_found_without_planning_in_every_site() -> None:
    """What all jobs cost at least in a site leaves sites out, never the best one."""
    for family in ("E", "F"):
        found = whole(made(family, seed=2))
        p, site = found.problem, found.market.site
        best = cost(p, central(p, found.before, site))
        every = list[float]()
        for each in np.unique(site).tolist():
            only = p._replace(latest=np.where((site[p.offer] == each) & (p.other < 0), p.latest, -1))
            every.append(cost(p, selfish(only, found.before)))
        assert best <= min(every) * (1.0 + 1e-9)
        assert len(every) > 1


@pytest.mark.parametrize("family", ["Bs", "Bm", "C", "D", "E"])
def test_plans_cost_together_what_each_was_priced_at_expected_interruptions_included(family: str) -> None:
    found = whole(made(family))
    p, b = found.problem, nobody(found.problem, found.before)
    sure = cost(p, planned(found.market, p, found.before, 0))
    p = p._replace(risk=np.linspace(1.0, 1.5, len(p.risk)))
    plan, usd = np.zeros(PLAN, dtype=np.int64), cost(p, b)
    for j in range(len(p.unserved)):
        charges = Charges(b.spent, no_toll(p), np.zeros((0, 0)), False)
        usd += price_job(p, charges, j, b.use, plan) - float(p.unserved[j])
        take(p, b, j, plan)
    assert (b.plan[:, 0] >= 0).any()
    assert usd == pytest.approx(cost(p, b))
    assert usd > sure * 1.001


def test_runs_without_a_pool_cost_the_same_by_sums_as_slot_by_slot() -> None:
    found = whole(made("E", jobs=12, seed=3))
    p = found.problem
    free = Charges(found.before, no_toll(p), np.zeros((0, 0)), False)
    plan, served = np.zeros(PLAN, dtype=np.int64), 0
    for j in range(12):
        usd = price_job(p, free, j, np.zeros_like(p.price), plan)
        if plan[0] < 0:
            continue
        served += 1
        i, at, slots = plan[0], plan[2], plan[3]
        rent = [p.price[p.offer[i], t] * p.machines[i] for t in range(at, at + slots)]
        own = p.own[i] + p.moved_usd[i].sum() + p.loss[j, at + slots - 1]
        assert usd == pytest.approx(sum(rent) - (1.0 - p.part[i, 0]) * rent[-1] + own, abs=1e-9)
    assert served > 6


def test_scarce_machines_are_planned_at_the_prices_of_the_bound() -> None:
    found = whole(MARKET.make({"family": "E", "jobs": 200}, 2))
    with_prices = solved(found, Effort(rounds=50, steps=160, turns=0))
    without = planned(found.market, found.problem, found.before, 50)
    assert with_prices.usd < 0.97 * cost(found.problem, without)
    assert with_prices.bound <= with_prices.usd < 1.05 * with_prices.bound


def test_many_jobs_need_no_program_over_replies(monkeypatch: pytest.MonkeyPatch) -> None:
    found = whole(MARKET.make({"family": "E", "jobs": 60}, 2))
    monkeypatch.setattr("tradewind.systems.broker.bound.certified.MANY", 59)
    monkeypatch.setattr("tradewind.systems.broker.bound.certified.Columns", None)
    answer = solved(found, Effort(rounds=50, steps=160, turns=60, nodes=50))
    assert answer.dual.toll.any()
    assert answer.bound <= answer.usd < 1.03 * answer.bound
