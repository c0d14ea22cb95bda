"""The result of a run: metrics, tables, violations, bound."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, Literal, NamedTuple

from tradewind.model.columns import Packed
from tradewind.model.decision import Offer, Plan
from tradewind.model.errors import InputError, LookupFailed
from tradewind.model.setup import Objective


class Violation(NamedTuple):
    """A broken rule: which one, the job, node and slot concerned, and the excess."""

    rule: str
    job: str = ""
    node: str = ""
    slot: int = -1
    amount: float = 0.0
    detail: str = ""

    def __str__(self) -> str:
        parts = [f"rule {self.rule}"]
        if self.job:
            parts.append(f"job {self.job}")
        if self.node:
            parts.append(f"at {self.node}")
        if self.slot >= 0:
            parts.append(f"slot {self.slot}")
        return ", ".join(parts) + f": {self.detail}" + (f" (by {self.amount:g})" if self.amount else "")


class Outcome(NamedTuple):
    """What came of a job that is over: everything that metrics need to know of it.

    state        finished, left, refused, declined, cancelled or unfinished
    start_us     when its first step began; -1: it never ran
    finish_us    when it finished or left; -1: it did not
    done         work done, in the unit of its kind of work
    steps_run    steps carried out
    paid_usd     what the customer paid; None: it bought nothing
    of_progress  whether value_usd is utility of progress
    comm_us      communication time of a round times the time it applied, comm_span_us
    lost_usd     what it would have been worth without delay, less value_usd
    """

    job: int
    id: str
    tenant: str
    state: str
    arrive_us: int
    start_us: int
    finish_us: int
    done: int
    steps_run: int
    paid_usd: float | None
    value_usd: float
    of_progress: bool
    comm_us: int
    comm_span_us: int
    lost_usd: float = 0.0


class EndedJob(NamedTuple):
    """The row of a job that is over in a store; how: the kind of the event that ended it; body: JSON text."""

    job: int
    id: str
    tenant: str
    arrived_us: int
    ended_us: int
    how: str
    body: str = "{}"


CLOSED = 1e-6
"""Share of the bound up to which value and bound are equal: the tolerance of the mixed-integer programs of some bounds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """The offline bound of a scenario's objective over the whole horizon; it does not depend on a policy.

    ratio  objective / bound: >= 1 for min, <= 1 for max
    kind   certified, or in-expectation
    """

    value: float
    sense: Literal["min", "max"]
    kind: Literal["certified", "in-expectation"]
    ratio: float = float("nan")


@dataclass(frozen=True, slots=True, kw_only=True)
class Offline:
    """What an offline solver found for a whole scenario; it knows the future and all private data.

    plans   instant -> the plans that are made then; offers: job -> the offer on its arrival, in a market
    bound   certified bound of the objective, None where it proves none
    """

    plans: Mapping[int, Sequence[Plan]] = field(default_factory=dict)
    offers: Mapping[int, Offer] = field(default_factory=dict)
    bound: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Timings:
    """Wall-clock seconds; kept out of the run file, which is reproducible byte for byte."""

    total: float
    decide_p50: float
    decide_p99: float


WorldName = Literal["simulated", "processes"]
Column = list[int] | list[float] | list[str] | Packed
Table = Mapping[str, Column]


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A finished run: header, metrics, tables (see docs/formats.md), audit, certificates.

    world  simulated, or processes: completions and progress of fixed jobs and rounds were measured
    fleet  the cluster on which the processes ran, such as slurm or ray; empty: this machine, or none
    """

    scenario_hash: str
    scenario_name: str
    policy: str
    params: Mapping[str, Any]
    seed: int
    version: str
    objective: Objective
    metrics: Mapping[str, float]
    violations: tuple[Violation, ...]
    tables: Mapping[str, Table]
    bound: Bound | None = None
    certificates: tuple[Mapping[str, Any], ...] = ()
    world: WorldName = "simulated"
    fleet: str = ""
    timings: Timings | None = field(default=None, compare=False)

    @property
    def value(self) -> float:
        """The objective's value."""
        return self.metrics[self.objective]

    def frame(self, table: str) -> Any:
        """A table (docs/formats.md) as a frame of pandas, or of polars where only that is installed."""
        if table not in self.tables:
            raise LookupFailed("table of this run", table, self.tables)
        return frame_of(self.tables[table])

    def __repr__(self) -> str:
        shown = f"{self.objective} {self.value:.6g}" if self.objective in self.metrics else "no metrics"
        ratio = "" if self.bound is None else f", {self.bound.ratio:.4f} of the bound"
        return f"Run({self.policy} on {self.scenario_name!r}, seed {self.seed}: {shown}{ratio})"


def frame_of(columns: Mapping[str, Any]) -> Any:
    """Columns as a frame of pandas, or of polars where only that is installed."""
    for package in ("pandas", "polars"):
        try:
            return import_module(package).DataFrame(dict(columns))
        except ImportError:
            continue
    raise InputError("frames need pandas or polars: pip install pandas")
