"""One live run, put together: processes, clock, journal on disk, books, audit, policy, loop, accounts."""

from __future__ import annotations

import fcntl
import os
import secrets
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from time import perf_counter
from typing import Any

from tradewind.audit import Audit, compare
from tradewind.engine.accounts import settle
from tradewind.engine.fit import check_fit
from tradewind.engine.journal import Facts
from tradewind.engine.ledger import Ledger
from tradewind.engine.live import LiveLoop
from tradewind.engine.statefile import StateFile, read_records, revive
from tradewind.model.decision import Step
from tradewind.model.errors import InputError
from tradewind.model.hash import scenario_hash
from tradewind.model.result import Run
from tradewind.model.scenario import Scenario
from tradewind.model.spec import Spec
from tradewind.version import __version__
from tradewind.worlds.clock import Clock
from tradewind.worlds.live_tables import live_tables
from tradewind.worlds.processes.launching import Rules
from tradewind.worlds.processes.world import Ground, ProcessWorld
from tradewind.worlds.simulate import make_policy, timed, unsettled

Look = Callable[[LiveLoop, ProcessWorld], None]
"""Is shown the loop and the world now and then, for a live view."""
VERSION = 1
LOCK_WAIT_S = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A live run.

    state         directory of journal, logs, checkpoints; one that holds a journal is continued
    slot_seconds  seconds of the wall that a slot takes (0: as long as the scenario says)
    speed         how many times faster than that
    wall          seconds since 1970, by which slots pass; injected so that a test can tell the time
    """

    scenario: Scenario
    spec: Spec
    params: Mapping[str, Any] = field(default_factory=dict)
    seed: int = 0
    state: Path
    slot_seconds: float = 0.0
    speed: float = 1.0
    rules: Rules = field(default_factory=Rules)
    wall: Callable[[], float] = time.time

    @property
    def pace(self) -> float:
        """Scenario microseconds per second of the wall."""
        slot_us = self.scenario.setup.slot_us
        return slot_us / (self.slot_seconds or slot_us / 1e6) * self.speed


def live(request: Request, look: Look | None = None) -> Run:
    """Runs a policy on this machine until the scenario is over, or Ctrl-C; continues what a journal in `state` began."""
    check_fit(request.spec, request.scenario)
    if sys.platform != "linux":
        raise InputError(
            "live runs need Linux: process groups, namespaces and limits are used as they are there"
        )
    if not request.spec.online:
        raise InputError(
            f"{request.spec.name} decides in hindsight; a live run needs a policy that can decide now"
        )
    if request.pace <= 0:
        raise InputError(
            f"--slot-seconds {request.slot_seconds} --speed {request.speed}: both must be positive"
        )
    _make(request.state)
    begin = perf_counter()
    with _locked(request.state):
        loop, world, params = _assemble(request, look)
        try:
            with _orderly(world):
                loop.run()
        finally:
            loop.close()
            world.close()
        return timed(_result(request, loop, world, params), perf_counter() - begin, loop.decide_s)


def _assemble(request: Request, look: Look | None) -> tuple[LiveLoop, ProcessWorld, dict[str, Any]]:
    """World and loop, brought to where the journal left them."""
    scenario, spec, path = request.scenario, request.spec, request.state / "journal"
    records = read_records(path)
    policy, params = make_policy(scenario, spec, request.params, request.seed)
    file = StateFile(path)
    header = _header(request, params)
    if records:
        _check_header(records[0], header, path)
    else:
        records = [{"kind": "header", **header, "token": secrets.token_hex(16)}]
        file.append("header", records[0])
    clock = Clock(request.pace, scenario.setup.slot_us, request.wall)
    loop: LiveLoop | None = None

    def note(kind: str, record: dict[str, Any]) -> None:
        if kind == "alarm" and loop is not None:
            loop.alarms.append(record)
        file.append(kind, record)

    def tell(world: ProcessWorld) -> None:
        if look is not None and loop is not None:
            look(loop, world)

    ground = Ground(
        state=request.state, token=records[0]["token"], clock=clock, note=note, rules=request.rules, tell=tell
    )
    world = ProcessWorld(scenario, ground, slots="slot" in spec.triggers)
    books = (Ledger(scenario.setup), Audit(scenario, measured=True, binding=spec.binding))
    loop = LiveLoop(world, books, policy, spec, file)
    loop.wall = clock.wall
    _come_back(loop, world, clock, records, Facts(scenario))
    return loop, world, params


def _come_back(
    loop: LiveLoop, world: ProcessWorld, clock: Clock, records: list[dict[str, Any]], facts: Facts
) -> None:
    """Lives through a journal; a new one says nothing."""
    clock.set(0, clock.wall())
    for record in records[1:]:
        match record.pop("kind"):
            case "instant":
                loop.recall(record, facts.restore)
                clock.set(record["at_us"], record["wall"])
            case "attempt":
                world.remember("attempt", record, revive(Step, record["step"]))
            case "over":
                world.remember("over", record, None)
            case "alarm":
                loop.alarms.append(record)
    loop.restored()
    world.resume()


def _result(request: Request, loop: LiveLoop, world: ProcessWorld, params: Mapping[str, Any]) -> Run:
    """The run as a file keeps it, with what the audit found: a live run cannot be refused afterwards."""
    scenario = request.scenario
    run = unsettled(scenario, request.spec, params, request.seed, loop.journal)
    tables = {**run.tables, **live_tables(scenario, world, loop.alarms, request.pace)}
    run = settle(scenario, replace(run, world="processes", tables=tables))
    report = loop.audit.close()
    found = (*loop.violations, *report.violations, *compare(report.metrics, run.metrics))
    return replace(run, violations=found)


def _header(request: Request, params: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "version": VERSION, "by": __version__, "scenario": scenario_hash(request.scenario),
        "policy": request.spec.name, "params": dict(params), "seed": request.seed, "pace": request.pace,
    }  # fmt: skip


def _check_header(old: Mapping[str, Any], new: Mapping[str, Any], path: Path) -> None:
    """A journal can only be continued by the same run."""
    for name, value in new.items():
        if name != "by" and old.get(name) != value:
            raise InputError(
                f"it belongs to a run with {name} {old.get(name)!r}; this one has {value!r}. Give the same scenario, "
                "policy, parameters, seed and speed to continue it, or another --state to begin anew.",
                where=str(path),
            )


def _make(state: Path) -> None:
    try:
        state.mkdir(parents=True, exist_ok=True)
        state.chmod(0o711)  # the users of jobs may pass, but not look around
    except OSError as error:
        raise InputError(
            f"it cannot be used as a state directory ({error.strerror})", where=str(state)
        ) from None


@contextmanager
def _locked(state: Path) -> Iterator[None]:
    """One loop per state directory; its keepers see by the lock whether it still lives."""
    handle = os.open(state / "lock", os.O_RDWR | os.O_CREAT, 0o644)
    until = time.monotonic() + LOCK_WAIT_S
    try:
        while True:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:  # a keeper may be looking whether anybody is there
                if time.monotonic() > until:
                    raise InputError(
                        "another loop is running here; stop it first", where=str(state)
                    ) from None
                time.sleep(0.01)
        yield
    finally:
        os.close(handle)


@contextmanager
def _orderly(world: ProcessWorld) -> Iterator[None]:
    """Ctrl-C and SIGTERM end the run in order: ranks write their checkpoints, the run file is written."""

    def stop(*_: object) -> None:
        world.interrupt()

    old = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, before in old.items():
            signal.signal(number, before)
