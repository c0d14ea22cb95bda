"""Tasks of tests."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

from tradewind.model.errors import InputError


def square(number: int) -> int:
    return number * number


def refuse(number: int) -> int:
    raise InputError(f"found {number}; 2 is allowed", where="number")


def crash() -> None:
    raise ZeroDivisionError("three is not two")


def own_pid(folder: Path, number: int) -> int:
    """Say who runs this, then wait for the gate."""
    (folder / f"{number}-{os.getpid()}").touch()
    while not (folder / "gate").exists():
        time.sleep(0.01)
    return os.getpid()


def die(folder: Path) -> None:
    """End the process that runs this."""
    (folder / str(os.getpid())).touch()
    os.kill(os.getpid(), signal.SIGKILL)
