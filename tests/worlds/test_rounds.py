"""How long rounds take, by hand: DPS (1), APSP's epoch, GADGET (1); whole slots; worker-slots."""

from __future__ import annotations

from fractions import Fraction
from math import ceil
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.builders import SLOT, Stage, job, link, node, plan, run_at, scenario, setup
from tradewind.audit.work import comm_time_us, speed
from tradewind.model.decision import Route, Step
from tradewind.model.job import Job, Rounds
from tradewind.model.progress import comm_us, rate
from tradewind.model.units import OPEN


def finish_us(one: Job, where: Any, step: Step) -> int:
    stage = Stage(scenario([one], where=where))
    stage.wait()
    stage.act(plan(0, step))
    assert stage.wait() == [("finished", 0, 0)]
    return stage.now


def rounds_job(comm: str, count: int = 1, workers: int = 2, **more: Any) -> Job:
    facts: Any = {"compute_us": 5, "comm": comm, **more.pop("work", {})}
    return job(0, work=Rounds(count=count, **facts), workers_min=1, workers_max=workers, **more)


def test_without_communication_a_round_is_its_computation() -> None:
    assert finish_us(rounds_job("none", 7), setup(), run_at(0, (0, 1), (1, 1))) == 35


@pytest.mark.parametrize(("worker_bps", "server_bps", "slowest"), [(4, 100, 4), (100, 6, 2)])
def test_colocated_is_free_on_one_node_and_else_dps_equation_1(
    worker_bps: int, server_bps: int, slowest: int
) -> None:
    mega = 10**6
    one = rounds_job(
        "colocated",
        10,
        workers=3,
        model_bytes=3,
        architecture="ps",
        servers=1,
        server=((0, 1000),),
        worker_bps=worker_bps * mega,
        server_bps=server_bps * mega,
    )
    assert finish_us(one, setup(), run_at(0, (0,), (3,), servers=(1,))) == 50
    # b = min(h, H / 3 workers); a round is 5 us + 2 * 24 bits / b
    apart = run_at(0, (0, 1), (2, 1), servers=(0, 1))
    assert finish_us(one, setup(), apart) == 10 * (5 + 2 * 24 // slowest)


@pytest.mark.parametrize(
    ("transport", "weight"), [("store-and-forward", 2.0), ("cut-through", 1.0), ("chunks:4", 1.25)]
)
def test_flows_take_the_slowest_route_there_and_back(transport: str, weight: float) -> None:
    where = setup(
        [node("a"), node("m"), node("c")],
        links=(link(0, 1, latency_us=3), link(1, 2, latency_us=4)),
        transport=transport,
    )
    one = rounds_job(
        "flows",
        3,
        workers=2,
        model_bytes=100,
        architecture="ps",
        servers=1,
        server=((0, 1000),),
        work={"pinned": ((0, 1), (1, 1))},
    )
    far = Route(0, 2, 4_000_000, (0, 1), "push-pull")
    near = Route(1, 2, 4_000_000, (1,), "push-pull")
    step = run_at(0, (0, 1, 2), (1, 1, 0), servers=(0, 0, 1), routes=(far, near))
    # 2 * (w * 800 bit / 4 Mbit/s + latency): the route over two hops is the slower one
    assert finish_us(one, where, step) == 3 * (5 + 2 * (int(weight * 200) + 7))


def test_a_ring_follows_gadget_equation_1() -> None:
    one = rounds_job("ring", 4, workers=3, model_bytes=300, ring_bps=8_000_000, reduce_bps=16_000_000)
    where = setup([node("a"), node("b")], links=(link(0, 1, 9_000_000),))
    hops = (Route(0, 1, 8_000_000, (0,)), Route(1, 0, 8_000_000, (0,)))
    # (n-1)/n * 2400 bit = 1600: 2 * 1600 / 8 per us + 1600 / 16 per us
    assert finish_us(one, where, run_at(0, (0, 1), (2, 1), routes=hops)) == 4 * (5 + 400 + 100)
    assert finish_us(one, where, run_at(0, (0,), (3,))) == 4 * (5 + 100)
    assert finish_us(one, where, run_at(0, (0,), (1,))) == 4 * 5


def test_n_workers_do_n_worker_slots_per_slot() -> None:
    one = job(0, work=Rounds(count=6, unit="worker-slot"), workers_max=4)
    assert finish_us(one, setup(), run_at(0, (0,), (4,))) == SLOT * 6 // 4
    assert finish_us(one, setup(), run_at(0, (0, 1), (2, 1), until=2 * SLOT)) == SLOT * 2


def test_whole_slots_round_the_runtime_up_from_the_start() -> None:
    one = job(0, arrive_us=30, work=Rounds(count=3, compute_us=50, whole_slots=True))
    assert finish_us(one, setup(), run_at(30)) == 30 + 2 * SLOT


def test_waiting_for_a_whole_slot_does_no_more_than_all_the_work() -> None:
    where = setup(horizon_us=250)
    stage = Stage(scenario([job(0, work=Rounds(count=3, compute_us=70, whole_slots=True))], where=where))
    stage.wait()
    stage.act(plan(0, run_at(0)))
    assert stage.wait() == [("ended", 0, 3_000_000)]


def test_a_parameter_server_alone_trains_nothing() -> None:
    one = rounds_job(
        "colocated",
        model_bytes=3,
        architecture="ps",
        servers=1,
        server=((0, 1000),),
        worker_bps=9,
        server_bps=9,
    )
    stage = Stage(scenario([one]))
    stage.wait()
    stage.act(plan(0, run_at(0, (0, 1), (0, 0), servers=(1, 0))))
    assert stage.wait() == [("ended", 0, 0)]


def test_rounds_are_rounded_down_when_a_plan_is_replaced_and_up_when_they_finish() -> None:
    stage = Stage(scenario([job(0, work=Rounds(count=2, compute_us=3)), job(1, arrive_us=1)]))
    stage.wait()
    stage.act(plan(0, run_at(0)))
    stage.wait()
    stage.act(plan(0, run_at(1)))  # 333,333 millionths are done; 1,666,667 are left: 5.000001 us
    assert stage.wait() == [("finished", 0, 0)]
    assert stage.now == 1 + 6


big = st.integers(1, 10**12)


@given(
    st.sampled_from(("colocated", "flows", "ring")),
    big,
    big,
    st.integers(1, 9),
    st.integers(1, 5),
    st.integers(0, 99),
)
@settings(max_examples=200, deadline=None)
def test_world_and_audit_agree_on_every_communication_time_to_the_microsecond(
    comm: str, size: int, bps: int, workers: int, hops: int, latency: int
) -> None:
    nodes = [node(f"n{i}", None) for i in range(hops + 1)]
    where = setup(
        nodes,
        links=tuple(link(i, i + 1, 10**13, latency_us=latency) for i in range(hops)),
        transport="chunks:3",
    )
    one = rounds_job(
        comm, workers=workers + 1, model_bytes=size, worker_bps=bps, server_bps=bps, ring_bps=bps, reduce_bps=bps + 1,
        work={"pinned": ((0, workers),)},
    )  # fmt: skip
    step = Step(0, OPEN, (0, hops), (workers, 1), routes=(Route(0, hops, bps, tuple(range(hops))),))
    assert comm_us(where, one, step) == comm_time_us(where, one, step)
    numerator, denominator = rate(where, one, step)
    assert Fraction(numerator, denominator) == speed(where, one, step)
    if comm == "flows":
        exact = 2 * (Fraction(hops + 2, 3) * 8 * size * 10**6 / bps + hops * latency)
        assert abs(comm_us(where, one, step) - exact) <= 1
    if comm == "colocated":
        slowest = min(Fraction(bps), Fraction(bps, workers + 1))
        assert comm_us(where, one, step) == ceil(2 * 8 * size * 10**6 / slowest)
