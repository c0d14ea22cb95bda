"""The base of Eris's rivals and of `eris-preemptive`: jobs over edge sites, planned slot by slot.

A subclass says in which order jobs are served; here each of them gets workers, a server and data within what the slot has
left, at the posted prices (6). A job runs in a slot only if completing would be worth more than what it has paid and would
still pay at the prices of this slot; it is dropped when no completion can pay any more. The prices are the `usd` of the
steps: the rivals make no offers, so nothing counts as a payment.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from tradewind.model.decision import NOTHING, Decision, Plan, Verdict
from tradewind.model.job import Dataset, Job
from tradewind.model.setup import Setup
from tradewind.model.spec import EVERY_SLOT, Param, Spec
from tradewind.model.view import View
from tradewind.systems.eris.kernels.spot import Score, Spot, at, place, unit, units_left
from tradewind.systems.eris.kernels.task import Market, TrainingTask
from tradewind.systems.eris.policy.posted import OBJECTIVES, WORKS, unsupported_reason
from tradewind.systems.eris.shared.market import CapacityLedger, PostedPrices, plan_of, task_of


@dataclass(frozen=True, slots=True, kw_only=True)
class EdgeRules:
    """workers: workers per job and slot, 0 means elastic; gamma: base of the price functions (6)."""

    workers: int
    gamma: float

    @property
    def elastic(self) -> bool:
        return self.workers == 0


class Turn(NamedTuple):
    """A job's turn in a slot.

    exact  it gets all its workers or none
    stays  once it runs, it keeps its sites until it is done
    """

    job: int
    exact: bool
    stays: bool


class EdgeScheduler(ABC):
    """Serves turns slot after slot; subclasses define `turns`, and `score` if they do not choose sites by price."""

    def __init__(self, setup: Setup, rules: EdgeRules) -> None:
        self.ledger, self.rules = CapacityLedger(setup), rules
        self.left: dict[int, list[int]] = {}
        """Chunks left per site of every active job."""
        self.paid: dict[int, float] = {}
        self.held: dict[int, tuple[int, list[int]]] = {}
        """Server's site and workers per site of jobs that keep their sites."""
        self._unsupported: dict[int, str] = {}
        """New jobs that cannot be served, and why."""
        self._widest: dict[int, int] = {}

    # ------------------------------------------------------------------ to be defined by subclasses
    @abstractmethod
    def turns(self, view: View) -> Iterable[Turn]:
        """Jobs to serve in this slot, in order."""

    def score(self, job: Job) -> Score:
        """How sites are ranked for a job."""
        return Score()

    # ------------------------------------------------------------------ a slot
    def decide(self, view: View) -> Decision:
        self.ledger.observe(view)
        self.ledger.clear_window()
        self._count(view)
        if view.now_us % view.setup.slot_us or view.slot >= view.setup.slots:
            return NOTHING
        verdicts = [Verdict(index, why) for index, why in self._unsupported.items()]
        for index in self._unsupported:
            del self.left[index]
        self._unsupported = {}
        plans: list[Plan] = []
        for turn in self.turns(view):
            job = view.job(turn.job)
            task = self.task(job)
            spot = self.spot(view, job, task, turn)
            if spot is not None:
                plans.append(self._book(view, job, spot, turn.stays))
            elif self._worth(view, job, -(-units_left(task) // self._width(task))) <= self.paid.get(
                turn.job, 0
            ):
                verdicts.append(Verdict(turn.job, "no completion can pay any more"))
        return Decision(tuple(plans), tuple(verdicts)) if plans or verdicts else NOTHING

    def task(self, job: Job) -> TrainingTask:
        """The part of a job that is still to be trained."""
        return task_of(self.ledger, job, np.array(self.left[job.index], dtype=np.int64))

    def spot(self, view: View, job: Job, task: TrainingTask, turn: Turn) -> Spot | None:
        """Where the job runs in this slot; None if it does not fit or does not pay."""
        market = self.market(view, job)
        if job.index in self.held:
            server, workers = self.held[job.index]
            if (spot := at(task, market, server, np.array(workers, dtype=np.int64))) is not None:
                return spot
            del self.held[job.index]
        width = self._width(task)
        exact = turn.exact and not self.rules.elastic
        want = min(width, self._most(job)) if exact else width
        spot = place(task, market, want, exact, self.score(job))
        if spot is None:
            return None
        slots = -(-int(task.data.sum()) // spot.trained)
        owed = self.paid.get(job.index, 0.0) + spot.usd * slots
        return spot if self._worth(view, job, slots) > owed else None

    def market(self, view: View, job: Job) -> Market:
        """Prices and free capacity of this slot after earlier turns."""
        floor = np.zeros(self.ledger.capacity.shape[1] + 1)
        return self.ledger.market(
            job, view.slot, PostedPrices(gamma=self.rules.gamma, floor=floor), until=view.slot + 1
        )

    def _width(self, task: TrainingTask) -> int:
        """Units that a job wants in a slot."""
        left = units_left(task)
        return left if self.rules.elastic else min(max(1, self.rules.workers // unit(task)), left)

    def _most(self, job: Job) -> int:
        """Units that the empty network holds at once: a job never waits for more."""
        if job.index not in self._widest:
            empty = CapacityLedger(replace(self.ledger.setup, window_slots=1))
            market = empty.market(
                job, 0, PostedPrices(gamma=1.0, floor=np.zeros(empty.capacity.shape[1] + 1))
            )
            task = task_of(empty, job)
            spot = place(task, market, self._width(task), False, Score())
            self._widest[job.index] = 1 if spot is None else int(spot.workers.sum()) // unit(task)
        return self._widest[job.index]

    def _worth(self, view: View, job: Job, slots: int) -> float:
        """Utility of completing within this many slots, this one included; with a window it ends a window after arrival."""
        assert job.utility is not None
        last, slot_us = view.slot + slots - 1, view.setup.slot_us
        arrived = job.arrive_us // slot_us
        if last >= view.setup.horizon_us // slot_us or last - arrived >= view.setup.slots_ahead(arrived):
            return 0.0
        return max(0.0, job.utility.value(last - arrived))

    def _book(self, view: View, job: Job, spot: Spot, stays: bool) -> Plan:
        plan = plan_of(self.ledger, job, spot.schedule(), view.slot)
        plan = Plan(plan.job, tuple(step._replace(usd=spot.usd) for step in plan.steps))
        self.ledger.reserve(job, plan)
        if stays and not self.rules.elastic:
            self.held.setdefault(job.index, (spot.server, spot.workers.tolist()))
        return plan

    def _count(self, view: View) -> None:
        """Subtracts what was trained since the last slot; the ledger no longer holds plans that a failure cancelled."""
        for index, job in view.active.items():
            if index not in self.left:
                self.left[index] = task_of(self.ledger, job).data.tolist()
                if why := unsupported_reason(view.setup, job):
                    self._unsupported[index] = why
            left, work = self.left[index], job.work
            assert isinstance(work, Dataset)
            booked = self.ledger.plans.get(index)
            if booked is None or booked.plan.steps[-1].until_us > view.now_us:
                continue
            for step in self.ledger.plans.pop(index).plan.steps:
                self.paid[index] = self.paid.get(index, 0.0) + step.usd
                for flow in step.flows:
                    left[self.ledger.row[flow.src]] -= flow.bytes // work.chunk_bytes
        for known in (self.left, self.paid, self.held, self._widest, self._unsupported):
            for index in [i for i in known if i not in view.active]:
                del known[index]

    # ------------------------------------------------------------------ state
    def save(self) -> bytes:
        state = {
            "ledger": self.ledger.save(),
            "left": list(self.left.items()),
            "paid": list(self.paid.items()),
            "held": list(self.held.items()),
            "unsupported": list(self._unsupported.items()),
        }
        return json.dumps(state).encode()

    def restore(self, state: bytes) -> None:
        data = json.loads(state)
        self.ledger.restore(data["ledger"])
        self.left, self.paid, self._unsupported = (
            dict(data["left"]),
            dict(data["paid"]),
            dict(data["unsupported"]),
        )
        self.held = {index: (server, workers) for index, (server, workers) in data["held"]}


def edge_rules(params: Mapping[str, Any]) -> EdgeRules:
    """The shared parameters; a policy without the parameter `workers` is elastic."""
    return EdgeRules(workers=params.get("workers", 0), gamma=params["gamma"])


Make = Callable[[Setup, EdgeRules, Mapping[str, Any]], EdgeScheduler]


def rival_spec(name: str, summary: str, make: Make, **more: Param) -> Spec:
    """The spec of a rival with the parameters that all share; NAME-elastic has no parameter `workers`."""

    def factory(setup: Setup, params: Mapping[str, Any], rng: np.random.Generator) -> EdgeScheduler:
        return make(setup, edge_rules(params), params)

    shared = {"gamma": Param(default=1000.0, doc="base of the price functions (6)", least=1, most=1e12)}
    if not name.endswith("-elastic"):
        doc = "workers per job and slot; fewer if the empty network cannot hold them"
        shared["workers"] = Param(default=16, doc=doc, least=1, most=1_000_000)
    return Spec(
        name=name,
        summary=summary,
        factory=factory,
        works=WORKS,
        architectures=frozenset({"ps"}),
        objectives=OBJECTIVES,
        triggers=EVERY_SLOT,
        needs=frozenset({"bid"}),
        params=shared | more,
        system="eris",
    )
