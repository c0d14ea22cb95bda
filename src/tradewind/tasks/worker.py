"""What runs a task, here or elsewhere: a call and its outcome travel as bytes."""

from __future__ import annotations

import hashlib
import pickle
import sys
import traceback
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path
from time import process_time
from typing import Any, Literal, NamedTuple, Protocol

from tradewind.model.errors import TradewindError

NUMERICAL = ("numpy", "scipy", "numba", "highspy")
"""Packages on whose versions digits may depend."""


class Outcome(NamedTuple):
    """The value of a call, or why it failed; cause: the exception, where it could be brought here."""

    value: Any = None
    error: str = ""
    cause: Exception | None = None
    cpu_s: float = 0.0


class Heard(NamedTuple):
    """What a worker says: it is ready, has done its task (outcome), or was lost with it (why)."""

    worker: int
    kind: Literal["ready", "done", "lost"]
    outcome: Outcome = Outcome()
    why: str = ""


class Workers(Protocol):
    """Workers by number. Each runs one task at a time; one that is lost is replaced, and says so by being ready."""

    def submit(self, worker: int, call: bytes) -> None:
        """Let a worker that is ready run a call."""

    def wait(self) -> Sequence[Heard]:
        """Wait until something is heard."""

    def close(self) -> None:
        """End all of them, whatever they do."""


def attempt(call: Callable[..., Any], args: tuple[Any, ...]) -> Outcome:
    """Call a function; a task may fail in any way, and the others go on."""
    begin = process_time()
    try:
        return Outcome(value=call(*args), cpu_s=process_time() - begin)
    except TradewindError as error:
        return Outcome(error=str(error), cause=error, cpu_s=process_time() - begin)
    except Exception as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        name = f"{type(error).__name__} in {where.name}, line {where.lineno}"
        return Outcome(error=f"{name}: {error}", cause=error, cpu_s=process_time() - begin)


def answer(call: bytes) -> bytes:
    """The outcome of a call, both as bytes."""
    try:
        function, args = pickle.loads(call)
    except Exception as error:  # such as a module that is not there
        return pickle.dumps(Outcome(error=f"the task cannot be read: {type(error).__name__}: {error}"))
    found = attempt(function, args)
    try:
        data = pickle.dumps(found)
        pickle.loads(data)
    except Exception as error:
        if not found.error:
            found = found._replace(
                value=None, error=f"its result cannot be sent: {type(error).__name__}: {error}"
            )
        return pickle.dumps(found._replace(cause=None))
    return data


def code_digest() -> str:
    """Of all code that results depend on: workers with other code would give other results."""
    digest = hashlib.sha256(repr([sys.version_info[:3], *map(version, NUMERICAL)]).encode())
    package = Path(__file__).parents[1]
    for file in sorted(package.rglob("*.py")):
        digest.update(str(file.relative_to(package)).encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()[:32]
