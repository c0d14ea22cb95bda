"""Keeps an engine in line with what should run, in a thread of its own: an engine that does not answer delays nobody."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Collection, Mapping
from types import MappingProxyType
from typing import NamedTuple

from tradewind.model.errors import TradewindError
from tradewind.worlds.fleets.engine import Engine, EngineGang, Explains, Machine

POLL_S = 0.5
MACHINES_EVERY_S = 2.0
RETRY_S = 1.0
CLOSE_S = 2.0
"""A call that takes longer when the dispatcher is closed hangs."""


class EngineState(NamedTuple):
    """What an engine said last.

    gangs     the gangs of this run that it has, and their ranks that wait or run; None before its first answer
    problem   why it does not answer now; empty: it does
    refused   gang -> why the engine did not take it; it is tried again
    answered  how often it has answered in full
    waiting   gang -> why the engine, which has it, has not started it yet
    """

    machines: tuple[Machine, ...] = ()
    gangs: Mapping[str, Collection[int] | None] | None = None
    problem: str = ""
    refused: Mapping[str, str] = MappingProxyType({})
    answered: int = 0
    waiting: Mapping[str, str] = MappingProxyType({})


class Dispatcher:
    """Starts gangs that an engine does not have, and removes those that it should not have.

    unstarted  the ranks of a gang that were never started; asked again before every start
    """

    def __init__(
        self, engine: Engine, prefix: str, unstarted: Callable[[EngineGang], Collection[int]]
    ) -> None:
        self._engine, self._prefix, self._unstarted = engine, prefix, unstarted
        self._wanted: Mapping[str, EngineGang] | None = None
        self._changed, self._closed, self._is_left = threading.Event(), False, False
        self._removed = 0  # gangs
        self.state = EngineState()
        self._thread = threading.Thread(target=self._run, name=f"tradewind-{engine.name}", daemon=True)
        self._thread.start()

    def want(self, gangs: Mapping[str, EngineGang]) -> None:
        """Say which gangs the engine should have; all others of this run are removed."""
        if gangs != self._wanted:
            self._wanted = dict(gangs)
            self._changed.set()

    def close(self) -> None:
        """Stop; what should run goes on. A call that hangs is left alone: after it nothing is started or removed."""
        self._closed = True
        self._changed.set()
        removed = -1
        while self._thread.is_alive() and self._removed > removed:  # many removals take long
            removed = self._removed
            self._thread.join(CLOSE_S)
        self._is_left = True

    def _run(self) -> None:
        seen_s = -MACHINES_EVERY_S
        while not self._closed:
            self._changed.clear()
            try:
                if time.monotonic() - seen_s >= MACHINES_EVERY_S:
                    machines = tuple(self._engine.machines())
                    seen_s = time.monotonic()
                    self.state = self.state._replace(machines=machines, waiting=self._waiting())
                self._reconcile()
            except Exception as error:  # a full disk, an answer that cannot be read: the thread has to go on
                self.state = self.state._replace(problem=str(error) or type(error).__name__)
                self._changed.wait(RETRY_S)
            else:
                self._changed.wait(POLL_S)
        with contextlib.suppress(TradewindError, OSError):
            if not self._is_left:
                self._remove_others(self._engine.gangs(self._prefix))
        self._engine.close()  # by the thread that makes all calls

    def _remove_others(self, present: Collection[str]) -> None:
        """Remove what should not be there, unless the next loop may be there already."""
        if self._wanted is not None:
            for name in sorted(set(present).difference(self._wanted)):
                if not self._is_left:
                    self._engine.cancel(name)
                    self._removed += 1

    def _waiting(self) -> Mapping[str, str]:
        """Why gangs wait, where the engine can say; nothing depends on it."""
        with contextlib.suppress(Exception):
            if isinstance(self._engine, Explains):
                return self._engine.waiting(self._prefix)
        return {}

    def _reconcile(self) -> None:
        """Compare what the engine has with what it should have, and act on the difference."""
        wanted = self._wanted
        present, refused = dict(self._engine.gangs(self._prefix)), dict[str, str]()
        if wanted is not None and not self._closed:
            self._remove_others(present)
            for name, gang in wanted.items():
                has = present.get(name, ())
                absent = set() if has is None else set(range(len(gang.tasks))).difference(has)
                if absent and not self._closed and not absent.isdisjoint(self._unstarted(gang)):
                    try:
                        self._engine.start(gang)
                    except (TradewindError, OSError) as error:  # the others may fit
                        refused[name] = str(error)
                    else:
                        present[name] = range(len(gang.tasks))
        self.state = self.state._replace(
            gangs=present, problem="", refused=refused, answered=self.state.answered + 1
        )
