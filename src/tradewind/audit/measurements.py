"""What a live run says that it predicted and measured, as far as it follows from plans.

Seconds are predicted by the model from a job and the step in force, on one clock for the whole run. Measurements are of jobs
and nodes whose workers reported iterations, of no more iterations than these, beside the prediction for them, which plans
that change routes while ranks go on may change.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import isclose
from typing import Any, NamedTuple

from tradewind.model.decision import Step
from tradewind.model.job import Job
from tradewind.model.progress import iteration_us
from tradewind.model.result import Table, Violation
from tradewind.model.setup import Setup

DIGITS = 1e-9
"""Relative difference of numbers that count as equal."""


class Part(NamedTuple):
    """What an attempt contributes to the measurements of its nodes."""

    iterations: int
    predicted_s: float


class MeasurementLedger:
    """Predictions of the attempts so far, and the table `measurements`."""

    def __init__(self, setup: Setup, tables: Mapping[str, Table]) -> None:
        self._setup = setup
        table: Any = tables.get("measurements", {})
        names = ("job", "node", "iterations", "predicted_s")
        self._rows = list(zip(*(table.get(name, ()) for name in names), strict=True))
        self._parts: dict[tuple[int, int], list[Part]] = {}
        self._us_per_s = 0.0
        self._in_force: dict[int, Step] = {}
        self._range_us: dict[
            int, tuple[int, int]
        ] = {}  # job -> least and most predicted by its steps in force

    def begin(self, job: Job, step: Step, part: Part) -> Iterator[Violation]:
        """Take an attempt of the step in force; its prediction is that of the model."""
        expected_us = iteration_us(self._setup, job, step)
        if expected_us and part.predicted_s > 0:
            pace = expected_us / part.predicted_s
            self._us_per_s = self._us_per_s or pace
            is_right = isclose(pace, self._us_per_s, rel_tol=DIGITS)
        else:
            is_right = expected_us == 0 == part.predicted_s
        if not is_right:
            detail = f"{part.predicted_s} s are said to be predicted for an iteration; the model says {expected_us} us"
            clock = f" and the clock of the run {self._us_per_s} us per second" if self._us_per_s else ""
            yield Violation("attempts.predicted", job.id, detail=f"{detail}{clock}")
        for node, workers in zip(step.nodes, step.workers, strict=True):
            if workers and part.predicted_s > 0:
                self._parts.setdefault((job.index, node), []).append(part)

    def during(self, job: Job, step: Step) -> None:
        """Take the step in force at an instant."""
        if self._in_force.get(job.index) is step:
            return
        self._in_force[job.index] = step
        if us := iteration_us(self._setup, job, step):
            low, high = self._range_us.get(job.index, (us, us))
            self._range_us[job.index] = (min(low, us), max(high, us))

    def close(self) -> Iterator[Violation]:
        """The table `measurements`, in order of job and node."""
        last = (-1, -1)
        for job, node, iterations, predicted_s in self._rows:
            parts = [part for part in self._parts.get((job, node), ()) if part.iterations > 0]
            said = [part.predicted_s for part in parts]
            if parts and self._us_per_s:
                said += [us / self._us_per_s for us in self._range_us.get(job, ())]
            low, high = min(said, default=0.0) * (1 - DIGITS), max(said, default=0.0) * (1 + DIGITS)
            most = sum(part.iterations for part in parts)
            if not (last < (job, node) and 1 <= iterations <= most and low <= predicted_s <= high):
                detail = f"{iterations} iterations of job {job} at node {node}, {predicted_s} s predicted"
                follows = f"its attempts there have {most}, predicted with {low:.9g} to {high:.9g} s"
                yield Violation("attempts.measured", detail=f"{detail}; {follows}; rows are in order")
            last = (job, node)
