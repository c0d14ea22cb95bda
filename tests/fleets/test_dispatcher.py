"""The thread that talks to an engine: whatever the engine does, it goes on."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path

import pytest

from tests.builders import job, node, setup
from tradewind.model.job import Fixed
from tradewind.worlds.fleet import Launch, Rank, Wanted
from tradewind.worlds.fleets.dispatcher import Dispatcher
from tradewind.worlds.fleets.engine import EngineGang, EngineTask, EngineUnreachable, Machine
from tradewind.worlds.fleets.processes.launch import ExecutionOptions
from tradewind.worlds.fleets.processes.supervisor import claim
from tradewind.worlds.fleets.shared import SharedFleet

TASKS = (EngineTask("a1", ("true",)),)
GANGS = {name: EngineGang(name, TASKS, "") for name in ("run-0-0", "run-1-0")}


class Stubborn:
    """An engine in memory that fails as it is told."""

    name = "stubborn"

    def __init__(self) -> None:
        self.there: set[str] = set()
        self.ranks: Collection[int] | None = None
        self.asked: Exception | None = None
        self.started: dict[str, Exception] = {}
        self.may_answer = threading.Event()
        self.may_answer.set()
        self.closed_by = ""
        self.is_up = True

    def machines(self) -> Sequence[Machine]:
        return [Machine(name="a1", address="127.0.0.1", capacity={"gpu": 4000}, is_up=self.is_up)]

    def start(self, gang: EngineGang) -> None:
        if gang.name in self.started:
            raise self.started[gang.name]
        self.there.add(gang.name)

    def gangs(self, prefix: str) -> Mapping[str, Collection[int] | None]:
        assert self.may_answer.wait(120)
        if self.asked is not None:
            raise self.asked
        return {name: self.ranks for name in self.there if name.startswith(prefix)}

    def cancel(self, name: str) -> None:
        self.there.discard(name)

    def close(self) -> None:
        self.closed_by = threading.current_thread().name


@pytest.fixture
def engine() -> Stubborn:
    return Stubborn()


@pytest.fixture
def dispatcher(engine: Stubborn) -> Iterator[Dispatcher]:
    made = Dispatcher(engine, "run-", lambda gang: (0,))
    yield made
    made.close()


def until(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + 120
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.01)


@pytest.mark.parametrize(
    "error", [EngineUnreachable("away"), OSError(28, "full"), KeyError("State"), ValueError()]
)
def test_an_engine_that_fails_in_any_way_is_asked_again(
    engine: Stubborn, dispatcher: Dispatcher, error: Exception
) -> None:
    engine.asked = error
    until(lambda: bool(dispatcher.state.problem))
    engine.asked = None
    dispatcher.want(GANGS)
    until(lambda: engine.there == set(GANGS) and not dispatcher.state.problem)


def test_a_gang_that_is_refused_stands_in_nobodys_way(engine: Stubborn, dispatcher: Dispatcher) -> None:
    engine.started["run-0-0"] = EngineUnreachable("it does not fit")
    dispatcher.want(GANGS)
    until(lambda: dispatcher.state.gangs is not None and set(dispatcher.state.gangs) == {"run-1-0"})
    assert dispatcher.state.refused == {"run-0-0": "it does not fit"}
    assert dispatcher.state.problem == ""  # the engine answers: what it no longer has may count as lost
    engine.started.clear()
    until(lambda: dispatcher.state.gangs is not None and set(dispatcher.state.gangs) == set(GANGS))


def test_what_is_not_wanted_is_removed(engine: Stubborn, dispatcher: Dispatcher) -> None:
    engine.there = {"run-7-0", "other-7-0"}
    dispatcher.want({})
    until(lambda: engine.there == {"other-7-0"})


def test_a_gang_of_which_the_engine_lost_a_rank_that_never_started_is_started_again(
    engine: Stubborn, dispatcher: Dispatcher
) -> None:
    engine.there, engine.ranks = set(GANGS), ()
    engine.started["run-0-0"] = EngineUnreachable("being removed")
    dispatcher.want(GANGS)
    until(lambda: dispatcher.state.refused == {"run-0-0": "being removed"})
    engine.ranks = None
    until(lambda: dispatcher.state.refused == {})


def test_an_engine_that_hangs_is_left_alone_and_changes_nothing_for_the_next_loop(engine: Stubborn) -> None:
    made = Dispatcher(engine, "run-", lambda gang: (0,))
    made.want({})
    until(lambda: made.state.answered > 0)
    engine.may_answer.clear()
    made.close()
    assert engine.closed_by == ""  # nobody takes it away from the thread that waits for it
    engine.there = set(GANGS)  # of the next loop
    engine.may_answer.set()
    until(lambda: engine.closed_by == "tradewind-stubborn")
    assert engine.there == set(GANGS)


def test_all_that_is_not_wanted_is_removed_before_the_end_however_long_it_takes(engine: Stubborn) -> None:
    made, cancel = Dispatcher(engine, "run-", lambda gang: (0,)), engine.cancel

    def slowly(name: str) -> None:
        time.sleep(0.4)
        cancel(name)

    engine.cancel = slowly  # type: ignore[method-assign]
    made.want({})
    until(lambda: made.state.answered > 0)
    engine.there = {f"run-{number}-0" for number in range(10)}
    made.close()
    assert engine.there == set()


def test_a_machine_that_is_drained_just_after_a_rank_started_there_is_not_down(
    engine: Stubborn, tmp_path: Path
) -> None:
    """What has started goes on, also before its supervisor has written that it lives."""
    where = setup([node("a1", 4)], slot_us=1_000_000, horizon_us=10**9)
    fleet = SharedFleet(tmp_path, where, ExecutionOptions(as_root=True), "token", engine, {})
    launch = Launch(job(0, work=Fixed(runtime_us=1), command=("true",)), 0, 0, (Rank("worker", 0, 0),))
    fleet.reconcile([Wanted(launch, True)])
    claim(str(fleet.launcher.control(launch, 0, 0)), os.getpid())
    engine.is_up = False
    fleet.observe()
    until(lambda: [each.is_up for each in fleet._dispatcher.state.machines] == [False])
    seen = fleet.observe()
    fleet.close()
    assert seen.down_nodes == frozenset()
    assert seen.limits == {(0, 0): 1000}
