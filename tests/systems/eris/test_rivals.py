"""Eris's rivals over edge sites: order of service, number of workers, sites and prices."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.builders import node, rows, setup
from tradewind.model.errors import InputError
from tradewind.model.job import Dataset, Job
from tradewind.model.result import Run
from tradewind.model.scenario import Scenario
from tradewind.model.utility import Utility
from tradewind.model.view import Change
from tradewind.registry import policies
from tradewind.systems.eris.study.lies import tiny
from tradewind.systems.eris.study.runs import ELASTIC, FIXED, paid_usd
from tradewind.worlds.simulate import simulate

SLOT = 1000
WORTH = Utility(of="delay_slots", shape="sigmoid", args=(2000.0, -0.2, 0.0))
RIVALS = (*FIXED, *ELASTIC)


def bid(index: int, chunks: dict[int, int], at: int = 0, **more: Any) -> Job:
    """A job of one GPU per worker that trains one chunk a slot; a server takes none."""
    job = Job(
        index=index,
        id=f"j{index}",
        arrive_us=at * SLOT,
        work=Dataset(
            chunks=tuple(chunks.items()), chunk_bytes=10, epochs=1, chunk_epochs_per_worker_slot_milli=1000
        ),
        worker=((0, 1000),),
        servers=1,
        architecture="ps",
        workers_max=1000,
        utility=WORTH,
        traffic_bytes_per_worker_slot=100,
    )
    return replace(job, **more)


def market(
    jobs: list[Job], gpus: tuple[int, ...] = (4, 4), transfer: int = 10_000, slots: int = 12
) -> Scenario:
    where = setup(
        [node(f"s{i}", n) for i, n in enumerate(gpus)], slot_us=SLOT, horizon_us=slots * SLOT, objective="welfare_usd",
    )  # fmt: skip
    return Scenario(name="edge", setup=replace(where, transfer_bytes_per_slot=transfer), jobs=tuple(jobs))


def finish_slots(run: Run) -> list[int]:
    """Slot at whose end each job is done; -1: never."""
    return [int(at) // SLOT if at >= 0 else -1 for (at,) in rows(run, "outcomes", "finish_us")]


def owner(run: Run) -> dict[int, tuple[int, int]]:
    """Step -> (job, slot)."""
    jobs = [job for (job,) in rows(run, "plans", "job")]
    steps = rows(run, "steps", "plan", "from_us")
    return {i: (jobs[plan], begin // SLOT) for i, (plan, begin) in enumerate(steps)}


def workers(run: Run) -> list[tuple[int, int, int]]:
    """(job, slot, workers) of every step."""
    found: dict[tuple[int, int], int] = {}
    who = owner(run)
    for step, count in rows(run, "places", "step", "workers"):
        found[who[step]] = found.get(who[step], 0) + count
    return [(job, slot, n) for (job, slot), n in sorted(found.items())]


def test_tiresias_serves_the_job_with_the_least_left_first() -> None:
    given = market([bid(0, {0: 8, 1: 8}), bid(1, {0: 2})], gpus=(2, 2))
    run = simulate(given, policies.find("tiresias"), {"workers": 4})
    assert finish_slots(run) == [5, 1]


def test_tiresias_preempts_when_a_shorter_job_comes() -> None:
    given = market([bid(0, {0: 16}), bid(1, {0: 4}, at=1)], gpus=(4,))
    run = simulate(given, policies.find("tiresias"), {"workers": 4})
    assert finish_slots(run) == [5, 2]
    assert (0, 1) not in {(job, slot) for job, slot, _ in workers(run)}


def test_a_fixed_job_gets_all_its_workers_or_none_and_an_elastic_one_what_there_is() -> None:
    # the first takes five of eight GPUs; of the second's five only three are left
    given = market([bid(0, {0: 10, 1: 10}), bid(1, {0: 15, 1: 15})])
    fixed = simulate(given, policies.find("tiresias"), {"workers": 5})
    assert {n for _, _, n in workers(fixed)} == {5}
    assert {job for job, slot, _ in workers(fixed) if slot == 0} == {0}
    elastic = workers(simulate(given, policies.find("tiresias-elastic")))
    assert max(n for _, _, n in elastic) == 8


def test_no_job_waits_for_more_workers_than_the_network_holds() -> None:
    run = simulate(market([bid(0, {0: 16})], gpus=(4, 4)), policies.find("tiresias"), {"workers": 32})
    assert workers(run) == [(0, 0, 8), (0, 1, 8)]


def test_antman_guarantees_every_second_job_and_gives_the_others_what_is_left() -> None:
    # j0 and j2 are guaranteed six workers, j1 takes the other two at once
    given = market([bid(0, {0: 12, 1: 12}), bid(1, {0: 4}), bid(2, {1: 6})], gpus=(4, 4))
    run = simulate(given, policies.find("antman"), {"workers": 6, "patience": 20})
    by_slot = workers(run)
    assert [n for job, _, n in by_slot if job == 0] == [6, 6, 6, 6]
    assert next(n for job, _, n in by_slot if job == 1) == 2
    assert finish_slots(run)[2] == 5  # waits for all its six


def test_a_guaranteed_job_that_waits_too_long_takes_what_there_is() -> None:
    given = market([bid(0, {0: 12, 1: 12}), bid(1, {0: 4}), bid(2, {1: 6})], gpus=(4, 4))
    run = simulate(given, policies.find("antman"), {"workers": 6, "patience": 0})
    assert [row for row in workers(run) if row[0] == 2] == [(2, 2, 2), (2, 3, 2), (2, 4, 2)]


def test_liquid_keeps_its_sites_and_serves_in_order_of_arrival() -> None:
    given = market([bid(0, {0: 16}), bid(1, {0: 2}, at=1)], gpus=(4,))
    run = simulate(given, policies.find("liquid"), {"workers": 4})
    assert finish_slots(run) == [4, 5]


@pytest.mark.parametrize(
    ("weight", "places"),
    [
        (
            0.0,
            {(0, 0, 1), (1, 2, 0)},
        ),  # price alone: workers leave the busy site, their server costs nothing anywhere
        (0.5, {(1, 2, 1)}),  # both: all go to the idle site
        (1.0, {(0, 2, 1)}),  # network alone: the busy site is as good
    ],
)
def test_liquid_weighs_the_network_against_the_price(
    weight: float, places: set[tuple[int, int, int]]
) -> None:
    given = market([bid(0, {0: 2}), bid(1, {0: 2, 1: 2})])
    run = simulate(given, policies.find("liquid"), {"workers": 2, "weight": weight})
    who = owner(run)
    found = rows(run, "places", "step", "node", "workers", "servers")
    assert {(n, w, s) for step, n, w, s in found if who[step] == (1, 0)} == places


@pytest.mark.parametrize("name", RIVALS)
def test_every_chunk_is_trained_once_wherever_it_is_stored(name: str) -> None:
    given = market([bid(i, {i % 3: 5, (i + 1) % 3: 4}, at=i) for i in range(4)], gpus=(3, 2, 4), slots=30)
    run = simulate(given, policies.find(name), {"workers": 3} if name in FIXED else {})
    assert run.metrics["jobs_completed"] == 4
    assert sum(size for (size,) in rows(run, "flows", "bytes")) == 4 * 9 * 10


@pytest.mark.parametrize("name", RIVALS)
@pytest.mark.parametrize("rate", [0.5, 1.9])
def test_workers_that_train_less_or_more_than_whole_chunks_still_finish(name: str, rate: float) -> None:
    for seed in range(3):
        run = simulate(tiny(seed, chunks_per_worker=rate, gpu=4.0, jobs=3, slots=80), policies.find(name))
        assert run.metrics["jobs_completed"] >= 1


@pytest.mark.parametrize("name", RIVALS)
def test_steps_carry_their_cost_and_an_idle_network_is_free(name: str) -> None:
    alone = simulate(market([bid(0, {0: 4})]), policies.find(name))
    assert paid_usd(alone) < 0.01
    assert alone.metrics["payments_usd"] == 0.0
    bids = simulate(market([bid(i, {0: 2}) for i in range(4)], gpus=(4,)), policies.find(name))
    assert paid_usd(bids) > 1.0


@pytest.mark.parametrize("name", RIVALS)
def test_a_job_runs_only_while_completing_pays(name: str) -> None:
    poor = Utility(of="delay_slots", shape="sigmoid", args=(0.02, -0.2, 0.0))
    given = market([bid(0, {0: 3}), bid(1, {0: 3}, utility=poor)], gpus=(4,), slots=3)
    more = {"workers": 3} if name in FIXED else {}
    run = simulate(given, policies.find(name), more)
    assert finish_slots(run)[0] == 1
    assert all(slot > 0 for job, slot, _ in workers(run) if job == 1)  # at the full site's price it waits


@pytest.mark.parametrize("name", RIVALS)
def test_a_failed_site_costs_its_slot_and_the_job_goes_on(name: str) -> None:
    down = (Change(1500, "node_down", 0, 0, 0), Change(4000, "node_up", 0, 0, 0))
    given = replace(market([bid(0, {0: 12}), bid(1, {1: 12})], gpus=(4, 4)), changes=down)
    run = simulate(given, policies.find(name), {"workers": 4} if name in FIXED else {})
    assert run.metrics["jobs_completed"] == 2


@pytest.mark.parametrize(
    ("name", "params", "where"),
    [
        ("tiresias", {"workers": 0}, "tiresias.workers"),
        ("antman", {"patience": -1}, "antman.patience"),
        ("liquid-elastic", {"weight": 1.5}, "liquid-elastic.weight"),
        ("antman-elastic", {"gamma": 0.5}, "antman-elastic.gamma"),
        ("tiresias", {"gamma": 1e30}, "1 to 1000000000000"),
        ("eris", {"gamma": 1e30}, "1 to 1000000000000"),
    ],
)
def test_a_parameter_out_of_range_is_refused(name: str, params: dict[str, Any], where: str) -> None:
    with pytest.raises(InputError, match=where):
        simulate(market([bid(0, {0: 1})]), policies.find(name), params)


@pytest.mark.parametrize("name", RIVALS)
def test_a_job_that_may_use_some_sites_only_runs_there(name: str) -> None:
    given = market([bid(0, {0: 4, 1: 4}, nodes=frozenset((1,)))])
    run = simulate(given, policies.find(name), {"workers": 4} if name in FIXED else {})
    assert finish_slots(run) == [2]
    assert set(run.tables["places"]["node"]) == {1}
