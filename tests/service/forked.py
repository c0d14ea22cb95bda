"""`tradewind serve` as a process of its own, forked from one that has imported it: half of a start is imports.

A server gets its own process, arguments, output and exit code, as from a shell, and starts its engine anew.
"""

from __future__ import annotations

import atexit
import os
import signal
import sys
import time
from contextlib import suppress
from functools import cache
from pathlib import Path
from threading import Lock

from tradewind.model.errors import TradewindError
from tradewind.worlds.forkserver import ForkServer

IMPORTED = (
    "tradewind.cli.main",
    "tradewind.service.start",
    "tradewind.service.app",
    "tradewind.service.server",
)
_talking = Lock()


@cache
def _parent() -> ForkServer:
    """One for all servers of a test process."""
    made = ForkServer(IMPORTED)
    atexit.register(made.close)
    return made


class Forked:
    """A running command, with what tests use of `subprocess.Popen`."""

    def __init__(self, args: list[str], log: Path) -> None:
        self._code: int | None = None
        with _talking:
            entry = f"{__name__}:command"
            self.pid = _parent().start(entry, args, environment=os.environ, log=log)

    def poll(self) -> int | None:
        """The exit code, once it has ended."""
        with _talking, suppress(TradewindError):
            if self._code is None:
                self._code = _parent().wait(self.pid, 0.0)
        return self._code

    def wait(self, timeout: float = 120.0) -> int:
        """The exit code; an error where it has not ended in time."""
        end = time.monotonic() + timeout
        while (code := self.poll()) is None:
            assert time.monotonic() < end, f"process {self.pid} has not ended after {timeout} s"
            time.sleep(0.02)
        return code

    def send_signal(self, number: int) -> None:
        """Signal it, unless it has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """Kill it."""
        self.send_signal(signal.SIGKILL)


def command(args: list[str]) -> int:
    """Runs in the fork: be the command `tradewind`."""
    from tradewind.cli.main import main

    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.argv = ["tradewind", *args]
    try:
        main()
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    return 0
