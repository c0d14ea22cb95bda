"""The audit of plain fixed jobs in columns: the rules of docs/concepts.md on whole tables at once.

It is for runs in which every plan is one open-ended step from now on, or none, and nothing changes or has a price. What
else a table says breaks a rule here. A table is checked only when those that it refers to are sound. Sums are exact: parts
that fit into 64 bits are added up as whole numbers of any size.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from tradewind.audit.audit import AuditReport
from tradewind.audit.columnar_room import exceeded
from tradewind.audit.costs import CostLedger
from tradewind.audit.results import Totals, quantile, utilisation
from tradewind.model.arrays import Bools, Ints
from tradewind.model.columns import Words, whole
from tradewind.model.job_columns import JobColumns
from tradewind.model.result import Table, Violation
from tradewind.model.setup import Setup
from tradewind.model.tables import TABLES

FINISHED, ARRIVED, TIMER, REFUSED, ENDED = range(5)
STAGES = {"finished": FINISHED, "arrived": ARRIVED, "timer": TIMER, "refused": REFUSED, "ended": ENDED}
"""Kinds of events in the order in which they come within an instant."""
STATES = {FINISHED: "finished", REFUSED: "refused", ENDED: "unfinished"}
USED = ("events", "decisions", "verdicts", "plans", "steps", "places", "outcomes")
"""Tables that such a run has; all others are empty."""
ROWS = 1 << 20
"""Rows that are compared at once."""
Tables = Mapping[str, Table]


class Ends(NamedTuple):
    """How each job (n,) ended: the kind, when, and the work that the event reports."""

    kind: Ints
    at_us: Ints
    value: Ints


class Runs(NamedTuple):
    """Plans by job and time: row, job, when each began and ended, and whether it has a step; each (plans,)."""

    row: Ints
    job: Ints
    at_us: Ints
    until_us: Ints
    opened: Bools


def audit_columns(setup: Setup, jobs: JobColumns, tables: Tables) -> AuditReport:
    """Check a run of plain jobs from its tables alone; the metrics are empty where a rule is broken."""
    found = next(filter(None, (tuple(part) for part in _checks(setup, jobs, tables))), ())
    if found:
        return AuditReport(found, {})
    ends = _ends(jobs, tables)
    return AuditReport((), _metrics(setup, jobs, ends, _runs(jobs, tables, ends)))


def _checks(setup: Setup, jobs: JobColumns, tables: Tables) -> Iterator[Iterator[Violation]]:
    """The checks, each of which relies on those before it."""
    yield _form(tables)
    yield _events(setup, jobs, tables)
    yield _order(tables)
    yield _decisions(tables)
    yield _timers(tables)
    ends = _ends(jobs, tables)
    yield _verdicts(jobs, tables, ends)
    yield _plans(jobs, tables, ends)
    runs = _runs(jobs, tables, ends)
    yield _work(jobs, ends, runs)
    yield _places(setup, jobs, tables)
    yield exceeded(setup, jobs, tables, _until(runs))
    yield _outcomes(jobs, tables, ends, runs)


def _column(tables: Tables, table: str, column: str) -> Ints:
    return whole(tables[table][column])


def _kinds(tables: Tables) -> Ints:
    """Stage of each event; -1 for kinds that such a run cannot have."""
    kinds = Words.of(tables["events"]["kind"])
    stages = np.array([STAGES.get(word, -1) for word in kinds.words], np.int8)
    return stages[kinds.codes] if len(kinds) else np.zeros(0, np.int8)


def _first(wrong: Bools) -> int:
    return int(np.argmax(wrong)) if wrong.any() else -1


# ---------------------------------------------------------------------- form
def _form(tables: Tables) -> Iterator[Violation]:
    """Tables are complete, of one length, and hold numbers; those of markets, networks and live runs are empty."""
    for name, columns in TABLES.items():
        content = tables.get(name, {})
        lengths = {len(column) for column in content.values()}
        if name in USED and (set(content) != set(columns) or len(lengths) != 1):
            yield Violation(
                "form.table", detail=f"table {name} lacks a column, or its columns differ in length"
            )
        elif name not in USED and lengths - {0}:
            yield Violation("form.table", detail=f"table {name} has rows; a run of plain jobs has none")


# ---------------------------------------------------------------------- events
def _events(setup: Setup, jobs: JobColumns, tables: Tables) -> Iterator[Violation]:
    """Kinds and jobs exist, time moves forward up to the horizon, all jobs arrive in turn and on time and end once."""
    at, job, value = (_column(tables, "events", name) for name in ("at_us", "job", "value"))
    kind, count = _kinds(tables), len(jobs)
    wrong = (kind < 0) | ((kind == TIMER) != (job == -1)) | (job < -1) | (job >= count)
    if (row := _first(wrong)) >= 0:
        yield Violation("time.event", detail=f"event {row} is of a kind or job that the run cannot have")
        return
    if (row := _first((kind != ENDED) & (value != 0))) >= 0:
        yield Violation("work.done", detail=f"event {row} reports {value[row]} as done; it must be 0")
    if len(at) and (at[0] < 0 or at[-1] > setup.horizon_us or (at[1:] < at[:-1]).any()):
        yield Violation("time.forward", detail="events are not in the order of time, from 0 to the horizon")
    arrived = kind == ARRIVED
    if not np.array_equal(job[arrived], np.arange(count)):
        yield Violation("time.arrival", detail="the jobs of the scenario do not arrive one after the other")
    elif (row := _first(at[arrived] != jobs.arrive_us)) >= 0:
        yield Violation("time.arrival", jobs[row].id, detail=f"it arrives at {jobs.arrive_us[row]} us")
    over = (kind == FINISHED) | (kind == REFUSED) | (kind == ENDED)
    times = np.bincount(job[over], minlength=count)
    if (row := _first(times != 1)) >= 0:
        yield Violation("time.end", jobs[row].id, detail=f"it ends {times[row]} times; it must end once")
    if (row := _first((kind == ENDED) & (at != setup.horizon_us))) >= 0:
        yield Violation("time.end", detail=f"event {row} ends a job at {at[row]} us, before the horizon")


def _order(tables: Tables) -> Iterator[Violation]:
    """Within an instant: completions, arrivals and ends by job, the timer once, refusals as the verdicts have them."""
    at, job = (_column(tables, "events", name) for name in ("at_us", "job"))
    kind = _kinds(tables)
    for first in range(0, max(0, len(at) - 1), ROWS):
        here, there = slice(first, first + ROWS), slice(first + 1, first + ROWS + 1)
        size = len(at[there])
        same = at[here][:size] == at[there]
        stage = kind[there] - kind[here][:size]
        row = _first(
            same
            & ((stage < 0) | ((stage == 0) & (job[there] <= job[here][:size]) & (kind[there] != REFUSED)))
        )
        if row >= 0:
            yield Violation("time.order", detail=f"event {first + row + 1} comes too late in its instant")
            return


# ---------------------------------------------------------------------- decisions
def _decisions(tables: Tables) -> Iterator[Violation]:
    """Decisions are made one after the other, when something happened; a timer is set to a later time."""
    at, wake = (_column(tables, "decisions", name) for name in ("at_us", "wake_us"))
    if (at[1:] <= at[:-1]).any() or (len(at) and at[0] < 0):
        yield Violation("time.decision", detail="decisions are not in the order of time")
        return
    happened = _column(tables, "events", "at_us")
    place = np.searchsorted(happened, at)
    if (row := _first(happened[np.minimum(place, len(happened) - 1)] != at)) >= 0 and at[row] != 0:
        yield Violation("time.decision", detail=f"a decision at {at[row]} us, when nothing happened")
    if (row := _first((wake != -1) & (wake <= at))) >= 0:
        yield Violation(
            "plan.wake", detail=f"the timer is set to {wake[row]} us at {at[row]}; it must be later"
        )


def _timers(tables: Tables) -> Iterator[Violation]:
    """A timer fires when it is due, unless a decision before then set it anew, and at no other time."""
    at, wake = (_column(tables, "decisions", name) for name in ("at_us", "wake_us"))
    sets = wake >= 0
    due, made = wake[sets], at[sets]
    stands = np.append(due[:-1] <= made[1:], [True] * (len(due) > 0)) if len(due) else np.zeros(0, np.bool_)
    happened = _column(tables, "events", "at_us")
    end = int(happened[-1]) if len(happened) else 0
    expected = due[stands & (due <= end)]
    fired = happened[_kinds(tables) == TIMER]
    if not np.array_equal(expected, fired):
        yield Violation("time.timer", detail="timers do not fire when, and only when, they are due")


def _ends(jobs: JobColumns, tables: Tables) -> Ends:
    """How each job ended; every job does, once."""
    at, job, value = (_column(tables, "events", name) for name in ("at_us", "job", "value"))
    kind = _kinds(tables)
    found = Ends(np.full(len(jobs), -1, np.int8), *(np.zeros(len(jobs), np.int64) for _ in range(2)))
    for stage in STATES:
        rows = kind == stage
        found.kind[job[rows]], found.at_us[job[rows]], found.value[job[rows]] = stage, at[rows], value[rows]
    return found


def _verdicts(jobs: JobColumns, tables: Tables, ends: Ends) -> Iterator[Violation]:
    """Refusals are the verdicts of decisions, one by one and in their order; a refused job has arrived."""
    decision, job = (_column(tables, "verdicts", name) for name in ("decision", "job"))
    decided = _column(tables, "decisions", "at_us")
    wrong = (decision < 0) | (decision >= len(decided)) | (job < 0) | (job >= len(jobs))
    if wrong.any() or (decision[1:] < decision[:-1]).any():
        yield Violation(
            "plan.verdict", detail="verdicts name decisions or jobs that do not exist, or are not in order"
        )
        return
    rows = _kinds(tables) == REFUSED
    events = (_column(tables, "events", "at_us")[rows], _column(tables, "events", "job")[rows])
    if not (np.array_equal(decided[decision], events[0]) and np.array_equal(job, events[1])):
        yield Violation("time.answer", detail="refusals are not those that decisions ask for")
    elif (ends.at_us[job] < jobs.arrive_us[job]).any():
        yield Violation("plan.verdict", detail="a job is refused before it arrives")


def _plans(jobs: JobColumns, tables: Tables, ends: Ends) -> Iterator[Violation]:
    """Plans are of decisions and of active jobs, one per job and decision, with one open-ended step from then on or none."""
    at, decision, job = (_column(tables, "plans", name) for name in ("at_us", "decision", "job"))
    decided = _column(tables, "decisions", "at_us")
    wrong = (decision < 0) | (decision >= len(decided)) | (job < 0) | (job >= len(jobs))
    if wrong.any() or (decision[1:] < decision[:-1]).any():
        yield Violation(
            "plan.job", detail="plans name decisions or jobs that do not exist, or are not in order"
        )
        return
    if (row := _first(at != decided[decision])) >= 0:
        yield Violation("time.decision", detail=f"plan {row} and its decision differ in time")
    late = (at >= ends.at_us[job]) & ((ends.kind[job] != ENDED) | (at > ends.at_us[job]))
    if (row := _first((at < jobs.arrive_us[job]) | late | (ends.kind[job] == REFUSED))) >= 0:
        yield Violation(
            "plan.job", jobs[int(job[row])].id, detail=f"a plan at {at[row]} us, when it is not active"
        )
    order = np.argsort(job, kind="stable")
    twice = (job[order][1:] == job[order][:-1]) & (decision[order][1:] == decision[order][:-1])
    if (row := _first(twice)) >= 0:
        yield Violation("plan.job", jobs[int(job[order][row])].id, detail="a decision has two plans for it")
    plan, begin, until = (_column(tables, "steps", name) for name in ("plan", "from_us", "until_us"))
    if len(plan) and (plan[0] < 0 or plan[-1] >= len(job) or (plan[1:] <= plan[:-1]).any()):
        yield Violation("form.step", detail="steps are not those of different plans, in order")
        return
    if (row := _first((begin != at[plan]) | (until != -1))) >= 0:
        yield Violation("time.grid", detail=f"step {row} does not last from its plan on until the job ends")
    if (np.asarray(tables["steps"]["usd"], np.float64) != 0).any():
        yield Violation("form.usd", detail="a step states a cost; nothing has a price")


def _runs(jobs: JobColumns, tables: Tables, ends: Ends) -> Runs:
    """Every plan, by job and time, with the time until the next plan of its job or its end."""
    job, at = whole(tables["plans"]["job"]), _column(tables, "plans", "at_us")
    order = np.argsort(np.asarray(job, np.int32), kind="stable")
    opened = np.zeros(len(job), np.bool_)
    opened[_column(tables, "steps", "plan")] = True
    job, at = job[order], at[order]
    until = ends.at_us[job]
    same = job[1:] == job[:-1]
    until[:-1][same] = at[1:][same]
    return Runs(order, job, at, until, opened[order])


def _until(runs: Runs) -> Ints:
    """When each plan ended, by its row; one that begins with the end of the run still takes room at that instant."""
    found = np.empty(len(runs.row), np.int64)
    found[runs.row] = np.maximum(runs.until_us, runs.at_us + 1)
    return found


def _done(jobs: JobColumns, runs: Runs) -> Ints:
    """Microseconds that each job ran (n,): exact, because no sum exceeds the horizon."""
    found = np.zeros(len(jobs), np.int64)
    np.add.at(found, runs.job[runs.opened], (runs.until_us - runs.at_us)[runs.opened])
    return found


def _work(jobs: JobColumns, ends: Ends, runs: Runs) -> Iterator[Violation]:
    """A job finishes when it has run for its runtime, and runs until then; one that is ended has done less."""
    done = _done(jobs, runs)
    finished, ended = ends.kind == FINISHED, ends.kind == ENDED
    if (row := _first(finished & (done != jobs.runtime_us))) >= 0:
        detail = (
            f"finished at {ends.at_us[row]} us after running for {done[row]} us of {jobs.runtime_us[row]}"
        )
        yield Violation("work.finish", jobs[row].id, detail=detail)
    last = np.append(runs.job[1:] != runs.job[:-1], True)[: len(runs.job)]
    idle = last & ~runs.opened & finished[runs.job]
    if (row := _first(idle)) >= 0:
        yield Violation("work.finish", jobs[int(runs.job[row])].id, detail="it finished while it did not run")
    if (row := _first(ended & (done >= jobs.runtime_us))) >= 0:
        yield Violation(
            "work.finish", jobs[row].id, detail="its work was done, but `finished` was not reported"
        )
    if (row := _first(ended & (ends.value != done))) >= 0:
        detail = f"{ends.value[row]} is reported as done; by the steps it is {done[row]}"
        yield Violation("work.done", jobs[row].id, detail=detail)


def _places(setup: Setup, jobs: JobColumns, tables: Tables) -> Iterator[Violation]:
    """Every step has all workers of its job, on hosts, each named once; there are no parameter servers."""
    step, node, workers = (_column(tables, "places", name) for name in ("step", "node", "workers"))
    steps = len(tables["steps"]["plan"])
    if (len(step) and (step[0] < 0 or step[-1] >= steps)) or (step[1:] < step[:-1]).any():
        yield Violation("form.place", detail="places are not those of steps, in order")
        return
    hosts = np.zeros(len(setup.nodes) + 1, np.bool_)
    hosts[list(setup.hosts)] = True
    if (
        row := _first((node < 0) | (node >= len(setup.nodes)) | ~hosts[np.clip(node, 0, len(setup.nodes))])
    ) >= 0:
        yield Violation("form.node", detail=f"place {row} is at node {node[row]}, which cannot run workers")
        return
    wanted = jobs.workers[_column(tables, "plans", "job")[_column(tables, "steps", "plan")]]
    if (row := _first((workers < 1) | (workers > wanted[step]))) >= 0:
        yield Violation("workers.range", detail=f"place {row} has {workers[row]} workers")
        return
    first = np.searchsorted(step, np.arange(steps))
    if steps and (len(step) == 0 or (np.diff(np.append(first, len(step))) == 0).any()):
        yield Violation("workers.range", detail="a step has no workers")
        return
    if steps and (row := _first(np.add.reduceat(workers, first) != wanted)) >= 0:
        yield Violation("workers.range", detail=f"step {row} has not the {wanted[row]} workers of its job")
    several = np.flatnonzero(np.diff(np.append(first, len(step)))[step] > 1) if steps else first
    order = several[np.lexsort((node[several], step[several]))]
    if ((step[order][1:] == step[order][:-1]) & (node[order][1:] == node[order][:-1])).any():
        yield Violation("form.node_once", detail="a step names a node twice")
    if (_column(tables, "places", "servers") != 0).any():
        yield Violation("servers.number", detail="a step has parameter servers; the jobs have none")


# ---------------------------------------------------------------------- results
def _starts(jobs: JobColumns, runs: Runs) -> Ints:
    """When each job first ran for some time (n,); -1: never."""
    ran = np.flatnonzero(runs.opened & (runs.until_us > runs.at_us))[::-1]
    found = np.full(len(jobs), -1, np.int64)
    found[runs.job[ran]] = runs.at_us[ran]  # the first of a job is written last
    return found


def _outcomes(jobs: JobColumns, tables: Tables, ends: Ends, runs: Runs) -> Iterator[Violation]:
    """The table of outcomes says what came of each job."""
    found, count = tables["outcomes"], len(jobs)
    finish = np.where(ends.kind == FINISHED, ends.at_us, -1)
    columns = {
        "job": np.arange(count),
        "start_us": _starts(jobs, runs),
        "finish_us": finish,
        "work": _done(jobs, runs),
    }
    wrong = [name for name, column in columns.items() if not np.array_equal(column, whole(found[name]))]
    states = Words.of(found["state"])
    stage = np.array([{v: k for k, v in STATES.items()}.get(word, -1) for word in states.words], np.int8)
    if len(states) != count or (stage[states.codes] != ends.kind).any():
        wrong.append("state")
    if (np.asarray(found["value_usd"], np.float64) != 0).any():
        wrong.append("value_usd")
    for name in wrong:
        yield Violation(
            "ledger.table", detail=f"outcomes.{name} is not what follows from the events and plans"
        )


def exact_sum(values: Ints) -> int:
    """The sum of whole numbers from 0 to 2^53, which may not fit into 64 bits."""
    return (int((values >> 26).sum()) << 26) + int((values & (2**26 - 1)).sum())


def exact_product(a: Ints, b: Ints) -> int:
    """The sum of products of whole numbers from 0 to 2^53."""
    total, most = 0, max(1, int(a.max(initial=0)))
    rows = max(1, 2**62 // (most << 27)) if most < 2**35 else 0
    if not rows:
        return sum(x * y for x, y in zip(a.tolist(), b.tolist(), strict=True))
    for first in range(0, len(a), min(rows, ROWS)):
        x, y = a[first : first + min(rows, ROWS)], b[first : first + min(rows, ROWS)]
        total += (int((x * (y >> 26)).sum()) << 26) + int((x * (y & (2**26 - 1))).sum())
    return total


def _metrics(setup: Setup, jobs: JobColumns, ends: Ends, runs: Runs) -> dict[str, Any]:
    """Every metric, from the audit's own columns."""
    ran = runs.opened & (runs.until_us > runs.at_us)
    starts, finished = _starts(jobs, runs), ends.kind == FINISHED
    times = (ends.at_us - jobs.arrive_us)[finished]
    began = starts >= 0
    states = [(name, int((ends.kind == stage).sum())) for stage, name in STATES.items()]
    totals = Totals(
        states=tuple((name, count) for name, count in states if count),
        first_us=int(jobs.arrive_us[0]),
        last_us=int(ends.at_us[finished].max(initial=-1)),
        jct_us=exact_sum(times),
        waited=int(began.sum()),
        wait_us=exact_sum((starts - jobs.arrive_us)[began]),
        ran=int(began.sum()),
        steps=int(ran.sum()),
    )
    metrics = totals.metrics(CostLedger(setup).totals())
    ordered = np.sort(times)
    for name, share in (("jct_p50_s", 0.5), ("jct_p99_s", 0.99)):
        at = int(share * (len(ordered) - 1)) if len(ordered) else 0
        near = [value / 1e6 for value in ordered[at : at + 2].tolist()]
        metrics[name] = quantile(near, share * (len(ordered) - 1) - at) if near else 0.0
    busy = exact_product(jobs.workers[runs.job[ran]], (runs.until_us - runs.at_us)[ran])
    used = [dict(jobs.demand).get(r, 0) * busy for r in range(len(setup.resources))]
    return metrics | utilisation(setup, used, int(ends.at_us.max(initial=0)))
