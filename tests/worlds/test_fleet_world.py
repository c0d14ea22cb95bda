"""The live driver on a fake fleet: crashes, lost and silent nodes, slow ranks, killed loops. No processes, no sleeping."""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.builders import Scripted, decision, job, node, plan, rows, run_at, scenario, setup, spec_of
from tests.worlds.live_runs import alarms, assert_as_simulated, states
from tests.worlds.live_scenarios import S, broker, market, rings
from tradewind import api
from tradewind.model.job import Fixed, Rounds
from tradewind.model.result import Run
from tradewind.model.scenario import Scenario
from tradewind.model.view import Change
from tradewind.registry import policies
from tradewind.testing.fleet_fake import FakeCluster, FakeFleet, FakeTime, MemoryStore
from tradewind.testing.fleet_kills import KillSwitch, LoopKilled
from tradewind.testing.fleet_programs import program
from tradewind.worlds.fleet_world import FleetWorld
from tradewind.worlds.fleets.processes.launch import ExecutionOptions
from tradewind.worlds.live import LiveRequest, drive

POINTS = ((FakeCluster, "start"), (FakeCluster, "stop"), (MemoryStore, "append"))
FIFO = "fifo"


@dataclass
class LiveCase:
    """A live run on a fake cluster whose loop may be killed and started again."""

    given: Scenario
    policy: Any = FIFO
    options: ExecutionOptions = field(default_factory=lambda: ExecutionOptions(backoff_s=0.1, retries=2))
    time: FakeTime = field(default_factory=FakeTime)
    store: MemoryStore = field(default_factory=MemoryStore)

    def __post_init__(self) -> None:
        self.cluster = FakeCluster(self.time)

    def run(self, observer: Any = None) -> Run:
        """One loop, to its end or death."""
        spec = policies.find(self.policy) if isinstance(self.policy, str) else self.policy
        request = LiveRequest(
            scenario=self.given,
            spec=spec,
            seed=1,
            state=Path("/nowhere"),
            options=self.options,
            time=self.time,
        )
        return drive(request, self.store, lambda token: self.cluster.fleet(), observer)

    def until(self, points: int) -> Run | None:
        """A loop that dies at a point; None if it died."""
        with KillSwitch(points).armed(POINTS):
            try:
                return self.run()
            except LoopKilled:
                return None


def counting(index: int, n: int, seconds: float = 0.5, **more: Any) -> Any:
    work = Rounds(count=n, compute_us=10)
    return job(index, work=work, command=program("count", n, seconds), **more)


def here(*jobs: Any, gpus: int = 2, horizon: int = 400, **more: Any) -> Scenario:
    where = setup([node("a", gpus), node("b", gpus)], slot_us=S, horizon_us=horizon * S)
    return scenario(jobs, where=where, **more)


def once(faults: dict[int, Any]) -> Any:
    """An observer that injects each fault when the slot begins (or later)."""

    def observe(session: Any, world: FleetWorld) -> None:
        for slot in [slot for slot in faults if world.clock.now_us() >= slot * S]:
            faults.pop(slot)()

    return observe


# ---------------------------------------------------------------------- as in a simulation
@pytest.mark.parametrize("made", [broker, market, rings])
def test_where_all_instants_are_known_a_live_run_has_the_results_of_a_simulated_one(made: Any) -> None:
    given, policy = made(program("sleep"))
    run = LiveCase(given, policy).run()
    assert_as_simulated(run, given, policy)


def test_completion_and_progress_are_those_of_the_ranks() -> None:
    made = LiveCase(
        here(counting(0, 7), job(1, work=Fixed(runtime_us=50 * S), command=program("count", 6, 0.5)))
    )
    run = made.run()
    assert states(run) == ["finished", "finished"]
    assert [r[0] for r in rows(run, "outcomes", "finish_us")] == pytest.approx([3.5 * S, 3 * S], abs=2e4)
    assert rows(run, "attempts", "iterations", "measured_s", "why") == [
        (7, 0.5, "complete"),
        (6, 0.5, "complete"),
    ]
    assert api.check(made.given, run) == ()


# ---------------------------------------------------------------------- time
@pytest.mark.parametrize("hours", [5, -5])
def test_a_step_of_the_wall_clock_changes_nothing(hours: int) -> None:
    given = here(*(counting(i, 5 + i, arrive_us=i * S) for i in range(6)), gpus=1)
    calm, stepped = LiveCase(given), LiveCase(given)
    expected = calm.run()
    run = stepped.run(once({slot: lambda: stepped.time.step_wall(hours * 3600) for slot in (1, 2, 4)}))
    assert run.tables == expected.tables
    assert dict(run.metrics) == dict(expected.metrics)
    walls = [record["wall"] for record in stepped.store.read() if "wall" in record]
    assert max(walls) - min(walls) > 3600  # it is written down


def test_after_a_restart_the_clock_continues_from_the_last_recorded_instant() -> None:
    made = LiveCase(
        here(
            counting(0, 100),
            job(1, arrive_us=20 * S, work=Rounds(count=1, compute_us=10), command=program("count", 1, 1)),
            gpus=1,
        )
    )
    assert made.until(6) is None
    last = max(record.get("at_us", 0) for record in made.store.read())
    made.time.advance(30)  # longer than everything that is due, shorter than the patience of ranks
    seen: list[int] = []
    run = made.run(lambda session, world: seen.append(world.clock.now_us()))
    assert last <= seen[0] < last + 2 * S
    assert states(run) == ["finished", "finished"]
    assert api.check(made.given, run) == ()


# ---------------------------------------------------------------------- faults
def test_a_fleet_that_cannot_start_ranks_for_a_while_is_tried_again_with_one_alarm(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made, calls = LiveCase(here(counting(0, 5))), iter(range(100))
    reconcile = FakeFleet.reconcile

    def full(self: Any, wanted: Any) -> None:
        if 2 <= next(calls, 100) < 8:
            raise OSError(28, "No space left on device")
        reconcile(self, wanted)

    monkeypatch.setattr(FakeFleet, "reconcile", full)
    run = made.run()
    assert states(run) == ["finished"]
    assert made.cluster.done[0] == list(range(1, 6))
    found = [text for (text,) in rows(run, "alarms", "text")]
    assert [text for text in found if "No space left" in text] == found
    assert len(found) == 1


@pytest.mark.parametrize("rank", [0, 1])
def test_a_rank_that_crashes_is_started_again_with_its_gang_from_the_checkpoint(rank: int) -> None:
    made = LiveCase(here(counting(0, 12, workers_min=2, workers_max=2)))
    run = made.run(once({2: lambda: made.cluster.kill(0, rank)}))
    assert states(run) == ["finished"]
    why = [r[0] for r in rows(run, "attempts", "why")]
    assert why[0] == f"failed: rank {rank}@a was ended by SIGKILL"
    assert why[1:] == ["complete"]
    assert made.cluster.done[0] == list(range(1, 13))
    assert made.cluster.twice == []
    assert "retry 1 of 2" in alarms(run)


def test_a_job_that_always_fails_is_given_up_and_the_next_one_gets_its_place() -> None:
    bad = job(0, work=Fixed(runtime_us=S), command=program("fail", 3), workers_min=4, workers_max=4)
    run = LiveCase(here(bad, counting(1, 3, workers_min=4, workers_max=4))).run()
    assert states(run) == ["unfinished", "finished"]
    assert alarms(run).count("ended with 3") == 3
    assert "given up" in alarms(run)
    assert run.violations == ()


def failing_after_each_iteration(n: int, seconds: float, retries: int) -> tuple[Run, list[float]]:
    """A run whose first job fails after each new iteration, and the pauses before its attempts."""
    jobs = (counting(0, n, seconds), counting(1, 3))
    options = ExecutionOptions(backoff_s=0.1, retries=retries, stall_s=0)
    made = LiveCase(here(*jobs, horizon=100_000), options=options)

    def fail(session: Any, world: FleetWorld) -> None:
        gang = world.gangs.get(0)
        if gang is not None and gang.iterations > gang.best and made.cluster.running(0):
            made.cluster.kill(0, 0)

    run = made.run(fail)
    assert api.check(made.given, run) == ()
    times = [row[1:] for row in rows(run, "attempts", "job", "at_us", "ended_us") if row[0] == 0]
    return run, [(later[0] - earlier[1]) / S for earlier, later in pairwise(times)]


def test_a_job_that_gets_on_a_little_and_fails_again_is_given_up_after_growing_pauses() -> None:
    run, pauses = failing_after_each_iteration(1000, 0.2, retries=1)
    assert states(run) == ["unfinished", "finished"]
    assert pauses == pytest.approx([0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 3.2, 3.2, 3.2], abs=0.1)
    found = alarms(run).splitlines()
    assert len(found) == 10
    assert "; retry 1 of 1" in found[0]
    assert "; failure 9 of 10 within an hour; retry 1 of 1" in found[8]
    assert "; failure 10 of 10 within an hour; given up" in found[9]


def test_a_job_that_fails_a_few_times_an_hour_and_gets_on_is_never_given_up() -> None:
    run, pauses = failing_after_each_iteration(30, 1000, retries=1)
    assert states(run) == ["finished", "finished"]
    assert len(pauses) > 20
    assert max(pauses) < 1


def test_slow_ranks_take_longer_and_are_not_restarted() -> None:
    made = LiveCase(here(counting(0, 10), counting(1, 10), gpus=1))
    made.cluster.slow = {1: 20.0}
    run = made.run()
    assert states(run) == ["finished", "finished"]
    fast, slow = (r[0] for r in rows(run, "outcomes", "finish_us"))
    assert slow > 10 * fast
    assert [r[0] for r in rows(run, "attempts", "why")] == ["complete", "complete"]


def test_a_job_that_stops_reporting_is_started_again() -> None:
    made = LiveCase(here(counting(0, 10, 0.2)), options=ExecutionOptions(stall_s=5.0, backoff_s=0.1))

    def freeze() -> None:
        for rank in made.cluster.running(0):
            rank.values = (float(rank.done), 1.0)  # no more iterations, no end
            rank.begin_s = 1e9

    run = made.run(once({1: freeze}))
    assert states(run) == ["finished"]
    assert "no iteration reported for 5 s" in alarms(run)


def test_a_lost_node_is_a_change_that_no_script_has_and_its_jobs_go_elsewhere() -> None:
    scripted = [Change(30 * S, "node_down", 0, 0, 0), Change(31 * S, "node_up", 0, 0, 0)]
    made = LiveCase(here(counting(0, 12), counting(1, 90, 0.5, arrive_us=S), gpus=1, changes=scripted))
    cluster = made.cluster
    faults = {3: lambda: cluster.lose(0), 5: lambda: cluster.restore(0)}
    run = made.run(once(faults))
    assert states(run) == ["finished", "finished"]
    assert run.violations == ()
    changes = [(kind, value) for kind, value in rows(run, "events", "kind", "value") if kind == "changed"]
    assert changes == [("changed", 2), ("changed", 3), ("changed", 0), ("changed", 1)]
    assert [(kind, a) for kind, a in rows(run, "changes", "kind", "a")] == [("node_down", 0), ("node_up", 0)]
    assert "lost with node a" in [r[0] for r in rows(run, "attempts", "why")]
    assert alarms(run) == ""  # it is nobody's failure
    assert cluster.done[0] == list(range(1, 13))
    assert cluster.twice == []
    assert api.check(made.given, run) == ()


def test_a_node_that_shrinks_is_a_change_that_no_script_has_and_the_newest_job_waits() -> None:
    scripted = [Change(30 * S, "capacity", 0, 0, 1000)]
    made = LiveCase(here(counting(0, 20), counting(1, 20, 0.5, arrive_us=S), gpus=2, changes=scripted))
    limits = made.cluster.limits
    limits[1, 0] = 0  # all of b
    faults = {4: lambda: limits.update({(0, 0): 1000}), 12: lambda: limits.pop((0, 0))}
    run = made.run(once(faults))
    assert states(run) == ["finished", "finished"]
    assert run.violations == ()
    found = [row for row in rows(run, "changes", "kind", "a", "b", "value") if row[1] == 0]
    assert found == [("capacity", 0, 0, 1000), ("capacity", 0, 0, 2000)]
    attempts = {
        job: [row[1:] for row in rows(run, "attempts", "job", "why") if row[0] == job] for job in (0, 1)
    }
    assert attempts[0] == [("complete",)]
    assert [why for (why,) in attempts[1]] == ["paused", "complete"]
    assert alarms(run) == ""
    assert made.cluster.done[1] == list(range(1, 21))
    assert made.cluster.twice == []
    assert api.check(made.given, run) == ()
    larger = {**run.tables["changes"], "value": [9000] * len(run.tables["changes"]["value"])}
    lie = replace(run, tables={**run.tables, "changes": larger})
    assert "time.change" in {each.rule for each in api.check(made.given, lie)}


def test_a_loop_that_dies_while_a_node_is_smaller_knows_it_afterwards() -> None:
    made = LiveCase(here(counting(0, 12), counting(1, 12, arrive_us=S), gpus=2))
    made.cluster.limits.update({(0, 0): 1000, (1, 0): 0})
    assert made.until(12) is None
    while (run := made.until(60)) is None:
        pass
    assert run.violations == ()
    assert sorted(row[1:] for row in rows(run, "changes", "kind", "a", "value")) == [(0, 1000), (1, 0)]
    assert states(run) == ["finished", "finished"]
    assert api.check(made.given, run) == ()


def test_a_run_with_lost_nodes_can_be_saved_read_audited_and_replayed(tmp_path: Path) -> None:
    made = LiveCase(here(counting(0, 12), gpus=1))
    run = made.run(once({2: lambda: made.cluster.lose(0)}))
    api.save(run, tmp_path / "run.json")
    again = api.load_run(tmp_path / "run.json")
    assert api.check(made.given, again) == ()
    assert again.tables["changes"] == run.tables["changes"]
    api.replay(made.given, again)
    calm = LiveCase(here(counting(0, 2))).run()
    assert "changes" not in calm.tables


@pytest.mark.parametrize("order", ["fleet first", "script first"])
def test_a_node_that_the_script_takes_down_too_comes_back_when_both_say_so(order: str) -> None:
    scripted = [Change(4 * S, "node_down", 0, 0, 0), Change(8 * S, "node_up", 0, 0, 0)]
    made = LiveCase(here(counting(0, 40), gpus=1, changes=scripted))
    lose, restore = (2, 6) if order == "fleet first" else (6, 12)
    faults = once({lose: lambda: made.cluster.lose(0), restore: lambda: made.cluster.restore(0)})
    run = made.run(faults)
    assert states(run) == ["finished"]
    assert run.violations == ()
    ran = [
        (at, until)
        for places, at, until in rows(run, "attempts", "places", "at_us", "ended_us")
        if "a" in places
    ]
    down = (min(lose, 4) * S, max(restore, 8) * S)
    assert all(until <= down[0] + S or at >= down[1] for at, until in ran)
    assert [r[0] for r in rows(run, "changes", "kind")] == (
        ["node_down"] if order == "fleet first" else ["node_down", "node_up"]
    )


def test_unreachable_is_not_failed() -> None:
    made = LiveCase(here(counting(0, 20), gpus=1), options=ExecutionOptions(stall_s=2.0))
    cluster = made.cluster
    run = made.run(once({2: lambda: cluster.silence(0), 60: lambda: cluster.speak(0)}))
    assert states(run) == ["finished"]
    assert [r[0] for r in rows(run, "attempts", "why")] == [
        "complete"
    ]  # it went on, and nobody started it again
    assert "rank 0@a of attempt 0 cannot be reached; it counts as running until there is evidence" in alarms(
        run
    )
    assert alarms(run).count("cannot be reached") == 1
    assert cluster.done[0] == list(range(1, 21))


def test_a_run_ends_although_a_rank_cannot_be_reached() -> None:
    made = LiveCase(here(counting(0, 2000), gpus=1, horizon=10))
    run = made.run(once({2: lambda: made.cluster.silence(0)}))
    assert states(run) == ["unfinished"]
    assert [r[0] for r in rows(run, "attempts", "why")] == ["running"]


def test_an_interrupted_run_writes_checkpoints_and_continues() -> None:
    made = LiveCase(here(counting(0, 20)))
    first = made.run(lambda session, world: world.interrupt() if world.clock.now_us() > 2 * S else None)
    assert states(first) == ["unfinished"]
    assert [r[0] for r in rows(first, "attempts", "why")] == ["the run is over"]
    second = made.run()
    assert states(second) == ["finished"]
    assert made.cluster.done[0] == list(range(1, 21))
    assert api.check(made.given, second) == ()


# ---------------------------------------------------------------------- killed loops
def disturb(made: LiveCase, draw: random.Random) -> Any:
    """An observer that injects random faults."""
    cluster = made.cluster

    def observe(session: Any, world: FleetWorld) -> None:
        if draw.random() < 0.02:
            cluster.kill(draw.randrange(len(made.given.jobs)), draw.randrange(2))
        if draw.random() < 0.01:
            cluster.lose(draw.randrange(2))
        if draw.random() < 0.1:
            cluster.restore(draw.randrange(2))
        if draw.random() < 0.01:
            cluster.silence(draw.randrange(2))
        if draw.random() < 0.2:
            cluster.speak(draw.randrange(2))
        if draw.random() < 0.05:
            made.time.step_wall(draw.uniform(-1e5, 1e5))

    return observe


@pytest.mark.parametrize("first", range(0, 300, 10))
def test_loops_killed_at_random_points_among_random_faults_lose_nothing_and_run_nothing_twice(
    first: int,
) -> None:
    for seed in range(first, first + 10):
        random_case(seed)


def random_case(seed: int) -> None:
    draw = random.Random(seed)
    jobs = [
        counting(
            i,
            draw.randint(1, 15),
            draw.choice((0.1, 0.5)),
            arrive_us=draw.randrange(8) * S,
            workers_min=w,
            workers_max=w,
        )
        for i, w in enumerate(draw.choice((1, 1, 2)) for _ in range(4))
    ]
    made = LiveCase(
        here(*sorted_by_arrival(jobs), gpus=draw.choice((1, 2))), draw.choice(("fifo", "las", "fifo-backfill")),
        ExecutionOptions(backoff_s=0.1, retries=50),
    )  # fmt: skip
    observer, kills = disturb(made, draw), 0
    while True:
        with KillSwitch(draw.randint(1, 40) if kills < 12 else 10**9).armed(POINTS):
            try:
                run = made.run(observer)
                break
            except LoopKilled:
                kills += 1
                made.time.advance(draw.uniform(0, 5))
    assert states(run) == ["finished"] * len(jobs)
    assert run.violations == ()
    assert api.check(made.given, run) == ()
    assert made.cluster.twice == []
    for index, each in enumerate(made.given.jobs):
        assert made.cluster.done[index] == list(range(1, each.work.count + 1))  # type: ignore[union-attr]
    assert all(rank.exit is not None for rank in made.cluster.ranks.values())


def sorted_by_arrival(jobs: list[Any]) -> list[Any]:
    ordered = sorted(jobs, key=lambda each: each.arrive_us)
    return [replace(each, index=i, id=f"j{i}") for i, each in enumerate(ordered)]


@pytest.mark.parametrize("made", [broker, market, rings])
def test_a_loop_killed_at_every_point_has_the_results_of_one_that_was_not(made: Any) -> None:
    given, policy = made(program("sleep"))
    reference = LiveCase(given, policy).run()
    points = 0
    while True:
        points += 7
        case = LiveCase(given, policy)
        run = case.until(points)
        if run is not None:
            break
        while (run := case.until(points)) is None:
            points += 1
        for table in ("events", "decisions", "plans", "offers", "costs", "payments", "outcomes"):
            assert run.tables[table] == reference.tables[table], (points, table)
        assert case.cluster.twice == []
    assert points > 30


def test_a_plan_that_moves_restarts_the_ranks_from_the_checkpoint() -> None:
    given = here(counting(0, 30, workers_max=3))
    script = {0: decision(plan(0, run_at(0))), 2 * S: decision(plan(0, run_at(2 * S, (1, 0), (1, 2))))}
    made = LiveCase(given, spec_of(Scripted(script, {})))
    run = made.run()
    assert rows(run, "attempts", "places", "why") == [("1@a", "moved"), ("1@b 2@a", "complete")]
    assert made.cluster.done[0] == list(range(1, 31))
