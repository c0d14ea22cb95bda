"""The compiled path gives the run of the loop, cell by cell, and refuses what it does not carry."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tradewind as tw
from tradewind.engine.isolation.policy import isolated
from tradewind.files.run_file import header_of
from tradewind.model.columns import Numbered, Words
from tradewind.model.errors import ScenarioError, Unsupported
from tradewind.model.job import Customer, Fixed, Job
from tradewind.model.job_columns import JobColumns
from tradewind.model.network import Link
from tradewind.model.node import Node
from tradewind.model.result import Run
from tradewind.model.scenario import Scenario
from tradewind.model.setup import Setup
from tradewind.model.view import Change
from tradewind.registry import policies
from tradewind.systems.cluster.kernels.room import choose_host, empty_room, set_free
from tradewind.systems.cluster.shared.shape import Place
from tradewind.systems.cluster.shared.units import Units
from tradewind.worlds.simulate import simulate

POLICIES = ("fifo", "fifo-backfill", "srtf", "srsf", "las")
SECOND = 1_000_000


def plain(
    jobs: list[tuple[int, int, int]], capacity: list[int], horizon_s: int = 10**6, *, public: bool = True
) -> Scenario:
    """Jobs (arrival s, runtime s, workers) on servers with so many GPUs."""
    rows = np.array(sorted(jobs, key=lambda job: job[0]), np.int64)
    nodes = tuple(
        Node(name=f"s{i}", kind="server", capacity_milli=(1000 * units,)) for i, units in enumerate(capacity)
    )
    setup = Setup(
        resources=("gpu",), nodes=nodes, slot_us=60 * SECOND, horizon_us=horizon_s * SECOND, objective="jct_mean_s"
    )  # fmt: skip
    return Scenario(
        name="plain",
        setup=setup,
        jobs=JobColumns(
            ids=Numbered(np.arange(len(rows)), "j"),
            arrive_us=rows[:, 0] * SECOND,
            runtime_us=rows[:, 1] * SECOND,
            workers=rows[:, 2],
            tenants=Words.all_equal("", len(rows)),
            demand=((0, 1000),),
            public=public,
        ),
    )


JOBS = st.lists(st.tuples(st.integers(0, 12), st.integers(1, 9), st.integers(1, 9)), min_size=1, max_size=40)


def assert_same(a: Run, b: Run) -> None:
    """Every cell of the run file is equal."""
    assert header_of(a) == header_of(b)
    assert list(a.tables) == list(b.tables)
    for name, table in b.tables.items():
        assert {c: list(v) for c, v in a.tables[name].items()} == {c: list(v) for c, v in table.items()}, name


@settings(max_examples=60, deadline=None)
@given(
    jobs=JOBS,
    capacity=st.lists(st.integers(0, 4), min_size=1, max_size=5).filter(any),
    horizon_s=st.sampled_from((14, 30, 10**6)),
)
@pytest.mark.parametrize("policy", POLICIES)
def test_random_traces_with_ties_give_the_same_run(
    policy: str, jobs: list[tuple[int, int, int]], capacity: list[int], horizon_s: int
) -> None:
    scenario = plain(jobs, capacity, horizon_s, public=policy in ("srtf", "srsf"))
    spec, params = policies.get(policy), {"limits": "3,8", "tick_s": 2.0} if policy == "las" else {}
    fast = simulate(scenario, spec, params, fast=True)
    assert_same(fast, simulate(scenario, spec, params, fast=False))
    assert tw.check(scenario, fast) == ()


@pytest.mark.parametrize("policy", ["srtf", "srsf"])
def test_estimates_of_right_declarations_change_nothing(policy: str) -> None:
    scenario, spec = tw.generate("cluster", jobs=300, servers=3, load=1.4, seed=3), policies.get(policy)
    params = {"estimates": "measured"}
    assert_same(simulate(scenario, spec, params, fast=True), simulate(scenario, spec, params, fast=False))


@pytest.mark.parametrize("policy", POLICIES)
def test_generated_clusters_give_the_same_run_file(policy: str, tmp_path: Any) -> None:
    scenario = tw.generate("cluster", jobs=4000, servers=7, load=1.4, seed=5)
    fast, loop = tw.run(scenario, policy, fast=True), tw.run(scenario, policy, fast=False)
    assert_same(fast, loop)
    for name, run in (("a", fast), ("b", loop)):
        (tmp_path / name).mkdir()
        tw.save(replace(run, timings=None), tmp_path / name / "run.json")
    files = [sorted(p for p in (tmp_path / name).rglob("*") if p.is_file()) for name in "ab"]
    assert [p.name for p in files[0]] == [p.name for p in files[1]]
    assert [p.read_bytes() for p in files[0]] == [p.read_bytes() for p in files[1]]
    assert_same(tw.load_run(tmp_path / "a" / "run.json"), replace(loop, timings=None))


@pytest.mark.parametrize(("load", "limits"), [(1.0, "500,3250,20000"), (3.0, "100,1000,10000,100000")])
def test_jobs_that_sink_stop_and_wait_in_many_queues_give_the_same_run(load: float, limits: str) -> None:
    scenario, spec = tw.generate("cluster", jobs=700, servers=2, load=load, seed=4), policies.get("las")
    params = {"limits": limits, "tick_s": 30.0}
    fast = simulate(scenario, spec, params, fast=True)
    assert_same(fast, simulate(scenario, spec, params, fast=False))
    stops = len(fast.tables["plans"]["at_us"]) - len(fast.tables["steps"]["plan"])
    assert stops > len(scenario.jobs) / 10


@pytest.mark.parametrize("public", [True, False])
def test_columns_read_like_the_jobs_and_customers_made_one_by_one(public: bool) -> None:
    scenario = plain([(0, 5, 1), (3, 7, 2), (3, 5, 4)], [4], public=public)
    rows = zip((0, 3, 3), (5, 7, 5), (1, 2, 4), strict=True)
    jobs, customers = [], []
    for index, (arrive, runtime, workers) in enumerate(rows):
        known, hidden = (runtime * SECOND, None) if public else (None, runtime * SECOND)
        jobs.append(
            Job(
                index=index, id=f"j{index}", arrive_us=arrive * SECOND, work=Fixed(runtime_us=known),
                worker=((0, 1000),), workers_min=workers, workers_max=workers,
            )
        )  # fmt: skip
        customers.append(Customer(runtime_us=hidden))
    for _ in range(2):  # before and after all are made
        assert scenario.jobs[1] == jobs[1]
        assert scenario.jobs[1:] == tuple(jobs[1:])
        assert scenario.customers[1] == customers[1]
        assert scenario.customers[0:2] == tuple(customers[0:2])
        assert tuple(scenario.jobs) == tuple(jobs)
        assert tuple(scenario.customers) == tuple(customers)


def test_columns_with_a_job_that_cannot_be_name_it() -> None:
    with pytest.raises(ScenarioError, match=r"jobs\[j1\]: workers_min is 0"):
        tuple(plain([(0, 5, 1), (3, 7, 0)], [4]).jobs)


@settings(max_examples=30, deadline=None)
@given(capacity=st.lists(st.integers(0, 5), min_size=1, max_size=200), seed=st.integers(0, 99))
def test_the_kernel_takes_the_same_hosts_as_the_policy(capacity: list[int], seed: int) -> None:
    rng, room = np.random.default_rng(seed), empty_room(np.array(capacity, np.int64))
    units, held = Units(tuple(range(len(capacity))), capacity), list[Place]()
    for _ in range(60):
        if held and rng.random() < 0.4:
            place = held.pop(rng.integers(len(held)))
            units.give(place)
            for host, part in zip(place.nodes, place.workers, strict=True):
                set_free(room, host, room.free[host] + part)
            continue
        need = left = int(rng.integers(1, 9))
        expected = units.take(need)
        if expected is None:
            continue
        found = []
        while left:
            host = choose_host(room, left)
            part = min(left, int(room.free[host]))
            set_free(room, host, room.free[host] - part)
            found.append((host, part))
            left -= part
        assert found == list(zip(expected.nodes, expected.workers, strict=True))
        held.append(expected)


def test_large_scenarios_take_the_compiled_path_by_themselves(monkeypatch: pytest.MonkeyPatch) -> None:
    scenario = plain([(i, 3, 1 + i % 3) for i in range(50)], [4, 4])
    monkeypatch.setattr("tradewind.worlds.simulate.LARGE", 50)
    assert not isinstance(tw.run(scenario, "fifo").tables["events"]["job"], list)
    assert isinstance(tw.run(scenario, "fifo", fast=False).tables["events"]["job"], list)
    assert isinstance(tw.run(scenario, "drf").tables["events"]["job"], list)


def _refused(scenario: Scenario, policy: Any = "fifo") -> str:
    with pytest.raises(Unsupported) as error:
        tw.run(scenario, policy, fast=True)
    return str(error.value)


def test_what_is_not_carried_is_refused_with_the_reason() -> None:
    scenario = plain([(0, 5, 1), (1, 5, 2)], [4, 4])
    jobs, setup = tuple(scenario.jobs), scenario.setup
    assert "drf has no compiled path" in _refused(scenario, "drf")
    down = Change(SECOND, "node_down", 0, 0, 0)
    assert "changes, such as failures" in _refused(replace(scenario, changes=(down,)))
    link = Link(a=0, b=1, ab_bps=10, ba_bps=10)
    assert "has links" in _refused(replace(scenario, setup=replace(setup, links=(link,))))
    odd: dict[str, Any] = {"restart_us": 5, "hold": "through", "nodes": frozenset((0,)), "workers_min": 1}
    for field, value in odd.items():
        one: dict[str, Any] = {field: value}
        changed = (jobs[0], replace(jobs[1], **one))
        assert f"job j1 has {field}" in _refused(replace(scenario, jobs=changed, customers=()))
    wide = replace(setup, nodes=(replace(setup.nodes[0], capacity_milli=(10**9,)), setup.nodes[1]))
    assert "holds 1000000 workers" in _refused(replace(scenario, setup=wide))
    rack = Node(name="rack", kind="rack", capacity_milli=(5000,))
    below = tuple(replace(node, parent=2) for node in setup.nodes)
    assert "limits of their own" in _refused(replace(scenario, setup=replace(setup, nodes=(*below, rack))))
    assert "no compiled path" in _refused(scenario, isolated("fifo"))
    mine = replace(policies.get("fifo"), factory=policies.get("las").factory)
    assert "not the registered policy" in _refused(scenario, mine)
