"""What every scheduler here does in the same way: hear what happened, turn away what can never run, start and stop."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from typing import Any, cast

from tradewind.model.decision import Plan, Step, Verdict
from tradewind.model.job import Job
from tradewind.model.setup import Setup
from tradewind.model.units import OPEN
from tradewind.model.view import View
from tradewind.systems.cluster.shared.placement import Cluster, Place, Shape

CAPACITY = ("capacity", "node_down", "node_up")
"""Changes that concern room."""


class Desk(ABC):
    """Keeps room and jobs in step with the events; a scheduler fills in the queues.

    cluster  room on the hosts
    freed    whether room came free since the last decision
    """

    def __init__(self, setup: Setup) -> None:
        self.setup = setup
        self.cluster = Cluster(setup)
        self.freed = False
        self._through: set[int] = set()

    # ------------------------------------------------------------------ for schedulers to fill in
    @abstractmethod
    def enter(self, job: int, shape: Shape, facts: Job) -> None:
        """A job that can run came."""

    def leave(self, job: int) -> None:
        """A job finished (its room may stay taken a moment longer). Queues of waiting jobs need not hear of it."""
        del job

    @abstractmethod
    def back(self, job: int, shape: Shape, kept: int) -> None:
        """A running job lost its place: a node failed or shrank. kept: work that is not lost."""

    # ------------------------------------------------------------------ what happened
    def hear(self, view: View) -> list[Verdict]:
        """Takes in the new events; returns what to say to jobs that can never run."""
        cluster, verdicts, changed = self.cluster, [], False
        self.freed = False
        for event in view.events:
            kind, job = event[1], event[2]
            if kind == "arrived":
                facts = cast(Job, event[4])
                shape = cluster.shape(facts)
                if shape.never:
                    verdicts.append(Verdict(job, shape.never))
                    continue
                if facts.hold == "through":
                    self._through.add(job)
                self.enter(job, shape, facts)
            elif kind in ("finished", "ended"):  # ended: a live job that was given up
                self.leave(job)
                if kind == "ended" or not self._through or job not in self._through:
                    cluster.give(job)
                    self.freed = True
            elif kind == "released":
                self._through.discard(job)
                cluster.give(job)
                self.freed = True
            elif kind == "voided":
                shape = cluster.places[job][1]
                cluster.give(job)
                self.back(job, shape, event[3])
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
        """Continues where `save` stood."""
        data = json.loads(state)
        self.cluster = Cluster(self.setup)
        shapes = self.cluster.restore(data["cluster"])
        self._through = set(data["through"])
        self._restore_queues(data["queues"], shapes)

    @abstractmethod
    def _save_queues(self) -> Any:
        """The scheduler's own part of the state, fit for JSON."""

    @abstractmethod
    def _restore_queues(self, data: Any, shapes: list[Shape]) -> None:
        """Takes in what `_save_queues` gave."""


def start(now_us: int, job: int, place: Place) -> Plan:
    """Runs a job on a place until it is done or told otherwise."""
    return Plan(job, (Step(now_us, OPEN, place[0], place[1], place[2]),))
