"""Schedulers that the GADGET paper compares with (Sec. VI-2), with greedy ring placement: fifo, drf, las; and srtf.

They do not know what progress is worth. Fifo and las give a job a fixed number of workers, drawn from 1 to 10 and cut to
what the job allows; drf gives workers one by one. A ring goes where the DP finds one that uses few links.

ring-fifo  in order of arrival, running jobs keep their rings, and what does not fit lets others pass (strict fifo would
           stand still for ever behind a job that never fits)
ring-drf   every slot, the job with the smallest dominant share gets the next worker
ring-las   every slot, the jobs with the least worker-time so far run
ring-srtf  every slot, the jobs with the least work left run (not in the paper; work is public)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from heapq import heapify, heappop, heapreplace
from typing import Any

import numpy as np

from tradewind.model.arrays import Floats
from tradewind.model.job import Job, Rounds
from tradewind.model.setup import Setup
from tradewind.model.spec import Spec
from tradewind.systems.gadget.kernels.pack import (
    book,
    clear,
    facts_of,
    left_of,
    look,
    prices_of,
    rings_of,
    scratch_of,
    settle,
)
from tradewind.systems.gadget.kernels.pool import manners
from tradewind.systems.gadget.kernels.slot import Rings, Slot, no_rings
from tradewind.systems.gadget.shared import (
    ARCHITECTURES,
    TRIGGERS,
    WORKS,
    Choice,
    Record,
    RingDesk,
    Sight,
    rings_before,
)

MOST = 10


class Seats:
    """Rings of a slot put in one after the other."""

    def __init__(self, slot: Slot, before: Rings) -> None:
        self._slot, self._before = slot, before
        self._facts = facts_of(slot, before.server, 1.0)
        self._left, self.rings = left_of(slot), rings_of(no_rings(slot))
        self._scratch = scratch_of(slot.servers, len(slot.trunk), slot.widest)
        self._window, self._prices = np.arange(len(slot.trunk)), prices_of(manners(slot, 1.0)[0])

    def keep(self, i: int) -> bool:
        """The ring that job i had, if it still fits."""
        server, workers, size = self.rings
        if not self._before.size[i]:
            return False
        server[i], workers[i], size[i] = self._before.server[i], self._before.workers[i], self._before.size[i]
        book(self._facts, self._left, self.rings, i, 1)
        if all((part >= 0).all() for part in self._left):
            return True
        book(self._facts, self._left, self.rings, i, -1)
        clear(self.rings, i)
        return False

    def put(self, i: int, k: int) -> bool:
        """A ring of k workers for job i instead of the one it has; False (and nothing changes) where there is none."""
        if self.rings[2][i]:
            book(self._facts, self._left, self.rings, i, -1)
        look(self._facts, self._left, self._prices, self._scratch, self._window, i)
        if k < len(self._scratch[0]) and self._scratch[0][k] < np.inf:
            settle(self._facts, self._left, self.rings, self._scratch, self._window, i, k)
            return True
        if self.rings[2][i]:
            book(self._facts, self._left, self.rings, i, 1)
        return False

    def done(self) -> Choice:
        """The rings."""
        return Choice(rings=Rings(server=self.rings[0], workers=self.rings[1], size=self.rings[2]))


def _allowed(slot: Slot, jobs: Sequence[Job]) -> Slot:
    """The slot with every size a job allows, whatever it is worth."""
    gain = np.full(slot.gain.shape, -np.inf)
    gain[:, 0] = 0.0
    for i, job in enumerate(jobs):
        gain[i, job.workers_min : job.workers_max + 1] = 1.0
    return Slot(
        room=slot.room, link=slot.link, first=slot.first, trunk=slot.trunk, need=slot.need, band=slot.band, gain=gain,
        open=slot.open,
    )  # fmt: skip


Rank = Callable[[Job, Record], float]
"""Place of a job in the line, the smallest first; those that are level go in order of arrival."""


def _running_first(_job: Job, record: Record) -> float:
    return float(not record.servers)


def _service(job: Job, record: Record) -> float:
    return record.attained * job.worker[0][1]


def _work_left(job: Job, record: Record) -> float:
    assert isinstance(job.work, Rounds)
    return float(job.work.total - record.done)


class Ordered:
    """fifo, las and srtf: who is first in line gets its fixed number of workers."""

    sight: Sight = "slot"

    def __init__(self, seed: int, rank: Rank) -> None:
        self._seed, self._rank = seed, rank

    def workers(self, job: Job) -> int:
        """The fixed number of a job, the same whenever it is asked."""
        drawn = int(np.random.default_rng([self._seed, job.index]).integers(1, MOST + 1))
        return min(max(drawn, job.workers_min), job.workers_max)

    def choose(self, slot: Slot, jobs: Sequence[Job], records: Sequence[Record], number: int) -> Choice:
        """In order, each that fits."""
        del number
        slot = _allowed(slot, jobs)
        seats = Seats(slot, rings_before(slot, records))
        for i in sorted(range(len(jobs)), key=lambda i: (self._rank(jobs[i], records[i]), i)):
            if not seats.keep(i):
                seats.put(i, self.workers(jobs[i]))
        return seats.done()


class DominantShare:
    """drf: progressive filling over jobs, worker by worker."""

    sight: Sight = "slot"

    def choose(self, slot: Slot, jobs: Sequence[Job], records: Sequence[Record], number: int) -> Choice:
        """The job with the smallest dominant share grows by one worker (begins with its least number)."""
        del number
        slot = _allowed(slot, jobs)
        seats = Seats(slot, rings_before(slot, records))
        total = np.maximum(slot.room.sum(0), 1)
        share: Floats = (slot.need / total).max(1)
        line = [(0.0, i) for i in range(len(jobs))]
        heapify(line)
        while line:
            _, i = line[0]
            k = max(jobs[i].workers_min, int(seats.rings[2][i]) + 1)
            if k > jobs[i].workers_max or not seats.put(i, k):
                heappop(line)
            else:
                heapreplace(line, (float(share[i]) * k, i))
        return seats.done()


def _ordered(rank: Rank) -> Callable[..., RingDesk]:
    def factory(setup: Setup, params: Mapping[str, Any], rng: np.random.Generator) -> RingDesk:
        return RingDesk(setup, Ordered(int(rng.integers(1 << 30)), rank))

    return factory


def _drf(setup: Setup, params: Mapping[str, Any], rng: np.random.Generator) -> RingDesk:
    return RingDesk(setup, DominantShare())


def _spec(name: str, summary: str, factory: Callable[..., RingDesk]) -> Spec:
    return Spec(
        name=name, summary=summary, factory=factory, works=WORKS, architectures=ARCHITECTURES, triggers=TRIGGERS,
        system="gadget",
    )  # fmt: skip


FIFO = _spec(
    "ring-fifo",
    "Ring jobs in order of arrival, each that fits, with a fixed number of workers",
    _ordered(_running_first),
)
DRF = _spec("ring-drf", "Ring jobs by dominant share, worker by worker, every slot", _drf)
LAS = _spec("ring-las", "Ring jobs with the least worker-time so far run, every slot", _ordered(_service))
SRTF = _spec("ring-srtf", "Ring jobs with the least work left run, every slot", _ordered(_work_left))
