"""Helpers for tests of live runs."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.builders import job, node, scenario, setup
from tests.worlds.live_scenarios import S
from tradewind.engine.live import LiveSession
from tradewind.model.job import Fixed
from tradewind.model.result import Run
from tradewind.model.scenario import Scenario
from tradewind.registry import policies
from tradewind.worlds.clock import SystemTime
from tradewind.worlds.fleet_world import FleetWorld
from tradewind.worlds.fleets.processes.fleet import ProcessFleet
from tradewind.worlds.fleets.processes.handles import RankHandle, marked_processes
from tradewind.worlds.fleets.processes.launch import ExecutionOptions
from tradewind.worlds.live import LiveRequest, live
from tradewind.worlds.simulate import simulate

QUICK = ExecutionOptions(grace_s=0.5, backoff_s=0.02, retries=2)
PATIENCE_S = 150.0
LONG = Fixed(runtime_us=10 * S)
Observer = Callable[[LiveSession, FleetWorld], None]


class Slots:
    """A clock that nearly stands still until every running job has reported `enough` iterations in its attempt."""

    def __init__(self, enough: int) -> None:
        self.enough, self.now, self.begun = enough, 1000.0, time.monotonic()
        self.then: dict[tuple[int, int], int] = {}

    def monotonic(self) -> float:
        return self.now

    wall = monotonic

    def update(self, session: LiveSession, world: FleetWorld) -> None:
        if time.monotonic() - self.begun > PATIENCE_S:
            world.interrupt()
        self.now += 1e-5  # measured events come after those already emitted
        gangs = [gang for gang in world.gangs.values() if gang.current is not None and not gang.stopping]
        for gang in gangs:
            self.then.setdefault((gang.job.index, len(gang.attempts)), gang.iterations)
        ready = [
            gang.iterations - self.then[gang.job.index, len(gang.attempts)] >= self.enough for gang in gangs
        ]
        if ready and all(ready) and session.ledger.slot == int(self.now - 1000.0):
            self.now += 1.0


class Once(Slots):
    """A clock that nearly stands still until something holds, and then runs to the end."""

    def __init__(self, holds: Callable[[FleetWorld], bool]) -> None:
        super().__init__(0)
        self._holds = holds

    def update(self, session: LiveSession, world: FleetWorld) -> None:
        if time.monotonic() - self.begun > PATIENCE_S:
            world.interrupt()
        self.now += 1.0 if self._holds(world) else 1e-5


def reported(count: int) -> Once:
    """A clock that runs once the first job has reported so many iterations."""
    return Once(lambda world: 0 in world.gangs and world.gangs[0].iterations >= count)


def two_sites(*, horizon: int = 20, **more: Any) -> Any:
    return setup([node("a"), node("b")], slot_us=S, horizon_us=horizon * S, **more)


def one(command: Sequence[str], *, work: Any = None, horizon: int = 20, **more: Any) -> Scenario:
    return scenario(
        [job(0, work=work or LONG, command=tuple(command), **more)], where=two_sites(horizon=horizon)
    )


def run_live(
    given: Scenario, state: Path, policy: Any = "fifo", *, slot_seconds: float = 0.25, options: ExecutionOptions = QUICK,
    observer: Observer | None = None, slots: Slots | None = None, data_scale: float = 1.0,
) -> Run:  # fmt: skip
    """A live run; no process of it may be left behind."""
    spec = policies.find(policy) if isinstance(policy, str) else policy
    request = LiveRequest(
        scenario=given, spec=spec, seed=1, state=state, slot_seconds=slot_seconds,
        options=replace(options, as_root=options.first_uid is None), time=slots or SystemTime(), data_scale=data_scale,
    )  # fmt: skip
    tokens: list[str] = []

    def watch(session: LiveSession, world: FleetWorld) -> None:
        tokens.append(processes(world).token)
        for each in (observer, slots.update if slots is not None else None):
            if each is not None:
                each(session, world)

    run = live(request, watch)
    until = time.monotonic() + PATIENCE_S
    while tokens and marked_processes(tokens[0]) and time.monotonic() < until:
        time.sleep(0.02)
    assert not tokens or marked_processes(tokens[0]) == []
    return run


def processes(world: FleetWorld) -> ProcessFleet:
    """The fleet of a world of processes."""
    assert isinstance(world.fleet, ProcessFleet)
    return world.fleet


def handles(world: FleetWorld, job: int) -> list[RankHandle]:
    """Handles on the running ranks of a job."""
    attempt = world.gangs[job].current
    found = processes(world).running.get(attempt.launch.key) if attempt is not None else None
    return found.handles if found is not None else []


def alarms(run: Run) -> str:
    return "\n".join(map(str, run.tables["alarms"]["text"]))


def states(run: Run) -> list[Any]:
    return list(run.tables["outcomes"]["state"])


def log(state: Path, index: int = 0, rank: int = 0) -> str:
    return "".join(file.read_text() for file in state.glob(f"logs/{index:04d}-*/rank-{rank}.log"))


def assert_as_simulated(run: Run, given: Scenario, policy: str) -> None:
    """A run of seed 1 has the decisions and results of a simulated one."""
    model = simulate(given, policies.find(policy), {}, seed=1)
    for table in (
        "events",
        "decisions",
        "plans",
        "steps",
        "places",
        "offers",
        "costs",
        "payments",
        "outcomes",
    ):
        assert run.tables[table] == model.tables[table], table
    assert dict(run.metrics) == dict(model.metrics)
    assert run.violations == ()


def in_a_process(asked: LiveRequest) -> int:
    """A loop in a process of its own, running when this returns."""
    pid = os.fork()
    if not pid:
        try:
            live(asked)
        finally:
            os._exit(0)
    until = time.monotonic() + PATIENCE_S
    while not list(asked.state.glob("jobs/*/begun")):
        assert time.monotonic() < until, "no rank began"
        time.sleep(0.02)
    return pid
