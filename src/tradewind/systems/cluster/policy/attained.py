"""The queues of las: jobs attain service and sink, and queues are served in turn."""

from __future__ import annotations

from typing import Any

import numpy as np

from tradewind.model.decision import NOTHING, Decision, Plan
from tradewind.model.job import Job
from tradewind.model.setup import Setup
from tradewind.model.units import MILLI, US_PER_S
from tradewind.model.view import View
from tradewind.systems.cluster.kernels.level_queues import (
    Levels,
    LevelTables,
    demote,
    next_demotion,
    running_first,
    turn_levels,
)
from tradewind.systems.cluster.shared.preemptive import FIRST_SIZE, Preemptive, gpus_milli
from tradewind.systems.cluster.shared.shape import Place, Shape


class LeastAttained(Preemptive):
    """Tiresias' discretised two-dimensional least attained service.

    Service (`got`) is counted in thousandths of a GPU-microsecond while a limit lies ahead; `rate` is thousandths of a GPU.
    """

    _fields = LevelTables
    _tables: LevelTables

    def __init__(self, setup: Setup, limits_gpu_s: tuple[float, ...], tick_us: int) -> None:
        super().__init__(setup, ints=7)
        self._tick = tick_us
        self._now = 0
        self._rates: dict[Shape, int] = {}
        self._held = 0  # jobs in all queues, including those dropped at the next turn
        self._levels = Levels(
            lines=np.zeros((len(limits_gpu_s) + 1, FIRST_SIZE), np.int64),
            sizes=np.zeros(len(limits_gpu_s) + 1, np.int64),
            limit=np.array([round(s * US_PER_S) * MILLI for s in limits_gpu_s], np.int64),
        )

    def enqueue(self, job: int, shape: Shape, facts: Job) -> None:
        super().enqueue(job, shape, facts)
        if self._held == self._levels.lines.shape[1]:
            lines = self._levels.lines
            lines = np.concatenate([lines, np.zeros_like(lines)], axis=1)
            self._levels = self._levels._replace(lines=lines)
            self._out = np.zeros((2, lines.shape[1]), np.int64)
        t, levels, entry = self._tables, self._levels, self._entry[job]
        t.got[entry] = t.level[entry] = 0
        rate = self._rates.get(shape)
        if rate is None:
            rate = self._rates[shape] = gpus_milli(self.setup, shape)
        t.rate[entry] = rate
        levels.lines[0, levels.sizes[0]] = entry
        levels.sizes[0] += 1
        self._held += 1

    def requeue(self, job: int, shape: Shape, kept: int) -> None:
        super().requeue(job, shape, kept)  # it stays in its queue and keeps the service it attained
        t, entry = self._tables, self._entry[job]
        if t.level[entry] < len(self._levels.limit):
            t.got[entry] += t.rate[entry] * (self._now - t.since[entry])

    def _begin(self, now: int, job: int, place: Place) -> None:
        self._tables.since[self._entry[job]] = now  # GPUs are held during a restart too

    def decide(self, view: View) -> Decision:
        self._now = now = view.now_us
        verdicts = self.observe(view)
        if self.cluster.plain:
            starts, stops, wait = turn_levels(
                *self._levels, self._tick, self._ints, self._turn(now), self._out
            )
            plans = self._carry_out(now, starts, stops)
        else:
            plans, wait = self._turn_general(now)
        self._held = len(self._shape)
        self._after_turn()
        if wait < 0 and not plans and not verdicts:
            return NOTHING
        return Decision(tuple(plans), tuple(verdicts), int(now + wait) if wait >= 0 else None)

    def _turn_general(self, now: int) -> tuple[list[Plan], int]:
        """The same turn with several resources: plans, and the time until the next job sinks."""
        levels, tables = self._levels, self._tables
        demote(levels, tables, now)
        used = levels.sizes.tolist()
        order = [job for q, size in enumerate(used) for job in self._jobs(levels.lines[q, :size])]
        plans = self._reassign(now, order)
        for q, size in enumerate(used):
            running_first(levels.lines[q], size, tables.state)
        return plans, next_demotion(levels, tables, self._tick)

    def _save_order(self) -> Any:
        return [self._jobs(self._levels.lines[q, :size]) for q, size in enumerate(self._levels.sizes)]

    def _restore_order(self, data: Any) -> None:
        lines = np.zeros((len(data), 2 * sum(map(len, data)) + FIRST_SIZE), np.int64)
        self._levels = self._levels._replace(lines=lines)
        self._out = np.zeros((2, lines.shape[1]), np.int64)
        for q, line in enumerate(data):
            lines[q, : len(line)] = [self._entry[job] for job in line]
            self._levels.sizes[q] = len(line)
        self._held = len(self._shape)
