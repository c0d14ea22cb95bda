"""The thread that talks to an engine: whatever the engine does, it goes on."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Sequence

import pytest

from tradewind.worlds.fleets.dispatcher import Dispatcher
from tradewind.worlds.fleets.engine import EngineGang, EngineUnreachable, Machine

GANGS = {name: EngineGang(name, (), "") for name in ("run-0-0", "run-1-0")}


class Stubborn:
    """An engine in memory that fails as it is told."""

    name = "stubborn"

    def __init__(self) -> None:
        self.there: set[str] = set()
        self.asked: Exception | None = None
        self.started: dict[str, Exception] = {}

    def machines(self) -> Sequence[Machine]:
        return [Machine(name="a1", address="127.0.0.1")]

    def start(self, gang: EngineGang) -> None:
        if gang.name in self.started:
            raise self.started[gang.name]
        self.there.add(gang.name)

    def gangs(self, prefix: str) -> Collection[str]:
        if self.asked is not None:
            raise self.asked
        return {name for name in self.there if name.startswith(prefix)}

    def cancel(self, name: str) -> None:
        self.there.discard(name)

    def close(self) -> None:
        """Nothing is held."""


@pytest.fixture
def engine() -> Stubborn:
    return Stubborn()


@pytest.fixture
def dispatcher(engine: Stubborn) -> Iterator[Dispatcher]:
    made = Dispatcher(engine, "run-", lambda gang: True)
    yield made
    made.close()


def until(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + 30
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
    until(lambda: dispatcher.state.gangs == frozenset({"run-1-0"}))
    assert dispatcher.state.refused == {"run-0-0": "it does not fit"}
    assert dispatcher.state.problem == ""  # the engine answers: what it no longer has may count as lost
    engine.started.clear()
    until(lambda: dispatcher.state.gangs == frozenset(GANGS))


def test_what_is_not_wanted_is_removed(engine: Stubborn, dispatcher: Dispatcher) -> None:
    engine.there = {"run-7-0", "other-7-0"}
    dispatcher.want({})
    until(lambda: engine.there == {"other-7-0"})
