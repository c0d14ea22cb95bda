"""State files of testbeds: one per testbed, written before anything is created."""

from __future__ import annotations

import fcntl
import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path as File
from typing import Literal

from tradewind.model.errors import InputError
from tradewind.worlds.testbed.wan import Wan, WanLink

FOLDER = File("/run/tradewind")
"""Cleared by a reboot, like the namespaces."""


How = Literal["", "netem", "relay"]
"""How latency is made; empty: there is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """State of a testbed; `building`: it may exist in part. delay: worlds.testbed.delays."""

    phase: Literal["building", "up"]
    wan: Wan
    delay: How = ""


OWNED = re.compile(r"(?:study|verify)-([0-9]+)")
"""Names of temporary testbeds: they carry the id of the process that made them and removes them."""


def own_name(kind: Literal["study", "verify"]) -> str:
    """Name of a temporary testbed of this process."""
    return f"{kind}-{os.getpid()}"


def check_not_owned(name: str) -> None:
    """Check that a name is not one of temporary testbeds, which may be removed at any time."""
    if OWNED.fullmatch(name):
        raise InputError(
            f"{name!r} is a name of temporary testbeds (study-PID, verify-PID), which are removed when their process has "
            "ended; choose another --name"
        )


def is_abandoned(name: str) -> bool:
    """Whether a testbed is a temporary one whose process does not exist any more."""
    match = OWNED.fullmatch(name)
    if match is None:
        return False
    try:
        status = File(f"/proc/{match[1]}/stat").read_text(encoding="utf-8", errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return True
    return status.rpartition(")")[2].split()[0] in ("Z", "X")


def check_name(name: str) -> None:
    """Check that a name fits into names of namespaces."""
    if not re.fullmatch(r"[a-z0-9][a-z0-9-]{0,30}", name):
        raise InputError(
            f"{name!r} is not a valid testbed name: use up to 31 lower-case letters, digits and dashes"
        )


@contextmanager
def locked() -> Iterator[None]:
    """Lock: one command at a time creates or removes testbeds on this machine."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    handle = os.open(FOLDER, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def saved_names() -> list[str]:
    """Names of all testbeds with a state file."""
    return sorted(path.stem for path in FOLDER.glob("*.json")) if FOLDER.is_dir() else []


def load(name: str) -> State | None:
    """State of a testbed; None if there is no readable state file."""
    try:
        data = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
        wan = Wan(
            name=data["network"],
            sites=tuple(data["sites"]),
            links=tuple(WanLink(*(int(v) for v in link)) for link in data["lines"]),
        )
        phase: Literal["building", "up"] = "up" if data["phase"] == "up" else "building"
        delay: How = data["delay"] if data["delay"] in ("netem", "relay") else ""
        return State(phase=phase, wan=wan, delay=delay)
    except (OSError, ValueError, KeyError, TypeError, InputError):
        return None


def save(name: str, state: State) -> None:
    """Write a state file atomically."""
    wan = state.wan
    data = {
        "phase": state.phase,
        "network": wan.name,
        "sites": wan.sites,
        "lines": wan.links,
        "delay": state.delay,
    }
    temporary = FOLDER / f".{name}.new"
    with temporary.open("w", encoding="utf-8") as file:
        file.write(json.dumps(data))
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(FOLDER / f"{name}.json")


def delete(name: str) -> None:
    """Delete a state file."""
    (FOLDER / f".{name}.new").unlink(missing_ok=True)
    (FOLDER / f"{name}.json").unlink(missing_ok=True)
