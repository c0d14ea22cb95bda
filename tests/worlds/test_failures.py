"""Failures and shrinking: which plans are cancelled, and what work is kept."""

from __future__ import annotations

from typing import Any

import pytest

from tests.builders import SLOT, Stage, job, link, node, plan, run_at, scenario, setup
from tradewind.model.decision import Flow, Route, Step
from tradewind.model.job import Dataset, Fixed, Job, Rounds
from tradewind.model.units import OPEN
from tradewind.model.view import Change

LONG = Fixed(runtime_us=900)


def racks() -> Any:
    """A rack with two servers, and a server of its own."""
    return setup(
        [
            node("rack", 8, kind="rack"),
            node("s1", parent=0, kind="server"),
            node("s2", parent=0, kind="server"),
            node("s3", kind="server"),
        ]
    )


def down(at: int, number: int, kind: str = "node_down") -> Change:
    return Change(at, kind, number, 0, 0)


def test_a_failed_node_resets_its_jobs_to_the_start_of_the_slot_and_reports_it() -> None:
    stage = Stage(scenario([job(0, work=LONG), job(1, work=LONG)], changes=[down(270, 0)]))
    stage.wait()
    stage.act(plan(0, run_at(0)), plan(1, run_at(0, (1,))))
    assert stage.wait() == [("changed", -1, 0), ("voided", 0, 200)]
    assert stage.ledger.plan(0) is None
    assert stage.ledger.plan(1) is not None
    assert stage.ledger.free(0, 0) == 0
    assert stage.check(plan(0, run_at(270)))[0].rule == "places.up"
    stage.act(plan(0, run_at(270, (1,))))
    assert stage.until(970) == [(900, "finished", 1, 0), (970, "finished", 0, 0)]


def test_a_failure_at_the_start_of_a_slot_loses_nothing() -> None:
    stage = Stage(scenario([job(0, work=LONG)], changes=[down(300, 0)]))
    stage.wait()
    stage.act(plan(0, run_at(0)))
    assert stage.wait()[1] == ("voided", 0, 300)


def test_a_failure_takes_back_work_of_the_slot_even_if_the_plan_was_replaced_in_it() -> None:
    given = scenario([job(0, work=LONG), job(1, arrive_us=240)], changes=[down(270, 0)])
    stage = Stage(given)
    stage.wait()
    stage.act(plan(0, run_at(0)))
    stage.wait()
    stage.act(plan(0, run_at(240)))
    assert stage.wait()[1] == ("voided", 0, 200)


def test_two_failures_in_one_slot_return_to_the_same_checkpoint() -> None:
    given = scenario([job(0, work=LONG)], changes=[down(230, 0), down(280, 1)])
    stage = Stage(given)
    stage.wait()
    stage.act(plan(0, run_at(0)))
    assert stage.wait()[1] == ("voided", 0, 200)
    stage.act(plan(0, run_at(230, (1,))))
    assert stage.wait()[1] == ("voided", 0, 200)


def test_a_rack_takes_its_servers_down_with_it() -> None:
    given = scenario([job(i, work=LONG) for i in range(3)], where=racks(), changes=[down(150, 0)])
    stage = Stage(given)
    stage.wait()
    stage.act(plan(0, run_at(0, (1,))), plan(1, run_at(0, (2,))), plan(2, run_at(0, (3,))))
    assert stage.wait() == [("changed", -1, 0), ("voided", 0, 100), ("voided", 1, 100)]
    assert [stage.ledger.free(n, 0) for n in (1, 2, 3)] == [0, 0, 3000]


def test_a_node_that_comes_back_has_all_its_capacity() -> None:
    given = scenario([job(0, work=LONG)], changes=[down(150, 0), down(160, 0, "node_up")])
    stage = Stage(given)
    stage.wait()
    stage.act(plan(0, run_at(0)))
    stage.wait()
    stage.wait()
    assert stage.ledger.free(0, 0) == 4000
    stage.act(plan(0, run_at(160)))
    assert stage.wait() == [("finished", 0, 0)]
    assert stage.now == 160 + 800


FLOWS = Rounds(count=1000, compute_us=1, comm="flows", pinned=((0, 1), (2, 1)))


def line() -> Any:
    """a - m - c, the middle a switch."""
    nodes = [node("a"), node("m", kind="switch"), node("c")]
    return setup(nodes, links=(link(0, 1), link(1, 2)))


def routed(at: int = 0) -> Step:
    route = Route(0, 2, 1_000_000, (0, 1), "push-pull")
    return run_at(at, (0, 2), (1, 1), servers=(0, 1), routes=(route,))


def parameter_job() -> Job:
    return job(
        0,
        work=FLOWS,
        workers_min=2,
        workers_max=2,
        servers=1,
        server=((0, 1000),),
        architecture="ps",
        model_bytes=1,
    )


@pytest.mark.parametrize(
    ("kind", "number"), [("link_down", 0), ("link_down", 1), ("node_down", 1), ("node_down", 2)]
)
def test_a_failed_link_or_a_switch_on_the_path_cancels_the_plan(kind: str, number: int) -> None:
    stage = Stage(scenario([parameter_job()], where=line(), changes=[down(130, number, kind)]))
    stage.wait()
    stage.act(plan(0, routed()))
    done = 100 * 10**6 // (1 + 2 * 16)  # a round: 1 us and 2 * 2 hops * 8 bits / 1 Mbit/s
    assert stage.wait() == [("changed", -1, 0), ("voided", 0, done)]
    rule = "places.up" if (kind, number) == ("node_down", 2) else "routes.up"
    assert stage.check(plan(0, routed(130)))[0].rule == rule
    assert stage.ledger.link_free(1 if kind == "node_down" else number, 0) == 0


def capacity(at: int, where: int, gpus: int) -> Change:
    return Change(at, "capacity", where, 0, gpus * 1000)


def test_shrinking_cancels_the_newest_plans_and_they_keep_all_work() -> None:
    given = scenario([job(i, arrive_us=10 * i, work=LONG) for i in range(4)], changes=[capacity(170, 0, 2)])
    stage = Stage(given)
    for index in (0, 1, 2, 3):
        stage.wait()
        stage.act(plan(index, run_at(10 * index)))
    assert stage.wait() == [("changed", -1, 0), ("voided", 2, 150), ("voided", 3, 140)]
    assert stage.ledger.free(0, 0) == 0


def test_a_plan_that_was_replaced_counts_as_new() -> None:
    given = scenario(
        [job(0, work=LONG), job(1, work=LONG), job(2, arrive_us=50)], changes=[capacity(170, 0, 1)]
    )
    stage = Stage(given)
    stage.wait()
    stage.act(plan(0, run_at(0)), plan(1, run_at(0)))
    stage.wait()
    stage.act(plan(0, run_at(50)))
    assert stage.wait() == [("changed", -1, 0), ("voided", 0, 170)]


def test_of_one_decision_the_job_with_the_higher_index_is_the_newest() -> None:
    given = scenario([job(0, work=LONG), job(1, work=LONG)], changes=[capacity(170, 0, 1)])
    stage = Stage(given)
    stage.wait()
    stage.act(plan(1, run_at(0)), plan(0, run_at(0)))
    assert stage.wait() == [("changed", -1, 0), ("voided", 1, 170)]


def test_a_rack_that_shrinks_cancels_what_its_servers_run() -> None:
    given = scenario([job(0, work=LONG), job(1, work=LONG)], where=racks(), changes=[capacity(170, 0, 1)])
    stage = Stage(given)
    stage.wait()
    stage.act(plan(0, run_at(0, (1,))), plan(1, run_at(0, (2,))))
    assert stage.wait() == [("changed", -1, 0), ("voided", 1, 170)]


def test_bookings_count_together_with_open_ended_steps_when_capacity_shrinks() -> None:
    given = scenario(
        [job(0, work=LONG, workers_min=3, workers_max=3), job(1, work=LONG)], changes=[capacity(170, 0, 3)]
    )
    stage = Stage(given)
    stage.wait()
    stage.act(plan(0, run_at(0, (0,), (3,))), plan(1, run_at(500, until=600)))
    assert stage.wait() == [("changed", -1, 0), ("voided", 1, 0)]


def test_a_booking_in_the_last_slot_does_not_count_before_it() -> None:
    where = setup(horizon_us=950)  # the last slot is cut off by the horizon
    given = scenario(
        [job(0, work=LONG, workers_min=2, workers_max=2), job(1, work=LONG, workers_min=2, workers_max=2)],
        where=where,
        changes=[capacity(170, 0, 2)],
    )
    stage = Stage(given)
    stage.wait()
    stage.act(plan(0, run_at(0, (0,), (2,), until=800)), plan(1, run_at(900, (0,), (2,), until=1000)))
    assert stage.wait() == [("changed", -1, 0)]


def test_bandwidth_that_shrinks_cancels_the_routes_that_no_longer_fit() -> None:
    change = Change(130, "bandwidth", 0, 1, 999_999)
    stage = Stage(scenario([parameter_job()], where=line(), changes=[change]))
    stage.wait()
    stage.act(plan(0, routed()))  # push-pull needs both directions
    assert [kind for kind, _, _ in stage.wait()] == ["changed", "voided"]


def test_prices_cancel_nothing() -> None:
    stage = Stage(scenario([job(0, work=LONG)], changes=[Change(200, "price", 0, 0, 9000)]))
    stage.wait()
    stage.act(plan(0, run_at(0)))
    assert stage.wait() == [("changed", -1, 0)]
    assert stage.ledger.price_factor(0, 0) == 9.0


def test_a_failure_does_not_take_back_chunks_whose_step_is_over_at_that_instant() -> None:
    work = Dataset(chunks=((0, 4),), chunk_bytes=10, epochs=1, chunk_epochs_per_worker_slot_milli=2000)
    stage = Stage(scenario([job(0, work=work)], changes=[down(100, 0)]))
    stage.wait()
    steps = [Step(k * SLOT, (k + 1) * SLOT, (0,), (1,), flows=(Flow(0, 0, 20),)) for k in (0, 1)]
    stage.act(plan(0, *steps))
    assert stage.wait() == [("changed", -1, 0), ("voided", 0, 2)]


def test_restart_time_that_reaches_into_the_next_slot_is_lost_once() -> None:
    given = scenario([job(0, work=LONG, restart_us=50), job(1, arrive_us=80)], changes=[capacity(170, 1, 0)])
    stage = Stage(given)
    stage.wait()
    stage.act(plan(0, run_at(0)))
    stage.wait()
    stage.act(plan(0, run_at(80, (1,))))  # moved: no work until 130
    assert stage.wait() == [("changed", -1, 0), ("voided", 0, 80 + 40)]


def test_a_job_that_had_done_all_its_work_when_its_node_failed_finishes_after_one_more_microsecond() -> None:
    stage = Stage(scenario([job(0, work=Fixed(runtime_us=200))], changes=[down(200, 0)]))
    stage.wait()
    stage.act(plan(0, run_at(0)))
    assert stage.wait() == [("changed", -1, 0), ("voided", 0, 200)]
    stage.act(plan(0, Step(200, OPEN, (1,), (1,))))
    assert stage.wait() == [("finished", 0, 0)]
    assert stage.now == 201
