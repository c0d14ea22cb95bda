"""The exception tree.

TradewindError
├── InputError        invalid input: a file, a name, a number (exit code 2)
│   ├── ScenarioError   an invalid scenario
│   ├── RunFileError    an invalid run file
│   ├── StoreError      a store is damaged, newer, taken or out of reach
│   ├── LookupFailed    an unknown name
│   └── Unsupported     the policy does not support the scenario
├── Refused           a decision broke a rule of the audit and was not applied (exit code 1)
├── PolicyError       a policy raised or returned something invalid (exit code 1)
└── WorkloadError     a workload raised or returned something invalid (exit code 1)
"""

from __future__ import annotations

import difflib
import traceback
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tradewind.model.result import Violation


class TradewindError(Exception):
    """Base class of all errors that Tradewind raises on purpose. They can be sent to another process as they are."""

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuilt, (type(self), self.args), self.__dict__


def _rebuilt(kind: type[TradewindError], args: tuple[Any, ...]) -> TradewindError:
    """An error without calling its `__init__`, which may take other arguments than it keeps."""
    error = kind.__new__(kind)
    error.args = args
    return error


class InputWarning(UserWarning):
    """Input that is allowed and probably not meant."""


class InputError(TradewindError):
    """Invalid input. The message says where, what was found, what is allowed and what to do."""

    def __init__(self, message: str, *, where: str = "") -> None:
        super().__init__(f"{where}: {message}" if where else message)
        self.where = where


class ScenarioError(InputError):
    """A scenario is invalid."""


class RunFileError(InputError):
    """A run file is damaged, has another version, or belongs to another scenario."""


class StoreError(InputError):
    """A store is damaged, was written by a newer version, is used by another writer, or cannot be reached or written."""


MOST_NAMES = 60
"""A message lists all names up to this many, else only the first of them."""


def nearest(name: str, known: Iterable[str]) -> str:
    """` Did you mean 'x'?`, or the known names in their order."""
    names = [str(each) for each in known]
    near = difflib.get_close_matches(name[:60], names, n=1)
    listed = names if len(names) <= MOST_NAMES else [*names[:8], f"… ({len(names):,} in all)"]
    return f" Did you mean {near[0]!r}?" if near else f" Known: {', '.join(listed) or 'none'}."


def other_separator(header: Iterable[str]) -> str:
    """`; the columns are …` where the only name in the header of a CSV file shows another separator than a comma."""
    only = [name for name in header if name]
    for sign, what in ((";", "semicolons"), ("\t", "tabs")):
        if len(only) == 1 and sign in only[0]:
            return f"; its columns are separated by {what}: save it with commas, and numbers with points"
    return ""


class LookupFailed(InputError):
    """An unknown name; the message suggests the closest one or lists what there is."""

    def __init__(self, what: str, name: str, known: Iterable[str]) -> None:
        super().__init__(f"No {what} is called {name!r}.{nearest(name, sorted(known))}")


class Unsupported(InputError):
    """A policy cannot run this scenario; the message says why."""


class Refused(TradewindError):
    """The audit found violations, so the decision was not applied."""

    def __init__(self, violations: tuple[Violation, ...]) -> None:
        self.violations = violations
        super().__init__("; ".join(str(v) for v in violations[:5]))


class PolicyError(TradewindError):
    """A policy raised, or returned something that is not a decision."""


class WorkloadError(TradewindError):
    """A workload raised, or returned something that is not a scenario."""


def raised(error: Exception) -> str:
    """An exception of somebody else's code in one line, with where it was raised: `KeyError: 'x' (mine.py, line 28)`."""
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__}: {error} ({Path(frame.filename).name}, line {frame.lineno})"
