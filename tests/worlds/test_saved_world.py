"""What a world without an end saves."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.builders import decision, job, node, plan, run_at, scenario, setup
from tests.worlds.live_scenarios import S
from tradewind.model.job import Customer, Rounds
from tradewind.model.view import Event
from tradewind.testing.fleet_fake import FakeCluster, FakeTime
from tradewind.testing.fleet_programs import program
from tradewind.worlds.clock import Clock
from tradewind.worlds.fleet_world import FleetWorld
from tradewind.worlds.gang import RetryOptions
from tradewind.worlds.progress import SAVED, ActiveJob

STUBBORN = job(0, work=Rounds(count=1000, compute_us=10), command=program("stubborn"), env=(("A", "b"),))


def test_everything_that_is_known_of_an_active_job_is_saved() -> None:
    nobody: Any = None
    fields = {name for name, value in vars(ActiveJob).items() if name[0] != "_" and not callable(value)}
    assert set(SAVED) == (fields | set(vars(ActiveJob(nobody, None)))) - {"job"}


class Service:
    """A world without an end on a fake cluster, and its journal."""

    def __init__(self, cluster: FakeCluster) -> None:
        where = setup([node("a", 2)], slot_us=S, horizon_us=1000 * S)
        self.records: list[tuple[str, dict[str, Any]]] = []
        self.clock = Clock(1e6, S, cluster.time)
        self.world = FleetWorld(
            scenario((), where=where), cluster.fleet(), self.clock, lambda *each: self.records.append(each),
            slots=False, options=RetryOptions(), intake=lambda now_us: None,
        )  # fmt: skip

    def step(self, seconds: float, given: FakeTime) -> None:
        given.advance(seconds)
        self.world.poll()
        self.world.watch()

    def ends(self) -> list[dict[str, Any]]:
        return [record for kind, record in self.records if kind == "over"]


@pytest.fixture
def ending() -> tuple[FakeTime, FakeCluster, Service]:
    """A job was cancelled whose rank ignores SIGTERM."""
    time = FakeTime()
    cluster = FakeCluster(time, grace_s=5.0)
    service = Service(cluster)
    service.world.submit(STUBBORN, Customer())
    while not service.world.gangs:
        service.step(0.1, time)
    service.world.apply(0, decision(plan(0, run_at(service.world.now_us))))
    while not cluster.running(0):
        service.step(0.1, time)
    now_us = service.clock.now_us() + 1
    service.world.agenda.report(Event(now_us, "cancelled", 0))
    for _ in range(3):
        service.step(0.1, time)
    assert cluster.running(0)
    return time, cluster, service


def test_ranks_that_still_end_when_their_job_is_over_are_known_after_a_restart(
    ending: tuple[FakeTime, FakeCluster, Service],
) -> None:
    time, cluster, before = ending
    saved = json.loads(json.dumps(before.world.save()))
    after = Service(cluster)
    after.world.restore(saved, {})
    after.clock.set(before.world.now_us)
    assert after.world.gangs[0].job == STUBBORN
    assert after.world.gangs[0].current is not None  # a job that goes on from this one has to wait
    after.world.resume()
    for _ in range(100):
        after.step(0.1, time)
    assert not cluster.running(0)
    assert [each["job"] for each in after.ends()] == [0]
    assert after.world.gangs[0].current is None
    assert after.world.save()["gangs"] == {}


@pytest.mark.parametrize("is_named", [True, False])
def test_the_end_of_such_ranks_is_replayed_after_a_snapshot(
    ending: tuple[FakeTime, FakeCluster, Service], is_named: bool
) -> None:
    """Earlier versions did not name them: the service could not start again."""
    time, cluster, before = ending
    saved = json.loads(json.dumps(before.world.save()))
    while not before.ends():
        before.step(0.1, time)
    after = Service(cluster)
    after.world.restore(saved if is_named else saved | {"gangs": {}}, {})
    after.world.replay_end(json.loads(json.dumps(before.ends()[0])))
    assert [gang.current for gang in after.world.gangs.values()] == [None] * is_named
