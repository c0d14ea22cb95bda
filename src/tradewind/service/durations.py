"""How long jobs take, from those that have ended: the base of forecasts."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from statistics import NormalDist, quantiles
from typing import Any

from tradewind.model.estimate import Estimate, Measured
from tradewind.model.job import Job, Rounds
from tradewind.store.board import Row

PRIOR = (0.8, 1.0, 1.5)
"""Measured over stated run time, of three jobs that are thought of before any was measured."""
MOST = 300
"""Ended jobs that are looked at."""


def stated_us(job: Job) -> int | None:
    """The run time that follows from what a job states; None where it states none, or where its plan decides."""
    if isinstance(job.work, Rounds):
        return job.work.count * job.work.compute_us if job.work.unit == "round" else None
    return getattr(job.work, "runtime_us", None)


def _name(id_: str) -> str:
    """What a tenant calls its job."""
    return re.sub(r"-[0-9a-f]{8}$", "", id_)


class Durations:
    """Quantiles of measured run times. rows: of jobs that finished; pace: microseconds of the run per second."""

    def __init__(self, rows: Sequence[Row], jobs: Sequence[Job], pace: float) -> None:
        self._ratios, self._by_name = list(PRIOR), dict[tuple[str, str], list[float]]()
        for row, job in zip(rows, jobs, strict=True):
            if row["started_s"] is None or row["ended_s"] is None:
                continue
            measured = (row["ended_s"] - row["started_s"]) * pace
            if stated := stated_us(job):
                self._ratios.append(measured / stated)
            for key in ((row["tenant"], _name(row["id"])), (row["tenant"], ""), ("", "")):
                self._by_name.setdefault(key, []).append(measured)

    def of(self, job: Job, part: float) -> float | None:
        """The run time in microseconds that this part of such jobs does not exceed; None: nothing is known."""
        if stated := stated_us(job):
            return stated * quantile(self._ratios, part)
        for key in ((job.tenant, _name(job.id)), (job.tenant, ""), ("", "")):
            if key in self._by_name:
                return quantile(self._by_name[key], part)
        return None

    @property
    def measured(self) -> int:
        """Jobs that were measured."""
        return len(self._by_name.get(("", ""), ()))


def quantile(values: Sequence[float], part: float) -> float:
    """The value that this part of them does not exceed."""
    if len(values) == 1:
        return values[0]
    return quantiles(values, n=100, method="inclusive")[round(100 * part) - 1]


def factor_at(estimate: Estimate, part: float) -> float:
    """The factor on declared times that a job does not exceed with this probability."""
    return estimate.factor * math.exp(NormalDist().inv_cdf(part) * estimate.error)


def calibration_document(whole: Measured, estimate: Estimate | None = None) -> dict[str, Any]:
    """What was measured of a job as a whole beside its declaration; estimate: what else is known of how wrong that is."""
    return {
        "iterations": whole.iterations, "predicted_s": whole.declared_s, "measured_s": whole.seconds,
        "error_s": whole.error_s if whole.error_s >= 0 else None,
        "factor": whole.factor if estimate is None else estimate.factor,
        "factor_error": None if estimate is None else estimate.error,
    }  # fmt: skip


class Kept(dict[str, float]):
    """How forecasts were kept: `given`, and the parts of jobs that ended by p50 and by p90; `error_s`: median miss."""


def kept(events: Sequence[Row], ended: dict[str, float]) -> Kept:
    """Compare the first forecast of every job that finished with when it did."""
    first: dict[str, dict[str, float]] = {}
    for row in sorted(events, key=lambda row: int(row["number"])):
        first.setdefault(row["id"], json.loads(row["body"]))
    pairs = [(each, ended[id_]) for id_, each in first.items() if id_ in ended]
    if not pairs:
        return Kept(given=0)
    misses = sorted(abs(at - each["p50_s"]) for each, at in pairs)
    return Kept(
        given=len(pairs),
        by_p50=sum(at <= each["p50_s"] for each, at in pairs) / len(pairs),
        by_p90=sum(at <= each["p90_s"] for each, at in pairs) / len(pairs),
        error_s=misses[len(misses) // 2],
    )
