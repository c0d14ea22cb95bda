"""The base of all schedulers: reads events, refuses jobs that can never run, starts and stops jobs, saves its state."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from typing import Any, cast

from tradewind.model.decision import Plan, Step, Verdict
from tradewind.model.job import Job
from tradewind.model.setup import Setup
from tradewind.model.units import OPEN
from tradewind.model.view import View
from tradewind.systems.cluster.shared.placement import Cluster
from tradewind.systems.cluster.shared.shape import Place, Shape

CAPACITY = ("capacity", "node_down", "node_up")
"""Kinds of changes that affect room."""


class Scheduler(ABC):
    """Keeps room and jobs up to date; a subclass keeps the queues.

    cluster  room on the hosts
    freed    whether room became free since the last decision
    """

    def __init__(self, setup: Setup) -> None:
        self.setup = setup
        self.cluster = Cluster(setup)
        self.freed = False
        self._through: set[int] = set()

    # ------------------------------------------------------------------ for subclasses
    @abstractmethod
    def enqueue(self, job: int, shape: Shape, facts: Job) -> None:
        """Add a job that arrived and can run."""

    def finish(self, job: int) -> None:
        """Forget a job that finished; its room may stay taken a moment longer."""
        del job

    @abstractmethod
    def requeue(self, job: int, shape: Shape, kept: int) -> None:
        """Add a running job again whose node failed or shrank; `kept` is the work it keeps."""

    @abstractmethod
    def drop(self, job: int) -> None:
        """Forget a waiting job that was cancelled."""

    # ------------------------------------------------------------------ events
    def observe(self, view: View) -> list[Verdict]:
        """Read the new events; return the refusals of jobs that can never run."""
        cluster, verdicts, changed = self.cluster, [], False
        self.freed = False
        for event in view.events:
            kind, job = event[1], event[2]
            if kind == "arrived":
                facts = cast(Job, event[4])
                shape = cluster.shape(facts)
                if shape.never_reason:
                    verdicts.append(Verdict(job, shape.never_reason))
                    continue
                if facts.hold == "through":
                    self._through.add(job)
                self.enqueue(job, shape, facts)
            elif kind in ("finished", "ended"):  # ended: a live job that failed for good
                self.finish(job)
                if kind == "ended" or not self._through or job not in self._through:
                    cluster.give(job)
                    self.freed = True
            elif kind == "released":
                self._through.discard(job)
                cluster.give(job)
                self.freed = True
            elif kind == "cancelled":
                self._through.discard(job)
                if job in cluster.places:
                    self.finish(job)
                    cluster.give(job)
                else:
                    self.drop(job)
                self.freed = True
            elif kind == "voided":
                shape = cluster.places[job][1]
                cluster.give(job)
                self.requeue(job, shape, event[3])
                self.freed = True
            elif kind == "changed" and view.change(event[3]).kind in CAPACITY:
                changed = True
        if changed:
            cluster.resync(view)
            self.freed = True
        return verdicts

    # ------------------------------------------------------------------ saving
    def save(self) -> bytes:
        """The whole state as JSON."""
        state = {
            "cluster": self.cluster.save(),
            "through": sorted(self._through),
            "queues": self._save_queues(),
        }
        return json.dumps(state, separators=(",", ":")).encode()

    def restore(self, state: bytes) -> None:
        """Continue from what `save` returned."""
        data = json.loads(state)
        self.cluster = Cluster(self.setup)
        shapes = self.cluster.restore(data["cluster"])
        self._through = set(data["through"])
        self._restore_queues(data["queues"], shapes)

    @abstractmethod
    def _save_queues(self) -> Any:
        """The queues as JSON-compatible data."""

    @abstractmethod
    def _restore_queues(self, data: Any, shapes: list[Shape]) -> None:
        """Take over what `_save_queues` returned."""


def start(now_us: int, job: int, place: Place) -> Plan:
    """A plan that runs a job on a place until it is done or stopped."""
    return Plan(job, (Step(now_us, OPEN, place[0], place[1], place[2]),))
