"""Maps wall-clock time to scenario time."""

from __future__ import annotations

import time
from collections.abc import Callable


class Clock:
    """Scenario time in microseconds, driven by the wall clock.

    pace  scenario microseconds per wall-clock second
    wall  returns seconds since 1970; tests inject their own

    No scheduled instant is skipped. If the loop is late by more than half a slot (it was killed, the machine was
    suspended, a decision took long), the clock is set back to the instant that is due, so that every slot gets at least
    half of its time. Smaller delays are caught up.
    """

    def __init__(self, pace: float, slot_us: int, wall: Callable[[], float] = time.time) -> None:
        self.pace, self.wall = pace, wall
        self._slack_us = slot_us // 2
        self._at_us, self._then = 0, wall()

    def set(self, at_us: int, then: float) -> None:
        """Set the clock: it was `at_us` at wall-clock time `then` (now, if `then` is in the future)."""
        self._at_us, self._then = at_us, min(then, self.wall())

    def now_us(self) -> int:
        """Current scenario time."""
        return self._at_us + max(0, int((self.wall() - self._then) * self.pace))

    def seconds_until(self, at_us: int) -> float:
        """Wall-clock seconds until an instant; 0 or less if it is due."""
        return (at_us - self.now_us()) / self.pace

    def arrive(self, at_us: int) -> None:
        """Call when an instant is processed; sets the clock back if it is more than half a slot late."""
        if self.now_us() - at_us > self._slack_us:
            self._at_us, self._then = at_us, self.wall()
