"""What was measured of jobs beside what they declare: measurements, and the factor by which declared times are wrong.

Everything here is public: who watches the ranks of a job can see it. A job that has been measured is known by its own
measurements. For one that has not, jobs of its tenant and then all jobs are the best evidence: logarithms of factors are
taken as normal around a mean per tenant, and those means as normal around a common one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple

from tradewind.model.errors import ScenarioError
from tradewind.model.job import DECLARED, Dataset, Fixed, Job, Rounds, Stream
from tradewind.model.units import LARGEST

UNKNOWN: Final = -1.0
ALL: Final = -1
"""`Measured.node` of a job as a whole."""
SPREAD: Final = 0.5
"""Standard deviation of the logarithm of a factor before anything is known: half of all jobs within a factor of 1.4."""
LEAST_ERROR: Final = 0.02
"""Least relative error of a measurement: batches of iterations can all be wrong in the same way."""
UNSURE: Final = 0.25
"""Relative error that a measurement without a known one is given."""
WORST: Final = 1e6
"""A job that declares a time wrong by a larger factor counts as wrong by this one."""


class Measured(NamedTuple):
    """What the ranks of a job measured since it began, at one node or (ALL) as a whole.

    iterations           those that count; 0: not known, such as for a job that is over and reported none
    seconds              mean of an iteration, or of the whole job where iterations are not known
    error_s              its standard error; UNKNOWN with too few iterations
    declared_s           what follows from the declaration for the same iterations
    communication_share  part of the time spent waiting for other ranks; UNKNOWN: not reported
    samples_per_s        of all ranks there; UNKNOWN: not reported
    bytes_per_s          sent by all ranks there; UNKNOWN: not reported
    """

    node: int
    iterations: int
    seconds: float
    error_s: float
    declared_s: float
    communication_share: float = UNKNOWN
    samples_per_s: float = UNKNOWN
    bytes_per_s: float = UNKNOWN

    @property
    def factor(self) -> float:
        """Measured over declared time."""
        return self.seconds / self.declared_s


class Estimate(NamedTuple):
    """What a policy may believe of a job.

    factor    time of its work over the declared one
    error     standard deviation of the factor's logarithm
    done      work done when it was last measured, in the unit of its kind; UNKNOWN: it has not been measured
    at_us     when that was
    measured  the last measurements, the job as a whole first; empty: none, and the factor follows from other jobs
    """

    factor: float
    error: float
    done: int = -1
    at_us: int = -1
    measured: tuple[Measured, ...] = ()


class Factors:
    """Estimates of all jobs, from the events `measured`."""

    def __init__(self) -> None:
        self._last: dict[int, tuple[int, int, tuple[Measured, ...]]] = {}
        # tenant -> count, sum and sum of squares of the logarithms of its jobs' factors
        self._known: dict[str, list[float]] = {}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Factors) and (self._last, self._known) == (other._last, other._known)

    __hash__ = None  # type: ignore[assignment]

    def __bool__(self) -> bool:
        return bool(self._known)

    def take(self, job: Job, at_us: int, done: int, measured: tuple[Measured, ...]) -> None:
        """Take in what was measured of a job; it replaces what was measured before."""
        sums = self._known.setdefault(job.tenant, [0.0, 0.0, 0.0])
        before = self._last.get(job.index)
        if before is not None:
            _add(sums, _logarithm(before[2][0]), -1)
        _add(sums, _logarithm(measured[0]), 1)
        self._last[job.index] = (at_us, done, measured)

    def forget(self, job: int) -> None:
        """Drop the measurements of a job that is over; what they say of others stays."""
        self._last.pop(job, None)

    def of(self, job: Job) -> Estimate:
        """The estimate of a job."""
        mean, variance = self._expected(job.tenant)
        last = self._last.get(job.index)
        if last is None:
            return Estimate(math.exp(mean), math.sqrt(variance))
        at_us, done, measured = last
        own, error = _logarithm(measured[0]), _relative_error(measured[0])
        weight = variance / (variance + error**2)
        factor = math.exp(mean + weight * (own - mean))
        return Estimate(factor, error * math.sqrt(weight), done, at_us, measured)

    def _expected(self, tenant: str) -> tuple[float, float]:
        """Mean and variance of the logarithm of the factor of a job that has not been measured."""
        within = self._within()
        overall, doubt = _posterior(
            0.0, SPREAD**2, list(map(sum, zip(*self._known.values(), strict=True))), within
        )
        mean, own = _posterior(
            overall, doubt + SPREAD**2 / 4, self._known.get(tenant, [0.0, 0.0, 0.0]), within
        )
        return mean, own + within

    def _within(self) -> float:
        """Variance of the logarithms among jobs of a tenant; as one more tenant of four usual jobs would have it."""
        rest, count = 4 * SPREAD**2, 4.0
        for n, total, squares in self._known.values():
            if n >= 2:
                rest += max(0.0, squares - total**2 / n)
                count += n - 1
        return rest / count

    def save(self) -> dict[str, Any]:
        """The state as JSON data."""
        last = [[job, at, done, [list(m) for m in rows]] for job, (at, done, rows) in self._last.items()]
        return {"last": last, "known": [[tenant, *sums] for tenant, sums in self._known.items()]}

    def restore(self, data: Mapping[str, Any]) -> None:
        """Continue from what `save` returned."""
        self._last = {
            job: (at, done, tuple(Measured(*row) for row in rows)) for job, at, done, rows in data["last"]
        }
        self._known = {tenant: list(sums) for tenant, *sums in data["known"]}


def _add(sums: list[float], value: float, sign: int) -> None:
    for k, amount in enumerate((1.0, value, value**2)):
        sums[k] += sign * amount


def _posterior(mean: float, variance: float, sums: Sequence[float], within: float) -> tuple[float, float]:
    """Mean and variance of a normal mean after as many observations as `sums` says."""
    count = sums[0] if sums else 0.0
    if count <= 0:
        return mean, variance
    weight = variance / (variance + within / count)
    return mean + weight * (sums[1] / count - mean), variance * (1 - weight)


def _logarithm(measured: Measured) -> float:
    """Of the factor."""
    return math.log(min(max(measured.factor, 1 / WORST), WORST))


def _relative_error(measured: Measured) -> float:
    error = measured.error_s / measured.seconds if measured.error_s >= 0 else UNSURE
    return max(error, LEAST_ERROR)


def believed(job: Job, factor: float) -> Job:
    """The job as it would declare itself if its work took `factor` times as long."""
    work = job.work
    if factor == 1.0:
        return job
    match work:
        case Fixed(runtime_us=int(runtime)):
            return replace(job, work=Fixed(runtime_us=max(1, times(runtime, factor))))
        case Rounds():
            longer = replace(work, compute_us=times(work.compute_us, factor))
            return replace(job, work=longer, model_bytes=times(job.model_bytes, factor))
        case Dataset():
            rate = min(LARGEST, max(1, int(work.chunk_epochs_per_worker_slot_milli / factor)))
            return replace(job, work=replace(work, chunk_epochs_per_worker_slot_milli=rate))
        case _:
            return job


def times(amount: int, factor: float) -> int:
    """An amount times a factor, as far as the model has numbers for it."""
    return min(LARGEST, round(amount * factor))


def check_pace(job: Job, pace_milli: int) -> None:
    """The true time of a job's work lies between a hundredth and a hundred times the declared one."""
    work = job.work
    if pace_milli == DECLARED:
        return
    if isinstance(work, Stream) or job.gpus or (isinstance(work, Rounds) and work.unit == "worker-slot"):
        raise ScenarioError(
            f"jobs[{job.id}].private.pace is for fixed jobs, rounds of a time and datasets, not for streams, machines and "
            "worker-slots; remove it"
        )
    if type(pace_milli) is not int or not DECLARED // 100 <= pace_milli <= DECLARED * 100:
        raise ScenarioError(
            f"jobs[{job.id}].private.pace is {pace_milli / DECLARED:g}; it must lie between 0.01 and 100"
        )
