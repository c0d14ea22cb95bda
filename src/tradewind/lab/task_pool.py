"""Processes that work off a list of tasks: each keeps to tasks that share what it has already computed.

A process that dies takes only its own task with it; when the caller stops, is interrupted or is killed, all of them end.
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
class Task:
    """A call of a module-level function; tasks of one group share caches, so they are kept in one process."""

    name: str
    group: str
    call: Callable[..., Any]
    args: tuple[Any, ...]
    expected_s: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """What came of a task: its value or, where it failed, the reason; CPU seconds."""

    task: Task
    value: Any = None
    error: str = ""
    cpu_s: float = 0.0


def work_off(tasks: Sequence[Task], lanes: int) -> Iterator[Done]:
    """Does all tasks and tells of each as it is done, in `lanes` processes (1: here)."""
    if lanes <= 1 or len(tasks) <= 1:
        for task in tasks:
            value, error, cpu_s = _attempt(task.call, task.args)
            yield Done(task=task, value=value, error=error, cpu_s=cpu_s)
        return
    crew = [_Lane() for _ in range(min(lanes, len(tasks)))]
    waiting = list(tasks)
    try:
        while waiting or any(lane.task for lane in crew):
            for lane in crew:
                if lane.task is None and waiting:
                    lane.give(waiting.pop(_choice(waiting, lane, crew)))
            busy = {lane.here: lane for lane in crew if lane.task}
            ready = wait(list(busy))
            for here, lane in busy.items():
                if here in ready:
                    yield lane.take()
    finally:
        for lane in crew:
            lane.stop()


def _choice(waiting: Sequence[Task], lane: _Lane, crew: Sequence[_Lane]) -> int:
    """The next task: of a group begun here, else of a group nobody has begun, else any; the longest group or task first."""
    elsewhere = {group for other in crew if other is not lane for group in other.begun}
    left: dict[str, float] = {}
    for task in waiting:
        left[task.group] = left.get(task.group, 0.0) + task.expected_s

    def merit(index: int) -> tuple[int, float, float]:
        task = waiting[index]
        rank = 2 if task.group in lane.begun else 1 if task.group not in elsewhere else 0
        return rank, left[task.group], task.expected_s

    return max(range(len(waiting)), key=merit)


@dataclass(slots=True)
class _Lane:
    """One process and the task it has."""

    task: Task | None = None
    begun: set[str] = field(default_factory=set)
    here: Connection = field(init=False)
    process: Any = field(init=False)

    def __post_init__(self) -> None:
        context = get_context("spawn")
        self.here, there = context.Pipe()
        self.process = context.Process(target=_serve, args=(there,), daemon=True)
        self.process.start()
        there.close()

    def give(self, task: Task) -> None:
        self.task = task
        self.begun.add(task.group)
        with suppress(BrokenPipeError):  # a dead process is noticed when its answer is taken
            self.here.send((task.call, task.args))

    def take(self) -> Done:
        task, self.task = self.task, None
        assert task is not None
        try:
            value, error, cpu_s = self.here.recv()
        except (EOFError, ConnectionResetError):
            self.process.join()
            code = self.process.exitcode
            self.__post_init__()
            return Done(task=task, error=f"its process ended with code {code} (out of memory?)")
        return Done(task=task, value=value, error=error, cpu_s=cpu_s)

    def stop(self) -> None:
        self.here.close()
        self.process.terminate()
        self.process.join()


def _serve(there: Connection) -> None:
    """The life of a process: task after task, until the other side is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the caller stops us
    threading.Thread(target=_end_with_caller, daemon=True).start()
    with suppress(EOFError, BrokenPipeError):
        while True:
            call, args = there.recv()
            there.send(_attempt(call, args))


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
    except (
        Exception
    ) as error:  # one figure that fails must not take the others with it; it is shown as failed
        where = traceback.extract_tb(error.__traceback__)[-1]
        name = f"{type(error).__name__} in {where.name}, line {where.lineno}"
        return None, f"{name}: {error}", process_time() - begin
