"""Time: an injected source of monotonic time, and the clock that maps it to scenario time.

Everything that is measured, awaited or compared uses monotonic time, so setting the wall clock changes nothing. Wall
time is only written down, for people.
"""

from __future__ import annotations

import time
from typing import Protocol


class TimeSource(Protocol):
    """Where time comes from; tests inject their own."""

    def monotonic(self) -> float:
        """Seconds since some instant; never goes back."""

    def wall(self) -> float:
        """Seconds since 1970, to be written down only."""


class SystemTime:
    """The time of this machine."""

    def monotonic(self) -> float:
        """Seconds since some instant; never goes back."""
        return time.monotonic()

    def wall(self) -> float:
        """Seconds since 1970."""
        return time.time()


class Clock:
    """Scenario time in microseconds. pace: scenario microseconds per second.

    No scheduled instant is skipped. If the loop is late by more than half a slot (the machine was suspended, a decision
    took long), the clock is set back to the instant that is due, so that every slot gets at least half of its time.
    Smaller delays are caught up.
    """

    def __init__(self, pace: float, slot_us: int, source: TimeSource) -> None:
        self.pace, self.source = pace, source
        self._slack_us = slot_us // 2
        self._at_us, self._then = 0, source.monotonic()

    def set(self, at_us: int) -> None:
        """Set the clock: it is `at_us` now."""
        self._at_us, self._then = at_us, self.source.monotonic()

    def now_us(self) -> int:
        """Current scenario time."""
        return self._at_us + int((self.source.monotonic() - self._then) * self.pace)

    def seconds_until(self, at_us: int) -> float:
        """Seconds until an instant; 0 or less if it is due."""
        return (at_us - self.now_us()) / self.pace

    def arrive(self, at_us: int) -> None:
        """Call when an instant is processed; sets the clock back if it is more than half a slot late."""
        if self.now_us() - at_us > self._slack_us:
            self.set(at_us)
