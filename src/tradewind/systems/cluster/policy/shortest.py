"""The queue of srtf and srsf, sorted by remaining time or by remaining time x GPUs."""

from __future__ import annotations

from typing import Any

import numpy as np

from tradewind.model.codec import plain, read
from tradewind.model.decision import NOTHING, Decision
from tradewind.model.estimate import believed
from tradewind.model.job import Fixed, Job
from tradewind.model.setup import Setup
from tradewind.model.units import MILLI
from tradewind.model.view import View
from tradewind.systems.cluster.kernels.serve import GONE, RUNS
from tradewind.systems.cluster.kernels.sorted_queue import SortedTables, resort, turn_sorted
from tradewind.systems.cluster.shared.preemptive import FIRST_SIZE, Preemptive, gpus_milli
from tradewind.systems.cluster.shared.shape import Shape


class Shortest(Preemptive):
    """Runs the jobs with the least remaining time (weight 1) or service (weight: the job's GPUs)."""

    _fields = SortedTables
    _tables: SortedTables

    def __init__(self, setup: Setup, *, by_service: bool, measured: bool = False) -> None:
        super().__init__(setup, ints=5, floats=2)
        self._measured = measured
        self._declared: dict[int, Job] = {}  # jobs present, if estimates are used
        self._by_service = by_service
        self._order = np.zeros(FIRST_SIZE, np.int64)
        self._size = self._fresh = self._finished = 0
        self._runtime: dict[int, int] = {}

    def enqueue(self, job: int, shape: Shape, facts: Job) -> None:
        super().enqueue(job, shape, facts)
        assert isinstance(facts.work, Fixed)
        assert facts.work.runtime_us is not None  # the spec needs public runtimes
        entry = self._entry[job]
        self._runtime[job] = self._tables.left[entry] = facts.work.runtime_us
        if self._measured:
            self._declared[job] = facts
        self._tables.weight[entry] = gpus_milli(self.setup, shape) / MILLI if self._by_service else 1.0
        self._append(entry)

    def _append(self, entry: int) -> None:
        if self._size == len(self._order):
            self._order = np.concatenate([self._order, np.zeros_like(self._order)])
            self._out = np.zeros((2, len(self._order)), np.int64)
        self._order[self._size] = entry
        self._size += 1
        self._fresh += 1

    def finish(self, job: int) -> None:
        super().finish(job)
        del self._runtime[job]
        self._declared.pop(job, None)
        self._finished += 1

    def requeue(self, job: int, shape: Shape, kept: int) -> None:
        super().requeue(job, shape, kept)
        entry = self._entry[job]
        self._tables.left[entry] = self._runtime[job] - kept
        # Its key may have risen, so insert it again as a new entry.
        self._remove(entry)
        self._append(entry)

    def drop(self, job: int) -> None:
        self._remove(self._entry[job])
        super().drop(job)
        del self._runtime[job]
        self._declared.pop(job, None)

    def _remove(self, entry: int) -> None:
        at = int(np.flatnonzero(self._order[: self._size] == entry)[0])
        self._order[at : self._size - 1] = self._order[at + 1 : self._size]
        self._fresh -= at >= self._size - self._fresh
        self._size -= 1

    def decide(self, view: View) -> Decision:
        verdicts = self.observe(view)
        now = view.now_us
        if self._measured and any(event.kind in ("arrived", "measured") for event in view.events):
            self._estimate(view)
        sizes = (self._size, self._fresh, self._running + self._finished)
        self._fresh = self._finished = 0
        if self.cluster.plain:
            self._size, starts, stops = turn_sorted(
                self._order, sizes, self._ints, self._floats, self._turn(now), self._out
            )
            plans = self._carry_out(now, starts, stops)
        else:
            self._size = resort(self._order, sizes, self._tables, now)
            plans = self._reassign(now, self._jobs(self._order[: self._size]))
        self._after_turn()
        return Decision(tuple(plans), tuple(verdicts)) if plans or verdicts else NOTHING

    def _estimate(self, view: View) -> None:
        """Take the runtimes of all jobs present as what was measured of others suggests; their order is found anew."""
        tables, now = self._tables, view.now_us
        for job, facts in self._declared.items():
            work = believed(facts, view.estimate(facts).factor).work
            assert isinstance(work, Fixed)
            assert work.runtime_us is not None
            entry = self._entry[job]
            if tables.state[entry] == RUNS and now > tables.since[entry]:
                tables.left[entry] -= now - tables.since[entry]
                tables.since[entry] = now
            tables.left[entry] += work.runtime_us - self._runtime[job]
            self._runtime[job] = work.runtime_us
        present = [entry for entry in self._order[: self._size].tolist() if tables.state[entry] != GONE]
        self._order[: len(present)] = present
        self._size = self._fresh = len(present)
        self._finished = 0

    def _save_order(self) -> Any:
        return {"declared": [plain(job) for job in self._declared.values()], **self._saved_order()}

    def _saved_order(self) -> dict[str, Any]:
        return {"order": self._jobs(self._order[: self._size]), "runtime": list(self._runtime.items())}

    def _restore_order(self, data: Any) -> None:
        self._order = np.zeros(2 * len(data["order"]) + FIRST_SIZE, np.int64)
        self._out = np.zeros((2, len(self._order)), np.int64)
        self._size = len(data["order"])
        self._order[: self._size] = [self._entry[job] for job in data["order"]]
        self._runtime = dict(data["runtime"])
        jobs = [read(Job, each, "declared") for each in data.get("declared", ())]
        self._declared = {job.index: job for job in jobs}
        self._fresh = self._finished = 0
