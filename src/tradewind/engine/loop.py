"""The control loop, the same for every world: wait for an instant, hand it to the session, carry out its commands."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from tradewind.engine.session import Session
from tradewind.model.view import Event, World


class Progress(Protocol):
    """Callback that receives the progress of a run."""

    def __call__(self, now_us: int, jobs_over: int) -> None: ...


class Loop:
    """Drives a world with a session."""

    def __init__(self, world: World, session: Session) -> None:
        self.world, self.session = world, session

    def run(self, progress: Progress | None = None) -> None:
        """Handle instants until the world reports no more events."""
        over = 0
        while events := self.world.wait():
            self.cycle(events)
            if progress is not None:
                over += sum(1 for e in events if e.kind in ("finished", "left"))
                progress(events[-1].at_us, over)
        self.session.charge()

    def cycle(self, events: Sequence[Event]) -> None:
        """Handle one instant, and what carrying out its commands causes."""
        at_us = events[0].at_us
        for number, decision, answered, held in self.session.handle(at_us, events):
            if held is not None:
                self.world.hold(held)
            after = self.world.apply(number, decision)
            if after and not answered:
                self.session.handle(at_us, after)
