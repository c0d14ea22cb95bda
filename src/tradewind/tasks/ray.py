"""Workers that are actors of a Ray cluster, through a program of its own (ray_driver)."""

from __future__ import annotations

import importlib.util
import os
import pickle
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from typing import IO

from tradewind.model.errors import InputError, TradewindError
from tradewind.tasks.worker import Heard, code_digest

START_S = 60.0
"""How long tasks wait for a worker while none runs."""
END_S = 5.0


class RayProgram:
    """A Python program that talks to Ray on behalf of this one: Ray ends a process that loses its cluster.

    command  what runs it, such as `ip netns exec …`
    """

    def __init__(self, argv: Sequence[str], command: Sequence[str] = (), keep: Sequence[int] = ()) -> None:
        self._said: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 kept as long as the program
        self.process = subprocess.Popen(
            [*command, sys.executable, "-m", *argv], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=self._said, env={**os.environ, "RAY_USAGE_STATS_ENABLED": "0"}, pass_fds=keep,
        )  # fmt: skip

    def end(self, patience_s: float = 0.0) -> None:
        """End it, by force if it does not end by itself in time."""
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(patience_s)
        self.process.kill()
        self.process.communicate()

    def last_words(self) -> str:
        """The last line that it wrote to stderr."""
        self._said.seek(0)
        lines = self._said.read().decode(errors="replace").strip().splitlines()
        return lines[-1] if lines else "its driver ended"


def check_address(option: str, address: str) -> None:
    """Check that Ray is installed and an address given."""
    if importlib.util.find_spec("ray") is None:
        raise InputError(f"{option} ray needs Ray, which is not installed: pip install 'tradewind[ray]'")
    if not address:
        raise InputError(f"{option} ray needs the address of the head of a cluster: {option} ray://HOST:6379")


class RayWorkers:
    """Up to `most` workers for so many tasks on the cluster with its head at HOST:PORT.

    A driver that is lost is started again, and what its workers did is tried again; a cluster that is not found is an error.
    """

    def __init__(self, address: str, most: int, tasks: int, command: Sequence[str] = ()) -> None:
        check_address("--on", address)
        self._address, self._count, self._command = address, min(most, tasks), tuple(command)
        self._busy = set[int]()
        self._start()

    def _start(self) -> None:
        self._pipe, its = Pipe()
        argv = ("tradewind.tasks.ray_driver", self._address, str(its.fileno()))
        self._program = RayProgram(argv, self._command, (its.fileno(),))
        its.close()
        self._is_found = False
        with suppress(OSError):  # a driver that ends at once is noticed by `wait`
            self._pipe.send(
                (self._count, code_digest(), [each or os.getcwd() for each in sys.path], os.getcwd())
            )

    def submit(self, worker: int, call: bytes) -> None:
        """Let a worker that is ready run a call."""
        self._busy.add(worker)
        with suppress(OSError):
            self._pipe.send((worker, call))

    def wait(self) -> Sequence[Heard]:
        """Wait until something is heard."""
        try:
            if not self._pipe.poll(None if self._busy else START_S):
                raise TradewindError(f"ray://{self._address}: {self._why_none(self._pipe)}")
            worker, kind, what = self._pipe.recv()
        except (EOFError, OSError):
            return self._lose_all()
        self._is_found = True
        if kind == "unfit":
            raise InputError(what, where=f"ray://{self._address}")
        self._busy.discard(worker)
        if kind == "done":
            return (Heard(worker, "done", pickle.loads(what)),)
        return (Heard(worker, kind, why=what),)

    def _lose_all(self) -> Sequence[Heard]:
        """The driver has ended, and all workers with it."""
        self._pipe.close()
        self._program.end(END_S)
        said = self._program.last_words()
        if not self._is_found:
            raise TradewindError(f"ray://{self._address} cannot be used: {said}")
        lost = [Heard(worker, "lost", why=f"the cluster was lost: {said}") for worker in sorted(self._busy)]
        self._busy.clear()
        self._start()
        return lost

    def _why_none(self, pipe: Connection) -> str:
        """Why there is no worker, in words."""
        pipe.send(None)
        if not pipe.poll(END_S):
            return f"it did not answer within {START_S:.0f} s"
        return f"no worker started within {START_S:.0f} s: {pipe.recv()[0]}"

    def close(self) -> None:
        """End all workers, whatever they do."""
        self._pipe.close()
        self._program.end(END_S)
