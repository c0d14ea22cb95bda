"""Elastic work in worker-slots (rings): any number of workers in every slot, worth by progress or by completion."""

from __future__ import annotations

import numpy as np

from tradewind.model.job import Job, Rounds
from tradewind.model.units import MICRO
from tradewind.systems.mixed.kernels.market import Answer, Market
from tradewind.systems.mixed.kernels.ring import best_ring
from tradewind.systems.mixed.shared.frame import Frame, Known, Supply
from tradewind.systems.mixed.shared.oracles.ask import Ask


class Ring(Ask):
    """Chooses its workers slot by slot."""

    kind = "ring"

    @classmethod
    def answers(cls, job: Job) -> bool:
        return isinstance(job.work, Rounds) and job.work.unit == "worker-slot"

    def __init__(self, frame: Frame, job: Job, known: Known, supply: Supply, unpriced: float) -> None:
        super().__init__(frame, job, known, supply, unpriced)
        work, utility = job.work, job.utility
        assert isinstance(work, Rounds)
        left = max(1, (work.total - known.done) // MICRO)
        self.final = self.worth(work.count)
        self.gain = np.zeros(left + 1)
        if utility is not None and utility.of == "progress":
            now = utility.value(work.rate * known.done / MICRO)
            done = known.done / MICRO + np.arange(left + 1)
            done[-1] = work.count
            self.gain = np.array([utility.value(work.rate * float(p)) - now for p in done])
        self.together = work.comm != "none"

    def reply(self, market: Market) -> Answer | None:
        found, job = self.empty(), self.job
        limits = (job.workers_min, job.workers_max)
        profit, value = best_ring(
            market, self.worker, self.places, found.workers, limits, self.gain, self.final, self.together
        )
        return found._replace(profit=profit, value=value) if profit > 0.0 else None
