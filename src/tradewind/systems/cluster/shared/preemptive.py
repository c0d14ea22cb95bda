"""Schedulers that stop running jobs for others: tables of jobs, and the shortest-first order.

The queues live in arrays and are kept in order by compiled kernels that name only the jobs to start and to stop.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tradewind.model.decision import NOTHING, Decision, Plan
from tradewind.model.job import Fixed, Job
from tradewind.model.setup import Setup
from tradewind.model.units import MILLI
from tradewind.model.view import View
from tradewind.systems.cluster.kernels import queues
from tradewind.systems.cluster.shared.eviction import reseat
from tradewind.systems.cluster.shared.placement import Place, Shape
from tradewind.systems.cluster.shared.scheduler import Desk, start


def gpus_milli(setup: Setup, shape: Shape) -> int:
    """GPUs of a whole job in thousandths; its workers count as one each where it asks for no `gpu`."""
    gpu = setup.resource_index.get("gpu", -1)
    return dict(shape.amounts).get(gpu, 0) or shape.workers * MILLI


class Preemptive(Desk):
    """Tables by job number: what it needs, whether it runs, up to when its running time is booked.

    need   units of a plain job (see placement.Units)
    since  microseconds; of a running job
    """

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self._tables: dict[str, NDArray[Any]] = {}
        self._table("need", np.int64)
        self._table("since", np.int64)
        self._table("state", np.int8)
        self._out = np.zeros((2, 256), np.int64)
        self._shape: dict[int, Shape] = {}
        self._moves: dict[int, tuple[int, frozenset[tuple[int, int]]]] = {}
        self._running = 0
        self._in_use = 0

    def _table(self, name: str, kind: type) -> None:
        self._tables[name] = np.zeros(256, kind)

    def _grow(self, job: int) -> None:
        """Makes the tables long enough for a job."""
        if job >= len(self._tables["need"]):
            for name, table in self._tables.items():
                longer = np.zeros(2 * max(job, 1), table.dtype)
                longer[: len(table)] = table
                self._tables[name] = longer

    def enter(self, job: int, shape: Shape, facts: Job) -> None:
        self._grow(job)
        self._shape[job] = shape
        self._tables["need"][job] = shape.workers
        self._tables["state"][job] = queues.WAITS
        if facts.restart_us:
            self._moves[job] = (facts.restart_us, frozenset())

    def leave(self, job: int) -> None:
        self._tables["state"][job] = queues.GONE
        self._running -= 1
        self._in_use -= self._shape.pop(job).workers
        self._moves.pop(job, None)

    def back(self, job: int, shape: Shape, kept: int) -> None:
        self._tables["state"][job] = queues.WAITS
        self._running -= 1
        self._in_use -= shape.workers

    def _carry_out(self, now: int, starts: list[int], stops: list[int]) -> list[Plan]:
        """Plans of a plain decision: stops first, so that their room is free."""
        cluster, shapes = self.cluster, self._shape
        plans = []
        for job in stops:
            cluster.give(job)
            self._in_use -= shapes[job].workers
            plans.append(Plan(job, ()))
        for job in starts:
            shape = shapes[job]
            place = cluster.take(job, shape)
            assert place is not None  # the kernel counted the units
            self._in_use += shape.workers
            self._begin(now, job, place)
            plans.append(start(now, job, place))
        self._running += len(starts) - len(stops)
        return plans

    def _reseat(self, now: int, order: list[int]) -> list[Plan]:
        """Plans where room has several sides; the same rule, with running jobs pushed out from the back."""
        state = self._tables["state"]
        starts, stops = reseat(self.cluster, order, self._shape)
        for job in stops:
            state[job] = queues.WAITS
        for job, place in starts.items():
            state[job] = queues.RUNS
            self._begin(now, job, place)
        held = self.cluster.places
        self._running = sum(1 for job in order if job in held)
        self._in_use = sum(self._shape[job].workers for job in order if job in held)
        return [Plan(job, ()) for job in stops] + [start(now, job, place) for job, place in starts.items()]

    def _begin(self, now: int, job: int, place: Place) -> None:
        """A job starts here and now; one that moved first loses the time of a restart."""
        since = now
        if job in self._moves:
            restart, before = self._moves[job]
            places = frozenset(zip(place.nodes, place.servers or (0,) * len(place.nodes), strict=True))
            if before and places != before:
                since += restart
            self._moves[job] = (restart, places)
        self._tables["since"][job] = since

    # ------------------------------------------------------------------ saving
    def _save_queues(self) -> Any:
        jobs = sorted(self._shape)
        return {
            "jobs": [[job, self._shape[job].number] for job in jobs],
            "tables": {name: table[jobs].tolist() for name, table in self._tables.items()},
            "moves": [[job, restart, sorted(places)] for job, (restart, places) in self._moves.items()],
            "running": self._running,
            "in_use": self._in_use,
            "lines": self._save_lines(),
        }

    def _restore_queues(self, data: Any, shapes: list[Shape]) -> None:
        self._shape = {job: shapes[number] for job, number in data["jobs"]}
        if self._shape:
            jobs = list(self._shape)
            self._grow(max(jobs))
            for name, values in data["tables"].items():
                self._tables[name][jobs] = values
        self._moves = {
            job: (restart, frozenset((node, servers) for node, servers in places))
            for job, restart, places in data["moves"]
        }
        self._running, self._in_use = data["running"], data["in_use"]
        self._restore_lines(data["lines"])

    @abstractmethod
    def _save_lines(self) -> Any:
        """The order's own part of the state, fit for JSON."""

    @abstractmethod
    def _restore_lines(self, data: Any) -> None:
        """Takes in what `_save_lines` gave."""


class Shortest(Preemptive):
    """Runs the jobs with the least work left: remaining time, or remaining time x GPUs.

    left    microseconds of running that remain
    weight  1, or the job's GPUs
    key     left * weight
    """

    def __init__(self, setup: Setup, *, by_service: bool) -> None:
        super().__init__(setup)
        self._by_service = by_service
        self._table("left", np.int64)
        self._table("weight", np.float64)
        self._table("key", np.float64)
        self._order = np.zeros(256, np.int64)
        self._size = self._fresh = self._gone = 0
        self._runtime: dict[int, int] = {}

    def enter(self, job: int, shape: Shape, facts: Job) -> None:
        super().enter(job, shape, facts)
        assert isinstance(facts.work, Fixed)
        assert facts.work.runtime_us is not None  # the catalogue asks for public runtimes
        self._runtime[job] = self._tables["left"][job] = facts.work.runtime_us
        self._tables["weight"][job] = gpus_milli(self.setup, shape) / MILLI if self._by_service else 1.0
        self._append(job)

    def _append(self, job: int) -> None:
        if self._size == len(self._order):
            self._order = np.concatenate([self._order, np.zeros_like(self._order)])
            self._out = np.zeros((2, len(self._order)), np.int64)
        self._order[self._size] = job
        self._size += 1
        self._fresh += 1

    def leave(self, job: int) -> None:
        super().leave(job)
        del self._runtime[job]
        self._gone += 1

    def back(self, job: int, shape: Shape, kept: int) -> None:
        super().back(job, shape, kept)
        self._tables["left"][job] = self._runtime[job] - kept
        # Its key may have risen, so it comes in anew.
        at = int(np.flatnonzero(self._order[: self._size] == job)[0])
        self._order[at : self._size - 1] = self._order[at + 1 : self._size]
        self._fresh -= at >= self._size - self._fresh
        self._size -= 1
        self._append(job)

    def decide(self, view: View) -> Decision:
        verdicts = self.hear(view)
        t, now = self._tables, view.now_us
        sizes = (self._size, self._fresh, self._running + self._gone)
        self._fresh = self._gone = 0
        cluster = self.cluster
        plans: list[Plan] = []
        if cluster.plain:
            self._size, starts, stops = queues.turn_sorted(
                self._order, sizes, now, self._running, cluster.free_units + self._in_use,
                t["since"], t["left"], t["weight"], t["key"], t["need"], t["state"], self._out,
            )  # fmt: skip
            if starts or stops:
                plans = self._carry_out(now, self._out[0, :starts].tolist(), self._out[1, :stops].tolist())
        else:
            self._size = queues.resort(
                self._order, sizes, now, t["since"], t["left"], t["weight"], t["key"], t["state"]
            )
            plans = self._reseat(now, self._order[: self._size].tolist())
        return Decision(tuple(plans), tuple(verdicts)) if plans or verdicts else NOTHING

    def _save_lines(self) -> Any:
        return {"order": self._order[: self._size].tolist(), "runtime": list(self._runtime.items())}

    def _restore_lines(self, data: Any) -> None:
        self._order = np.zeros(2 * len(data["order"]) + 256, np.int64)
        self._out = np.zeros((2, len(self._order)), np.int64)
        self._size = len(data["order"])
        self._order[: self._size] = data["order"]
        self._runtime = dict(data["runtime"])
        self._fresh = self._gone = 0
