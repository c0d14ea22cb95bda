"""The schedulers without the loop: one compiled kernel simulates plain jobs and writes the journal that the loop would."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from tradewind.model.arrays import Floats, Ints
from tradewind.model.columns import Numbers, Words
from tradewind.model.errors import Unsupported
from tradewind.model.job_columns import JobColumns
from tradewind.model.result import Column, Table
from tradewind.model.scenario import Scenario
from tradewind.model.setup import Setup
from tradewind.model.tables import RARE, TABLES
from tradewind.model.units import MILLI, US_PER_S
from tradewind.systems.cluster.kernels import whole_run as kernels
from tradewind.systems.cluster.kernels.room import empty_room
from tradewind.systems.cluster.policy.las import settings
from tradewind.systems.cluster.shared.placement import WIDEST, never_fits

KINDS = ("arrived", "finished", "timer", "refused", "ended")
"""Words of the kernel's kinds of events."""


def fifo(scenario: Scenario, jobs: JobColumns, params: Mapping[str, Any]) -> dict[str, Table]:
    """The journal of `fifo`."""
    return _journal(scenario, jobs, kernels.FIFO)


def backfill(scenario: Scenario, jobs: JobColumns, params: Mapping[str, Any]) -> dict[str, Table]:
    """The journal of `fifo-backfill`."""
    return _journal(scenario, jobs, kernels.BACKFILL)


def srtf(scenario: Scenario, jobs: JobColumns, params: Mapping[str, Any]) -> dict[str, Table]:
    """The journal of `srtf`."""
    return _journal(scenario, jobs, kernels.SORTED, weight=np.ones(len(jobs)))


def srsf(scenario: Scenario, jobs: JobColumns, params: Mapping[str, Any]) -> dict[str, Table]:
    """The journal of `srsf`."""
    return _journal(scenario, jobs, kernels.SORTED, weight=_gpus_milli(scenario.setup, jobs) / MILLI)


def las(scenario: Scenario, jobs: JobColumns, params: Mapping[str, Any]) -> dict[str, Table]:
    """The journal of `las`."""
    limits, tick_us = settings(params)
    limit = np.array([round(s * US_PER_S) * MILLI for s in limits], np.int64)
    return _journal(scenario, jobs, kernels.LEVELS, limit=limit, tick_us=tick_us)


def _gpus_milli(setup: Setup, jobs: JobColumns) -> Ints:
    """GPUs of each job in thousandths; its workers count as one each where they need no `gpu`."""
    gpu = setup.resource_index.get("gpu", -1)
    return jobs.workers * (dict(jobs.demand).get(gpu, 0) or MILLI)


def _units(setup: Setup, jobs: JobColumns) -> Ints:
    """Workers that each host holds, shape (hosts,)."""
    if any(len(setup.lineage[node]) > 1 for node in setup.hosts):
        raise Unsupported("racks or sites have limits of their own")
    if len(jobs.demand) != 1:
        raise Unsupported(f"workers need {len(jobs.demand)} resources")
    resource, milli = jobs.demand[0]
    units = np.array([setup.nodes[node].capacity_milli[resource] // milli for node in setup.hosts], np.int64)
    if not 0 < units.max(initial=0) <= WIDEST:
        raise Unsupported(f"a server holds {units.max(initial=0)} workers; 1 to {WIDEST} can be counted")
    return units


def _journal(
    scenario: Scenario,
    jobs: JobColumns,
    kind: int,
    *,
    weight: Floats | None = None,
    limit: Ints | None = None,
    tick_us: int = 1,
) -> dict[str, Table]:
    setup, units = scenario.setup, _units(scenario.setup, jobs)
    none = np.zeros(1, np.int64)
    load = kernels.Load(
        arrive=_usual(jobs.arrive_us),
        runtime=_usual(jobs.runtime_us),
        need=_usual(jobs.workers),
        weight=np.ones(1) if weight is None else weight,
        rate=none if limit is None else _gpus_milli(setup, jobs),
        shape=np.unique(jobs.workers, return_inverse=True)[1] if kind in kernels.BY_NEED else none,
    )
    rule = kernels.Rule(
        kind, none[:0] if limit is None else limit, tick_us, int(units.sum()), setup.horizon_us
    )
    journal, done, due, place = kernels.whole_run(load, rule, empty_room(units))
    return _tables(setup, jobs, journal, _ended(rule, load, journal, (done, due, place)))


def _usual(column: Ints) -> Ints:
    """A column in the one layout for which the kernel is compiled."""
    return np.require(column, np.int64, ("C", "W"))


def _ended(rule: kernels.Rule, load: kernels.Load, journal: kernels.Journal, last: Any) -> tuple[Ints, Ints]:
    """Jobs that are unfinished at the horizon, and the work that they have done."""
    done, due, place = last
    over = np.zeros(len(done), np.bool_)
    over[journal.event_job[journal.event_kind == kernels.FINISHED]] = True
    over[journal.verdict_job] = True
    jobs = np.flatnonzero(~over)
    began = due[jobs] - np.maximum(1, load.runtime[jobs] - done[jobs])
    return jobs, done[jobs] + np.where(place[jobs] >= 0, rule.horizon - began, 0)


def _tables(
    setup: Setup, jobs: JobColumns, journal: kernels.Journal, ended: tuple[Ints, Ints]
) -> dict[str, Table]:
    """The kernel's columns as tables of a run."""
    left, work = ended
    at, kind, job = journal.event_at, journal.event_kind, journal.event_job
    value = Numbers.all_equal(0, len(at))
    if len(left):
        value = Numbers(np.concatenate((np.zeros(len(at), np.int64), work)))
        at = np.concatenate((at, np.full(len(left), setup.horizon_us)))
        kind = np.concatenate((kind, np.full(len(left), kernels.ENDED, np.int8)))
        job = np.concatenate((job, left.astype(np.int32)))
    decisions, plans = len(journal.decision_at), len(journal.plan_job)
    wake = Numbers(journal.decision_wake) if len(journal.decision_wake) == decisions else None
    starts = np.flatnonzero(journal.plan_starts).astype(np.int32)
    steps, step_of = len(starts), np.cumsum(journal.plan_starts, dtype=np.int32) - 1
    made = journal.decision_at[journal.plan_decision]
    hosts = np.array(setup.hosts, np.int32)
    reasons = [never_fits(setup, jobs.demand, n) for n in jobs.workers[journal.verdict_job].tolist()]
    found: dict[str, dict[str, Column]] = {
        "events": {"at_us": Numbers(at), "kind": Words(kind, KINDS), "job": Numbers(job), "value": value},
        "decisions": {
            "at_us": Numbers(journal.decision_at),
            "wake_us": wake or Numbers.all_equal(-1, decisions),
            "why": Words.all_equal("", decisions),
        },
        "verdicts": {
            "decision": Numbers(journal.verdict_decision),
            "job": Numbers(journal.verdict_job),
            "reason": Words.of(reasons),
        },
        "plans": {
            "at_us": Numbers(made),
            "decision": Numbers(journal.plan_decision),
            "job": Numbers(journal.plan_job),
        },
        "steps": {
            "plan": Numbers(starts if steps < plans else np.arange(plans, dtype=np.int32)),
            "from_us": Numbers(made[starts] if steps < plans else made),
            "until_us": Numbers.all_equal(-1, steps),
            "usd": Numbers.all_equal(0.0, steps),
        },
        "places": {
            "step": Numbers(step_of[journal.place_plan]),
            "node": Numbers(hosts[journal.place_host]),
            "workers": Numbers(journal.place_units),
            "servers": Numbers.all_equal(0, len(journal.place_host)),
        },
    }
    return {
        name: found.get(name, {column: [] for column in columns})
        for name, columns in TABLES.items()
        if name not in RARE
    }
