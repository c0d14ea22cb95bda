"""Gains of ring sizes in a slot, from the jobs' utilities and what is done."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tradewind.model.arrays import Floats
from tradewind.model.job import Job, Rounds
from tradewind.model.setup import Setup
from tradewind.model.units import MICRO
from tradewind.systems.gadget.kernels.gains import Climb, climbs, gains, gains_now, price_of_waiting
from tradewind.systems.gadget.kernels.slot import Slot
from tradewind.systems.gadget.shared.choice import Sight
from tradewind.systems.gadget.shared.pace import Pace, pace_of

PARTS = 4
"""Parts of a worker in `fine_gains`."""
KEPT = 0.05
"""Share of the envelope's gain that a job keeps where it could wait: later arrivals are unknown."""


class JobGains:
    """Gains of jobs, with their utilities tabulated once. total (R,): capacity of the whole cluster."""

    def __init__(self, sight: Sight, setup: Setup, total: Floats) -> None:
        self._sight, self._setup, self._total = sight, setup, total
        self._paces: dict[int, Pace] = {}
        self._tables: dict[int, Floats] = {}
        self._climbs: dict[int, bool] = {}

    def forget(self, job: int) -> None:
        """Drop the tables of a job that is gone."""
        for table in (self._paces, self._tables, self._climbs):
            table.pop(job, None)

    def pace(self, job: Job) -> Pace:
        """How fast a job works."""
        if job.index not in self._paces:
            self._paces[job.index] = pace_of(self._setup, job)
        return self._paces[job.index]

    def gains(self, jobs: Sequence[Job], done: Sequence[int], left: int, *, inside: bool = False) -> Floats:
        """(I, N + 1) worth of k workers in this slot, between servers or inside one (where ring time makes a difference).

        done: work of each job, millionths of its unit; left: slots that may be planned, this one included.
        """
        widest = max(job.workers_max for job in jobs)
        result = np.full((len(jobs), widest + 1), -np.inf)
        done = [self.pace(job).at_full_speed(work) for job, work in zip(jobs, done, strict=True)]
        rows = [self._gain(job, work, left) for job, work in zip(jobs, done, strict=True)]
        if self._sight == "ahead" and left > 1:
            self._wait(jobs, done, rows, left)
        for i, (job, row) in enumerate(zip(jobs, rows, strict=True)):
            row = self.pace(job).slowed(row, inside=inside)
            row[1 : job.workers_min] = -np.inf
            result[i, : job.workers_max + 1] = row
            result[i, 0] = 0.0
        return result

    def _wait(self, jobs: Sequence[Job], done: Sequence[int], rows: list[Floats], left: int) -> None:
        """Where not all jobs can run, lower the gains of climbs by what they could still earn in later slots.

        Concave utilities earn at once and are left as they are.
        """
        needs = [max((amount / self._total[r] for r, amount in job.worker), default=0.0) for job in jobs]
        if sum(need * job.workers_max for need, job in zip(needs, jobs, strict=True)) <= 1.0:
            return
        found: dict[int, Climb] = {}
        for i, job in enumerate(jobs):
            if (values := self._values(job, done[i])) is not None and needs[i] > 0.0:
                reach = min(len(values) - 1, job.workers_max * left)
                found[i] = Climb(values=values[: reach + 1], need=needs[i], widest=job.workers_max)
        price = price_of_waiting(list(found.values()), left - 1)
        for i, climb in found.items():
            if self._climbs[jobs[i].index]:
                now = gains_now(climb, price, left - 1)
                finite = np.isfinite(rows[i])
                rows[i][finite] = KEPT * rows[i][finite] + (1.0 - KEPT) * now[finite]

    def _gain(self, job: Job, done: int, left: int) -> Floats:
        """(N + 1,) worth of k workers of one job by its utility alone."""
        assert isinstance(job.work, Rounds)
        most, values = job.workers_max, self._values(job, done)
        if values is None:
            # progress has no utility: a larger share of the remaining work is better
            rest = max(1, -(-(self.pace(job).count * MICRO - done) // MICRO))
            return np.minimum(np.arange(most + 1), rest) / rest
        reach = min(len(values) - 1, most * left)
        if self._sight == "slot" or left == 1:  # what a climb would earn after the last slot is worth nothing
            k = np.minimum(np.arange(most + 1), reach)
            row: Floats = values[k] - values[0]
            return row
        row = gains(values[: reach + 1], most)
        # a gang wider than the remaining work may run and gains no more; other jobs run with fewer workers
        if most > reach:
            row[reach + 1 :] = row[reach] if job.workers_min > reach else -np.inf
        return row

    def _values(self, job: Job, done: int) -> Floats | None:
        """Utility after 0, 1, … more worker-slots at full speed; None where the job has no utility of progress."""
        if job.utility is None or job.utility.of != "progress":
            return None
        pace = self.pace(job)
        if job.index not in self._tables:
            worth = [job.utility.value(pace.progress(x)) for x in range(pace.count + 1)]
            self._tables[job.index] = np.array(worth)
            self._climbs[job.index] = climbs(self._tables[job.index])
        whole, part = divmod(done, MICRO)
        values = self._tables[job.index][whole:]
        if part:  # a restart or a failure left a fraction, or rings work at their own pace
            ahead = [done / MICRO + x for x in range(len(values) - 1)] + [float(pace.count)]
            values = np.array([job.utility.value(pace.progress(x)) for x in ahead])
        return values


def fine_gains(setup: Setup, slot: Slot, jobs: Sequence[Job], done: Sequence[int]) -> Floats:
    """(I, PARTS N + 1) what fractions of a worker gain in this slot alone.

    Without a utility of progress, gains are linear between whole workers.
    """
    parts = np.arange(PARTS * slot.widest + 1) / PARTS
    result = np.empty((len(jobs), len(parts)))
    for i, (job, work) in enumerate(zip(jobs, done, strict=True)):
        if job.utility is None or job.utility.of != "progress":
            result[i] = np.interp(parts, np.arange(slot.widest + 1), np.maximum(slot.gain[i], 0.0))
            continue
        pace = pace_of(setup, job)
        begin = pace.at_full_speed(work) / MICRO
        more = np.interp(parts, np.arange(len(pace.speed)), pace.speed)
        ends = begin + np.minimum(more, pace.count - begin)
        worth = np.array([job.utility.value(pace.progress(x)) for x in ends.tolist()])
        result[i] = worth - worth[0]
    return result
