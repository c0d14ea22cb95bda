"""The protocol of a job oracle: what a job answers to a market. Prices, plans and bounds need nothing else.

A new kind of work is one file in this folder with a subclass of Ask.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property
from typing import ClassVar

import numpy as np

from tradewind.model.arrays import Floats
from tradewind.model.decision import Flow
from tradewind.model.job import Job
from tradewind.systems.mixed.kernels.market import Answer, Market
from tradewind.systems.mixed.shared.frame import Frame, Known, Supply


class Ask(ABC):
    """A job that asks for capacity in the next slots.

    kind            name of the kind of work; "": no kind of its own
    takes_the_rest  whether it answers for the jobs that no other oracle answers for
    most_servers    parameter servers that it can plan
    unpriced        how many times its list rent a job without a bid counts as worth
    """

    kind: ClassVar[str] = ""
    takes_the_rest: ClassVar[bool] = False
    most_servers: ClassVar[int] = 0

    @classmethod
    def answers(cls, job: Job) -> bool:
        """Whether a job is of this kind."""
        del job
        return False

    def __init__(self, frame: Frame, job: Job, known: Known, supply: Supply, unpriced: float) -> None:
        self.frame, self.job, self.known, self.supply = frame, job, known, supply
        self.unpriced, self.purse = unpriced, supply.purse.get(job.tenant)
        self.slots, self.hosts = supply.units.shape[0], len(frame.hosts)
        self.worker, self.server = frame.need(job.worker), frame.need(job.server)
        begin = -(-job.arrive_us // frame.setup.slot_us) - supply.first
        self.places = np.repeat(frame.allowed(job)[None], self.slots, axis=0)
        self.places[: max(0, begin)] = 0

    @abstractmethod
    def reply(self, market: Market) -> Answer | None:
        """Its best schedule at these prices in what is free; None: best to have nothing."""

    def bound(self, market: Market, answer: Answer | None) -> float:
        """What no schedule of this job exceeds at linear prices; `answer` is its reply to them."""
        del market
        return 0.0 if answer is None else answer.profit

    def flows(self, answer: Answer, at: int) -> tuple[Flow, ...]:
        """Data processed in a slot, counted from the first."""
        del answer, at
        return ()

    @cached_property
    def delay(self) -> int:
        """Delay in slots of a completion in the first slot."""
        return self.supply.first - self.job.arrive_us // self.frame.setup.slot_us

    @cached_property
    def list_usd(self) -> float:
        """USD of a worker for a slot at the dearest place's list price."""
        hours = self.frame.setup.slot_us / 3.6e9
        usd = [
            sum(
                self.worker[r] * self.frame.usd[a, 0] * hours
                for r, a in enumerate(self.frame.account[h].tolist())
                if a >= 0
            )
            for h in range(self.hosts)
        ]
        return float(max([*usd, 1e-6]))

    def worth(self, worker_slots: float) -> Floats:
        """Value of a completion in each of the next slots; without a bid, a multiple of list rent that falls slowly."""
        utility, delays = self.job.utility, self.delay + np.arange(self.slots)
        if utility is None:
            return np.asarray(
                self.unpriced * self.list_usd * worker_slots / (1.0 + 0.01 * delays), dtype=np.float64
            )
        if utility.of != "delay_slots":
            return np.zeros(self.slots)
        return np.array([utility.value(float(d)) for d in delays])

    def empty(self, parts: int = 0) -> Answer:
        """A schedule without anything."""
        shape = (self.slots, self.hosts)
        return Answer(
            profit=-np.inf,
            value=0.0,
            own=np.zeros(self.slots),
            workers=np.zeros(shape, dtype=np.int64),
            servers=np.zeros(shape, dtype=np.int64),
            gb=np.zeros(self.slots),
            data=np.zeros((*shape, parts), dtype=np.int64),
        )
