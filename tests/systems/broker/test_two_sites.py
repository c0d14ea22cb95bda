"""Training at two sites, spend caps, due dates and moves of running jobs: by hand, audited, below a certified bound."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import tradewind as tw
from tests.builders import decision, play
from tests.builders import plan as plan_of
from tests.offers import EAST, EAST_8A, HOUR, PRICE, WEST, WEST_1B, market, training
from tradewind.files.scenario_file import dump, load
from tradewind.model.decision import Step
from tradewind.model.hash import scenario_hash
from tradewind.model.progress import across_round_us, split_gpus
from tradewind.model.scenario import Scenario
from tradewind.model.tariff import Tariff
from tradewind.model.utility import Utility
from tradewind.model.view import Change
from tradewind.systems.broker.bound.certified import Effort, certify
from tradewind.systems.broker.bound.exact import exact
from tradewind.systems.broker.bound.problem import uncovered, whole
from tradewind.systems.broker.offline import offline
from tradewind.systems.broker.policy import BROKER
from tradewind.systems.broker.rivals import SELFISH
from tradewind.systems.broker.workload.generator import BROKER as MARKET
from tradewind.worlds.planned import planned as played
from tradewind.worlds.simulate import simulate

QUICK = Effort(rounds=60, steps=150, turns=20, nodes=5)
TB = 10**12


def due(slots: int, value: float = 10_000.0) -> Utility:
    return Utility(of="delay_slots", shape="piecewise", args=(slots - 1.0, value, float(slots), 0.0))


def split(**more: Any) -> Any:
    """Four GPUs, two at each of two sites with a TB each; a round is an hour on all of them, the slower ones count."""
    given: dict[str, Any] = {
        "compute_us": 4 * HOUR,
        "rounds": 10,
        "gpus": (4,),
        "parts": ((EAST, TB), (WEST, TB)),
        "model_bytes": 0,
        "sync_every": 2,
        "utility": due(40),
        "restarts": 0,
    }
    return training(**(given | more))


def hourly(*jobs: Any, changes: Any = (), **more: Any) -> Scenario:
    return market(jobs, slot_us=HOUR, objective="total_usd", changes=changes, **more)


def test_gpus_are_split_by_data_with_one_at_least() -> None:
    assert split_gpus(8, 1, 4) == (6, 2)
    assert split_gpus(8, 1, 1000) == (7, 1)
    assert split_gpus(8, 999, 1000) == (1, 7)
    assert split_gpus(2, 3, 4) == (1, 1)


def test_a_round_takes_as_long_as_at_the_slower_site_and_its_part_of_the_exchange() -> None:
    """16 * 10^9 bits at 8 Mbit/s are 2,000 s, every 2 rounds; bus 1 Gbit/s: 2 * 1/2 * 8 * 10^9 bits in 8 s."""
    given = hourly(split(model_bytes=10**9), links=(replace(market([]).setup.links[0], ab_bps=8 * 10**6),))
    job = given.jobs[0]
    exchange, bus = 1000 * 10**6, 8 * 10**6
    network = (
        80 * 10**6 + 2 * bus
    )  # two machines of one B: 2 * 1/2 * 8 * 10^9 at 100 Mbit/s, and the bus twice
    sides = (HOUR + bus, HOUR // 2 + network)
    assert across_round_us(given.setup, job, (EAST_8A, WEST_1B), (1, 2)) == max(sides) + exchange
    assert across_round_us(given.setup, job, (EAST_8A, WEST_1B), (1, 1)) == 0
    assert across_round_us(given.setup, replace(job, sync_every=0), (EAST_8A, WEST_1B), (1, 2)) == 0


def test_the_broker_trains_where_the_data_lies_and_pays_both_sites_and_the_exchange() -> None:
    """10 h of a machine at 8 USD and two at 2 USD; 5 GB each way at 0.1 and 0.2 USD. Moving a TB is dearer."""
    fast = replace(market([]).setup.links[0], ab_bps=10**12, ba_bps=10**12)
    given = hourly(split(model_bytes=10**9, nodes=frozenset({EAST_8A, WEST_1B})), links=(fast,))
    run = simulate(given, BROKER)
    (places,) = {tuple(run.tables["places"]["node"])}
    assert places == (EAST_8A, WEST_1B)
    hours = float(run.tables["outcomes"]["finish_us"][0]) / HOUR
    assert hours == pytest.approx(10, rel=0.01)
    assert run.metrics["cost_rent_usd"] == pytest.approx(hours * (PRICE + 4))
    assert run.metrics["cost_traffic_usd"] == pytest.approx(5 * 0.1 + 5 * 0.2, rel=1e-6)
    assert tw.check(given, run) == ()
    assert uncovered(given) == ""
    result = certify(given, QUICK)
    assert result.bound <= run.metrics["total_usd"] == pytest.approx(result.usd)


def test_warming_up_exchanges_nothing_and_every_start_warms_up() -> None:
    job = split(model_bytes=10**9, warmup_us=HOUR // 2, restarts=1)
    fast = replace(market([]).setup.links[0], ab_bps=10**12, ba_bps=10**12)
    given = hourly(job, links=(fast,))
    nodes = ((EAST_8A, WEST_1B), (1, 2))
    steps = [Step(0, 2 * HOUR, *nodes), Step(2 * HOUR, 4 * HOUR, *nodes), Step(6 * HOUR, 20 * HOUR, *nodes)]
    run = play(given, {0: decision(plan_of(0, *steps))})
    assert run.metrics["cost_traffic_usd"] == pytest.approx(1.5, rel=1e-6)
    assert float(run.tables["outcomes"]["finish_us"][0]) / HOUR == pytest.approx(6 + 11 - 4, rel=0.01)


@pytest.mark.parametrize("seed", [1, 3])
def test_jobs_at_two_sites_cost_what_the_run_costs_between_bound_and_optimum(seed: int) -> None:
    given = MARKET.make({"family": "C", "jobs": 5, "regions": 4, "slots": 36}, seed)
    result, found = certify(given, QUICK), whole(given)
    best, proven = exact(given, nodes=200)
    assert result.bound <= best * (1 + 1e-6)
    assert proven <= result.usd * (1 + 1e-6)
    chosen = result.books.plan[:, 0]
    assert (found.problem.other[chosen[chosen >= 0]] >= 0).any()
    plan = offline(given, 1)
    assert plan is not None
    run = simulate(given, played("plan", plan))
    assert run.metrics["total_usd"] == pytest.approx(result.usd, rel=1e-6)
    one_site = certify(replace(given, jobs=tuple(replace(job, sync_every=0) for job in given.jobs)), QUICK)
    assert one_site.usd > result.usd


def test_pools_over_both_sites_are_charged_together_and_bounded() -> None:
    """All offers of a cloud in one monthly pool: both sites of a job count as one spend."""
    given = MARKET.make({"family": "Fo", "jobs": 6, "regions": 4, "slots": 48}, 2)
    pool = next(pool for pool in given.setup.pools if pool.rent)
    whole_pool = replace(
        pool,
        rent=tuple(given.setup.rent),
        tariff=Tariff(starts=(0.0, 20.0, 60.0), usd=(1.0, 0.5, 0.2)),
    )
    pools = (whole_pool, *(pool for pool in given.setup.pools if pool.egress))
    jobs = tuple(replace(job, parts=tuple((s, 40 * size) for s, size in job.parts)) for job in given.jobs)
    given = replace(given, setup=replace(given.setup, pools=pools), jobs=jobs)
    result = certify(given, QUICK)
    best, _ = exact(given, nodes=300)
    assert result.bound <= best * (1 + 1e-6)
    plan = offline(given, 1)
    assert plan is not None
    assert plan.bound is not None
    assert plan.bound <= simulate(given, played("plan", plan)).metrics["total_usd"] * (1 + 1e-9)


def test_the_order_of_offers_and_sites_changes_no_cost() -> None:
    given = MARKET.make({"family": "C", "jobs": 6, "regions": 4, "slots": 36}, 2)
    setup = given.setup
    count = len(setup.nodes)
    to = {i: count - 1 - i for i in range(count)}
    nodes = [replace(n, parent=to[n.parent] if n.parent >= 0 else -1) for n in reversed(setup.nodes)]
    turned = replace(
        setup,
        nodes=tuple(nodes),
        links=tuple(replace(link, a=to[link.a], b=to[link.b]) for link in setup.links),
        rent={(to[node], r): tariff for (node, r), tariff in setup.rent.items()},
        egress={(to[a], to[b]): tariff for (a, b), tariff in setup.egress.items()},
        pools=tuple(
            replace(pool, egress=tuple((to[a], to[b]) for a, b in pool.egress), rent=())
            for pool in setup.pools
        ),
    )
    jobs = tuple(
        replace(job, index=i, parts=tuple(sorted((to[s], size) for s, size in job.parts)))
        for i, job in enumerate(reversed(given.jobs))
    )
    other = certify(replace(given, setup=turned, jobs=jobs), QUICK)
    assert other.usd == pytest.approx(certify(given, QUICK).usd, rel=1e-5)


# ---------------------------------------------------------------------- budgets


def test_a_job_keeps_its_spend_cap_or_is_refused_and_the_bound_knows() -> None:
    """8 h on one machine at 8 USD, or 4 h on four B at 2 USD."""
    nodes = frozenset({EAST_8A, WEST_1B})
    job = training(
        compute_us=32 * HOUR, rounds=1, gpus=(4,), parts=(), utility=due(20), restarts=0, nodes=nodes
    )
    for cap, usd in ((None, 32.0), (32.0, 32.0)):
        given = hourly(replace(job, spend_cap_usd=cap))
        assert simulate(given, BROKER).metrics["cost_usd"] == pytest.approx(usd)
        assert certify(given, QUICK).bound == pytest.approx(usd, rel=1e-4)
    given = hourly(replace(job, spend_cap_usd=31.9))
    for spec in (BROKER, SELFISH):
        run = simulate(given, spec)
        assert run.metrics["cost_usd"] == 0.0
    assert "0.10 USD over its cap on 4 x 1 B at west/1B" in str(run.tables["verdicts"]["reason"][0])
    assert certify(given, QUICK).bound == pytest.approx(10_000.0, rel=1e-4)


def test_what_an_interrupted_job_spent_counts_for_its_cap() -> None:
    """Spot at 2 USD is lost after 3.5 of 8 h; the 5 h that are left cost 40 USD on demand."""
    job = training(
        compute_us=16 * HOUR,
        rounds=4,
        gpus=(8,),
        gpu_speeds=(("A", 1000),),
        parts=(),
        utility=due(60),
        restarts=0,
    )
    down = Change(3 * HOUR + HOUR // 2, "node_down", 3, 0, 0)
    for cap, done in ((None, 1), (60.0, 1), (20.0, 0)):
        run = simulate(hourly(replace(job, spend_cap_usd=cap), changes=(down,)), BROKER)
        assert run.metrics["jobs_completed"] == done, cap


# ---------------------------------------------------------------------- due dates


def test_a_due_date_is_kept_where_being_late_costs_more() -> None:
    """The dearer a slot of delay, the earlier jobs end; bound and optimum hold."""
    given = MARKET.make({"family": "A", "jobs": 6, "regions": 3, "slots": 48}, 1)
    soft = [
        MARKET.make({"family": "A", "jobs": 6, "regions": 3, "slots": 48, "due": 0.3, "late_usd": usd}, 1)
        for usd in (0.01, 30.0)
    ]
    results = [certify(each, QUICK) for each in (given, *soft)]
    assert results[0].usd < results[1].usd < results[2].usd
    for each, result in zip(soft, results[1:], strict=True):
        best, _ = exact(each, nodes=200)
        assert result.bound <= best * (1 + 1e-6) <= result.usd * (1 + 2e-6)
    ends = [np.mean([plan[2] + plan[3] for plan in result.books.plan if plan[0] >= 0]) for result in results]
    assert ends[2] < ends[0]


# ---------------------------------------------------------------------- moves


def test_a_running_job_moves_where_that_pays_and_only_if_it_may() -> None:
    """16 h at 8 USD in the east, or at 8.8 USD in the west; from hour 2 on the east costs three times as much."""
    job = training(
        compute_us=8 * HOUR, rounds=16, gpus=(4, 8), parts=(), utility=due(60), warmup_us=HOUR // 10
    )
    dearer = Change(2 * HOUR, "price", EAST_8A, 0, 3000)
    first = frozenset({EAST_8A, WEST_1B})
    west_dear = {"rent": {(EAST_8A, 0): Tariff(usd=(8.0,)), (WEST_1B, 0): Tariff(usd=(2.2,))}}
    runs = {
        restarts: simulate(
            hourly(replace(job, restarts=restarts, nodes=first), changes=(dearer,), **west_dear), BROKER
        )
        for restarts in (None, 0)
    }
    assert set(runs[0].tables["places"]["node"]) == {EAST_8A}
    assert set(runs[None].tables["places"]["node"]) == {EAST_8A, WEST_1B}
    assert runs[None].metrics["cost_usd"] < 0.6 * runs[0].metrics["cost_usd"]


def test_a_job_runs_on_while_its_data_moves() -> None:
    """A TB at 1 Gbit/s takes 8,000 s, three slots; with little time left it runs in the east until then."""
    job = training(
        compute_us=HOUR,
        rounds=160,
        gpus=(4, 8),
        parts=((EAST, TB),),
        utility=due(22),
        warmup_us=HOUR // 10,
    )
    gbit = replace(market([]).setup.links[0], ab_bps=10**9, ba_bps=10**9)
    dearer = Change(2 * HOUR, "price", EAST_8A, 0, 30_000)
    cheap = {(EAST, WEST): Tariff(usd=(0.001,)), (WEST, EAST): Tariff(usd=(0.001,))}
    nodes = frozenset({EAST_8A, WEST_1B})
    given = hourly(replace(job, nodes=nodes), changes=(dearer,), links=(gbit,), egress=cheap)
    run = simulate(given, BROKER)
    steps = sorted(zip(run.tables["steps"]["from_us"], run.tables["steps"]["until_us"], strict=True))
    assert (2 * HOUR, 5 * HOUR) in steps
    assert any(begin == 5 * HOUR for begin, _ in steps)
    assert run.metrics["jobs_completed"] == 1


def test_moves_save_money_online_where_spot_prices_move() -> None:
    usd = {}
    for moves in (False, True):
        given = MARKET.make({"family": "E", "jobs": 5, "regions": 3, "slots": 40, "moves": moves}, 3)
        usd[moves] = simulate(given, BROKER).metrics["total_usd"]
    assert usd[True] <= usd[False]


def test_a_scenario_with_the_new_fields_is_the_same_from_its_file(tmp_path: Any) -> None:
    given = hourly(split(spend_cap_usd=99.5, model_bytes=7))
    dump(given, tmp_path / "s.yaml")
    again = load(tmp_path / "s.yaml")
    assert again.jobs == given.jobs
    assert scenario_hash(again) == scenario_hash(given)
