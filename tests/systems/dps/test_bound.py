"""The bound follows from the data, lies above the exact optimum and above every run, and needs no origin."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from math import fsum

import pytest

import tradewind as tw
from tests.builders import Stage
from tests.systems.dps.clairvoyant import clairvoyant_bound
from tradewind.engine import bounds
from tradewind.model.decision import Offer, Plan, Quote, Step
from tradewind.model.job import Customer, Rounds
from tradewind.model.scenario import Scenario
from tradewind.model.units import OPEN
from tradewind.model.utility import Utility
from tradewind.model.view import Change
from tradewind.systems.dps.bound import MarketArrays, arrays_of, bound
from tradewind.systems.dps.study.exact import optimum
from tradewind.systems.dps.study.runs import non_peeking
from tradewind.systems.dps.workload.draw import KINDS, MarketSize, draw_market
from tradewind.systems.dps.workload.generator import scenario_of


def tiny(seed: int, jobs: int, market: str = "saturated", servers: int = 2) -> Scenario:
    size = MarketSize(
        slots=8, jobs=jobs, servers=servers, worker_types=2, server_types=1, workers_per_server=40
    )
    return scenario_of(draw_market(KINDS[market], seed, size), f"tiny-{seed}", {})


def value(scenario: Scenario) -> float:
    found = bound(scenario)
    assert found is not None
    assert found.kind == "certified"
    return found.value


def by_trial(it: MarketArrays) -> float:
    """Best subset of jobs that start on arrival: every subset with every way to split each job over two hosts."""
    stream = it.stream

    def ways(j: int) -> list[tuple[int, int, int]]:
        """(workers, servers on host 0, runtime), the rest is on host 1."""
        d_k, d_m = int(stream.d_k[j]), int(stream.d_m[j])
        whole = {(d_k, d_m), (0, 0)}
        return [
            (a, b, int(stream.together[j] if (a, b) in whole else stream.spread[j]))
            for a, b in product(range(d_k + 1), range(d_m + 1))
        ]

    def best(j: int, running: list[tuple[int, int, int, int, int]]) -> float:
        if j == len(it.budget):
            return 0.0
        k, m, now = int(stream.k[j]), int(stream.m[j]), int(stream.arrive[j])
        running = [r for r in running if r[0] >= now]
        most = best(j + 1, running)
        room = [int(x) for x in (*it.cluster.idle_k[k], *it.cluster.idle_m[m])]
        for _, k2, m2, host, n in running:
            if k2 == k:
                room[host] -= n
            if m2 == m:
                room[2 + host] -= n
        for a, b, tau in ways(j):
            rest = (int(stream.d_k[j]) - a, int(stream.d_m[j]) - b)
            if a <= room[0] and rest[0] <= room[1] and b <= room[2] and rest[1] <= room[3]:
                end = now + tau
                more = [
                    (end, k, -1, 0, a),
                    (end, k, -1, 1, rest[0]),
                    (end, -1, m, 0, b),
                    (end, -1, m, 1, rest[1]),
                ]
                most = max(most, float(it.budget[j]) + best(j + 1, running + more))
        return most

    return best(0, [])


@pytest.mark.parametrize("seed", range(6))
def test_the_program_for_tiny_markets_finds_what_trying_everything_finds(seed: int) -> None:
    size = MarketSize(
        slots=8, jobs=5, servers=2, worker_types=1, server_types=1, workers_per_server=6, servers_per_server=4
    )
    kind = replace(KINDS["saturated"], workers_median=3.0)
    it = arrays_of(scenario_of(draw_market(kind, seed, size), "trial", {}))
    assert optimum(it, size.slots) == pytest.approx(by_trial(it), rel=1e-9)


@pytest.mark.parametrize("seed", range(8))
def test_the_bound_is_above_the_exact_optimum_of_tiny_markets(seed: int) -> None:
    made = tiny(seed, jobs=6)
    it, slots = arrays_of(made), made.setup.slots
    at_once, delayed = optimum(it, slots), optimum(it, slots, delay=slots)
    assert at_once <= delayed * (1 + 1e-9)
    assert delayed <= value(made) * (1 + 1e-9)


@pytest.mark.parametrize("market", KINDS)
def test_the_bound_is_above_the_one_that_knows_the_distribution_and_above_every_seller(market: str) -> None:
    size = MarketSize(slots=400, jobs=400, servers=5, worker_types=3, server_types=2)
    draw = draw_market(KINDS[market], 3, size)
    made = scenario_of(draw, "market", {})
    it = arrays_of(made)
    assert value(made) >= non_peeking(draw)
    assert value(made) <= fsum(it.budget.tolist()) * (1 + 1e-12)
    assert value(made) >= clairvoyant_bound(it.stream, it.cluster, size.slots, it.budget) * 0.9
    for policy in ("dps", "dps-paper", "bfp"):
        run = tw.run(made, policy=policy, bound=True)
        assert run.bound is not None
        assert run.bound.ratio <= 1.0


def test_where_everything_fits_the_bound_is_the_sum_of_the_budgets_to_the_last_digit() -> None:
    made = tiny(1, jobs=3, market="light", servers=30)
    assert value(made) == fsum(c.budget_usd or 0.0 for c in made.customers)


def test_jobs_that_arrive_within_a_slot_or_meet_failures_keep_a_valid_bound() -> None:
    made = tiny(2, jobs=10)
    slot = made.setup.slot_us
    late = replace(made, jobs=tuple(replace(job, arrive_us=job.arrive_us + slot // 3) for job in made.jobs))
    down = replace(
        made, changes=(Change(3 * slot, "node_down", 0, 0, 0), Change(4 * slot, "node_up", 0, 0, 0))
    )
    for each in (late, down):
        for policy in ("dps", "bfp"):
            run = tw.run(each, policy=policy, bound=True)
            assert run.bound is not None
            assert run.bound.ratio <= 1.0
    assert value(down) >= value(made) * (1 - 1e-12), (
        "runtimes are not rounded up where a failure may cut them"
    )


def test_demands_of_any_size_and_other_kinds_of_rounds_have_a_bound() -> None:
    made = tiny(3, jobs=6)
    first = made.jobs[0]
    half = replace(first, worker=((first.worker[0][0], 500),), work=Rounds(count=3, compute_us=10**9))
    assert bounds.bound(replace(made, jobs=(half, *made.jobs[1:]))) is not None


def test_there_is_no_bound_without_budgets_with_bids_or_with_growing_capacity() -> None:
    made = tiny(4, jobs=3)
    first = made.setup.nodes[0].capacity_milli[0]
    grown = replace(made, changes=(Change(made.setup.slot_us, "capacity", 0, 0, first * 2),))
    free = replace(made, customers=(Customer(), *made.customers[1:]))
    bid = Utility(of="payment", shape="linear", args=(0.0, 1.0))
    with_bid = replace(made, jobs=(replace(made.jobs[0], utility=bid), *made.jobs[1:]))
    assert [bound(each) for each in (grown, free, with_bid, replace(made, jobs=(), customers=()))] == [
        None
    ] * 4


@pytest.mark.parametrize("until_us", ["horizon", OPEN])
def test_a_late_start_must_finish_within_the_run_so_nobody_sells_its_last_slots_twice(
    until_us: int | str,
) -> None:
    """The reason why a job holds its items for its whole runtime unless it began on arrival."""
    made = tiny(1, jobs=4)
    end, slot, job = made.setup.horizon_us, made.setup.slot_us, made.jobs[0]
    assert arrays_of(made).stream.together[0] > 1
    stage = Stage(made)
    stage.until(job.arrive_us)
    until = end if until_us == "horizon" else OPEN
    step = Step(end - slot, until, (0, 1), (job.workers_max, 0), (0, job.servers))
    found = stage.audit.check_quote(job.arrive_us, Quote(0, (Offer(0.0, end + slot, Plan(0, (step,)), ()),)))
    assert [each.rule for each in found] == ["market.promise" if until == end else "time.grid"]
