"""How fast rings work: worker-slots as they are, or rounds of equation (1), whose ring time depends on the ring."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tradewind.model.arrays import Floats
from tradewind.model.decision import Step
from tradewind.model.job import Job, Rounds
from tradewind.model.progress import comm_us
from tradewind.model.setup import Setup
from tradewind.model.units import OPEN


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """A job's work in worker-slots at full speed: what one worker, who waits for nobody, does in a slot.

    count   all of its work, rounded up
    rate    utility progress of one
    most    utility progress of all of its work
    unit    (numerator, denominator) of its own unit of work in worker-slots at full speed
    speed   (N + 1,) what k workers do in a slot between servers
    inside  (N + 1,) the same on one server, where the network does not matter
    even    whether k workers do k, wherever they are
    """

    count: int
    rate: float
    most: float
    unit: tuple[int, int]
    speed: Floats
    inside: Floats
    even: bool

    def at_full_speed(self, done: int) -> int:
        """Work done, in millionths of a worker-slot at full speed."""
        return done * self.unit[0] // self.unit[1]

    def progress(self, worker_slots: float) -> float:
        """Utility progress after so many worker-slots at full speed."""
        return min(self.rate * worker_slots, self.most)

    def slowed(self, row: Floats, *, inside: bool) -> Floats:
        """Gains (N + 1,) of k worker-slots at full speed as gains of k workers."""
        if self.even:
            return row
        line = row[np.isfinite(row)]
        return np.interp(self.inside if inside else self.speed, np.arange(len(line)), line)


def pace_of(setup: Setup, job: Job) -> Pace:
    """The pace of a ring job."""
    work, sizes = job.work, range(job.workers_max + 1)
    assert isinstance(work, Rounds)
    most = work.rate * work.count
    if work.unit != "worker-round":
        same = np.array(sizes, np.float64)
        return Pace(
            count=work.count, rate=work.rate, most=most, unit=(1, 1), speed=same, inside=same, even=True
        )
    between = [Step(0, OPEN, (0, 1), (k - 1, 1)) if k > 1 else Step(0, OPEN, (0,), (k,)) for k in sizes]
    inside = [Step(0, OPEN, (0,), (k,)) for k in sizes]
    speed, alone = (
        np.array(
            [sum(s.workers) * work.compute_us / (work.compute_us + comm_us(setup, job, s)) for s in steps]
        )
        for steps in (between, inside)
    )
    return Pace(
        count=-(-work.count * work.compute_us // setup.slot_us),
        rate=work.rate * setup.slot_us / work.compute_us,
        most=most,
        unit=(work.compute_us, setup.slot_us),
        speed=speed,
        inside=alone,
        even=False,
    )
