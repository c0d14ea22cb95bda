"""Groups runs by policy and parameters: means over seeds with 95% intervals."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

import numpy as np

from tradewind.model.result import Run
from tradewind.model.setup import SENSE, Objective
from tradewind.registry import policies


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """Mean of n values and half the width of its 95% t-interval (nan for a single value)."""

    mean: float
    half: float
    n: int


def estimate(values: Sequence[float]) -> Estimate:
    """Mean +- t(0.975, n-1) * s / sqrt(n) of the finite values."""
    found = np.asarray([v for v in values if math.isfinite(v)], dtype=np.float64)
    n = len(found)
    if n == 0:
        return Estimate(mean=math.nan, half=math.nan, n=0)
    mean = float(found.mean())
    if n == 1:
        return Estimate(mean=mean, half=math.nan, n=1)
    same = np.ptp(found) <= 1e-12 * np.abs(found).max()
    from scipy.special import stdtrit  # takes a while to import

    half = 0.0 if same else float(stdtrit(n - 1, 0.975) * found.std(ddof=1) / math.sqrt(n))
    return Estimate(mean=mean, half=half, n=n)


COMPLETION = frozenset(("jct_mean_s", "jct_p50_s", "jct_p99_s", "makespan_s", "epoch_s"))
"""Times that a run records as 0 where no job was completed."""


def measured(run: Run, name: str) -> float:
    """A metric of a run; nan where it has none, also for a time of completion where no job was completed."""
    value = run.metrics.get(name, math.nan)
    none = value == 0 and run.metrics.get("jobs", 0) > 0 and not run.metrics.get("jobs_completed", 0)
    return math.nan if none and name in COMPLETION else value


def metrics_of(run: Run) -> dict[str, float | None]:
    """The metrics of a run; None for a time of completion where no job was completed."""
    return {name: None if math.isnan(value := measured(run, name)) else value for name in run.metrics}


def bill_of(run: Run) -> dict[tuple[str, str], float]:
    """(tenant, kind) -> USD; empty for a run without bills."""
    bills: Mapping[str, Any] = run.tables.get("bills", {})
    columns = (bills.get(name, ()) for name in ("tenant", "kind", "usd"))
    return {(tenant, kind): usd for tenant, kind, usd in zip(*columns, strict=True)}


def is_idle(metric: str, runs: Sequence[Run]) -> bool:
    """Whether a metric says nothing that the cost does not: profit where nobody pays, welfare where no job has a value."""
    needs = {"profit_usd": "payments_usd", "welfare_usd": "value_usd"}.get(metric)
    return needs is not None and not any(run.metrics.get(needs, 0.0) for run in runs)


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """The runs of one policy with one set of parameters, by seed; `number` is its position in the input."""

    label: str
    number: int
    runs: tuple[Run, ...]

    @property
    def first(self) -> Run:
        """The run with the lowest seed, which represents the group in charts of a single run."""
        return self.runs[0]

    @property
    def objective(self) -> Objective:
        return self.first.objective

    def metric(self, name: str) -> Estimate:
        """Estimate of a metric over the seeds."""
        return estimate([measured(run, name) for run in self.runs])

    @property
    def value(self) -> Estimate:
        """Estimate of the objective over the seeds."""
        return self.metric(self.objective)

    @property
    def ratio(self) -> Estimate:
        """Estimate of objective / bound over the seeds with a bound."""
        return estimate([run.bound.ratio for run in self.runs if run.bound is not None])

    @property
    def bound(self) -> Estimate:
        """Estimate of the offline bound over the seeds with a bound."""
        return estimate([run.bound.value for run in self.runs if run.bound is not None])

    @property
    def sound(self) -> bool:
        """Whether the audit found no violation."""
        return not any(run.violations for run in self.runs)


def group(runs: Sequence[Run]) -> list[Group]:
    """One group per policy and parameters, in the order of first appearance."""
    found: dict[tuple[str, str], list[Run]] = {}
    hindsight = {name for name in {run.policy for run in runs} if _computes_params(name)}
    for run in runs:
        params = "" if run.policy in hindsight else repr(sorted(run.params.items()))
        found.setdefault((run.policy, params), []).append(run)
    groups = []
    for number, ((policy, _), members) in enumerate(found.items()):
        rivals = [m[0] for (p, _), m in found.items() if p == policy]
        label = policy + _differing(members[0], rivals)
        groups.append(Group(label=label, number=number, runs=tuple(sorted(members, key=lambda r: r.seed))))
    return groups


def _computes_params(policy: str) -> bool:
    """Whether a policy's parameters are computed from each scenario, so that they differ from seed to seed."""
    return policy in policies.entries and not policies.find(policy).online


def _differing(run: Run, rivals: Sequence[Run]) -> str:
    """The parameters in which a run differs from others of the same policy, in parentheses."""
    names = sorted({name for rival in rivals for name in rival.params})
    differing = [n for n in names if len({repr(rival.params.get(n)) for rival in rivals}) > 1]
    shown = [f"{n}={_in_short(run.params[n])}" for n in differing if run.params.get(n, "") != ""]
    return f" ({', '.join(shown)})" if shown else ""


def _in_short(value: object) -> str:
    """A parameter in a label; the text of a file as the beginning of its hash."""
    text = str(value)
    return f"file {sha256(text.encode()).hexdigest()[:6]}" if "\n" in text else text


def ranked(groups: Sequence[Group]) -> list[Group]:
    """Best first; groups with violations or without a value come last."""

    def key(g: Group) -> tuple[bool, float, int]:
        mean = g.value.mean
        worth = mean if SENSE[g.objective] == "min" else -mean
        return (not g.sound or math.isnan(mean), worth if math.isfinite(worth) else math.inf, g.number)

    return sorted(groups, key=key)


def paired(a: Group, b: Group) -> Estimate:
    """Estimate of the difference a - b of the objective over the seeds that both have."""
    other = {run.seed: measured(run, b.objective) for run in b.runs}
    return estimate([measured(run, a.objective) - other[run.seed] for run in a.runs if run.seed in other])
