"""The queues of las: service is booked, jobs sink, queues are served in turn."""

from __future__ import annotations

from typing import Any

import numpy as np

from tradewind.model.decision import NOTHING, Decision, Plan
from tradewind.model.job import Job
from tradewind.model.setup import Setup
from tradewind.model.units import MILLI, US_PER_S
from tradewind.model.view import View
from tradewind.systems.cluster.kernels import queues
from tradewind.systems.cluster.shared.placement import Place, Shape
from tradewind.systems.cluster.shared.preemptive import Preemptive, gpus_milli


class LeastAttained(Preemptive):
    """Tiresias' discretised two-dimensional least attained service.

    got    attained service, in thousandths of a GPU-microsecond (booked while a limit lies ahead)
    rate   thousandths of a GPU
    level  queue of each job
    """

    def __init__(self, setup: Setup, limits_gpu_s: tuple[float, ...], tick_us: int) -> None:
        super().__init__(setup)
        for name in ("got", "rate", "level"):
            self._table(name, np.int64)
        self._limit = np.array([round(s * US_PER_S) * MILLI for s in limits_gpu_s], np.int64)
        self._tick = tick_us
        self._now = 0
        self._held = 0  # jobs in all queues, with those that go at the next turn
        self._lines = np.zeros((len(limits_gpu_s) + 1, 256), np.int64)
        self._sizes = np.zeros(len(limits_gpu_s) + 1, np.int64)

    def enter(self, job: int, shape: Shape, facts: Job) -> None:
        super().enter(job, shape, facts)
        if self._held == self._lines.shape[1]:
            self._lines = np.concatenate([self._lines, np.zeros_like(self._lines)], axis=1)
            self._out = np.zeros((2, self._lines.shape[1]), np.int64)
        t = self._tables
        t["got"][job] = t["level"][job] = 0
        t["rate"][job] = gpus_milli(self.setup, shape)
        self._lines[0, self._sizes[0]] = job
        self._sizes[0] += 1
        self._held += 1

    def back(self, job: int, shape: Shape, kept: int) -> None:
        super().back(job, shape, kept)  # it stays in its queue, and what it attained it attained
        t = self._tables
        if t["level"][job] < len(self._limit):
            t["got"][job] += t["rate"][job] * (self._now - t["since"][job])

    def _begin(self, now: int, job: int, place: Place) -> None:
        self._tables["since"][job] = now  # GPUs are held during a restart too

    def decide(self, view: View) -> Decision:
        self._now = now = view.now_us
        verdicts = self.hear(view)
        t, cluster = self._tables, self.cluster
        plans: list[Plan] = []
        if cluster.plain:
            starts, stops, jump = queues.turn_lines(
                self._lines, self._sizes, now, self._tick, self._running, cluster.free_units + self._in_use,
                t["since"], t["got"], t["rate"], self._limit, t["level"], t["need"], t["state"], self._out,
            )  # fmt: skip
            if starts or stops:
                plans = self._carry_out(now, self._out[0, :starts].tolist(), self._out[1, :stops].tolist())
        else:
            plans, jump = self._turn_general(now)
        self._held = len(self._shape)
        if jump < 0 and not plans and not verdicts:
            return NOTHING
        return Decision(tuple(plans), tuple(verdicts), int(now + jump) if jump >= 0 else None)

    def _turn_general(self, now: int) -> tuple[list[Plan], int]:
        """The same turn where room has several sides: plans, and the time until the next job sinks."""
        t, lines, sizes = self._tables, self._lines, self._sizes
        queues.demote(lines, sizes, now, t["since"], t["got"], t["rate"], self._limit, t["state"], t["level"])
        used = sizes.tolist()
        plans = self._reseat(now, [job for q, size in enumerate(used) for job in lines[q, :size].tolist()])
        for q, size in enumerate(used):
            queues.running_first(lines[q], size, t["state"])
        return plans, queues.next_jump(lines, sizes, t["got"], t["rate"], self._limit, t["state"], self._tick)

    def _save_lines(self) -> Any:
        return [self._lines[q, :size].tolist() for q, size in enumerate(self._sizes)]

    def _restore_lines(self, data: Any) -> None:
        self._lines = np.zeros((len(data), 2 * sum(map(len, data)) + 256), np.int64)
        self._out = np.zeros((2, self._lines.shape[1]), np.int64)
        for q, line in enumerate(data):
            self._lines[q, : len(line)] = line
            self._sizes[q] = len(line)
        self._held = len(self._shape)
