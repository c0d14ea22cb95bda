"""A fake fleet: no processes and no sleeping, so that live runs are tested in milliseconds."""

from __future__ import annotations


class FakeTime:
    """Time that passes only when it is told to. The wall clock can be set without any effect on monotonic time."""

    def __init__(self) -> None:
        self._now = 1000.0
        self._wall = 1.8e9

    def monotonic(self) -> float:
        """Seconds since some instant."""
        return self._now

    def wall(self) -> float:
        """Seconds since 1970."""
        return self._wall + self._now

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        self._now += max(0.0, seconds)

    def step_wall(self, seconds: float) -> None:
        """Set the wall clock forward or back."""
        self._wall += seconds
