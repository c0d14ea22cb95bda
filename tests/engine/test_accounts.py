"""Cost, payments and value by hand. Every run here is audited too, so the audit's own numbers agree to nine digits."""

from __future__ import annotations

from typing import Any
from weakref import WeakSet

import pytest

from tests.builders import (
    Scripted,
    decision,
    job,
    link,
    node,
    plan,
    play,
    rows,
    run_at,
    scenario,
    setup,
    spec_of,
)
from tradewind.engine import costs
from tradewind.engine.intervals import effective, end_us
from tradewind.model.decision import Decision, Flow, Offer, Quote, Route, Step, Verdict
from tradewind.model.job import Customer, Dataset, Fixed, Rounds, Stream
from tradewind.model.tariff import Tariff
from tradewind.model.units import GB, US_PER_HOUR
from tradewind.model.utility import Utility
from tradewind.model.view import Change
from tradewind.worlds.simulate import simulate

HOUR = US_PER_HOUR
TIERS = Tariff(starts=(0.0, 2.0), usd=(10.0, 4.0))  # 10 USD per gpu-hour, 4 from the third gpu on


def hours(nodes: Any = None, **more: Any) -> Any:
    """Slots of an hour, ten of them."""
    return setup(nodes, **({"slot_us": HOUR, "horizon_us": 10 * HOUR} | more))


def test_rent_is_the_tariff_of_the_mean_amount_in_the_slot() -> None:
    where = hours(rent={(0, 0): TIERS})
    given = scenario(
        [job(0, work=Fixed(runtime_us=HOUR + HOUR // 2), workers_min=3, workers_max=3)], where=where
    )
    run = play(given, {0: decision(plan(0, run_at(0, (0,), (3,))))})
    # slot 0: 3 gpus = 24 USD; slot 1: 1.5 gpus on average = 15 USD
    assert rows(run, "costs", "slot", "kind", "a", "b", "amount", "usd") == [
        (0, "rent", 0, 0, 3.0, pytest.approx(24.0)),
        (1, "rent", 0, 0, 1.5, pytest.approx(15.0)),
    ]
    assert run.metrics["cost_usd"] == run.metrics["cost_rent_usd"] == pytest.approx(39.0)


def test_jobs_reach_the_cheaper_tier_together() -> None:
    where = hours(rent={(0, 0): TIERS})
    jobs = [job(i, work=Fixed(runtime_us=HOUR), workers_min=2, workers_max=2) for i in (0, 1)]
    together = play(
        scenario(jobs, where=where), {0: decision(*(plan(i, run_at(0, (0,), (2,))) for i in (0, 1)))}
    )
    assert together.metrics["cost_rent_usd"] == pytest.approx(2 * 10 + 2 * 4)


def test_a_retroactive_tariff_bills_all_units_at_the_tier_reached() -> None:
    where = hours(rent={(0, 0): Tariff(starts=(0.0, 2.0), usd=(10.0, 4.0), rule="retroactive")})
    given = scenario([job(0, work=Fixed(runtime_us=HOUR), workers_max=3)], where=where)
    assert play(given, {0: decision(plan(0, run_at(0, (0,), (3,))))}).metrics["cost_usd"] == pytest.approx(
        12.0
    )


def test_a_price_change_counts_from_its_slot_on() -> None:
    where = hours(rent={(0, 0): TIERS})
    given = scenario(
        [job(0, work=Fixed(runtime_us=3 * HOUR))],
        where=where,
        changes=[Change(HOUR, "price", 0, 0, 1500), Change(2 * HOUR, "price", 0, 0, 4000, 3000)],
    )
    run = play(given, {0: decision(plan(0, run_at(0)))})
    assert [usd for (usd,) in rows(run, "costs", "usd")] == [pytest.approx(x) for x in (10.0, 15.0, 40 / 3)]


def test_servers_pay_their_sites_tariff_where_they_have_none_of_their_own() -> None:
    nodes = [node("site", 8), node("s1", parent=0, kind="server"), node("s2", parent=0, kind="server")]
    where = hours(nodes, rent={(0, 0): TIERS, (2, 0): Tariff(usd=(1.0,))})
    given = scenario([job(0, work=Fixed(runtime_us=HOUR), workers_max=5)], where=where)
    run = play(given, {0: decision(plan(0, run_at(0, (1, 2), (3, 2))))})
    assert run.metrics["cost_usd"] == pytest.approx(24.0 + 2.0)


def test_parameter_servers_pay_rent_too() -> None:
    where = hours(rent={(0, 0): Tariff(usd=(2.0,))})
    given = scenario(
        [job(0, work=Fixed(runtime_us=HOUR), architecture="ps", servers=1, server=((0, 500),))], where=where
    )
    assert play(given, {0: decision(plan(0, run_at(0, servers=(1,))))}).metrics["cost_usd"] == pytest.approx(
        3.0
    )


EGRESS = Tariff(starts=(0.0, 10.0), usd=(2.0, 1.0))


def stream(traffic: int = 0, **more: Any) -> Any:
    one = job(
        0,
        work=Stream(bytes_per_worker_slot=20 * GB),
        workers_max=9,
        architecture="ps",
        servers=1,
        server=((0, 1000),),
        traffic_bytes_per_worker_slot=traffic,
        **more,
    )
    where = hours([node("a", 9), node("b", 9), node("c", 9)], egress={(0, 1): EGRESS, (1, 2): EGRESS})
    return scenario(
        [one],
        where=where,
        customers=[Customer(runtime_us=HOUR)],
        volumes=[(0, 0, 0, 8 * GB), (0, 0, 1, 4 * GB)],
    )


def test_data_and_parameters_share_one_egress_tariff_in_proportion_to_their_bytes() -> None:
    step = Step(0, HOUR, (0, 1), (1, 1), (0, 1), flows=(Flow(0, 1, 8 * GB), Flow(1, 1, 4 * GB)))
    run = play(stream(traffic=4 * GB), {0: decision(plan(0, step))})
    # a -> b: 8 GB of data and 4 GB of parameters of the worker at a: 12 GB = 10 * 2 + 2 * 1 = 22 USD
    assert run.metrics["cost_transfer_usd"] == pytest.approx(22.0 * 8 / 12)
    assert run.metrics["cost_traffic_usd"] == pytest.approx(22.0 * 4 / 12)
    assert rows(run, "costs", "kind", "a", "b", "amount") == [("traffic", 0, 1, 4.0), ("transfer", 0, 1, 8.0)]


def test_data_that_stays_costs_nothing_and_an_egress_change_counts() -> None:
    local = Step(0, HOUR, (0, 1), (1, 1), (0, 1), flows=(Flow(0, 0, 8 * GB), Flow(1, 1, 4 * GB)))
    assert play(stream(), {0: decision(plan(0, local))}).metrics["cost_usd"] == 0.0
    given = stream()
    dear = scenario(
        given.jobs, where=given.setup, customers=given.customers, changes=[Change(0, "egress", 0, 1, 3000)],
        volumes=[(0, 0, 0, 8 * GB), (0, 0, 1, 4 * GB)],
    )  # fmt: skip
    away = Step(0, HOUR, (0, 1), (0, 1), (0, 1), flows=(Flow(0, 1, 8 * GB), Flow(1, 1, 4 * GB)))
    assert play(dear, {0: decision(plan(0, away))}).metrics["cost_usd"] == pytest.approx(3 * 16.0)


def test_several_servers_take_traffic_in_proportion() -> None:
    one = job(
        0, work=Fixed(runtime_us=HOUR // 2), architecture="ps", servers=4, server=((0, 1000),), workers_max=2,
        traffic_bytes_per_worker_slot=8 * GB,
    )  # fmt: skip
    where = hours([node("a", 9), node("b", 9)], egress={(0, 1): Tariff(usd=(1.0,))})
    run = play(
        scenario([one], where=where), {0: decision(plan(0, run_at(0, (0, 1), (2, 0), servers=(1, 3))))}
    )
    # 2 workers * 8 GB * 3/4 of the servers, for half a slot
    assert run.metrics["cost_traffic_usd"] == pytest.approx(6.0)


def test_deployment_is_paid_where_the_job_was_absent_the_instant_before() -> None:
    given = scenario(
        [job(0, work=Fixed(runtime_us=600), deploy_usd=1.0, workers_max=2), job(1, arrive_us=9000)]
    )
    run = play(
        given,
        {
            0: decision(plan(0, run_at(0, (0, 1), (1, 1)))),  # both: 2
            100: decision(plan(0, run_at(100, (0,)))),  # stays at a: 0
            200: decision(plan(0, run_at(200, (0, 1), (1, 1)))),  # back at b: 1
            300: decision(plan(0)),
            400: decision(plan(0, run_at(400))),  # back after a pause: 1
        },
    )
    assert run.metrics["cost_deploy_usd"] == 4.0
    deployed = [row for row in rows(run, "costs", "slot", "kind", "a", "amount") if row[1] == "deploy"]
    assert deployed == [
        (0, "deploy", 0, 1.0),
        (0, "deploy", 1, 1.0),
        (2, "deploy", 1, 1.0),
        (4, "deploy", 0, 1.0),
    ]


def test_a_dataset_pays_for_moved_chunks_in_the_slot_that_moves_them() -> None:
    work = Dataset(chunks=((0, 3),), chunk_bytes=GB, epochs=1, chunk_epochs_per_worker_slot_milli=2000)
    where = hours(egress={(0, 1): Tariff(usd=(0.5,))}, rent={(1, 0): Tariff(usd=(1.0,))})
    steps = (
        Step(0, HOUR, (1,), (1,), flows=(Flow(0, 1, 2 * GB),)),
        Step(2 * HOUR, 3 * HOUR, (1,), (1,), flows=(Flow(0, 1, GB),)),
    )
    run = play(scenario([job(0, work=work)], where=where), {0: decision(plan(0, *steps))})
    assert rows(run, "costs", "slot", "kind", "usd") == [
        (0, "rent", pytest.approx(1.0)), (0, "transfer", pytest.approx(1.0)),
        (2, "rent", pytest.approx(1.0)), (2, "transfer", pytest.approx(0.5)),
    ]  # fmt: skip
    assert rows(run, "outcomes", "state", "finish_us", "work") == [("finished", 3 * HOUR, 3)]


def test_priced_links_bill_the_bytes_of_the_rounds_done() -> None:
    where = setup(
        [node("a"), node("b"), node("c")],
        links=(link(0, 1, 8 * 10**9, usd_per_gb=1.0), link(1, 2, 8 * 10**9, usd_per_gb=0.5)),
    )
    one = job(
        0, work=Rounds(count=10, compute_us=10, comm="flows", pinned=((0, 1),)), architecture="ps", servers=1,
        server=((0, 1000),), model_bytes=1000,
    )  # fmt: skip
    route = Route(0, 2, 8 * 10**9, (0, 1), "push-pull")
    run = play(
        scenario([one], where=where),
        {0: decision(plan(0, run_at(0, (0, 2), (1, 0), servers=(0, 1), routes=(route,))))},
    )
    # a round: 10 us + 2 * 2 hops * 1 us; 10 rounds move 2 * 1000 bytes each over 1.5 USD per GB
    assert rows(run, "outcomes", "finish_us") == [(140,)]
    assert run.metrics["epoch_s"] == pytest.approx(4e-6)
    assert run.metrics["cost_traffic_usd"] == pytest.approx(10 * 2000 / 1e9 * 1.5)


def test_a_ring_moves_its_share_over_every_hop() -> None:
    where = setup(links=(link(0, 1, 16 * 10**9, usd_per_gb=1.0),))
    one = job(
        0,
        work=Rounds(count=5, compute_us=9, comm="ring"),
        workers_max=4,
        ring_bps=8 * 10**9,
        model_bytes=1000,
    )
    hops = (Route(0, 1, 8 * 10**9, (0,)), Route(1, 0, 8 * 10**9, (0,)))
    run = play(scenario([one], where=where), {0: decision(plan(0, run_at(0, (0, 1), (2, 2), routes=hops)))})
    # 3/4 * 8000 bit * 2 / 8 Gbit/s = 1.5 us -> 2; two hops, 2 * 3/4 * 1000 bytes each
    assert rows(run, "outcomes", "finish_us") == [(55,)]
    assert run.metrics["cost_traffic_usd"] == pytest.approx(5 * 2 * 1500 / 1e9)


def test_utility_of_progress_counts_for_finished_unfinished_and_refused_jobs() -> None:
    worth = Utility(of="progress", shape="linear", args=(0.0, 2.0))
    slots = Rounds(count=8, unit="worker-slot", rate=0.5)
    jobs = [job(i, work=slots, workers_max=4, utility=worth) for i in range(3)]
    run = play(
        scenario(jobs),
        {
            0: decision(plan(0, run_at(0, (0,), (4,))), plan(1, run_at(0, (1,), (3,), until=100))),
            200: Decision(verdicts=(Verdict(1, "enough"),)),
        },
    )
    assert rows(run, "outcomes", "state", "work", "value_usd") == [
        ("finished", 8_000_000, 8.0), ("refused", 3_000_000, 3.0), ("unfinished", 0, 0.0),
    ]  # fmt: skip
    assert run.metrics["utility"] == run.metrics["welfare_usd"] == 11.0


def test_value_of_delay_counts_slots_from_arrival_to_completion() -> None:
    worth = Utility(of="delay_slots", shape="linear", args=(10.0, -1.0))
    jobs = [
        job(0, work=Fixed(runtime_us=100), utility=worth),
        job(1, arrive_us=99, work=Fixed(runtime_us=2), utility=worth),
    ]
    run = play(scenario(jobs), {0: decision(plan(0, run_at(0))), 99: decision(plan(1, run_at(99)))})
    # finished at 100, the end of the slot it came in: no delay; at 101, one slot later than 99
    assert rows(run, "outcomes", "value_usd") == [(10.0,), (9.0,)]


def test_profit_is_payments_minus_cost_and_welfare_value_minus_cost() -> None:
    where = hours(rent={(0, 0): Tariff(usd=(3.0,))})
    jobs = [job(i, work=Fixed(runtime_us=HOUR)) for i in range(3)]
    customers = [Customer(budget_usd=8.0), Customer(budget_usd=4.0), Customer(budget_usd=4.0)]
    quotes = {
        0: Quote(0, (Offer(5.0, HOUR, plan(0, run_at(0))),)),
        1: Quote(1, (Offer(5.0, HOUR, plan(1, run_at(0))),)),
        2: Quote(2, (), "capacity"),
    }
    run = play(scenario(jobs, where=where, customers=customers), {}, quotes)
    assert rows(run, "payments", "job", "usd") == [(0, 5.0)]
    money = [run.metrics[f"{k}_usd"] for k in ("cost", "payments", "profit", "value", "welfare")]
    assert money == [3.0, 5.0, 2.0, 8.0, 5.0]
    counts = [run.metrics[f"jobs{k}"] for k in ("", "_accepted", "_declined", "_refused", "_completed")]
    assert counts == [3, 1, 1, 1, 1]


def test_times_and_utilisation_follow_from_the_events() -> None:
    jobs = [
        job(0, arrive_us=100, work=Fixed(runtime_us=100)),
        job(1, arrive_us=100, work=Fixed(runtime_us=300)),
    ]
    run = play(
        scenario(jobs),
        {
            100: decision(plan(0, run_at(100))),
            200: decision(plan(1, run_at(200))),
            300: decision(plan(1, run_at(300))),
        },
    )
    m = run.metrics
    assert [m["jct_mean_s"], m["makespan_s"]] == pytest.approx([250e-6, 400e-6])
    assert [m["wait_mean_s"], m["steps_mean"]] == pytest.approx([50e-6, 1.5])
    assert m["jct_p50_s"] == pytest.approx(250e-6)
    assert m["utilisation_gpu"] == pytest.approx(400 / (8 * 500))


def test_a_resource_without_limit_somewhere_has_no_utilisation() -> None:
    where = setup((node("small", 1), node("cloud", None)))
    run = play(
        scenario([job(0, work=Fixed(runtime_us=100), workers_max=4)], where=where),
        {0: decision(plan(0, run_at(0, (1,), (4,))))},
    )
    assert "utilisation_gpu" not in run.metrics


def test_two_runs_of_the_same_script_have_the_same_tables() -> None:
    given = scenario([job(0), job(1)])
    script = {0: decision(plan(0, run_at(0)), plan(1, run_at(0)))}
    once, again = (simulate(given, spec_of(Scripted(script, {}))) for _ in range(2))
    assert once == again


def test_what_jobs_cost_is_added_up_one_after_the_other_and_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    alive, most = WeakSet[Any](), [0]

    class Counted(costs._Meter):
        def __init__(self, *given: Any) -> None:
            super().__init__(*given)
            alive.add(self)
            most[0] = max(most[0], len(alive))

    where = hours(rent={(0, 0): TIERS})
    jobs = [job(i, work=Fixed(runtime_us=HOUR)) for i in range(4)]
    given = scenario(jobs, where=where)
    run = play(given, {0: decision(*(plan(i, run_at(0)) for i in range(4)))})
    monkeypatch.setattr(costs, "_Meter", Counted)
    when = effective(run, end_us(run))
    alone, shares = costs.rows_alone(given, run, when), costs.job_costs(given, run, when)
    assert [row[5] for rows in alone.values() for row in rows] == [10.0] * 4
    assert sum(shares.values()) == pytest.approx(run.metrics["cost_usd"])
    assert most[0] <= 3  # of all jobs together, of one, and of the next
