"""What is known about testbeds across commands and crashes: one small file each, written before anything is made."""

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
from tradewind.worlds.testbed.wan import Line, Wan

FOLDER = File("/run/tradewind")
"""Gone after a restart of the machine, as the namespaces are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """building: it may be there in part."""

    phase: Literal["building", "up"]
    wan: Wan


def check_name(name: str) -> None:
    if not re.fullmatch(r"[a-z0-9][a-z0-9-]{0,30}", name):
        raise InputError(
            f"a testbed cannot be called {name!r}: use small letters, digits and dashes (at most 31)"
        )


@contextmanager
def locked() -> Iterator[None]:
    """One command at a time makes or removes testbeds on this machine."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    handle = os.open(FOLDER, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def known() -> list[str]:
    """Names of all testbeds with a state."""
    return sorted(path.stem for path in FOLDER.glob("*.json")) if FOLDER.is_dir() else []


def kept(name: str) -> State | None:
    """The state of a testbed; None where there is none or it cannot be read (then its namespaces tell)."""
    try:
        data = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
        wan = Wan(
            name=data["network"],
            sites=tuple(data["sites"]),
            lines=tuple(Line(*(int(v) for v in line)) for line in data["lines"]),
        )
        return State(phase="up" if data["phase"] == "up" else "building", wan=wan)
    except (OSError, ValueError, KeyError, TypeError, InputError):
        return None


def write(name: str, state: State) -> None:
    """All of it is on disk, or what was there before."""
    wan = state.wan
    data = {
        "phase": state.phase,
        "network": wan.name,
        "sites": wan.sites,
        "lines": wan.lines,
    }
    beside = FOLDER / f".{name}.new"
    with beside.open("w", encoding="utf-8") as file:
        file.write(json.dumps(data))
        file.flush()
        os.fsync(file.fileno())
    beside.replace(FOLDER / f"{name}.json")


def forget(name: str) -> None:
    (FOLDER / f".{name}.new").unlink(missing_ok=True)
    (FOLDER / f"{name}.json").unlink(missing_ok=True)
