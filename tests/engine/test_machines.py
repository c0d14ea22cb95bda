"""Machines, data parts, warm-ups, interruptions and pooled bills: computed by hand, run with the audit on."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.builders import decision, plan, play, rows
from tests.offers import EAST, EAST_8A, EAST_SPOT, HOUR, PRICE, WEST, WEST_1B, market, offers, on, training
from tradewind.files.run_file import load_run, save
from tradewind.files.scenario_file import dump, load
from tradewind.model.errors import ScenarioError
from tradewind.model.hash import scenario_hash
from tradewind.model.job import Rounds
from tradewind.model.machine import Machine
from tradewind.model.node import Node
from tradewind.model.pool import Pool
from tradewind.model.progress import iteration_us, machine_round_us
from tradewind.model.tariff import Tariff
from tradewind.model.utility import Utility
from tradewind.model.view import Change

H = HOUR
HOURLY: dict[str, Any] = {"slot_us": H}


def finish(run: Any) -> int:
    return int(run.tables["outcomes"]["finish_us"][0])


def test_a_round_uses_as_many_gpus_as_make_it_shortest() -> None:
    fast = Machine(gpu="A", gpus=8, bus_bps=10**12, network_bps=10**12)
    slow = replace(fast, bus_bps=8 * 10**6)  # 2 * 8 * 50 bytes take 100 us
    assert machine_round_us(training(), fast, 1) == 10
    assert machine_round_us(training(), fast, 2) == 5
    assert machine_round_us(training(), fast, 3) == 0
    assert machine_round_us(training(model_bytes=50), slow, 1) == 80  # one GPU alone has nothing to exchange
    assert machine_round_us(training(model_bytes=50, gpus=(2, 8)), slow, 1) == 40 + 50
    assert machine_round_us(training(gpu_speeds=(("B", 1000),)), fast, 1) == 0
    assert machine_round_us(training(), None, 1) == 0


def test_an_iteration_on_machines_is_predicted_at_their_gpus_and_speeds() -> None:
    """Measured paces are beside it: the time on one GPU would make eight look eight times as fast as declared."""
    setup, job = market([training()]).setup, training()
    assert iteration_us(setup, job, on(EAST_8A, 0, 100)) == 10
    assert iteration_us(setup, job, on(EAST_8A, 0, 100, machines=2)) == 5
    assert iteration_us(setup, job, on(WEST_1B, 0, 100)) == 40


def test_one_gpu_on_a_machine_of_eight_pays_for_eight() -> None:
    alone = training(gpus=(1,), compute_us=H, rounds=1)
    run = play(market([alone], **HOURLY), {0: decision(plan(0, on(EAST_8A, 0, H)))})
    assert finish(run) == H
    assert run.metrics["cost_usd"] == pytest.approx(PRICE)


def test_every_start_costs_a_warm_up_and_going_on_does_not() -> None:
    job = training(warmup_us=30)
    for steps, expected in (
        ([on(EAST_8A, 0, 300)], 230),
        ([on(EAST_8A, 0, 100), on(EAST_8A, 100, 300)], 230),
        ([on(EAST_8A, 0, 100), on(EAST_8A, 200, 400)], 100 + 100 + 30 + 130),
        ([on(EAST_8A, 0, 100), on(EAST_SPOT, 100, 300)], 260),
    ):
        assert finish(play(market([job]), {0: decision(plan(0, *steps))})) == expected
    # a plan replaced while it runs goes on as well, also during the warm-up and when it begins
    again = {at: decision(plan(0, on(EAST_8A, at, 300))) for at in (0, 100, 200)}
    assert finish(play(market([job]), again)) == 230
    late = {0: decision(plan(0, on(EAST_8A, 100, 400))), 100: decision(plan(0, on(EAST_8A, 100, 500)))}
    assert finish(play(market([job]), late)) == 330


def test_checkpoints_slow_a_job_where_it_can_be_interrupted() -> None:
    job = training(checkpoint_us=10)
    assert finish(play(market([job]), {0: decision(plan(0, on(EAST_SPOT, 0, 300)))})) == 220
    assert finish(play(market([job]), {0: decision(plan(0, on(EAST_8A, 0, 300)))})) == 200


def test_an_interruption_takes_the_work_since_the_slot_began_and_the_data_stays() -> None:
    job = training(warmup_us=10, restarts=0, parts=((EAST, 50), (WEST, 100)))
    changes = [Change(250, "node_down", EAST_SPOT, 0, 0), Change(300, "node_up", EAST_SPOT, 0, 0)]
    given = market([job], changes=changes)
    moved = [(WEST, 100)]
    first = decision(plan(0, on(EAST_SPOT, 100, 400, moved=moved)))
    run = play(given, {0: first, 300: decision(plan(0, on(EAST_8A, 300, 600)))})
    # 90 us of work in slot 1; 50 us of slot 2 are lost; then 10 us of warm-up and 110 us of work
    assert finish(run) == 300 + 10 + 110
    assert ("voided", 9_000_000) in [(kind, value) for kind, value in rows(run, "events", "kind", "value")]
    assert [r for r in rows(run, "costs", "slot", "kind") if r[1] == "transfer"] == [(1, "transfer")]


def test_total_usd_is_the_cost_and_the_value_lost_by_delay() -> None:
    worth = Utility(of="delay_slots", shape="piecewise", args=(1.0, 50.0, 3.0, 30.0, 4.0, 0.0))
    job = training(utility=worth, compute_us=8 * H, rounds=1)
    given = market([job], objective="total_usd", **HOURLY)
    for start, lost in ((0, 0.0), (1, 0.0), (2, 10.0), (3, 20.0), (4, 50.0)):
        run = play(given, {0: decision(plan(0, on(EAST_8A, start * H, (start + 1) * H)))})
        assert run.metrics["total_usd"] == pytest.approx(PRICE + lost)
    assert play(given, {}).metrics["total_usd"] == 50.0


def pooled(tariff: Tariff, *, period: int = 2 * H, **more: Any) -> Pool:
    return Pool(name="p", rent=((EAST_8A, 0), (EAST_SPOT, 0)), egress=((WEST, EAST),), period_us=period,
                tariff=tariff, **more)  # fmt: skip


DISCOUNT = Tariff(starts=(0.0, 10.0), usd=(1.0, 0.5))


@pytest.mark.parametrize(
    ("pool", "usd"),
    [
        (pooled(DISCOUNT), 13 + 8),  # 16 USD in hours 0 and 1, 8 in hour 2
        (pooled(DISCOUNT, period=H), 24),
        (pooled(DISCOUNT, period=4 * H), 10 + 7),
        (pooled(DISCOUNT, carried_usd=4.0), 11 + 8),
        (pooled(DISCOUNT, free_usd=6.0), 10 + 2),
        (pooled(replace(DISCOUNT, rule="retroactive")), 8 + 8),
        (pooled(Tariff(starts=(0.0, 1e9), usd=(1.0, 0.5))), 24),
    ],
)
def test_a_pool_bills_the_spend_of_its_members_per_period(pool: Pool, usd: float) -> None:
    given = market([training(compute_us=24 * H, rounds=1)], pools=(pool,), **HOURLY)
    run = play(given, {0: decision(plan(0, on(EAST_8A, 0, 3 * H)))})
    assert run.metrics["cost_rent_usd"] == pytest.approx(24)
    assert run.metrics["cost_usd"] == pytest.approx(usd)
    assert run.metrics["cost_discount_usd"] == pytest.approx(usd - 24)


def test_a_pool_adds_up_offers_of_different_prices_and_egress() -> None:
    size = 100 * 10**9
    jobs = [
        training(0, compute_us=8 * H, rounds=1),
        training(1, compute_us=8 * H, rounds=1, parts=((WEST, size),)),
    ]
    fast = (replace(offers().links[0], ab_bps=10**12, ba_bps=10**12),)
    given = market(jobs, pools=(pooled(DISCOUNT, period=9 * H),), links=fast, **HOURLY)
    run = play(
        given,
        {0: decision(plan(0, on(EAST_8A, 0, H)), plan(1, on(EAST_SPOT, H, 2 * H, moved=[(WEST, size)])))},
    )
    spend = PRICE + PRICE / 4 + 100 * 0.2
    assert run.metrics["cost_usd"] == pytest.approx(10 + (spend - 10) / 2)
    assert ("discount", 0, 0, spend) in rows(run, "costs", "kind", "a", "b", "amount")


def test_a_month_with_spend_carried_over_costs_what_one_long_run_costs() -> None:
    job = training(compute_us=16 * H, rounds=1)
    month = pooled(DISCOUNT, period=1000 * H)
    whole = play(market([job], pools=(month,), **HOURLY), {0: decision(plan(0, on(EAST_8A, 0, 2 * H)))})
    half = training(compute_us=8 * H, rounds=1)
    first = play(market([half], pools=(month,), **HOURLY), {0: decision(plan(0, on(EAST_8A, 0, H)))})
    carried = replace(month, carried_usd=first.metrics["cost_rent_usd"])
    second = play(market([half], pools=(carried,), **HOURLY), {0: decision(plan(0, on(EAST_8A, 0, H)))})
    assert whole.metrics["cost_usd"] == pytest.approx(first.metrics["cost_usd"] + second.metrics["cost_usd"])


def test_a_scenario_with_offers_is_the_same_from_its_file(tmp_path: Any) -> None:
    given = market(
        [training(warmup_us=5, checkpoint_us=2, restarts=2, parts=((EAST, 50), (WEST, 7)))],
        pools=(pooled(DISCOUNT, free_usd=1.0, carried_usd=2.0),),
        objective="total_usd",
    )
    dump(given, tmp_path / "s.yaml")
    found = load(tmp_path / "s.yaml")
    assert found.setup == given.setup
    assert found.jobs == given.jobs
    assert scenario_hash(found) == scenario_hash(given)
    for change in (
        {"pools": ()},
        {"nodes": (replace(given.setup.nodes[0], name="E"), *given.setup.nodes[1:])},
    ):
        assert scenario_hash(replace(given, setup=replace(given.setup, **change))) != scenario_hash(given)


@pytest.mark.parametrize(
    ("job", "more", "message"),
    [
        ({"gpus": ()}, {}, r"gpus are \[\]"),
        ({"gpus": (4, 2)}, {}, "rising"),
        ({"gpu_speeds": (("A", 0),)}, {}, "positive speed"),
        ({"parts": ((EAST_8A, 5),)}, {}, "inside a site"),
        ({"parts": ((EAST, 5), (EAST, 6))}, {}, "twice"),
        ({"copies": ((EAST, 99, 0),)}, {}, "node 99"),
        ({"copies": ((EAST, WEST, -1),)}, {}, "between 0"),
        ({"copies": ((WEST, EAST, 0),)}, {}, "found west->east; name a part"),
        ({}, {"links": ()}, "no link east->west"),
        ({}, {"egress": {}}, "no price for east->west"),
        ({}, {"pools": (pooled(DISCOUNT, period=H + 1),)}, "multiple of the slot"),
        ({}, {"pools": (pooled(DISCOUNT), replace(pooled(DISCOUNT), name="q"))}, "as pool 'p' does"),
    ],
)
def test_bad_offers_and_jobs_are_named(job: dict[str, Any], more: dict[str, Any], message: str) -> None:
    with pytest.raises(ScenarioError, match=message):
        market([training(**job)], **(HOURLY | more))


def test_bad_machines_and_spot_without_capacity_are_named() -> None:
    with pytest.raises(ScenarioError, match=r"machine.gpus is 0"):
        Machine(gpu="A", gpus=0, bus_bps=1, network_bps=1)
    with pytest.raises(ScenarioError, match="never unlimited"):
        Node(name="s", interruptions_per_hour=0.1)
    with pytest.raises(ScenarioError, match="comm 'machines'"):
        market([training(work=Rounds(count=1, compute_us=5))])
    with pytest.raises(ScenarioError, match="no members"):
        Pool(name="p", period_us=1, tariff=DISCOUNT)


def test_other_policies_refuse_jobs_on_machines() -> None:
    from tradewind.engine.fit import mismatch
    from tradewind.registry import policies

    assert "rounds/machines" in mismatch(policies.find("fifo"), market([training()], objective="jct_mean_s"))


def test_a_run_with_discounts_is_the_same_from_its_file(tmp_path: Any) -> None:
    given = market([training(compute_us=24 * H, rounds=1)], pools=(pooled(DISCOUNT),), **HOURLY)
    run = play(given, {0: decision(plan(0, on(EAST_8A, 0, 3 * H)))})
    save(run, tmp_path / "run.json")
    found = load_run(tmp_path / "run.json")
    assert dict(found.tables["costs"]) == dict(run.tables["costs"])
    assert found.metrics == run.metrics
