"""First in, first out: with the head of the line blocking, or with everything that fits starting (backfill)."""

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
from tradewind.systems.cluster.shared.placement import Shape
from tradewind.systems.cluster.shared.scheduler import Desk, start

WORKS = frozenset(("fixed", "rounds/none", "rounds/colocated"))
"""Work that goes on by itself once a job has its workers."""


class Fifo(Desk):
    """Jobs start in order of arrival; one that does not fit holds up all behind it."""

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self._line: deque[tuple[int, Shape]] = deque()

    def enter(self, job: int, shape: Shape, facts: Job) -> None:
        self._line.append((job, shape))

    def back(self, job: int, shape: Shape, kept: int) -> None:
        self._line = deque(sorted([*self._line, (job, shape)], key=lambda entry: entry[0]))

    def decide(self, view: View) -> Decision:
        verdicts = self.hear(view)
        line, cluster, now, plans = self._line, self.cluster, view.now_us, []
        while line:
            job, shape = line[0]
            place = cluster.take(job, shape)
            if place is None:
                break
            line.popleft()
            plans.append(start(now, job, place))
        return Decision(tuple(plans), tuple(verdicts)) if plans or verdicts else NOTHING

    def _save_queues(self) -> Any:
        return [(job, shape.number) for job, shape in self._line]

    def _restore_queues(self, data: Any, shapes: list[Shape]) -> None:
        self._line = deque((job, shapes[number]) for job, number in data)


class Backfill(Desk):
    """At every event all waiting jobs are tried in order of arrival, and each that still fits starts.

    Equal jobs wait in one line: where the first does not fit, none behind it does, so an event costs as much as
    there are different shapes, not jobs.
    """

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self._lines: dict[Shape, deque[int]] = {}
        self._fresh: list[Shape] = []

    def enter(self, job: int, shape: Shape, facts: Job) -> None:
        self._lines.setdefault(shape, deque()).append(job)
        self._fresh.append(shape)

    def back(self, job: int, shape: Shape, kept: int) -> None:
        self._lines[shape] = deque(sorted([*self._lines.get(shape, ()), job]))

    def decide(self, view: View) -> Decision:
        verdicts = self.hear(view)
        cluster, now, plans, lines = self.cluster, view.now_us, [], self._lines
        # Without new room only jobs that came just now can start: the others did not fit before.
        tried = lines if self.freed else dict.fromkeys(self._fresh)
        heads = [(lines[shape][0], shape.number, shape) for shape in tried]
        heapify(heads)
        while heads:
            job, number, shape = heads[0]
            place = cluster.take(job, shape)
            if place is None:
                heappop(heads)
                continue
            plans.append(start(now, job, place))
            line = lines[shape]
            line.popleft()
            if line:
                heapreplace(heads, (line[0], number, shape))
            else:
                del lines[shape]
                heappop(heads)
        self._fresh.clear()
        return Decision(tuple(plans), tuple(verdicts)) if plans or verdicts else NOTHING

    def _save_queues(self) -> Any:
        return [(shape.number, list(line)) for shape, line in self._lines.items()]

    def _restore_queues(self, data: Any, shapes: list[Shape]) -> None:
        self._lines = {shapes[number]: deque(line) for number, line in data}
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
)
BACKFILL = Spec(
    name="fifo-backfill",
    summary="In order of arrival, but every waiting job that fits starts",
    factory=_backfill,
    works=WORKS,
)
