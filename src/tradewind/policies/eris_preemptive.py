"""Eris without promises: slots that have not run yet are planned again whenever a slot begins.

Jobs are planned one after another by what they would be worth, once done, per share of the scarcest resource that they
still need; each takes the completion time with the largest worth minus cost. A slot costs the more the further ahead it
is: what runs now competes with the jobs that are here, what runs later also with those still to come. What a job was
planned to get may change until it runs, and there are no payments.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from tradewind.maths.auction_oracle import Market, Task, menu
from tradewind.maths.auction_slot import Floats
from tradewind.model.decision import NOTHING, Decision, Plan, Verdict
from tradewind.model.job import Job
from tradewind.model.setup import Setup
from tradewind.model.spec import Param, Spec
from tradewind.model.view import View
from tradewind.policies.eris import OBJECTIVES, TRIGGERS, WORKS, floor_of, unfit
from tradewind.policies.eris_market import Books, Prices, left_after, plan_of, task_of, worth_of

WORTHLESS = 0.01
"""Share of the first worth below which a job is given up."""
LEAD, NOW = 3.0, 1e-3
"""Prices rise with the lead t in slots as 1 - exp(-t / LEAD), from the share NOW in the slot that comes next."""

NEWS = frozenset(("arrived", "voided", "changed", "refused"))


class Waiting(NamedTuple):
    """A job to be planned: what is left of it, its worth by slot, its dominant share."""

    job: Job
    task: Task
    worth: Floats
    share: float


def _density(waiting: Waiting) -> float:
    """Worth per dominant share, as of when the job would be done if it had everything."""
    done = min(int(np.ceil(waiting.share)), len(waiting.worth) - 1)
    return float(waiting.worth[done]) / waiting.share


class Preemptive:
    """Plans all jobs present anew at every slot."""

    def __init__(self, setup: Setup, prices: Prices) -> None:
        self.books, self.prices = Books(setup), prices
        self._left: dict[int, list[int]] = {}
        """Chunks left per site of every job present, as of `_counted_us`."""
        self._counted_us = 0

    def decide(self, view: View) -> Decision:
        setup, first = view.setup, -(-view.now_us // view.setup.slot_us)
        news = any(event.kind in NEWS for event in view.events)
        self._count(view)
        self.books.hear(view)
        self.books.seen()
        if not news or first >= setup.slots:
            return NOTHING
        verdicts = []
        waiting: dict[int, Waiting] = {}
        for index, job in view.active.items():
            if why := unfit(setup, job):
                verdicts.append(Verdict(index, why))
                continue
            self.books.release(index, view)
            worth = worth_of(setup, job, first)
            assert job.utility is not None
            if worth[0] > WORTHLESS * max(job.utility.value(0), 1e-9):
                task = task_of(self.books, job, np.array(self._left[index]))
                waiting[index] = Waiting(job, task, worth, self._share(task, first))
        best = self._fill(waiting, first)
        plans = []
        for index in view.active:
            plan = best.get(index, Plan(index, ()))
            if plan.steps or view.plan(index) is not None:
                plans.append(plan)
        return Decision(tuple(plans), tuple(verdicts)) if plans or verdicts else NOTHING

    def _count(self, view: View) -> None:
        """Chunks left of every job present: what its plan has trained since the last count is taken off."""
        for index, job in view.active.items():
            left = np.array(self._left[index]) if index in self._left else task_of(self.books, job).data
            booked = self.books.plans.get(index)
            if booked is not None:
                gone = task_of(self.books, job).data - left_after(self.books, job, booked.plan, view.now_us)
                again = left_after(self.books, job, booked.plan, self._counted_us)
                left = left - (gone - (task_of(self.books, job).data - again))
            self._left[index] = left.tolist()
        self._left = {index: left for index, left in self._left.items() if index in view.active}
        self._counted_us = view.now_us

    def _share(self, task: Task, first: int) -> float:
        """Share of the scarcest resource of all sites, times the worker-slots still to do."""
        workers = max(1.0, float(task.data.sum()) * task.need / task.rate)
        pool = np.maximum(self.books.capacity[first].sum(axis=0), 1)
        band = max(float(self.books.band[first]), 1.0)
        return max(float((task.worker / pool).max()), task.traffic_bytes / band, 1e-12) * workers

    def _fill(self, waiting: dict[int, Waiting], first: int) -> dict[int, Plan]:
        """Plans and books jobs one after another, by falling worth per share."""
        plans = {}
        for index in sorted(waiting, key=lambda i: (-_density(waiting[i]), i)):
            job, task, worth, _ = waiting[index]
            found = menu(task, self._market(job, first), worth)
            gains = [worth[o.slots[-1]] - o.usd for o in found.offers]
            if gains and max(gains) > 0:
                plans[index] = plan_of(self.books, job, found.offers[int(np.argmax(gains))], first)
                self.books.book(job, plans[index])
        return plans

    def _market(self, job: Job, first: int) -> Market:
        """What is left, at prices that rise with the lead."""
        market = self.books.market(job, first, self.prices)
        rise = np.maximum(1.0 - np.exp(-np.arange(len(market.room)) / LEAD), NOW)
        return replace(market, usd=market.usd * rise[:, None, None], byte_usd=market.byte_usd * rise)

    def save(self) -> bytes:
        state = {"books": self.books.save(), "left": list(self._left.items()), "counted_us": self._counted_us}
        return json.dumps(state).encode()

    def restore(self, state: bytes) -> None:
        data = json.loads(state)
        self.books.restore(data["books"])
        self._left, self._counted_us = dict(data["left"]), data["counted_us"]


def _preemptive(setup: Setup, params: Mapping[str, Any], rng: np.random.Generator) -> Preemptive:
    floor: Floats = floor_of(setup, params["floor"], params["floor_scale"]).usd
    return Preemptive(setup, Prices(gamma=1.0, floor=floor))


PREEMPTIVE = Spec(
    name="eris-preemptive",
    summary="Eris without promises: what has not run yet is planned anew at every slot; no payments",
    factory=_preemptive,
    works=WORKS,
    architectures=frozenset({"ps"}),
    objectives=OBJECTIVES,
    triggers=TRIGGERS,
    needs=frozenset({"bid"}),
    params={
        "floor": Param(
            default="auto", doc="prices that weigh time against use: auto (the forecast's), none, or numbers"
        ),
        "floor_scale": Param(default=0.1, doc="share of the forecast's reserve prices"),
    },
    system="eris",
)
