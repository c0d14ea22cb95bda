"""Costs, payments, values and metrics of a run, computed from its journal (docs/concepts.md)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from math import fsum
from typing import cast

import numpy as np

from tradewind.engine.costs import cost_table, epoch_s
from tradewind.engine.instants import read_charges
from tradewind.engine.intervals import (
    GONE,
    EventKinds,
    Usage,
    effective,
    end_us,
    floats,
    ints,
    promised_us,
    taken_offers,
    usage,
)
from tradewind.engine.served import served_usd
from tradewind.model.arrays import Floats, Ints
from tradewind.model.columns import Numbers, Packed, Words
from tradewind.model.job import Demand, Rounds
from tradewind.model.result import Column, Run, Table
from tradewind.model.scenario import Scenario
from tradewind.model.setup import Setup
from tradewind.model.tables import TABLES
from tradewind.model.units import OPEN, UNLIMITED, US_PER_S

COST_KINDS = ("transfer", "rent", "deploy", "traffic")
POOLED_KINDS = (*COST_KINDS, "discount")
"""Kinds of cost where the setup has pools."""


def settle(scenario: Scenario, run: Run) -> Run:
    """Add outcomes, payments, costs and metrics to a run that has only its journal."""
    lists, run = run, _as_arrays(run)
    end = end_us(run)
    intervals = effective(run, end)
    used = usage(run, intervals)
    paid = _payments(scenario, run)
    outcomes = _outcomes(scenario, run, intervals.job, intervals.from_us)
    values, progress = _values(scenario, outcomes, paid, served_usd(scenario, run, intervals))
    outcomes["value_usd"] = values
    costs = cost_table(scenario, run, intervals)
    packed = isinstance(lists.tables["events"]["at_us"], Packed)
    tables: dict[str, Table] = {
        **lists.tables,
        "outcomes": outcomes if packed else {name: list(column) for name, column in outcomes.items()},
        "payments": {"job": list(paid), "usd": list(paid.values())},
        "costs": costs,
    }
    metrics = _money(scenario.setup, costs, paid, values, progress)
    if scenario.setup.objective == "total_usd":
        metrics["total_usd"] = metrics["cost_usd"] + _lost(scenario, outcomes)
    metrics["epoch_s"] = epoch_s(scenario, run, intervals)
    metrics |= _times(scenario, outcomes)
    metrics |= _activity(scenario.setup, scenario, used, intervals.job, end)
    return replace(run, tables=tables, metrics=metrics)


def _as_arrays(run: Run) -> Run:
    """The run with the columns that are read most often as arrays, so that each is converted once."""
    found = dict(run.tables)
    for name in ("events", "plans", "steps", "places"):
        found[name] = {
            column: _packed(values, TABLES[name][column][0]) for column, values in found.get(name, {}).items()
        }
    return replace(run, tables=found)


def _packed(values: Column, kind: str) -> Packed:
    if isinstance(values, Packed):
        return values
    if kind == "str":
        return Words.of(values)
    return Numbers(np.asarray(values, dtype=np.int64 if kind == "int" else np.float64))


def _outcomes(scenario: Scenario, run: Run, began_job: Ints, began_us: Ints) -> dict[str, Column]:
    """State, times and work of every job that arrived."""
    kinds, jobs, times = EventKinds(run), ints(run, "events", "job"), ints(run, "events", "at_us")
    arrived, count = jobs[kinds.are("arrived")], len(scenario.jobs)
    state = np.full(count, len(GONE), dtype=np.int8)
    finish, start, work = (np.full(count, v, dtype=np.int64) for v in (-1, -1, 0))
    for number, kind in enumerate(GONE):
        rows = kinds.are(kind)
        state[jobs[rows]] = number
        if kind in ("finished", "left"):
            finish[jobs[rows]] = times[rows]
    ended = kinds.are("ended", "refused", "cancelled")
    work[jobs[ended]] = ints(run, "events", "value")[ended]
    finished = jobs[kinds.are("finished")]
    columns = scenario.columns
    if columns is not None:
        work[finished] = columns.runtime_us[finished]
    else:
        work[finished] = [_total(scenario, job) for job in finished.tolist()]
    order = np.arange(len(began_us))[::-1]
    if (began_us[1:] < began_us[:-1]).any():
        order = np.argsort(began_us, kind="stable")[::-1]
    start[began_job[order]] = began_us[order]  # the earliest start is written last and stays
    return {
        "job": Numbers(arrived),
        "state": Words(state[arrived], (*GONE, "unfinished")),
        "start_us": Numbers(start[arrived]),
        "finish_us": Numbers(finish[arrived]),
        "work": Numbers(work[arrived]),
    }


def _total(scenario: Scenario, job: int) -> int:
    """All the work of a job."""
    total = scenario.jobs[job].work.total
    return scenario.customers[job].runtime_us or 0 if total is None else total


def _payments(scenario: Scenario, run: Run) -> dict[int, float]:
    """Job -> USD for every customer who took an offer and did not get all of it back, or was charged after the run."""
    taken = taken_offers(run)
    jobs, usd = ints(run, "offers", "job")[taken], floats(run, "offers", "payment_usd")[taken]
    paid = dict(zip(jobs.tolist(), usd.tolist(), strict=True))
    _refund(scenario, run, paid)
    return paid | {charge.job: charge.usd for charge in read_charges(run.tables)}


def _refund(scenario: Scenario, run: Run, paid: dict[int, float]) -> None:
    """Take back what was paid for promises that a failure broke (docs/concepts.md, "Money")."""
    if not paid:
        return
    kinds, jobs = EventKinds(run), ints(run, "events", "job")
    interrupted = [job for job in set(jobs[kinds.are("voided")].tolist()) if job in paid]
    if not interrupted:
        return
    promised, times = promised_us(run), ints(run, "events", "at_us")
    done = kinds.are("finished")
    finish = dict(zip(jobs[done].tolist(), times[done].tolist(), strict=True))
    for job in interrupted:
        bid = scenario.jobs[job].utility
        if job not in finish:
            del paid[job]
        elif finish[job] > promised[job] and bid is not None and bid.of == "delay_slots":
            paid[job] = 0.0


def _values(
    scenario: Scenario, outcomes: dict[str, Column], paid: dict[int, float], served: dict[int, float]
) -> tuple[Column, float]:
    """Value of each job before payment, and the sum of utilities of progress."""
    if scenario.columns is not None and not paid:  # nobody says what a plain job is worth
        return Numbers.all_equal(0.0, len(outcomes["job"])), 0.0
    slot_us = scenario.setup.slot_us
    values, progress = [], []
    columns = (cast(list[int], outcomes["job"]), outcomes["state"], outcomes["finish_us"], outcomes["work"])
    for index, state, finish, work in zip(*columns, strict=True):
        job, customer = scenario.jobs[index], scenario.customers[index]
        worth, value = customer.valuation or job.utility, 0.0
        if worth is None:
            if index in paid:
                value = customer.budget_usd or 0.0
        elif worth.of == "progress":
            rate = job.work.rate / 1e6 if isinstance(job.work, Rounds) else 1.0
            value = worth.value(cast(int, work) * rate)
            progress.append(value)
        elif worth.of == "served":
            value = served.get(index, 0.0)
        elif worth.of == "payment":
            value = worth.value(paid[index]) if index in paid else 0.0
        elif state == "finished":
            value = worth.value((cast(int, finish) - 1) // slot_us - job.arrive_us // slot_us)
        values.append(value)
    return values, fsum(progress)


def _lost(scenario: Scenario, outcomes: dict[str, Column]) -> float:
    """Value that jobs lost by delay: their worth at delay 0 less their value, all of it where they did not finish."""
    lost = []
    for index, value in zip(
        cast(list[int], outcomes["job"]), cast(list[float], outcomes["value_usd"]), strict=True
    ):
        worth = scenario.customers[index].valuation or scenario.jobs[index].utility
        if worth is not None and worth.of == "delay_slots":
            lost.append(worth.value(0.0) - value)
    return fsum(lost)


def _money(
    setup: Setup, costs: Table, paid: dict[int, float], values: Column, progress: float
) -> dict[str, float]:
    """Cost by kind, payments, profit, value and welfare, all in USD."""
    usd, kinds = np.asarray(costs["usd"], dtype=np.float64), np.asarray(costs["kind"], dtype=np.str_)
    parts = {
        f"cost_{kind}_usd": fsum(usd[kinds == kind].tolist())
        for kind in (POOLED_KINDS if setup.pools else COST_KINDS)
    }
    cost, payments, value = fsum(parts.values()), fsum(paid.values()), fsum(cast(Iterable[float], values))
    return {
        "cost_usd": cost,
        **parts,
        "payments_usd": payments,
        "profit_usd": payments - cost,
        "value_usd": value,
        "welfare_usd": value - cost,
        "utility": progress,
    }


def _times(scenario: Scenario, outcomes: dict[str, Column]) -> dict[str, float]:
    """Completion times and counts of jobs."""
    jobs, state = np.asarray(outcomes["job"], dtype=np.int64), cast(Words, outcomes["state"])
    start, finish = (np.asarray(outcomes[c], dtype=np.int64) for c in ("start_us", "finish_us"))
    columns = scenario.columns
    if columns is not None:
        arrive = columns.arrive_us[jobs]
    else:
        arrive = np.array([scenario.jobs[j].arrive_us for j in jobs.tolist()], dtype=np.int64)
    are = {name: state.codes == number for number, name in enumerate(state.words)}
    finished, over = are["finished"], are["finished"] | are["left"]
    jct = (finish - arrive)[finished] / US_PER_S
    wait = (start - arrive)[start >= 0] / US_PER_S
    first = int(arrive.min(initial=OPEN)) if len(arrive) else 0
    last = max(first, int(finish[over].max(initial=-1)))
    counts = {name: float(are[name].sum()) for name in ("refused", "declined", "unfinished")}
    cancelled = float(are["cancelled"].sum())
    return {
        "jct_mean_s": fsum(Numbers(jct)) / len(jct) if len(jct) else 0.0,
        "jct_p50_s": float(np.quantile(jct, 0.5)) if len(jct) else 0.0,
        "jct_p99_s": float(np.quantile(jct, 0.99)) if len(jct) else 0.0,
        "wait_mean_s": fsum(Numbers(wait)) / len(wait) if len(wait) else 0.0,
        "makespan_s": (last - first) / US_PER_S,
        "jobs": float(len(jobs)),
        "jobs_accepted": float(len(jobs)) - counts["refused"] - counts["declined"],
        "jobs_completed": float(over.sum()),
        **{f"jobs_{name}": number for name, number in counts.items()},
        **({"jobs_cancelled": cancelled} if cancelled else {}),
    }


def _activity(setup: Setup, scenario: Scenario, used: Usage, steps_of: Ints, end: int) -> dict[str, float]:
    """Mean number of steps per job, and mean utilisation of each resource that is limited on every host."""
    counts = np.bincount(steps_of, minlength=1)
    counts = counts[counts > 0]
    result = {"steps_mean": float(counts.mean()) if len(counts) else 0.0}
    spans = (used.until_us - used.from_us).astype(np.float64)
    for r, name in enumerate(setup.resources):
        limits = [setup.nodes[host].capacity_milli[r] for host in setup.hosts]
        total = sum(limits)
        if not total or UNLIMITED in limits:
            continue
        columns = scenario.columns
        if columns is not None:
            milli = float(dict(columns.demand).get(r, 0)) * used.workers
        else:
            worker, server = (
                _milli(r, [job.worker for job in scenario.jobs]),
                _milli(r, [job.server for job in scenario.jobs]),
            )
            milli = worker[used.job] * used.workers + server[used.job] * used.servers
        result[f"utilisation_{name}"] = float((milli * spans).sum() / (total * max(1, end)))
    return result


def _milli(resource: int, needs: Sequence[Demand]) -> Floats:
    """Milli-units of a resource that each of these demands names, shape (needs,)."""
    known = {need: float(dict(need).get(resource, 0)) for need in set(needs)}
    return np.array([known[need] for need in needs], dtype=np.float64)
