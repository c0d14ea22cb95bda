"""A whole simulation of plain fixed jobs on hosts with units of one kind, compiled: the same events, decisions and places
as the loop with the same policy.

Instants, as in worlds/timeline.py: completions by job, arrivals, the timer; then one decision, which first stops and then
starts jobs; then the refusals of jobs that never fit.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tradewind.model.arrays import Floats, Ints
from tradewind.model.units import OPEN
from tradewind.solvers.kernel import kernel
from tradewind.systems.cluster.kernels.heap import Small, pop, sift
from tradewind.systems.cluster.kernels.room import Room, choose_host, set_free
from tradewind.systems.cluster.kernels.serve import GONE, serve
from tradewind.systems.cluster.kernels.sinking import Entries, arrive, empty_queues, leave, next_sinking, turn
from tradewind.systems.cluster.kernels.sorted_queue import SortedTables, resort

FIFO, BACKFILL, SORTED, LEVELS = 0, 1, 2, 3
"""Rules of who runs."""
BY_NEED = (BACKFILL, LEVELS)
"""Rules that keep waiting jobs by their need."""
ARRIVED, FINISHED, TIMER, REFUSED, ENDED = 0, 1, 2, 3, 4
"""Kinds of events."""
Bytes = NDArray[np.int8]


class Load(NamedTuple):
    """The jobs (n,), in order of arrival."""

    arrive: Ints
    runtime: Ints
    need: Ints
    """Units."""
    weight: Floats
    """Factor of the remaining time in the order of SORTED."""
    rate: Ints
    """Service per microsecond for LEVELS."""
    shape: Ints
    """Number of the need for BACKFILL and LEVELS; all jobs of a number need the same."""


class Rule(NamedTuple):
    """Who runs: the kind, and for LEVELS the limits of the queues and the tick in microseconds."""

    kind: int
    limit: Ints
    tick: int
    total: int
    """Units of all hosts."""
    horizon: int


class Journal(NamedTuple):
    """What happened, as columns; rows of `plan_job` with `plan_starts` 0 stop a job."""

    event_at: Ints
    event_kind: Bytes
    event_job: Small
    decision_at: Ints
    decision_wake: Ints
    plan_decision: Small
    plan_job: Small
    plan_starts: Bytes
    place_plan: Small
    place_host: Small
    place_units: Small
    verdict_decision: Small
    verdict_job: Small


@kernel
def _long(old: Ints, rows: int) -> Ints:
    """The array itself if it holds so many rows, else a copy that holds more."""
    if rows <= old.size:
        return old
    new = np.empty(rows + rows // 2, np.int64)
    new[: old.size] = old
    return new


@kernel
def _small(old: Small, rows: int) -> Small:
    if rows <= old.size:
        return old
    new = np.empty(rows + rows // 2, np.int32)
    new[: old.size] = old
    return new


@kernel
def _bytes(old: Bytes, rows: int) -> Bytes:
    if rows <= old.size:
        return old
    new = np.empty(rows + rows // 2, np.int8)
    new[: old.size] = old
    return new


@kernel
def _backfill(load: Load, head: Ints, tail: Ints, follow: Small, free: int, out: Ints) -> int:
    """Start the first job in order of arrival whose queue's jobs fit, again and again; returns how many."""
    starts = 0
    while free > 0:
        best = -1
        for q in range(head.size):
            if head[q] >= 0 and load.need[head[q]] <= free and (best < 0 or head[q] < head[best]):
                best = q
        if best < 0:
            break
        job = head[best]
        head[best] = follow[job]
        if follow[job] < 0:
            tail[best] = -1
        free -= load.need[job]
        out[0, starts] = job
        starts += 1
    return starts


@kernel
def whole_run(load: Load, rule: Rule, room: Room) -> tuple[Journal, Ints, Ints, Small]:
    """Simulate until the horizon. Also returns, per job, the work done before it last started, when it did, and its place
    among the running jobs (-1: it does not run).
    """
    n, kind = load.arrive.size, rule.kind
    # ------------------------------------------------------------------ the queues of the rule
    sorts, sinks = n if kind == SORTED else 1, n if kind == LEVELS else 1
    order = np.empty(sorts, np.int64)
    floats = np.zeros((2, sorts))
    number, state, since = np.arange(sorts), np.zeros(sorts, np.int64), np.zeros(n, np.int64)
    left = load.runtime[:sorts].copy()
    by_key = SortedTables(number, load.need, since, state, left, load.weight, floats[0])
    shapes = load.shape.max() + 1
    entries = Entries(
        load.need, load.rate, load.shape, since, np.zeros(sinks, np.int64), np.zeros(sinks, np.int64),
        np.empty(sinks, np.int64), np.empty(sinks, np.int64),
    )  # fmt: skip
    queues = empty_queues(rule.limit, sinks, shapes)
    first_of, last_of = np.full(shapes, -1, np.int64), np.full(shapes, -1, np.int64)
    follow = np.full(n if kind == BACKFILL else 1, -1, np.int32)
    out = np.empty((2, 2 * rule.total + 2), np.int64)
    size = fresh = gone = waits_at = 0
    # ------------------------------------------------------------------ the cluster
    done, due = np.zeros(n, np.int64), np.zeros(n, np.int64)
    heap, place = np.empty(rule.total + 1, np.int32), np.full(n, -1, np.int32)
    first_place, places_of = np.empty(n, np.int32), np.zeros(n, np.int32)
    running, free, active, coming, timer = 0, rule.total, 0, 0, OPEN
    # ------------------------------------------------------------------ the journal
    event_at, event_kind, event_job = (
        np.empty(2 * n + 16, np.int64),
        np.empty(2 * n + 16, np.int8),
        np.empty(2 * n + 16, np.int32),
    )
    decision_at, decision_wake = (
        np.empty(n + 16, np.int64),
        np.empty(n + 16 if kind == LEVELS else 0, np.int64),
    )
    plan_decision, plan_job = np.empty(n + 16, np.int32), np.empty(n + 16, np.int32)
    plan_starts = np.empty(n + 16, np.int8)
    place_plan, place_host, place_units = (
        np.empty(n + 16, np.int32),
        np.empty(n + 16, np.int32),
        np.empty(n + 16, np.int32),
    )
    verdict_decision, verdict_job = np.empty(16, np.int32), np.empty(16, np.int32)
    events = decisions = plans = places = verdicts = 0
    while True:
        now = due[heap[0]] if running > 0 else OPEN
        if coming < n and load.arrive[coming] < now:
            now = load.arrive[coming]
        if timer < now and (active > 0 or coming < n):
            now = timer
        if now > rule.horizon:
            break
        last = coming
        while last < n and load.arrive[last] == now:
            last += 1
        rows = events + running + 2 * (last - coming) + 1
        event_at, event_kind, event_job = (
            _long(event_at, rows),
            _bytes(event_kind, rows),
            _small(event_job, rows),
        )
        rows = verdicts + last - coming
        verdict_decision, verdict_job = _small(verdict_decision, rows), _small(verdict_job, rows)
        # -------------------------------------------------------------- completions, arrivals, timer
        while running > 0 and due[heap[0]] == now:
            job = heap[0]
            running = pop(heap, place, due, running, job)
            event_at[events], event_kind[events], event_job[events] = now, FINISHED, job
            events += 1
            for row in range(first_place[job], first_place[job] + places_of[job]):
                set_free(room, place_host[row], room.free[place_host[row]] + place_units[row])
            free += load.need[job]
            active -= 1
            gone += 1
            if kind == SORTED:
                state[job] = GONE
            elif kind == LEVELS:
                leave(queues, entries, job, now)
        before = verdicts
        while coming < last:
            job = coming
            coming += 1
            event_at[events], event_kind[events], event_job[events] = now, ARRIVED, job
            events += 1
            if load.need[job] > rule.total:
                verdict_decision[verdicts], verdict_job[verdicts] = decisions, job
                verdicts += 1
                continue
            active += 1
            if kind == BACKFILL:
                q = load.shape[job]
                if last_of[q] < 0:
                    first_of[q] = job
                else:
                    follow[last_of[q]] = job
                last_of[q] = job
            elif kind == SORTED:
                order[size] = job
                size += 1
                fresh += 1
            elif kind == LEVELS:
                arrive(queues, entries, job)
        if timer == now:
            timer = OPEN
            event_at[events], event_kind[events], event_job[events] = now, TIMER, -1
            events += 1
        # -------------------------------------------------------------- who runs
        starts, stops, wait = 0, 0, -1
        if kind == FIFO:
            left_free = free
            while waits_at < coming:
                if load.need[waits_at] <= rule.total:
                    if load.need[waits_at] > left_free:
                        break
                    left_free -= load.need[waits_at]
                    out[0, starts] = waits_at
                    starts += 1
                waits_at += 1
        elif kind == BACKFILL:
            starts = _backfill(load, first_of, last_of, follow, free, out)
        elif kind == SORTED:
            size = resort(order, (size, fresh, running + gone), by_key, now)
            starts, stops, _, _, _ = serve(order, size, running, rule.total, load.need, state, out)
            fresh = gone = 0
        else:
            starts, stops = turn(queues, entries, now, rule.total, out)
            wait = next_sinking(queues, entries, now, rule.tick)
        if starts == 0 and stops == 0 and wait < 0 and verdicts == before:
            continue
        # -------------------------------------------------------------- the decision
        decision_at = _long(decision_at, decisions + 1)
        rows = plans + starts + stops
        plan_decision, plan_job, plan_starts = (
            _small(plan_decision, rows),
            _small(plan_job, rows),
            _bytes(plan_starts, rows),
        )
        rows = places
        for k in range(starts):
            rows += load.need[out[0, k]]
        place_plan, place_host, place_units = (
            _small(place_plan, rows),
            _small(place_host, rows),
            _small(place_units, rows),
        )
        decision_at[decisions] = now
        if kind == LEVELS:
            decision_wake = _long(decision_wake, decisions + 1)
            decision_wake[decisions] = now + wait if wait >= 0 else -1
        for k in range(stops):
            job = out[1, k]
            running = pop(heap, place, due, running, job)
            done[job] += now - since_start(due, load.runtime, done, job)
            for row in range(first_place[job], first_place[job] + places_of[job]):
                set_free(room, place_host[row], room.free[place_host[row]] + place_units[row])
            free += load.need[job]
            plan_decision[plans], plan_job[plans], plan_starts[plans] = decisions, job, 0
            plans += 1
        for k in range(starts):
            job = out[0, k]
            need = load.need[job]
            first_place[job] = places
            while need > 0:
                h = choose_host(room, need)
                part = min(need, room.free[h])
                set_free(room, h, room.free[h] - part)
                place_plan[places], place_host[places], place_units[places] = plans, h, part
                places += 1
                need -= part
            places_of[job] = places - first_place[job]
            free -= load.need[job]
            since[job] = now
            due[job] = now + max(1, load.runtime[job] - done[job])
            heap[running] = job
            place[job] = running
            running += 1
            sift(heap, place, due, running, running - 1)
            plan_decision[plans], plan_job[plans], plan_starts[plans] = decisions, job, 1
            plans += 1
        decisions += 1
        if wait >= 0:
            timer = now + wait
        for k in range(before, verdicts):
            event_at[events], event_kind[events], event_job[events] = now, REFUSED, verdict_job[k]
            events += 1
    journal = Journal(
        event_at[:events], event_kind[:events], event_job[:events], decision_at[:decisions], decision_wake[:decisions],
        plan_decision[:plans], plan_job[:plans], plan_starts[:plans],
        place_plan[:places], place_host[:places], place_units[:places], verdict_decision[:verdicts], verdict_job[:verdicts],
    )  # fmt: skip
    return journal, done, due, place


@kernel
def since_start(due: Ints, runtime: Ints, done: Ints, job: int) -> int:
    """When a running job last started."""
    return int(due[job] - max(1, runtime[job] - done[job]))
