"""Schedulers that the GADGET paper compares with (Sec. VI-2), with greedy ring placement: fifo, drf, las; and srtf.

They ignore utilities. Fifo, las and srtf give a job a fixed number of workers, drawn from 1 to 10 and clipped to what the
job allows; drf gives workers one by one. Rings are placed by the DP, which prefers few links.

ring-fifo  order of arrival; running jobs keep their rings, and a job that does not fit lets others pass (strict fifo
           would wait for ever behind a job that never fits)
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
from tradewind.systems.gadget.kernels.fabric import allowed_sizes
from tradewind.systems.gadget.kernels.pack import reserve_if_it_fits, resize
from tradewind.systems.gadget.kernels.pool import greedy_prices
from tradewind.systems.gadget.kernels.slot import Rings, Slot, no_rings
from tradewind.systems.gadget.kernels.state import demand_of, scratch_of, state_of
from tradewind.systems.gadget.shared.choice import (
    ARCHITECTURES,
    TRIGGERS,
    WORKS,
    RingChoice,
    RingRecord,
    Sight,
    rings_before,
)
from tradewind.systems.gadget.shared.scheduler import RingScheduler

MOST = 10
"""Largest fixed number of workers that is drawn."""
STAY = 1.0
"""How much cheaper the servers of the slot before look to a job that is placed anew."""


class RingPlacer:
    """Places the rings of a slot one after the other; every size that a job allows is as good as another."""

    def __init__(self, slot: Slot, jobs: Sequence[Job], records: Sequence[RingRecord]) -> None:
        slot = slot._replace(gain=allowed_sizes(jobs))
        self._before = rings_before(slot, records)
        self._state = state_of(
            slot, no_rings(slot), demand_of(slot, self._before.server, STAY), scratch_of(slot)
        )
        self._prices = greedy_prices(slot, 1.0)[0]

    @property
    def rings(self) -> Rings:
        """The rings placed so far."""
        return self._state.rings

    def keep(self, i: int) -> bool:
        """Keep the ring that job i had, if it still fits."""
        before = self._before
        if not before.size[i]:
            return False
        server, workers, size = self.rings
        server[i], workers[i], size[i] = before.server[i], before.workers[i], before.size[i]
        return reserve_if_it_fits(self._state, i)

    def put(self, i: int, k: int) -> bool:
        """Place a ring of k workers for job i instead of the one it has; False where none fits, and nothing changes."""
        return resize(self._state, self._prices, i, k)


Rank = Callable[[Job, RingRecord], float]
"""Rank of a job, the smallest first; ties go in order of arrival."""


def _running_first(_job: Job, record: RingRecord) -> float:
    return float(not record.servers)


def _service(job: Job, record: RingRecord) -> float:
    return record.attained * job.worker[0][1]


def _work_left(job: Job, record: RingRecord) -> float:
    assert isinstance(job.work, Rounds)
    return float(job.work.total - record.done)


class Ordered:
    """fifo, las and srtf: jobs in order of rank get their fixed number of workers."""

    sight: Sight = "slot"

    def __init__(self, seed: int, rank: Rank) -> None:
        self._seed, self._rank = seed, rank

    def workers(self, job: Job) -> int:
        """The fixed number of workers of a job, the same in every slot."""
        drawn = int(np.random.default_rng([self._seed, job.index]).integers(1, MOST + 1))
        return min(max(drawn, job.workers_min), job.workers_max)

    def choose(
        self, slot: Slot, jobs: Sequence[Job], records: Sequence[RingRecord], number: int
    ) -> RingChoice:
        """In order, each job that fits."""
        del number
        placer = RingPlacer(slot, jobs, records)
        for i in sorted(range(len(jobs)), key=lambda i: (self._rank(jobs[i], records[i]), i)):
            if not placer.keep(i):
                placer.put(i, self.workers(jobs[i]))
        return RingChoice(rings=placer.rings)


class DominantShare:
    """drf: progressive filling over jobs, worker by worker."""

    sight: Sight = "slot"

    def choose(
        self, slot: Slot, jobs: Sequence[Job], records: Sequence[RingRecord], number: int
    ) -> RingChoice:
        """Grow the job with the smallest dominant share by one worker; a job begins with its least number."""
        del number
        placer = RingPlacer(slot, jobs, records)
        total = np.maximum(slot.room.sum(0), 1)
        share: Floats = (slot.need / total).max(1)
        line = [(0.0, i) for i in range(len(jobs))]
        heapify(line)
        while line:
            _, i = line[0]
            k = max(jobs[i].workers_min, int(placer.rings.size[i]) + 1)
            if k > jobs[i].workers_max or not placer.put(i, k):
                heappop(line)
            else:
                heapreplace(line, (float(share[i]) * k, i))
        return RingChoice(rings=placer.rings)


def _ordered(rank: Rank) -> Callable[..., RingScheduler]:
    def factory(setup: Setup, params: Mapping[str, Any], rng: np.random.Generator) -> RingScheduler:
        return RingScheduler(setup, Ordered(int(rng.integers(1 << 30)), rank))

    return factory


def _drf(setup: Setup, params: Mapping[str, Any], rng: np.random.Generator) -> RingScheduler:
    return RingScheduler(setup, DominantShare())


def _spec(name: str, summary: str, factory: Callable[..., RingScheduler]) -> Spec:
    return Spec(
        name=name, summary=summary, factory=factory, works=WORKS, architectures=ARCHITECTURES, triggers=TRIGGERS,
        system="gadget",
    )  # fmt: skip


FIFO = _spec(
    "ring-fifo",
    "Ring jobs in order of arrival, each that fits, with a fixed number of workers",
    _ordered(_running_first),
)
DRF = _spec(
    "ring-drf", "Every slot, the ring job with the smallest dominant share gets the next worker", _drf
)
LAS = _spec("ring-las", "Every slot, the ring jobs with the least worker-time so far run", _ordered(_service))
SRTF = _spec("ring-srtf", "Every slot, the ring jobs with the least work left run", _ordered(_work_left))
