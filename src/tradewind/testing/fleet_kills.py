"""Kills a loop at a counted point of what it does."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NoReturn

Point = tuple[Any, str]
"""(class, name of a method) before and after whose calls a loop may die."""


class LoopKilled(BaseException):
    """The loop is dead: nothing in it may catch this."""


def _raise() -> NoReturn:
    raise LoopKilled


class KillSwitch:
    """Dies at the n-th point that it passes; die: what to do there, such as killing the process."""

    def __init__(self, points: int, die: Callable[[], object] = _raise) -> None:
        self.left, self._die = points, die

    def point(self) -> None:
        """Count one point."""
        self.left -= 1
        if self.left == 0:
            self._die()

    @contextmanager
    def armed(self, points: Sequence[Point]) -> Iterator[None]:
        """Count a point before and after each call of some methods."""
        before = [(owner, name, getattr(owner, name)) for owner, name in points]
        for owner, name, method in before:
            setattr(owner, name, self._fatal(method))
        try:
            yield
        finally:
            for owner, name, method in before:
                setattr(owner, name, method)

    def _fatal(self, method: Callable[..., Any]) -> Callable[..., Any]:
        def fatal(*args: Any, **more: Any) -> Any:
            self.point()
            result = method(*args, **more)
            self.point()
            return result

        return fatal
