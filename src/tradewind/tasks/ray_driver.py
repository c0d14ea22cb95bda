"""Runs tasks on a Ray cluster for `ray.RayWorkers`; everything travels through a pipe.

    python -m tradewind.tasks.ray_driver HOST:PORT DESCRIPTOR

First it is told (number of workers, digest of the code, search path, current folder), then (worker, call) for each task;
None asks what the cluster has. It says (worker, "ready" | "done" | "lost" | "unfit", …). When the pipe closes, it ends its
workers and itself.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from multiprocessing.connection import Connection
from queue import SimpleQueue
from typing import Any

import ray

THREADS = "OMP_NUM_THREADS"
"""Ray sets it to 1; here it is as for the caller, so that sums are made in the same order."""
CONNECT_S = 10.0
STARTS = 10
"""How many workers in a row may fail to start."""


@ray.remote(num_cpus=1, max_restarts=0, max_task_retries=0, scheduling_strategy="SPREAD")
class Worker:
    """Runs one task at a time, and keeps its caches."""

    def begin(self, digest: str, path: list[str], folder: str) -> str:
        """Get ready; returns why it cannot."""
        with suppress(OSError):  # relative paths mean the same, where it is shared
            os.chdir(folder)
        sys.path[:] = [*path, *(each for each in sys.path if each not in path)]
        try:
            from tradewind.tasks.worker import code_digest
        except ImportError as error:
            return f"machine {os.uname().nodename} cannot load Tradewind ({error}); install it there, at the same path"
        if code_digest() == digest:
            return ""
        return (
            f"machine {os.uname().nodename} has other code than this one, so results would differ; install the same version "
            "of Tradewind and of its packages there"
        )

    def run(self, call: bytes) -> bytes:
        """Run a task."""
        from tradewind.tasks.worker import answer

        return answer(call)


class Driver:
    """Keeps so many workers, and tells the caller what they do. Threads only add to its queue."""

    def __init__(self, pipe: Connection) -> None:
        self._pipe, self._queue = pipe, SimpleQueue[Callable[[], None]]()
        wanted, *self._code = pipe.recv()
        self._workers: dict[int, Any] = {}
        self._failed, self._is_over = 0, False
        for number in range(min(wanted, max(1, int(ray.cluster_resources().get("CPU", 1))))):
            self._start(number)

    def run(self) -> None:
        """Hand out tasks until the caller is gone."""
        threading.Thread(target=self._listen, daemon=True).start()
        while not self._is_over:
            self._queue.get()()
        for worker in self._workers.values():
            ray.kill(worker)

    def _listen(self) -> None:
        with suppress(EOFError, OSError):
            while True:
                self._queue.put(partial(self._take, self._pipe.recv()))
        self._queue.put(self._end)

    def _end(self) -> None:
        self._is_over = True

    def _take(self, given: tuple[int, bytes] | None) -> None:
        """A task for a worker, or a question."""
        if given is None:
            has, free = (each().get("CPU", 0) for each in (ray.cluster_resources, ray.available_resources))
            self._tell(f"it has {has:g} CPUs, of which {free:g} are free")
        else:
            number, call = given
            worker = self._workers[number]
            self._follow(number, worker, worker.run.remote(call))

    def _start(self, number: int) -> None:
        threads = os.environ.get(THREADS, str(os.cpu_count()))
        worker = self._workers[number] = Worker.options(  # type: ignore[attr-defined]
            runtime_env={"env_vars": {THREADS: threads}}
        ).remote()
        self._follow(number, worker, worker.begin.remote(*self._code))

    def _follow(self, number: int, worker: Any, answer: Any) -> None:
        answer.future().add_done_callback(
            lambda done: self._queue.put(partial(self._heard, number, worker, done))
        )

    def _heard(self, number: int, worker: Any, done: Future[Any]) -> None:
        """Tell what a worker did; one that is lost is replaced."""
        error = done.exception()
        if error is not None:
            why = str(error).strip().splitlines()[0]
            self._failed += 1
            self._tell(number, "unfit" if self._failed > STARTS else "lost", why)
            ray.kill(worker)  # it may only be out of reach
            self._start(number)
        elif isinstance(found := done.result(), bytes):
            self._tell(number, "done", found)
        else:
            self._failed = 0
            self._tell(number, "unfit" if found else "ready", found)

    def _tell(self, *words: Any) -> None:
        with suppress(OSError):
            self._pipe.send(words)


def connect(address: str, **more: Any) -> None:
    """Connect to a cluster. Ray itself looks for one that is not there for minutes."""
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host, int(port)), timeout=CONNECT_S).close()
    except (OSError, ValueError) as error:
        sys.exit(f"no cluster answers at {address} ({error})")
    ray.init(address=address, log_to_driver=False, logging_level="ERROR", **more)


def main(address: str, descriptor: int) -> None:
    """Serve the caller."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the caller ends it
    connect(address)
    Driver(Connection(descriptor)).run()
    os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
