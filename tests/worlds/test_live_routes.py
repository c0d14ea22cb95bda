"""Routes and rates of plans on a testbed: several jobs at once, and plans that change."""

from __future__ import annotations

import importlib.util
import uuid
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.builders import Scripted, decision, job, link, node, plan, rows, run_at, scenario, setup, spec_of
from tests.worlds.live_runs import QUICK, Slots, alarms, run_live, states
from tests.worlds.live_scenarios import S
from tradewind.engine.live import LiveSession
from tradewind.model.decision import Plan, Route, Step
from tradewind.model.job import Rounds
from tradewind.model.scenario import Scenario
from tradewind.worlds.contention import Meeting, worst_meeting
from tradewind.worlds.fleet_world import FleetWorld
from tradewind.worlds.fleets.processes.fleet import networks_of_testbed
from tradewind.worlds.simulate import simulate
from tradewind.worlds.tables import UNDELAYED, UNPINNED
from tradewind.worlds.testbed import network as testbed
from tradewind.worlds.testbed.routes import keeps_latency
from tradewind.worlds.testbed.wan import Wan, WanLink

REASON = testbed.unavailable() or (
    "" if importlib.util.find_spec("torch") else "PyTorch is not installed: make install EXTRAS=train"
)
needs_testbed = pytest.mark.skipif(bool(REASON), reason=f"no testbed or trainer here: {REASON}")
M = 1_000_000
SIZE = 250_000
"""Bytes of a model: 0.2 s at 10 Mbit/s."""
SQUARE = ((0, 1), (1, 2), (2, 3), (3, 0), (0, 2))
NAMES = ("a", "b", "c", "d")


@pytest.fixture
def bed() -> Iterator[testbed.Testbed]:
    """Four sites in a ring with a diagonal, 20 Mbit/s each."""
    name = f"test-{uuid.uuid4().hex[:12]}"
    try:
        links = tuple(WanLink(a, b, 20 * M, 20 * M) for a, b in SQUARE)
        yield testbed.up(Wan(name="square", sites=NAMES, links=links), name)
    finally:
        testbed.down(name)


def given(*counts: int) -> Scenario:
    """Jobs with a server at a and a worker at c, of so many rounds."""
    where = setup(
        [node(name) for name in NAMES],
        links=tuple(link(a, b, 20 * M) for a, b in SQUARE),
        slot_us=S,
        horizon_us=600 * S,
        transport="cut-through",
    )
    train = ("python", "-m", "tradewind.train", "--samples", "64", "--batch", "4", "--size", str(SIZE))
    jobs = [
        job(
            i, work=Rounds(count=count, compute_us=1000, comm="flows", pinned=((2, 1),)), model_bytes=SIZE,
            servers=1, architecture="ps",
            server=((0, 500),), worker=((0, 500),), command=train,
        )
        for i, count in enumerate(counts)
    ]  # fmt: skip
    return scenario(jobs, where=where)


def through(bps: int, *path: int) -> Route:
    return Route(2, 0, bps, path)


def running(route: Route, at: int = 0) -> Step:
    return run_at(at, (0, 2), (0, 1), servers=(1, 0), routes=(route,))


@needs_testbed
def test_jobs_between_the_same_sites_take_their_own_paths_at_their_own_rates(
    bed: testbed.Testbed, tmp_path: Path
) -> None:
    options = replace(QUICK, networks=networks_of_testbed(bed.name), testbed=bed.name)
    # links 1 and 0: c > b > a; link 4: the diagonal; links 2 and 3: c > d > a
    mine = [through(10 * M, 1, 0), through(5 * M, 4), through(15 * M, 4)]
    script = {0: decision(*(plan(i, running(route)) for i, route in enumerate(mine)))}
    spec = spec_of(Scripted(script, {}))
    run = run_live(given(12, 6, 12), tmp_path / "s", spec, slot_seconds=1.0, options=options)
    assert states(run) == ["finished"] * 3
    assert alarms(run) == ""
    found = rows(run, "attempts", "measured_s", "predicted_s")
    assert [predicted for _, predicted in found] == pytest.approx([0.401, 0.801, 0.268], abs=0.001)
    for measured, predicted in found:  # median over rounds; a busy machine makes them longer
        assert 0.9 * predicted < measured < 1.3 * predicted
    sent = bed.sent_bytes()
    assert sent[2, 1] > 12 * SIZE
    assert sent[2, 0] > 18 * SIZE
    assert sent[2, 3] < SIZE / 10  # nothing but what gloo says to find its peers


@needs_testbed
def test_a_new_plan_pins_the_job_anew_without_a_restart(bed: testbed.Testbed, tmp_path: Path) -> None:
    options = replace(QUICK, networks=networks_of_testbed(bed.name), testbed=bed.name)
    seen: list[dict[tuple[int, int], int]] = []

    def watch(session: LiveSession, world: FleetWorld) -> None:
        if session.ledger.slot == 0:
            seen[:] = [bed.sent_bytes()]

    script = {
        0: decision(plan(0, running(through(20 * M, 1, 0)))),
        S: decision(plan(0, running(through(10 * M, 2, 3), S))),
    }
    run = run_live(
        given(32), tmp_path / "s", spec_of(Scripted(script, {})), slot_seconds=1.0, options=options, observer=watch,
        slots=Slots(3),
    )  # fmt: skip
    assert states(run) == ["finished"]
    assert rows(run, "attempts", "why", "iterations") == [("complete", 32)]
    ((_, predicted),) = rows(run, "measurements", "iterations", "predicted_s")
    first, second = 0.001 + 16 * SIZE / (20 * M), 0.001 + 16 * SIZE / (10 * M)
    # iterations of both plans; on a busy machine one or two of the first
    assert 1.02 * first < predicted < 0.999 * second
    after = bed.sent_bytes()
    assert seen[0][2, 1] > 2 * SIZE
    assert seen[0][2, 3] < SIZE / 10
    assert after[2, 3] > 16 * SIZE
    assert after[2, 1] < 16 * SIZE  # however many are sent on a busy machine before the loop looks


def test_a_fleet_that_cannot_pin_routes_says_so_in_the_run(tmp_path: Path) -> None:
    script = {0: decision(plan(0, running(through(M, 4))))}
    one = given(1)
    quick = replace(one, jobs=(replace(one.jobs[0], command=("true",)),))
    run = run_live(quick, tmp_path / "s", spec_of(Scripted(script, {})))
    assert alarms(run) == UNPINNED


def test_a_fleet_without_the_latencies_of_a_scenario_says_so_in_the_run(tmp_path: Path) -> None:
    one = given(1)
    late = replace(one.setup, links=tuple(replace(each, latency_us=7000) for each in one.setup.links))
    quick = replace(one, setup=late, jobs=(replace(one.jobs[0], command=("true",)),))
    script = {0: decision(plan(0, running(through(M, 4))))}
    run = run_live(quick, tmp_path / "s", spec_of(Scripted(script, {})))
    assert set(run.tables["alarms"]["text"]) == {UNPINNED, UNDELAYED}
    for latency_us in (0, 7000):
        links = tuple(WanLink(a, b, M, M, latency_us) for a, b in SQUARE)
        same = testbed.Testbed(name="nowhere", wan=Wan(name="square", sites=NAMES, links=links))
        assert keeps_latency(same, late) == (latency_us == 7000)
        assert keeps_latency(same, one.setup) == (latency_us == 0)


@needs_testbed
def test_hops_of_a_ring_take_their_paths_at_the_rate_that_the_ring_reserves(
    bed: testbed.Testbed, tmp_path: Path
) -> None:
    options = replace(QUICK, networks=networks_of_testbed(bed.name), testbed=bed.name)
    one = given(10)
    ring = replace(
        one.jobs[0], work=Rounds(count=10, compute_us=1000, comm="ring"), architecture="ring", servers=0, server=(),
        workers_min=3, workers_max=3, ring_bps=10 * M, command=(*one.jobs[0].command, "--mode", "ring"),
    )  # fmt: skip
    # c > a not over the diagonal, but over d
    hops = (Route(0, 1, 10 * M, (0,)), Route(1, 2, 10 * M, (1,)), Route(2, 0, 10 * M, (2, 3)))
    spec = spec_of(Scripted({0: decision(plan(0, run_at(0, (0, 1, 2), (1, 1, 1), routes=hops)))}, {}))
    run = run_live(replace(one, jobs=(ring,)), tmp_path / "s", spec, slot_seconds=1.0, options=options)
    assert states(run) == ["finished"]
    assert alarms(run) == ""
    ((measured, predicted),) = rows(run, "attempts", "measured_s", "predicted_s")
    assert predicted == pytest.approx(0.001 + 2 * 2 / 3 * 8 * SIZE / (10 * M), abs=0.001)
    assert 0.9 * predicted < measured < 1.3 * predicted  # a busy machine makes it longer
    sent = bed.sent_bytes()
    for hop in ((0, 1), (1, 2), (2, 3), (3, 0)):
        assert sent[hop] > 10 * SIZE
    assert sent[2, 0] < SIZE


def test_plans_that_fit_by_phases_may_meet_on_a_link_and_the_worst_is_named() -> None:
    """A pushes 15 Mbit/s over the diagonal of 20, B pulls 10 the same way."""
    one = given(5, 5, 5)
    against = replace(one.jobs[1], work=Rounds(count=5, compute_us=1000, comm="flows", pinned=((0, 1),)))
    jobs = (one.jobs[0], against, one.jobs[2])
    over = run_at(0, (0, 2), (1, 0), servers=(0, 1), routes=(Route(0, 2, 10 * M, (4,)),))
    plans = (plan(0, running(through(15 * M, 4))), plan(1, over), plan(2, running(through(5 * M, 4))))

    def meeting(*chosen: Plan) -> Meeting | None:
        spec = spec_of(Scripted({0: decision(*chosen)}, {}))
        return worst_meeting(one, simulate(replace(one, jobs=jobs, customers=()), spec))

    assert meeting(plans[0], plans[2]) is None  # all the link has, in the same phase
    found = meeting(*plans)
    assert found is not None
    assert (found.at_us, found.source, found.goal, found.share) == (0, 0, 2, 1.5)  # as much as the other way
    assert "a > c may have to carry 1.50 times its rate" in found.text(one.setup)


@needs_testbed
def test_jobs_that_slow_each_other_down_say_so_in_the_run(bed: testbed.Testbed, tmp_path: Path) -> None:
    one = given(2, 2)
    against = replace(one.jobs[1], work=Rounds(count=2, compute_us=1000, comm="flows", pinned=((0, 1),)))
    over = run_at(0, (0, 2), (1, 0), servers=(0, 1), routes=(Route(0, 2, 20 * M, (4,)),))
    script = {0: decision(plan(0, running(through(20 * M, 4))), plan(1, over))}
    options = replace(QUICK, networks=networks_of_testbed(bed.name), testbed=bed.name)
    both = replace(one, jobs=(one.jobs[0], against))
    run = run_live(both, tmp_path / "s", spec_of(Scripted(script, {})), slot_seconds=1.0, options=options)
    assert states(run) == ["finished"] * 2
    assert "may have to carry 2.00 times its rate" in alarms(run)
