"""A copy of a ledger in another process: the changes of the original, in order, and a snapshot to begin with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tradewind.engine.ledger import Ledger
from tradewind.model.view import View

Change = tuple[str, tuple[Any, ...]]
"""Method of the ledger and its arguments."""
READS = frozenset(("save", "last_step"))
CHANGES = tuple(
    name
    for name, item in vars(Ledger).items()
    if callable(item) and not name.startswith("_") and name not in READS and not hasattr(View, name)
)
"""Every public method of a ledger that may change it: all but those of a policy's view and READS."""
SNAPSHOT = "snapshot"


class Recorder:
    """Notes the changes of a ledger since they were last taken. A ledger has one recorder at a time."""

    def __init__(self) -> None:
        self._ledger: Ledger | None = None
        self._changes: list[Change] = []

    def take(self, ledger: Ledger) -> list[Change]:
        """What a mirror must do to be like the ledger: first a snapshot, then what has changed since the last call."""
        if ledger is not self._ledger:
            self._changes, self._ledger = [], ledger
            for name in CHANGES:
                vars(ledger).pop(name, None)  # of an earlier recorder
            state = ledger.save()
            for name in CHANGES:
                setattr(ledger, name, _noting(name, getattr(ledger, name), self._changes))
            return [(SNAPSHOT, (ledger.forgets, state))]
        found = self._changes.copy()
        self._changes.clear()
        return found

    def forget(self) -> None:
        """Begin with a snapshot again."""
        self._ledger = None


def _noting(name: str, change: Callable[..., Any], changes: list[Change]) -> Callable[..., Any]:
    def noted(*args: Any) -> Any:
        before = len(changes)
        found = change(*args)
        del changes[before:]  # what it called in turn, its mirror will call as well
        changes.append((name, args))
        return found

    return noted


def follow(ledger: Ledger, changes: Sequence[Change]) -> Ledger:
    """A mirror that is like its original again."""
    for name, args in changes:
        if name == SNAPSHOT:
            ledger = Ledger(ledger.setup)
            ledger.forgets, state = args
            ledger.restore(state, "ledger")
        else:
            getattr(ledger, name)(*args)
    return ledger
