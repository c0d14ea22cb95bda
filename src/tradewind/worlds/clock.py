"""Scenario time on the wall clock."""

from __future__ import annotations

import time
from collections.abc import Callable


class Clock:
    """Maps seconds of the wall to microseconds of the scenario.

    pace  scenario microseconds per second of the wall
    wall  seconds since 1970; injected so that a test can tell the time

    Nothing that is scheduled is ever skipped. A loop that comes late by more than half a slot (it was killed, the
    machine slept, a decision took long) moves the clock back to what is due, so that every slot still gets at least
    half of its time; smaller delays are caught up.
    """

    def __init__(self, pace: float, slot_us: int, wall: Callable[[], float] = time.time) -> None:
        self.pace, self.wall = pace, wall
        self._slack_us = slot_us // 2
        self._at_us, self._then = 0, wall()
        self.slipped_us = 0

    def set(self, at_us: int, then: float) -> None:
        """It was `at_us` at `then` seconds of the wall; a clock of the wall that went back since does not count."""
        self._at_us, self._then = at_us, min(then, self.wall())

    def now_us(self) -> int:
        """Microseconds of the scenario."""
        return self._at_us + max(0, int((self.wall() - self._then) * self.pace))

    def seconds_until(self, at_us: int) -> float:
        """Seconds of the wall until an instant; 0 or less where it is due."""
        return (at_us - self.now_us()) / self.pace

    def arrive(self, at_us: int) -> None:
        """An instant is being dealt with now: where it is very late, it is called on time."""
        late = self.now_us() - at_us
        if late > self._slack_us:
            self.slipped_us += late
            self._at_us, self._then = at_us, self.wall()
