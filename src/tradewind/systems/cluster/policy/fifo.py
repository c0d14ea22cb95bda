"""First in, first out, with a blocking head of the queue or with backfill."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from heapq import heapify, heappop, heapreplace
from typing import Any

import numpy as np

from tradewind.model.decision import NOTHING, Decision
from tradewind.model.job import Job
from tradewind.model.setup import Setup
from tradewind.model.spec import Spec
from tradewind.model.view import View
from tradewind.systems.cluster.shared.scheduler import Scheduler, start
from tradewind.systems.cluster.shared.shape import Shape

WORKS = frozenset(("fixed", "rounds/none", "rounds/colocated"))
"""Kinds of work that need nothing but workers."""


class Fifo(Scheduler):
    """Jobs start in order of arrival; one that does not fit blocks all behind it."""

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self._queue: deque[tuple[int, Shape]] = deque()

    def enqueue(self, job: int, shape: Shape, facts: Job) -> None:
        self._queue.append((job, shape))

    def requeue(self, job: int, shape: Shape, kept: int) -> None:
        self._queue = deque(sorted([*self._queue, (job, shape)], key=lambda entry: entry[0]))

    def drop(self, job: int) -> None:
        self._queue = deque(entry for entry in self._queue if entry[0] != job)

    def decide(self, view: View) -> Decision:
        verdicts = self.observe(view)
        queue, cluster, now, plans = self._queue, self.cluster, view.now_us, []
        while queue:
            job, shape = queue[0]
            place = cluster.take(job, shape)
            if place is None:
                break
            queue.popleft()
            plans.append(start(now, job, place))
        return Decision(tuple(plans), tuple(verdicts)) if plans or verdicts else NOTHING

    def _save_queues(self) -> Any:
        return [(job, shape.number) for job, shape in self._queue]

    def _restore_queues(self, data: Any, shapes: list[Shape]) -> None:
        self._queue = deque((job, shapes[number]) for job, number in data)


class Backfill(Scheduler):
    """At every event, waiting jobs are tried in order of arrival, and each that still fits starts.

    Equal jobs wait in one queue: where the first does not fit, none behind it does. The cost of an event grows with the
    number of different shapes, not of jobs.
    """

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self._queues: dict[Shape, deque[int]] = {}
        self._fresh: list[Shape] = []

    def enqueue(self, job: int, shape: Shape, facts: Job) -> None:
        self._queues.setdefault(shape, deque()).append(job)
        self._fresh.append(shape)

    def requeue(self, job: int, shape: Shape, kept: int) -> None:
        self._queues[shape] = deque(sorted([*self._queues.get(shape, ()), job]))

    def drop(self, job: int) -> None:
        for shape, queue in self._queues.items():
            if job in queue:
                queue.remove(job)
                if not queue:
                    del self._queues[shape]
                return

    def decide(self, view: View) -> Decision:
        verdicts = self.observe(view)
        cluster, now, plans, queues = self.cluster, view.now_us, [], self._queues
        # Without new room only new jobs can start: the others did not fit before.
        tried = queues if self.freed else dict.fromkeys(self._fresh)
        heads = [(queues[shape][0], shape.number, shape) for shape in tried if shape in queues]
        heapify(heads)
        while heads:
            job, number, shape = heads[0]
            place = cluster.take(job, shape)
            if place is None:
                heappop(heads)
                continue
            plans.append(start(now, job, place))
            queue = queues[shape]
            queue.popleft()
            if queue:
                heapreplace(heads, (queue[0], number, shape))
            else:
                del queues[shape]
                heappop(heads)
        self._fresh.clear()
        return Decision(tuple(plans), tuple(verdicts)) if plans or verdicts else NOTHING

    def _save_queues(self) -> Any:
        return [(shape.number, list(queue)) for shape, queue in self._queues.items()]

    def _restore_queues(self, data: Any, shapes: list[Shape]) -> None:
        self._queues = {shapes[number]: deque(queue) for number, queue in data}
        self._fresh = []


def _fifo(setup: Setup, params: Mapping[str, Any], rng: np.random.Generator) -> Fifo:
    return Fifo(setup)


def _backfill(setup: Setup, params: Mapping[str, Any], rng: np.random.Generator) -> Backfill:
    return Backfill(setup)


FIFO = Spec(
    name="fifo",
    summary="First in, first out; a job that does not fit blocks those behind it",
    factory=_fifo,
    works=WORKS,
    system="cluster",
    compiled="tradewind.systems.cluster.compiled:fifo",
)
BACKFILL = Spec(
    name="fifo-backfill",
    summary="First in, first out with backfill: every waiting job that fits starts",
    factory=_backfill,
    works=WORKS,
    system="cluster",
    compiled="tradewind.systems.cluster.compiled:backfill",
)
