"""The base of schedulers that stop running jobs for others.

The queues live in arrays; compiled kernels keep them in order and name the jobs to start and to stop.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np

from tradewind.model.arrays import Floats, Ints
from tradewind.model.decision import Plan
from tradewind.model.job import Job
from tradewind.model.setup import Setup
from tradewind.model.units import MILLI
from tradewind.systems.cluster.kernels.level_queues import LevelTables
from tradewind.systems.cluster.kernels.serve import GONE, RUNS, WAITS, Turn
from tradewind.systems.cluster.kernels.sorted_queue import SortedTables
from tradewind.systems.cluster.shared.eviction import reassign
from tradewind.systems.cluster.shared.scheduler import Scheduler, start
from tradewind.systems.cluster.shared.shape import Place, Shape

FIRST_SIZE = 256
"""Rows of a new table; tables grow with the number of jobs present."""


def gpus_milli(setup: Setup, shape: Shape) -> int:
    """GPUs of a whole job in thousandths; its workers count as one each where it asks for no `gpu`."""
    gpu = setup.resource_index.get("gpu", -1)
    return dict(shape.amounts).get(gpu, 0) or shape.workers * MILLI


class Preemptive(Scheduler):
    """Keeps the tables; a subclass keeps the order. Room is counted in units (see shared/units.py).

    The fields of `_tables` are the rows of `_ints` and `_floats`, which are what the kernels get. A job is an entry of the
    tables while it is present: `_entry` says which, and the field `number` which job an entry is.
    """

    _fields: type[SortedTables] | type[LevelTables]
    _tables: SortedTables | LevelTables

    def __init__(self, setup: Setup, ints: int, floats: int = 0) -> None:
        super().__init__(setup)
        self._set_tables(np.zeros((ints, FIRST_SIZE), np.int64), np.zeros((floats, FIRST_SIZE)))
        self._out = np.zeros((2, FIRST_SIZE), np.int64)
        self._entry: dict[int, int] = {}
        self._spare = list(range(FIRST_SIZE))[::-1]
        self._gone: list[int] = []  # entries that their queue drops at the next turn
        self._shape: dict[int, Shape] = {}
        self._moves: dict[int, tuple[int, frozenset[tuple[int, int]]]] = {}
        self._running = 0
        self._in_use = 0

    def _set_tables(self, ints: Ints, floats: Floats) -> None:
        self._ints, self._floats = ints, floats
        self._tables = self._fields(*ints, *floats)

    def _add(self, job: int) -> int:
        """A free entry for a job; the tables are doubled if there is none."""
        if not self._spare:
            size = self._ints.shape[1]
            more = ((0, 0), (0, size))
            self._set_tables(np.pad(self._ints, more), np.pad(self._floats, more))
            self._spare = list(range(size, 2 * size))[::-1]
        entry = self._entry[job] = self._spare.pop()
        self._tables.number[entry] = job
        return entry

    def enqueue(self, job: int, shape: Shape, facts: Job) -> None:
        entry = self._add(job)
        self._shape[job] = shape
        self._tables.need[entry] = shape.workers
        self._tables.state[entry] = WAITS
        if facts.restart_us:
            self._moves[job] = (facts.restart_us, frozenset())

    def finish(self, job: int) -> None:
        self._running -= 1
        self._in_use -= self._shape[job].workers
        self._forget(job)

    def drop(self, job: int) -> None:
        self._forget(job)

    def _forget(self, job: int) -> None:
        entry = self._entry.pop(job)
        self._tables.state[entry] = GONE
        self._gone.append(entry)
        del self._shape[job]
        self._moves.pop(job, None)

    def _after_turn(self) -> None:
        """Entries that are gone are in no queue any more: others may have them."""
        self._spare += self._gone
        self._gone.clear()

    def requeue(self, job: int, shape: Shape, kept: int) -> None:
        self._tables.state[self._entry[job]] = WAITS
        self._running -= 1
        self._in_use -= shape.workers

    def _turn(self, now: int) -> Turn:
        return now, self._running, self.cluster.free_units + self._in_use

    def _carry_out(self, now: int, starts: int, stops: int) -> list[Plan]:
        """Plans for the jobs that the kernel named in `_out`: stops first, so that their room is free."""
        if not starts and not stops:
            return []
        cluster, shapes, number = self.cluster, self._shape, self._tables.number
        plans = []
        for job in number[self._out[1, :stops]].tolist() if stops else ():
            cluster.give(job)
            self._in_use -= shapes[job].workers
            plans.append(Plan(job, ()))
        for job in number[self._out[0, :starts]].tolist() if starts else ():
            shape = shapes[job]
            place = cluster.take(job, shape)
            assert place is not None  # the kernel counted the units
            self._in_use += shape.workers
            self._begin(now, job, place)
            plans.append(start(now, job, place))
        self._running += starts - stops
        return plans

    def _reassign(self, now: int, order: list[int]) -> list[Plan]:
        """Plans with several resources: the same rule, evicting running jobs from the back of the order."""
        state, entry = self._tables.state, self._entry
        starts, stops = reassign(self.cluster, order, self._shape)
        for job in stops:
            state[entry[job]] = WAITS
        for job, place in starts.items():
            state[entry[job]] = RUNS
            self._begin(now, job, place)
        held = self.cluster.places
        self._running = sum(1 for job in order if job in held)
        self._in_use = sum(self._shape[job].workers for job in order if job in held)
        return [Plan(job, ()) for job in stops] + [start(now, job, place) for job, place in starts.items()]

    def _begin(self, now: int, job: int, place: Place) -> None:
        """Start a job; one that moved makes no progress during its restart."""
        since = now
        if job in self._moves:
            restart, before = self._moves[job]
            places = frozenset(zip(place.nodes, place.servers or (0,) * len(place.nodes), strict=True))
            if before and places != before:
                since += restart
            self._moves[job] = (restart, places)
        self._tables.since[self._entry[job]] = since

    # ------------------------------------------------------------------ saving
    def _save_queues(self) -> Any:
        jobs = sorted(self._shape)
        entries = [self._entry[job] for job in jobs]
        return {
            "jobs": [[job, self._shape[job].number] for job in jobs],
            "tables": {name: table[entries].tolist() for name, table in self._tables._asdict().items()},
            "moves": [[job, restart, sorted(places)] for job, (restart, places) in self._moves.items()],
            "running": self._running,
            "in_use": self._in_use,
            "lines": self._save_order(),
        }

    def _restore_queues(self, data: Any, shapes: list[Shape]) -> None:
        self._shape = {job: shapes[number] for job, number in data["jobs"]}
        self._entry, self._gone, self._spare = {}, [], list(range(self._ints.shape[1]))[::-1]
        entries = [self._add(job) for job in self._shape]
        for name, values in data["tables"].items():
            getattr(self._tables, name)[entries] = values
        self._moves = {
            job: (restart, frozenset((node, servers) for node, servers in places))
            for job, restart, places in data["moves"]
        }
        self._running, self._in_use = data["running"], data["in_use"]
        self._restore_order(data["lines"])

    def _jobs(self, line: Ints) -> list[int]:
        """Jobs of a queue's entries, without those that are gone."""
        here = line[self._tables.state[line] != GONE]
        jobs: list[int] = self._tables.number[here].tolist()
        return jobs

    @abstractmethod
    def _save_order(self) -> Any:
        """The order of the jobs as JSON-compatible data."""

    @abstractmethod
    def _restore_order(self, data: Any) -> None:
        """Take over what `_save_order` returned."""
