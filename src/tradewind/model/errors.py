"""The exception tree.

TradewindError
├── InputError        a user's mistake: a file, a name, a number (exit code 2)
│   ├── ScenarioError   something is wrong inside a scenario
│   ├── RunFileError    something is wrong inside a run file
│   ├── LookupFailed    a name that nothing has
│   └── Unsupported     policy and scenario do not fit each other
├── Refused           a decision broke the law; nothing of it was applied (exit code 1)
└── PolicyError       a policy failed or answered something that is no decision (exit code 1)
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tradewind.model.result import Violation


class TradewindError(Exception):
    """Root of everything that Tradewind raises on purpose."""


class InputError(TradewindError):
    """What a user gave cannot be used: says where, what was found, what is allowed, what to do."""

    def __init__(self, message: str, *, where: str = "") -> None:
        super().__init__(f"{where}: {message}" if where else message)
        self.where = where


class ScenarioError(InputError):
    """A scenario breaks a rule of the model."""


class RunFileError(InputError):
    """A run file is damaged, of another version, or belongs to another scenario."""


class LookupFailed(InputError):
    """Nothing has this name; the message suggests the nearest ones."""

    def __init__(self, what: str, name: str, known: Iterable[str]) -> None:
        names = sorted(known)
        near = difflib.get_close_matches(name, names, n=1)
        hint = f" Did you mean {near[0]!r}?" if near else f" There is: {', '.join(names) or 'nothing'}."
        super().__init__(f"No {what} is called {name!r}.{hint}")


class Unsupported(InputError):
    """A policy cannot run this scenario; the message names what does not fit."""


class Refused(TradewindError):
    """The audit found violations; the decision was not applied."""

    def __init__(self, violations: tuple[Violation, ...]) -> None:
        self.violations = violations
        super().__init__("; ".join(str(v) for v in violations[:5]))


class PolicyError(TradewindError):
    """A policy raised, or returned something that is no decision."""
