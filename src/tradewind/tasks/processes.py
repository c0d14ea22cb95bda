"""Workers that are processes of this machine."""

from __future__ import annotations

import os
import pickle
import signal
import threading
from collections.abc import Sequence
from contextlib import suppress
from multiprocessing import get_context, parent_process
from multiprocessing.connection import Connection, wait
from typing import Any

from tradewind.tasks.worker import Heard, answer


class ProcessWorkers:
    """So many new processes."""

    def __init__(self, count: int) -> None:
        self._context = get_context("spawn")
        self._processes: dict[int, tuple[Connection, Any]] = {}
        self._new = [self._start(worker) for worker in range(count)]

    def _start(self, worker: int) -> Heard:
        mine, its = self._context.Pipe()
        process = self._context.Process(target=_serve, args=(its,), daemon=True)
        process.start()
        its.close()
        self._processes[worker] = mine, process
        return Heard(worker, "ready")

    def submit(self, worker: int, call: bytes) -> None:
        """Let a worker that is ready run a call."""
        with suppress(OSError):  # a dead process is noticed by `wait`
            self._processes[worker][0].send_bytes(call)

    def wait(self) -> Sequence[Heard]:
        """Wait until something is heard."""
        if self._new:
            found, self._new = self._new, []
            return found
        ready = wait([pipe for pipe, _ in self._processes.values()])
        return [
            heard
            for worker, (pipe, process) in tuple(self._processes.items())
            if pipe in ready
            for heard in self._hear(worker, pipe, process)
        ]

    def _hear(self, worker: int, pipe: Connection, process: Any) -> Sequence[Heard]:
        try:
            return (Heard(worker, "done", pickle.loads(pipe.recv_bytes())),)
        except (EOFError, OSError):
            process.join()
            pipe.close()
            why = f"the process exited with code {process.exitcode} (out of memory?)"
            return Heard(worker, "lost", why=why), self._start(worker)

    def close(self) -> None:
        """End all of them."""
        for pipe, process in self._processes.values():
            pipe.close()
            process.terminate()
        for _, process in self._processes.values():
            process.join()


def _serve(pipe: Connection) -> None:
    """Run tasks until the pipe closes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the caller terminates this process
    threading.Thread(target=_end_with_caller, daemon=True).start()
    with suppress(EOFError, BrokenPipeError):
        while True:
            pipe.send_bytes(answer(pipe.recv_bytes()))


def _end_with_caller() -> None:
    caller = parent_process()
    if caller is not None:
        caller.join()
        os._exit(1)
