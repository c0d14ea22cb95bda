"""Tasks over workers: those of one group preferably run in one worker, so that they share its caches.

If a worker is lost, its task is tried again elsewhere. When the caller stops, is interrupted or is killed, all workers end.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from tradewind.model.errors import InputError
from tradewind.tasks.processes import ProcessWorkers
from tradewind.tasks.ray import RayWorkers
from tradewind.tasks.worker import Outcome, Workers, attempt

TRIES = 3
"""How many workers a task may lose: one that ends every process that it runs in must not go on for ever."""
RAY = "ray://"


class Where(NamedTuple):
    """Where tasks run: in `jobs` processes of this machine (at most 1: in this process), or `on` a cluster.

    jobs  on a cluster: how many workers at most; 0: as many as it has CPUs
    on    ray://HOST:PORT; empty: this machine
    """

    jobs: int = 0
    on: str = ""

    @property
    def is_here(self) -> bool:
        """Whether tasks run in this process."""
        return not self.on and self.jobs <= 1

    def __str__(self) -> str:
        if self.on:
            return f"on {self.on}"
        return f"with {max(1, self.jobs)} process{'es' if self.jobs > 1 else ''}"


HERE = Where()


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
    """The value of a task or the reason of its failure (`cause`: the exception, if it is known), and CPU seconds."""

    task: PoolTask
    value: Any = None
    error: str = ""
    cause: Exception | None = None
    cpu_s: float = 0.0


def run_tasks(tasks: Sequence[PoolTask], where: Where = HERE, *, apart: bool = False) -> Iterator[TaskResult]:
    """Run all tasks and yield each result as it is ready; one process is this one.

    apart: even one task gets a new process, which shares no cache with this one.
    """
    if where.on and not where.on.startswith(RAY):
        raise InputError(
            f"found {where.on!r}; tasks run on a Ray cluster: --on ray://HOST:PORT", where="--on"
        )
    if not tasks:
        return
    if where.on:
        yield from spread(tasks, RayWorkers(where.on.removeprefix(RAY), where.jobs or len(tasks), len(tasks)))
    elif apart or (where.jobs > 1 and len(tasks) > 1):
        yield from spread(tasks, ProcessWorkers(min(max(where.jobs, 1), len(tasks))))
    else:
        for task in tasks:
            yield _result(task, attempt(task.call, task.args))


def _result(task: PoolTask, found: Outcome) -> TaskResult:
    return TaskResult(task=task, **found._asdict())


def spread(tasks: Sequence[PoolTask], workers: Workers) -> Iterator[TaskResult]:
    """Run all tasks on workers, which end with this."""
    waiting, lost = list(range(len(tasks))), [0] * len(tasks)
    idle, busy = set[int](), dict[int, int]()
    started: dict[int, set[str]] = {}
    try:
        while waiting or busy:
            for worker in sorted(idle):
                while waiting and worker in idle:
                    index = _choice(tasks, waiting, worker, started)
                    waiting.remove(index)
                    try:
                        call = pickle.dumps((tasks[index].call, tasks[index].args))
                    except Exception as error:  # whatever an object raises that cannot be pickled
                        text = f"the task cannot be sent to another process: {error}"
                        yield _result(tasks[index], Outcome(error=text))
                        continue
                    started.setdefault(worker, set()).add(tasks[index].group)
                    workers.submit(worker, call)
                    busy[worker] = index
                    idle.remove(worker)
            if not busy and not waiting:
                return
            for worker, kind, outcome, why in workers.wait():
                (idle.discard if kind == "lost" else idle.add)(worker)
                if kind == "lost":
                    started.pop(worker, None)
                if worker not in busy:  # one that is new, or was lost while it had nothing to do
                    continue
                index = busy.pop(worker)
                if kind == "done":
                    yield _result(tasks[index], outcome)
                    continue
                lost[index] += 1
                if lost[index] < TRIES:
                    waiting.append(index)
                else:
                    text = f"{TRIES} workers were lost with it; the last one: {why}"
                    yield _result(tasks[index], Outcome(error=text))
    finally:
        workers.close()


def _choice(
    tasks: Sequence[PoolTask], waiting: Sequence[int], worker: int, started: Mapping[int, set[str]]
) -> int:
    """The next task: from a group of this worker, else a new group, else any; the longest first."""
    mine = started.get(worker, set())
    elsewhere = {group for other, groups in started.items() if other != worker for group in groups}
    left: dict[str, float] = {}
    for index in waiting:
        left[tasks[index].group] = left.get(tasks[index].group, 0.0) + tasks[index].expected_s

    def merit(index: int) -> tuple[int, float, float, int]:
        task = tasks[index]
        rank = 2 if task.group in mine else 1 if task.group not in elsewhere else 0
        return rank, left[task.group], task.expected_s, -index

    return max(waiting, key=merit)
