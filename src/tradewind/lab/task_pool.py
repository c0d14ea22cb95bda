"""Process pool that prefers to run tasks of one group in one process, so that they share its caches.

If a process dies, only its own task fails. When the caller stops, is interrupted or is killed, all processes end.
"""

from __future__ import annotations

import os
import signal
import threading
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing import get_context, parent_process
from multiprocessing.connection import Connection, wait
from time import process_time
from typing import Any

from tradewind.model.errors import TradewindError


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolTask:
    """A call of a module-level function; tasks of the same group share caches."""

    name: str
    group: str
    call: Callable[..., Any]
    args: tuple[Any, ...]
    expected_s: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskResult:
    """The value of a task or the reason of its failure, and CPU seconds."""

    task: PoolTask
    value: Any = None
    error: str = ""
    cpu_s: float = 0.0


def run_tasks(tasks: Sequence[PoolTask], processes: int, *, apart: bool = False) -> Iterator[TaskResult]:
    """Run all tasks in up to `processes` processes and yield each result as it is ready.

    One process is this one, unless `apart` asks for new ones, which share no cache with it.
    """
    if not apart and (processes <= 1 or len(tasks) <= 1):
        for task in tasks:
            value, error, cpu_s = _attempt(task.call, task.args)
            yield TaskResult(task=task, value=value, error=error, cpu_s=cpu_s)
        return
    workers = [_Worker() for _ in range(min(max(processes, 1), len(tasks)))]
    waiting = list(tasks)
    try:
        while waiting or any(worker.task for worker in workers):
            for worker in workers:
                if worker.task is None and waiting:
                    worker.submit(waiting.pop(_choice(waiting, worker, workers)))
            busy = {worker.pipe: worker for worker in workers if worker.task}
            ready = wait(list(busy))
            for pipe, worker in busy.items():
                if pipe in ready:
                    yield worker.collect()
    finally:
        for worker in workers:
            worker.stop()


def _choice(waiting: Sequence[PoolTask], worker: _Worker, workers: Sequence[_Worker]) -> int:
    """Index of the next task: from a group of this worker, else a new group, else any; the longest first."""
    elsewhere = {group for other in workers if other is not worker for group in other.started}
    left: dict[str, float] = {}
    for task in waiting:
        left[task.group] = left.get(task.group, 0.0) + task.expected_s

    def merit(index: int) -> tuple[int, float, float]:
        task = waiting[index]
        rank = 2 if task.group in worker.started else 1 if task.group not in elsewhere else 0
        return rank, left[task.group], task.expected_s

    return max(range(len(waiting)), key=merit)


@dataclass(slots=True)
class _Worker:
    """A process and its current task."""

    task: PoolTask | None = None
    started: set[str] = field(default_factory=set)
    pipe: Connection = field(init=False)
    process: Any = field(init=False)

    def __post_init__(self) -> None:
        context = get_context("spawn")
        self.pipe, child = context.Pipe()
        self.process = context.Process(target=_serve, args=(child,), daemon=True)
        self.process.start()
        child.close()

    def submit(self, task: PoolTask) -> None:
        self.task = task
        self.started.add(task.group)
        with suppress(BrokenPipeError):  # a dead process is detected in `collect`
            self.pipe.send((task.call, task.args))

    def collect(self) -> TaskResult:
        task, self.task = self.task, None
        assert task is not None
        try:
            value, error, cpu_s = self.pipe.recv()
        except (EOFError, ConnectionResetError):
            self.process.join()
            code = self.process.exitcode
            self.__post_init__()
            return TaskResult(task=task, error=f"the process exited with code {code} (out of memory?)")
        return TaskResult(task=task, value=value, error=error, cpu_s=cpu_s)

    def stop(self) -> None:
        self.pipe.close()
        self.process.terminate()
        self.process.join()


def _serve(pipe: Connection) -> None:
    """Run tasks until the pipe closes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the caller terminates this process
    threading.Thread(target=_end_with_caller, daemon=True).start()
    with suppress(EOFError, BrokenPipeError):
        while True:
            call, args = pipe.recv()
            pipe.send(_attempt(call, args))


def _end_with_caller() -> None:
    caller = parent_process()
    if caller is not None:
        caller.join()
        os._exit(1)


def _attempt(call: Callable[..., Any], args: tuple[Any, ...]) -> tuple[Any, str, float]:
    """(value, error, CPU seconds)."""
    begin = process_time()
    try:
        return call(*args), "", process_time() - begin
    except TradewindError as error:
        return None, str(error), process_time() - begin
    except Exception as error:  # a task may fail in any way; the others go on
        where = traceback.extract_tb(error.__traceback__)[-1]
        name = f"{type(error).__name__} in {where.name}, line {where.lineno}"
        return None, f"{name}: {error}", process_time() - begin
