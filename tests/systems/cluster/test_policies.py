"""The schedulers: they agree with the reference, pass the audit, and do what their names say."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

import numpy as np
import pytest

from tests.systems.cluster.reference import RefJob
from tests.systems.cluster.reference import simulate as reference
from tradewind.model.decision import Decision
from tradewind.model.errors import InputError, LookupFailed, Unsupported
from tradewind.model.job import Customer, Demand, Fixed, Job, Rounds
from tradewind.model.node import Node
from tradewind.model.result import Run
from tradewind.model.scenario import Scenario
from tradewind.model.setup import Setup
from tradewind.model.spec import Spec
from tradewind.model.units import UNLIMITED, US_PER_S
from tradewind.model.view import Change, Policy, View
from tradewind.registry import policies
from tradewind.worlds.simulate import simulate

ALL = ("drf", "fifo", "fifo-backfill", "las", "srsf", "srtf")
GPU: Demand = ((0, 1000),)
HOUR = 3600 * US_PER_S


def fixed(index: int, arrive_s: float, duration_s: float, gpus: int, **more: Any) -> Job:
    """A job of `gpus` workers with one GPU each."""
    return Job(
        index=index,
        id=f"j{index}",
        arrive_us=round(arrive_s * US_PER_S),
        work=Fixed(runtime_us=round(duration_s * US_PER_S)),
        worker=more.pop("worker", GPU),
        workers_min=gpus,
        workers_max=gpus,
        **more,
    )


def cluster(servers: int, gpus: int, **more: Any) -> Setup:
    """Servers s0, s1, … with so many GPUs each."""
    nodes = tuple(Node(name=f"s{i}", kind="server", capacity_milli=(gpus * 1000,)) for i in range(servers))
    values: dict[str, Any] = {"resources": ("gpu",), "nodes": nodes, "slot_us": HOUR, "horizon_us": 10**15}
    return Setup(**{**values, "objective": "jct_mean_s", **more})


def scenario(setup: Setup, jobs: Sequence[Job], **more: Any) -> Scenario:
    return Scenario(name="test", setup=setup, jobs=tuple(jobs), **more)


def finish_s(run: Run) -> dict[int, float]:
    """Job -> second of completion."""
    outcomes = run.tables["outcomes"]
    columns = zip(outcomes["job"], outcomes["state"], outcomes["finish_us"], strict=True)
    return {cast(int, job): cast(int, at) / US_PER_S for job, state, at in columns if state == "finished"}


def rows(run: Run, table: str, *columns: str) -> list[tuple[Any, ...]]:
    return list(zip(*(run.tables[table][column] for column in columns), strict=True))


def places(run: Run) -> list[tuple[int, int, tuple[tuple[int, int], ...]]]:
    """(time, job, its (node, workers) pairs; empty: stopped) of every plan, in order."""
    where: dict[int, list[tuple[int, int]]] = {}
    step_of = {step: plan for step, (plan,) in enumerate(rows(run, "steps", "plan"))}
    for step, node, workers in rows(run, "places", "step", "node", "workers"):
        where.setdefault(step_of[step], []).append((node, workers))
    plans = rows(run, "plans", "at_us", "job")
    return [(at, job, tuple(where.get(row, ()))) for row, (at, job) in enumerate(plans)]


def draw(seed: int) -> tuple[int, int, list[RefJob]]:
    """Servers, GPUs per server, and a crowded random trace in whole seconds with many ties."""
    rng = np.random.default_rng(seed)
    count, servers, gpus = int(rng.integers(40, 160)), int(rng.integers(1, 6)), int(rng.choice([1, 2, 4, 8]))
    arrive = np.sort(rng.integers(0, rng.choice([1, 100, 5000, 40000]), count))
    few = rng.choice([100, 200, 1000, 4000], count)
    duration = few if seed % 3 == 0 else rng.integers(1, rng.choice([6, 200, 9000]), count)
    size = rng.choice([1, 1, 1, 1, 2, 3, 4, 8, 16], count)
    names = np.array(["", "a", "b", "c"])[rng.integers(0, 4, count) * (seed % 2)]
    columns = zip(arrive.tolist(), duration.tolist(), size.tolist(), names.tolist(), strict=True)
    return servers, gpus, [RefJob(i, *row) for i, row in enumerate(columns)]


def jobs_of(trace: Sequence[RefJob], worker: Demand = GPU) -> list[Job]:
    return [fixed(j.number, j.arrive, j.duration, j.gpus, tenant=j.tenant, worker=worker) for j in trace]


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("name", ALL)
def test_completion_times_equal_the_reference_to_the_second(name: str, seed: int) -> None:
    servers, gpus, trace = draw(seed)
    run = simulate(scenario(cluster(servers, gpus), jobs_of(trace)), policies.find(name))
    expected = reference(trace, servers * gpus, name)
    assert finish_s(run) == expected
    assert len(expected) > 20
    mean = np.mean([at - trace[job].arrive for job, at in expected.items()])
    assert run.metrics["jct_mean_s"] == pytest.approx(mean, abs=0.0005)


def with_vcpus(setup: Setup) -> Setup:
    """A second resource that is never scarce, so that the code for several resources runs."""
    wide = tuple(replace(node, capacity_milli=(*node.capacity_milli, UNLIMITED)) for node in setup.nodes)
    return replace(setup, resources=("gpu", "vcpu"), nodes=wide)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", ALL)
def test_packing_of_several_resources_agrees_with_the_reference_where_one_decides(
    name: str, seed: int
) -> None:
    servers, gpus, trace = draw(100 + seed)
    setup = with_vcpus(cluster(servers, gpus))
    run = simulate(scenario(setup, jobs_of(trace, ((0, 1000), (1, 4000)))), policies.find(name))
    assert finish_s(run) == reference(trace, servers * gpus, name)


def mixed(seed: int, count: int = 60) -> Scenario:
    """Several resources, limited racks, tied and through-holding jobs, parameter servers, failures and shrinking."""
    rng = np.random.default_rng(seed)
    racks = [Node(name=f"r{i}", kind="rack", capacity_milli=(13_000, 60_000)) for i in range(2)]
    servers = [
        Node(name=f"s{i}", kind="server", parent=i % 2, capacity_milli=(8000, 40_000)) for i in range(4)
    ]
    setup = cluster(1, 1, resources=("gpu", "vcpu"), nodes=(*racks, *servers))
    jobs = []
    for i, at in enumerate(np.sort(rng.integers(0, 9000, count)).tolist()):
        more: dict[str, Any] = {"restart_us": int(rng.choice([0, 30])) * US_PER_S}
        kind = rng.integers(0, 5)
        if kind == 0:
            more["nodes"] = frozenset((2, int(rng.integers(3, 6))))
        elif kind == 1:
            more["hold"] = "through"
        elif kind == 2:
            more.update(architecture="ps", servers=2, server=((1, 3000),))
        worker = ((0, int(rng.choice([250, 1000]))), (1, int(rng.choice([1000, 5000]))))
        tenant = str(rng.choice(["x", "y"]))
        size = int(rng.choice([1, 2, 4, 9]))
        jobs.append(fixed(i, at, int(rng.integers(60, 5000)), size, worker=worker, tenant=tenant, **more))
    changes = (
        Change(3000 * US_PER_S, "node_down", 2, 0, 0),
        Change(5000 * US_PER_S, "capacity", 3, 0, 3000),
        Change(9000 * US_PER_S, "node_down", 1, 0, 0),
        Change(12000 * US_PER_S, "node_up", 2, 0, 0),
        Change(15000 * US_PER_S, "node_up", 1, 0, 0),
        Change(20000 * US_PER_S, "capacity", 3, 0, 8000),
    )
    return scenario(setup, jobs, changes=changes)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", ALL)
def test_everything_finishes_without_violations_through_failures_and_shrinking(name: str, seed: int) -> None:
    made = mixed(seed)
    run = simulate(made, policies.find(name))
    assert run.violations == ()
    refused = run.metrics["jobs_refused"]
    assert len(finish_s(run)) + refused == len(made.jobs)
    assert refused < 20
    assert any(kind == "voided" for (kind,) in rows(run, "events", "kind"))


class Restarting:
    """A policy that is saved, thrown away and restored before every decision."""

    def __init__(self, spec: Spec, setup: Setup, params: Mapping[str, Any]) -> None:
        self._spec, self._setup, self._params = spec, setup, params
        self._state = self._make().save()

    def _make(self) -> Policy:
        return self._spec.factory(self._setup, self._params, np.random.default_rng(0))

    def decide(self, view: View) -> Decision:
        policy = self._make()
        policy.restore(self._state)
        decision = policy.decide(view)
        self._state = policy.save()
        return decision

    def save(self) -> bytes:
        return self._state

    def restore(self, state: bytes) -> None:
        self._state = state


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("kind", ["plain", "mixed"])
def test_a_restored_policy_continues_identically(name: str, kind: str) -> None:
    spec = policies.find(name)
    servers, gpus, trace = draw(4)
    made = mixed(1) if kind == "mixed" else scenario(cluster(servers, gpus), jobs_of(trace))
    again = replace(spec, factory=lambda setup, params, rng: Restarting(spec, setup, params))
    assert simulate(made, again).tables == simulate(made, spec).tables


@pytest.mark.parametrize("name", ALL)
def test_a_running_job_never_moves(name: str) -> None:
    _, _, trace = draw(5)
    run = simulate(scenario(cluster(3, 4), jobs_of(trace)), policies.find(name))
    running: set[int] = set()
    for _, job, where in places(run):
        if where:
            assert job not in running
            running.add(job)
        else:
            assert job in running
            running.discard(job)


@pytest.mark.parametrize("name", ALL)
def test_what_can_never_fit_is_refused_at_arrival_with_the_reason(name: str) -> None:
    made = scenario(cluster(2, 4), [fixed(0, 0, 10, 9), fixed(1, 5, 10, 8)])
    run = simulate(made, policies.find(name))
    assert finish_s(run) == {1: 15.0}
    ((job, reason),) = rows(run, "verdicts", "job", "reason")
    assert job == 0
    assert "9 gpu" in reason
    assert rows(run, "decisions", "at_us")[0] == (0,)


@pytest.mark.parametrize("name", ALL)
def test_a_job_takes_the_tightest_server_that_holds_it(name: str) -> None:
    setup = cluster(3, 8)
    sizes = (5, 2, 3, 1)  # s0: 5, then 2 there, then 3 on s1, then 1 back on s0
    run = simulate(
        scenario(setup, [fixed(i, i, 1000, size) for i, size in enumerate(sizes)]), policies.find(name)
    )
    assert [where for _, _, where in places(run)] == [((0, 5),), ((0, 2),), ((1, 3),), ((0, 1),)]


@pytest.mark.parametrize("name", ALL)
def test_a_job_that_fits_on_no_server_takes_the_emptiest_ones(name: str) -> None:
    jobs = [fixed(0, 0, 1000, 6), fixed(1, 1, 1000, 12), fixed(2, 2, 1000, 6)]
    run = simulate(scenario(cluster(3, 8), jobs), policies.find(name))
    # 12 = a whole empty server and half of the next; 6 = what is left: 4 there and 2 beside the first job
    assert [where for _, _, where in places(run)] == [((0, 6),), ((1, 8), (2, 4)), ((2, 4), (0, 2))]


def test_the_head_of_the_queue_blocks_fifo_and_not_backfill() -> None:
    made = scenario(cluster(1, 4), [fixed(0, 0, 100, 3), fixed(1, 1, 100, 2), fixed(2, 2, 10, 1)])
    assert finish_s(simulate(made, policies.find("fifo"))) == {0: 100.0, 1: 200.0, 2: 110.0}
    assert finish_s(simulate(made, policies.find("fifo-backfill"))) == {0: 100.0, 2: 12.0, 1: 200.0}


def test_srtf_stops_a_long_job_for_a_short_one_and_loses_nothing() -> None:
    made = scenario(cluster(1, 1), [fixed(0, 0, 100, 1), fixed(1, 10, 5, 1)])
    assert finish_s(simulate(made, policies.find("srtf"))) == {1: 15.0, 0: 105.0}


def test_srsf_weighs_remaining_time_with_gpus() -> None:
    made = scenario(cluster(1, 4), [fixed(0, 0, 100, 4), fixed(1, 10, 150, 1)])
    assert finish_s(simulate(made, policies.find("srtf"))) == {0: 100.0, 1: 250.0}
    assert finish_s(simulate(made, policies.find("srsf"))) == {0: 250.0, 1: 160.0}


def test_las_lets_new_jobs_overtake_one_that_attained_its_limit() -> None:
    made = scenario(cluster(1, 1), [fixed(0, 0, 1000, 1), fixed(1, 100, 50, 1)])
    spec = policies.find("las")
    assert finish_s(simulate(made, spec, {"limits": "300"})) == {0: 1050.0, 1: 350.0}
    assert finish_s(simulate(made, spec, {"limits": "60"})) == {0: 1050.0, 1: 150.0}


def test_las_counts_gpus_times_time() -> None:
    made = scenario(cluster(1, 4), [fixed(0, 0, 1000, 4), fixed(1, 10, 50, 4)])
    # 4 GPUs reach 300 GPU-seconds after 75 s
    assert finish_s(simulate(made, policies.find("las"), {"limits": "300"})) == {0: 1050.0, 1: 125.0}


def test_las_with_a_limit_out_of_reach_is_backfill() -> None:
    servers, gpus, trace = draw(7)
    made = scenario(cluster(servers, gpus), jobs_of(trace))
    las = simulate(made, policies.find("las"), {"limits": "1e9"})
    assert finish_s(las) == finish_s(simulate(made, policies.find("fifo-backfill")))


@pytest.mark.parametrize("text", ["", "many", "100,50", "0,10", "-5", "nan", "10,inf"])
def test_limits_that_make_no_sense_are_refused(text: str) -> None:
    with pytest.raises(InputError, match="rising positive GPU-seconds"):
        simulate(scenario(cluster(1, 1), [fixed(0, 0, 1, 1)]), policies.find("las"), {"limits": text})


@pytest.mark.parametrize("tick", [0.0, 1e300])
def test_a_tick_that_no_clock_has_is_refused_with_the_range(tick: float) -> None:
    with pytest.raises(InputError, match="1e-06 to 1000000000"):
        simulate(scenario(cluster(1, 1), [fixed(0, 0, 1, 1)]), policies.find("las"), {"tick_s": tick})


def private(made: Scenario) -> Scenario:
    """The same with runtimes that only customers know."""
    customers = tuple(Customer(runtime_us=job.work.total) for job in made.jobs)
    return replace(made, jobs=tuple(replace(j, work=Fixed()) for j in made.jobs), customers=customers)


@pytest.mark.parametrize("name", ["las", "fifo", "fifo-backfill", "drf"])
def test_only_the_shortest_first_rules_need_runtimes(name: str) -> None:
    servers, gpus, trace = draw(8)
    made = scenario(cluster(servers, gpus), jobs_of(trace))
    spec = policies.find(name)
    assert finish_s(simulate(private(made), spec)) == finish_s(simulate(made, spec))


@pytest.mark.parametrize("name", ["srtf", "srsf"])
def test_shortest_first_refuses_private_runtimes_before_it_starts(name: str) -> None:
    with pytest.raises(Unsupported, match="runtime"):
        simulate(private(scenario(cluster(1, 1), [fixed(0, 0, 1, 1)])), policies.find(name))


def test_drf_serves_the_tenant_that_has_least() -> None:
    sizes = [("a", 2), ("a", 2), ("a", 2), ("b", 2), ("b", 2)]
    jobs = [fixed(i, 0, 100, size, tenant=tenant) for i, (tenant, size) in enumerate(sizes)]
    run = simulate(scenario(cluster(1, 8), jobs), policies.find("drf"))
    started = [job for at, job, _ in places(run) if at == 0]
    assert started == [0, 3, 1, 4]


def test_drf_compares_the_resource_that_each_tenant_uses_most() -> None:
    # Ghodsi et al., figure 3: 9 CPUs and 18 GB; A's tasks need <1, 4>, B's <3, 1>: A runs 3 and B 2.
    node = Node(name="s0", kind="server", capacity_milli=(9000, 18_000))
    setup = cluster(1, 1, resources=("vcpu", "mem_gb"), nodes=(node,))
    needs = {"a": ((0, 1000), (1, 4000)), "b": ((0, 3000), (1, 1000))}
    jobs = [fixed(i, 0, 100, 1, tenant=t, worker=needs[t]) for i, t in enumerate("aaaaaabbbbbb")]
    run = simulate(scenario(setup, jobs), policies.find("drf"))
    started = [jobs[job].tenant for at, job, _ in places(run) if at == 0]
    assert (started.count("a"), started.count("b")) == (3, 2)


@pytest.mark.parametrize("name", ALL)
def test_a_failed_server_gives_its_jobs_another_place(name: str) -> None:
    changes = (Change(1800 * US_PER_S, "node_down", 0, 0, 0),)
    made = scenario(cluster(2, 4), [fixed(0, 0, 3000, 4)], changes=changes)
    run = simulate(made, policies.find(name))
    assert [where for _, _, where in places(run)] == [((0, 4),), ((1, 4),)]
    assert finish_s(run) == {0: 4800.0}  # the slot of an hour was not over: all its work is lost


@pytest.mark.parametrize("name", ["srtf", "srsf"])
def test_shortest_first_counts_lost_work_again(name: str) -> None:
    # Job 0 has 100 s left when its server fails and starts again with 3000 s, so job 1 with 1000 s goes first.
    changes = (Change(2900 * US_PER_S, "node_down", 0, 0, 0),)
    jobs = [fixed(0, 0, 3000, 4), fixed(1, 2900, 1000, 4)]
    run = simulate(scenario(cluster(2, 4), jobs, changes=changes), policies.find(name))
    assert finish_s(run) == {1: 3900.0, 0: 6900.0}


@pytest.mark.parametrize("name", ["srtf", "srsf"])
def test_shortest_first_counts_work_that_was_kept(name: str) -> None:
    # An hour was over when the server failed at 4000 s: 1400 s remain, less than the newcomer's 2000 s.
    changes = (Change(4000 * US_PER_S, "node_down", 0, 0, 0),)
    jobs = [fixed(0, 0, 5000, 4), fixed(1, 4000, 2000, 4)]
    run = simulate(scenario(cluster(2, 4), jobs, changes=changes), policies.find(name))
    assert finish_s(run) == {0: 5400.0, 1: 7400.0}


def test_time_spent_on_restarting_is_no_progress() -> None:
    # Job 0 restarts at 300 s on the other server and makes no progress before 360 s. At 400 s it has 360 s left, more than
    # job 3 needs, so it is stopped, and moves and restarts once more at 650 s.
    restarting = fixed(0, 0, 500, 1, restart_us=60 * US_PER_S)
    jobs = [restarting, fixed(1, 100, 200, 2), fixed(2, 150, 350, 1), fixed(3, 400, 330, 1)]
    run = simulate(scenario(cluster(2, 1), jobs), policies.find("srtf"))
    assert finish_s(run) == {1: 300.0, 2: 650.0, 3: 730.0, 0: 1070.0}


def test_what_a_job_attained_survives_a_failure() -> None:
    # Job 0 loses its work at 200 s, but after 100 s more on the other server it had its 300 GPU-seconds.
    changes = (Change(200 * US_PER_S, "node_down", 0, 0, 0),)
    jobs = [fixed(0, 0, 1000, 1), fixed(1, 250, 50, 1)]
    run = simulate(scenario(cluster(2, 1), jobs, changes=changes), policies.find("las"), {"limits": "300"})
    assert finish_s(run) == {1: 350.0, 0: 1250.0}


def test_a_job_whose_place_is_not_needed_is_not_stopped() -> None:
    # Job 4 needs a whole server: job 0, last but one, must go; job 2, the last of all, need not.
    needs = [(0, 1000, 4), (0, 900, 3), (0, 2000, 1), (0, 800, 3), (10, 10, 4), (10, 1500, 1)]
    jobs = [fixed(i, at, time, gpus, worker=((0, 1000), (1, 1))) for i, (at, time, gpus) in enumerate(needs)]
    run = simulate(scenario(with_vcpus(cluster(3, 4)), jobs), policies.find("srtf"))
    assert [job for _, job, where in places(run) if not where] == [0]
    assert [job for _, job, _ in places(run)].count(2) == 1


@pytest.mark.parametrize("name", ["fifo", "fifo-backfill", "las", "drf"])
def test_rounds_that_need_no_routes_run_too(name: str) -> None:
    jobs = [
        Job(
            index=i, id=f"r{i}", arrive_us=0, work=Rounds(count=10, compute_us=US_PER_S, comm="colocated"),
            worker=GPU, workers_min=2, workers_max=2, model_bytes=10**6, worker_bps=10**9, server_bps=10**9,
            architecture="ps", servers=1, server=GPU,
        )
        for i in range(3)
    ]  # fmt: skip
    finished = finish_s(simulate(scenario(cluster(1, 3), jobs), policies.find(name)))
    assert finished == {0: 10.0, 1: 20.0, 2: 30.0}


def test_an_unknown_policy_is_answered_with_the_nearest() -> None:
    with pytest.raises(LookupFailed, match="Did you mean 'srtf'"):
        policies.find("srft")


def test_the_catalogue_is_read_without_loading_a_compiler() -> None:
    code = (
        "import sys; from tradewind.registry import policies as p, workloads as w\n"
        f"[p.find(name) for name in {ALL}]; w.find('trace'); w.find('cluster')\n"
        "assert 'numba' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=300)
