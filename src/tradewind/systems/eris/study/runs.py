"""Runs of the Eris study: one outcome per scenario and policy, tables over seeds, use of resources by slot."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import fsum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tradewind.engine.intervals import effective, end_us, floats, usage
from tradewind.lab.study import Effort, Row, spreads
from tradewind.model.result import Run
from tradewind.model.scenario import Scenario
from tradewind.registry import policies, workloads
from tradewind.systems.eris.bound import pooled_bound
from tradewind.worlds.simulate import simulate

FIXED = ("tiresias", "antman", "liquid")
ELASTIC = ("tiresias-elastic", "antman-elastic", "liquid-elastic")
OURS = ("eris", "eris-preemptive")
PAPER, BOUND = "eris-paper", "upper bound"
LEADS = ("lead of eris-paper", "lead of eris")
"""Columns: additional welfare relative to the policy of the row."""
WHOLE = {"simulator": (50, 100), "contended": (20, 100), "crowded": (50, 300)}
"""Sites and jobs of a size."""
NAMES = (PAPER, *OURS, *FIXED, *ELASTIC, "fcfs")
"""Policies compared on a scenario; rivals without "elastic" have 16 workers, or as many as the network holds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """Summary of a run: welfare and payments in thousand USD; jobs that arrived, were accepted and completed."""

    welfare: float
    paid: float
    jobs: float
    accepted: float
    completed: float


def made(effort: Effort, seed: int, size: str, **params: Any) -> Scenario:
    """A scenario of the Eris workload; a quick study halves sites, jobs and bandwidth of all sizes except the testbed."""
    if effort.quick and size != "testbed":
        sites, jobs = WHOLE[size]
        whole = {"sites": sites, "jobs": jobs, "bandwidth_gb": 20.0} | params
        params = {key: type(value)(value / 2) for key, value in whole.items()}
    return workloads.generate("eris", {"size": size} | params, seed)


def played(scenario: Scenario, name: str, params: Mapping[str, Any] | None = None) -> Run:
    """One audited run."""
    return simulate(scenario, policies.find(name), params, seed=1)


def paid_usd(run: Run) -> float:
    """Payments of a policy with payments; otherwise the posted prices of the steps that ran."""
    spec = policies.find(run.policy)
    if spec.pricer or spec.charges:
        return run.metrics["payments_usd"]
    return fsum(floats(run, "steps", "usd")[effective(run, end_us(run)).step].tolist())


def outcome(scenario: Scenario, name: str, params: Mapping[str, Any] | None = None) -> Outcome:
    """Outcome of a policy on a scenario."""
    run = played(scenario, name, params)
    m = run.metrics
    return Outcome(
        welfare=m["welfare_usd"] / 1000,
        paid=paid_usd(run) / 1000,
        jobs=m["jobs"],
        accepted=m["jobs_accepted"],
        completed=m["jobs_completed"],
    )


def limit(scenario: Scenario) -> float:
    """The certified upper bound on welfare, in thousand USD."""
    return pooled_bound(scenario).bound / 1000


def seeds(effort: Effort, most: int, times: int = 1) -> range:
    """Seeds from 1 on; nothing was tuned on them."""
    return range(1, 1 + min(effort.seeds * times, most))


def compared(scenario: Scenario, names: Sequence[str] = NAMES) -> list[dict[str, str | float]]:
    """A row per policy and one for the bound: welfare, share of the bound, leads of both versions of Eris, payments."""
    top = limit(scenario)
    found = {name: outcome(scenario, name) for name in names}
    rows: list[dict[str, str | float]] = []
    for name, o in found.items():
        rows.append({
            "policy": name, "welfare": o.welfare, "of bound": o.welfare / top, "unserved": o.jobs - o.completed,
            "profit": o.paid, "lead of eris-paper": _lead(found[PAPER], o), "lead of eris": _lead(found["eris"], o),
        })  # fmt: skip
    none = float("nan")
    rows.append({
        "policy": BOUND, "welfare": top, "of bound": 1.0, "unserved": none, "profit": none,
        "lead of eris-paper": found[PAPER].welfare / top - 1, "lead of eris": found["eris"].welfare / top - 1,
    })  # fmt: skip
    return rows


def _lead(ours: Outcome, other: Outcome) -> float:
    """Additional welfare as a share of the other's."""
    return ours.welfare / max(other.welfare, 1e-9) - 1


def joined(rows: Sequence[Row], by: Sequence[str], value: str, *more: str) -> list[Row]:
    """`spreads` without the rows that have no value."""
    return [row for row in spreads(rows, by, value, *more) if not math.isnan(float(row[value]))]


def load_by_slot(scenario: Scenario, run: Run) -> NDArray[np.float64]:
    """Share (T, K) of all sites' capacity in use in each slot, by resource."""
    setup = scenario.setup
    total = np.array([setup.nodes[h].capacity_milli for h in setup.hosts], dtype=np.float64).sum(axis=0)
    found = np.zeros((setup.slots, len(setup.resources)))
    used = usage(run, effective(run, end_us(run)))
    slot = used.from_us // setup.slot_us
    for k in range(len(setup.resources)):
        worker, server = (
            np.array([dict(getattr(job, role)).get(k, 0) for job in scenario.jobs], dtype=np.float64)
            for role in ("worker", "server")
        )
        milli = worker[used.job] * used.workers + server[used.job] * used.servers
        np.add.at(found[:, k], slot, milli * (used.until_us - used.from_us) / setup.slot_us)
    share: NDArray[np.float64] = found / np.maximum(total, 1)
    return share


def one(rows: Sequence[Row], **where: str | float) -> Row:
    """The first matching row."""
    return next(r for r in rows if all(r[key] == want for key, want in where.items()))


def ranged(row: Row, value: str) -> str:
    """A column with its 95% interval as text."""
    low, high = float(row[f"{value} low"]), float(row[f"{value} high"])
    return f"{float(row[value]):+.0%} ({low:+.0%} to {high:+.0%})"
