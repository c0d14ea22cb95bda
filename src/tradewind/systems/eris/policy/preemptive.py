"""`eris-preemptive`: every slot is reallocated among the active jobs, without promises.

Jobs are served one after another, each with as many workers as the rest of the slot allows. The default order is by worth
per dominant share; other orders are evaluated on futures sampled from the bids so far (kernels/rollout.py), because a job
that is worth less now may leave room for better ones to come. No plan reaches beyond its slot, and there are no payments.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from tradewind.model.arrays import Floats
from tradewind.model.decision import Charge
from tradewind.model.errors import InputError
from tradewind.model.job import Job
from tradewind.model.setup import Setup
from tradewind.model.spec import EVERY_SLOT, Param
from tradewind.model.units import GB, MILLI
from tradewind.model.view import View
from tradewind.systems.eris.kernels.pool import PastBid, host_capacity, past_bid
from tradewind.systems.eris.kernels.rollout import Queue, best_order, futures, ranked, table
from tradewind.systems.eris.kernels.spot import Score, Spot, pack, place, units_left
from tradewind.systems.eris.kernels.task import TrainingTask
from tradewind.systems.eris.policy.critical import Critical
from tradewind.systems.eris.policy.posted import ERIS
from tradewind.systems.eris.shared.edge import EdgeRules, EdgeScheduler, Turn
from tradewind.systems.eris.shared.market import task_of

WORTHLESS = 0.01
"""Share of its worth if it were alone below which a job is given up."""
AHEAD, AFTER = 5, 10
"""Slots of a future with arrivals, and slots simulated after them."""
FIRST, RECENT = 4, 1000
"""Bids needed before futures are sampled, and number of latest bids to sample from."""
WORK, FEWEST = 4000, 8
"""Limit of jobs times futures per trial, and minimum number of futures for a trial to be meaningful."""


class Preemptive(EdgeScheduler):
    """Serves jobs in the order that does best in futures sampled from the bids so far."""

    def __init__(self, setup: Setup, samples: int, seed: int) -> None:
        super().__init__(setup, EdgeRules(workers=0, gamma=1.0))
        self._samples, self._seed = samples, seed
        self._hosts = host_capacity(setup)
        self._seen: list[int] = []
        """The latest bids that could be served, in order of arrival."""
        self._came, self._last = 0, -1
        """How many such bids came in all, and the number of the latest."""
        self._bids: dict[int, PastBid | None] = {}
        """Bids seen lately and of active jobs, with their worth by delay; None: fits nowhere."""

    def turns(self, view: View) -> Iterable[Turn]:
        present = [index for index in self.left if self._worthwhile(view, view.job(index))]
        for index in present:
            if index > self._last:
                self._seen.append(index)
                self._came, self._last = self._came + 1, index
        self._seen = [index for index in self._seen[-RECENT:] if self._is_recent(view, index)]
        needed = {*self._seen, *self.left}
        self._bids = {index: bid for index, bid in self._bids.items() if index in needed}
        order = self._order(view, present) if present else []
        expired = [index for index in self.left if self._is_expired(view, view.job(index))]
        return [Turn(index, False, False) for index in order + expired]

    def _worthwhile(self, view: View, job: Job) -> bool:
        """Whether completing a job is possible and still worth something."""
        bid = self._bid(job)
        if bid is None or self._is_expired(view, job):
            return False
        worth, alone = bid.job.worth, -(-bid.job.units // bid.job.widest) - 1
        return bool(worth[self._age(view, job)] > WORTHLESS * (worth[alone] if alone < len(worth) else 0.0))

    def _is_recent(self, view: View, index: int) -> bool:
        """Whether futures may be drawn from a bid: with a window, it came within the last one."""
        bid, window = self._bids[index], view.setup.window_slots
        return window is None or (bid is not None and bid.job.start > view.slot - window)

    def _is_expired(self, view: View, job: Job) -> bool:
        """Whether a job is older than a window."""
        return self._age(view, job) >= view.setup.slots_ahead(job.arrive_us // view.setup.slot_us)

    def _order(self, view: View, present: list[int]) -> list[int]:
        """The active jobs in order of service."""
        known = sorted({*self._seen, *present})
        row = {index: r for r, index in enumerate(known)}
        bids = table([bid.job for index in known if (bid := self._bids[index]) is not None])
        queue = Queue(
            np.array([row[index] for index in present]),
            np.array([_worker_slots(self.task(view.job(i)), bids.beside[row[i]]) for i in present]),
            np.array([self._age(view, view.job(index)) for index in present]),
        )
        per_slot = self._came / (view.slot + 1)
        samples = min(self._samples, int(WORK / (len(present) + AHEAD * per_slot)))
        if len(present) < 2 or len(self._seen) < FIRST or samples < FEWEST:
            found = ranked(bids, queue, self._whole(), -1)
        else:
            rng = np.random.default_rng((self._seed, view.slot))
            slots = max(0, min(AHEAD + AFTER, view.setup.slots - 1 - view.slot))
            drawn = futures(rng, samples, min(AHEAD, slots), per_slot, len(known))
            found = best_order(bids, queue, drawn, slots, self._whole())
        return [present[i] for i in found.tolist()]

    def spot(self, view: View, job: Job, task: TrainingTask, turn: Turn) -> Spot | None:
        """The placement that trains most: with all bandwidth for parameters, or with some kept for moving chunks.

        If a worker trains a fraction of a chunk, packed workers are tried as well.
        """
        if self._is_expired(view, job):
            return None
        market, width = self.market(view, job), units_left(task)
        moved = task.chunk_bytes * max(1, task.rate // task.need)
        roomy = task._replace(traffic_bytes=task.traffic_bytes + moved)
        found = [place(each, market, width, False, Score()) for each in (task, roomy)]
        if not task.per_worker:
            found += [pack(task, market), pack(roomy, market)]
        return max((s for s in found if s is not None), key=lambda s: s.trained, default=None)

    def _bid(self, job: Job) -> PastBid | None:
        """A bid over pooled sites with its worth by delay; None if it fits nowhere."""
        if job.index not in self._bids:
            setup = self.ledger.setup
            found = past_bid(job, self._hosts, setup.slot_us, setup.transfer_bytes_per_slot)
            if found is not None:
                found = found.by_delay(setup)
                units = _worker_slots(task_of(self.ledger, job), found.job.beside)
                found = found._replace(job=found.job._replace(units=units))
            self._bids[job.index] = found
        return self._bids[job.index]

    def _age(self, view: View, job: Job) -> int:
        return view.slot - job.arrive_us // view.setup.slot_us

    def _whole(self) -> Floats:
        """Total capacity of a slot (K + 1,), the last in GB."""
        sites = self.ledger.whole
        whole: Floats = np.maximum(np.append(sites / MILLI, self.ledger.band / GB), 1e-9)
        return whole

    def charges(self, view: View) -> tuple[Charge, ...]:
        """No charges: this variant has no payments."""
        return ()

    def save(self) -> bytes:
        state = {
            "edge": super().save().decode(),
            "seen": self._seen,
            "came": [self._came, self._last],
            "bids": [[index, bid and bid.save()] for index, bid in self._bids.items()],
        }
        return json.dumps(state).encode()

    def restore(self, state: bytes) -> None:
        data = json.loads(state)
        super().restore(data["edge"].encode())
        self._seen, (self._came, self._last) = data["seen"], data["came"]
        setup = self.ledger.setup
        self._bids = {i: PastBid.read(row).by_delay(setup) if row else None for i, row in data["bids"]}


def _worker_slots(task: TrainingTask, beside: int) -> int:
    """Worker-slots that a task needs if `beside` workers share a site and train whole chunks only."""
    chunks, together = int(task.data.sum()), int(beside) * task.rate // task.need
    return -(-chunks * int(beside) // together) if together else -(-chunks * task.need // task.rate)


def _preemptive(setup: Setup, params: Mapping[str, Any], rng: np.random.Generator) -> Preemptive | Critical:
    if params["payments"] == "critical":
        if setup.window_slots is not None:
            raise InputError(
                f"found critical with window_slots {setup.window_slots}; these payments follow from all bids of a run and "
                "are due at its end. Leave out window_slots, or use payments=none",
                where="eris-preemptive.payments",
            )
        return Critical(setup)
    return Preemptive(setup, params["samples"], int(rng.integers(2**62)))


PREEMPTIVE = replace(
    ERIS,
    name="eris-preemptive",
    summary="Eris without promises: reallocates every slot in the order that does best in sampled futures",
    factory=_preemptive,
    triggers=EVERY_SLOT,
    params={
        "payments": Param(
            default="none",
            doc="none: no payments, orders of service are tried out; critical: truthful, fixed order, paid at the end",
            choices=("none", "critical"),
        ),
        "samples": Param(
            default=64,
            doc="futures sampled from the bids so far to try orders of service; 0: order by worth per dominant share",
            least=0,
            most=10**6,
        ),
    },
    pricer=False,
    binding=False,
    charges=True,
    uncharged={"payments": "none"},
)
