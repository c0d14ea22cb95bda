"""Fixed jobs, and rounds at one place: a number of workers for a time."""

from __future__ import annotations

from tradewind.model.decision import Step
from tradewind.model.job import Fixed, Job, Rounds
from tradewind.model.progress import rate
from tradewind.model.setup import Setup
from tradewind.systems.mixed.kernels.gang import best_gang
from tradewind.systems.mixed.kernels.market import Answer, Market
from tradewind.systems.mixed.shared.frame import Frame, Known, Supply
from tradewind.systems.mixed.shared.oracles.ask import Ask


def runtime_us(setup: Setup, job: Job, done: int) -> int:
    """Microseconds that are left on the workers of `gang_size` at one place."""
    if isinstance(job.work, Fixed):
        return max(1, (job.work.runtime_us or 0) - done)
    step = Step(0, 1, (setup.hosts[0],), (gang_size(job),))
    num, den = rate(setup, job, step)
    return -(-((job.work.total or 0) - done) * den // num)


def gang_size(job: Job) -> int:
    """Workers of a gang: as few as it may have, unless more make it faster."""
    faster = isinstance(job.work, Rounds) and job.work.unit == "worker-round"
    return job.workers_max if faster else job.workers_min


def stays(job: Job) -> bool:
    """Whether a job that has begun keeps its places: it may not pause, or moving costs it time."""
    return job.restarts is not None or job.restart_us > 0


class Gang(Ask):
    """Needs all its workers in as many slots as it takes."""

    kind = "gang"
    takes_the_rest = True

    def __init__(self, frame: Frame, job: Job, known: Known, supply: Supply, unpriced: float) -> None:
        super().__init__(frame, job, known, supply, unpriced)
        left = -(-runtime_us(frame.setup, job, known.done) // frame.setup.slot_us)
        size = gang_size(job)
        ends = supply.first + self.slots >= frame.setup.slots
        self.run = (size, left if ends else min(left, self.slots))
        self.value = self.worth(size * left)
        if job.utility is not None and job.utility.of == "progress":
            self.value = self.value + job.utility.value(float(job.work.total or 0))
        self.together = isinstance(job.work, Rounds) and job.work.comm != "none"

    def reply(self, market: Market) -> Answer | None:
        found = self.empty()
        profit, value = best_gang(
            market,
            self.worker,
            self.places,
            found.workers,
            self.run,
            self.value,
            not stays(self.job),
            self.together,
        )
        return found._replace(profit=profit, value=value) if profit > 0.0 else None
