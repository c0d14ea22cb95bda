"""The intervals in which steps were really carried out, from the tables of a run.

The tables hold what was decided. A step is carried out from `from_us` until the first of: its own `until_us`, the
next plan of its job, the event that ended it (finished, left, released, voided, refused, cancelled), the end of the run. The
plan of an offer counts only where the customer took that offer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from tradewind.model.arrays import Floats, Ints
from tradewind.model.columns import Words
from tradewind.model.result import Run
from tradewind.model.units import OPEN
from tradewind.model.view import EventKind

ENDINGS: tuple[EventKind, ...] = (
    "finished", "left", "released", "voided", "refused", "cancelled", "ended"
)  # fmt: skip
GONE: tuple[EventKind, ...] = ("finished", "left", "refused", "declined", "cancelled")


def ints(run: Run, table: str, column: str) -> Ints:
    """A column of whole numbers, shape (rows,); empty where the run lacks the table."""
    return np.asarray(run.tables.get(table, {}).get(column, []), dtype=np.int64)


def floats(run: Run, table: str, column: str) -> Floats:
    """A column of numbers, shape (rows,)."""
    return np.asarray(run.tables.get(table, {}).get(column, []), dtype=np.float64)


def texts(run: Run, table: str, column: str) -> NDArray[np.str_]:
    """A column of text, shape (rows,)."""
    values: Sequence[Any] = run.tables.get(table, {}).get(column, [])
    return np.asarray(values, dtype=np.str_) if len(values) else np.zeros(0, dtype="<U1")


_NUMBER = {kind: number for number, kind in enumerate(get_args(EventKind))}


class EventKinds:
    """The kinds of a run's events, as numbers: comparing text is slow."""

    def __init__(self, run: Run) -> None:
        column: Sequence[Any] = run.tables.get("events", {}).get("kind", ())
        if isinstance(column, Words):
            self._numbers = np.array([_NUMBER[word] for word in column.words], np.int8)[column.codes]
        else:
            self._numbers = np.fromiter(map(_NUMBER.__getitem__, column), dtype=np.int8, count=len(column))

    def are(self, *kinds: EventKind) -> NDArray[np.bool_]:
        """Which events are of these kinds, shape (events,)."""
        found = np.zeros(len(self._numbers), dtype=np.bool_)
        for kind in kinds:
            found |= self._numbers == _NUMBER[kind]
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Intervals:
    """Steps carried out: row of steps, job, and [from_us, until_us), each of shape (K,); no interval is empty."""

    step: Ints
    job: Ints
    from_us: Ints
    until_us: Ints


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Places used: one row per node of an interval, each of shape (P,)."""

    interval: Ints
    job: Ints
    node: Ints
    workers: Ints
    servers: Ints
    from_us: Ints
    until_us: Ints


def end_us(run: Run) -> int:
    """End of the run: the time of its last event."""
    return max(1, int(ints(run, "events", "at_us").max(initial=1)))


def effective(run: Run, end: int) -> Intervals:
    """Steps carried out until `end` (microseconds), in the order of the table."""
    plan = ints(run, "steps", "plan")
    start = np.maximum(ints(run, "steps", "from_us"), _plan_starts(run)[plan])
    until = ints(run, "steps", "until_us")
    until = np.where(until < 0, OPEN, until)
    until = np.minimum(np.minimum(until, _plan_ends(run)[plan]), end)
    kept = np.flatnonzero(until > start)
    job = ints(run, "plans", "job")[plan]
    return Intervals(step=kept, job=job[kept], from_us=start[kept], until_us=until[kept])


def usage(run: Run, intervals: Intervals) -> Usage:
    """Join the places of a run with the intervals of their steps."""
    number = np.full(len(ints(run, "steps", "plan")), -1, dtype=np.int64)
    number[intervals.step] = np.arange(len(intervals.step))
    at = number[ints(run, "places", "step")]
    rows = np.flatnonzero(at >= 0)
    at = at[rows]
    return Usage(
        interval=at,
        job=intervals.job[at],
        node=ints(run, "places", "node")[rows],
        workers=ints(run, "places", "workers")[rows],
        servers=ints(run, "places", "servers")[rows],
        from_us=intervals.from_us[at],
        until_us=intervals.until_us[at],
    )


def taken_offers(run: Run) -> NDArray[np.bool_]:
    """Whether the customer took each offer, shape (offers,)."""
    return _answered_us(run) >= 0


def promised_us(run: Run) -> dict[int, int]:
    """Job -> the completion that it bought; a plan without fixed times that is bought later also completes later."""
    answered, made = _answered_us(run), ints(run, "offers", "at_us")
    open_plans = set(ints(run, "steps", "plan")[ints(run, "steps", "until_us") < 0].tolist())
    found = {}
    for row in np.flatnonzero(answered >= 0).tolist():
        moves = int(run.tables["offers"]["plan"][row]) in open_plans
        late = int(answered[row] - made[row]) if moves else 0
        found[int(run.tables["offers"]["job"][row])] = int(run.tables["offers"]["finish_us"][row]) + late
    return found


def _answered_us(run: Run) -> Ints:
    """When the customer took each offer, shape (offers,); -1: it did not."""
    offers, answers = run.tables.get("offers", {}), run.tables.get("answers", {})
    result = np.full(len(offers.get("job", ())), -1, dtype=np.int64)
    if not offers or not answers:
        return result
    rows = np.flatnonzero(EventKinds(run).are("quoted"))
    quoted_us = dict(  # of jobs whose quote was held; the last one is the one that was answered
        zip(
            ints(run, "events", "job")[rows].tolist(),
            ints(run, "events", "at_us")[rows].tolist(),
            strict=True,
        )
    )
    taken: dict[Any, Any] = {
        (job, quoted_us.get(job, at), number): at
        for job, at, number in zip(answers["job"], answers["at_us"], answers["taken"], strict=True)
    }
    for row, key in enumerate(zip(offers["job"], offers["at_us"], offers["number"], strict=True)):
        result[row] = taken.get(key, -1)
    return result


def _plan_starts(run: Run) -> Ints:
    """When each plan came into force, shape (plans,): when it was made, or when its held offer was taken."""
    starts = ints(run, "plans", "at_us").copy()
    answered = _answered_us(run)
    taken = np.flatnonzero(answered >= 0)
    starts[ints(run, "offers", "plan")[taken]] = answered[taken]
    return starts


def _taken(run: Run) -> NDArray[np.bool_]:
    """Which plans were committed, shape (plans,): all but those of offers that were not taken."""
    live = ints(run, "plans", "decision") >= 0
    live[ints(run, "offers", "plan")[taken_offers(run)]] = True
    return live


def _plan_ends(run: Run) -> Ints:
    """End of each plan, shape (plans,): its own start if it was never in force."""
    at, job = _plan_starts(run), ints(run, "plans", "job")
    live = np.flatnonzero(_taken(run))
    ends = at.copy()
    order = live[np.lexsort((live, at[live], job[live]))]
    follow = np.full(len(order), OPEN, dtype=np.int64)
    same = job[order[1:]] == job[order[:-1]]
    follow[:-1][same] = at[order[1:]][same]
    ends[order] = np.minimum(follow, _first_ending(run, at[order], job[order]))
    return ends


def _first_ending(run: Run, at: Ints, job: Ints) -> Ints:
    """Time of the first event that ends `job` after `at`, shape as at; events at `at` precede the plan."""
    rows = np.flatnonzero(EventKinds(run).are(*ENDINGS))
    if not len(rows) or not len(at):
        return np.full(len(at), OPEN, dtype=np.int64)
    when, who = ints(run, "events", "at_us")[rows], ints(run, "events", "job")[rows]
    last = np.full(int(max(who.max(), job.max())) + 1, -1, dtype=np.int64)
    last[who] = np.arange(len(who))
    if len(who) == int((last >= 0).sum()):  # every job ends once
        found = np.where(last[job] >= 0, when[last[job]], -1)
        return np.where(found > at, found, OPEN)
    times = np.sort(np.concatenate((when, at)))
    width = len(times) + 1
    key = np.sort(who * width + np.searchsorted(times, when))
    place = np.searchsorted(key, job * width + np.searchsorted(times, at), side="right")
    found = key[np.minimum(place, len(key) - 1)]
    hit = (place < len(key)) & (found // width == job)
    return np.where(hit, times[np.where(hit, found % width, 0)], OPEN)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pieces:
    """A sum of step functions: piece k adds weight[k] to row[k] during [from_us[k], until_us[k]); each (K,)."""

    from_us: Ints
    until_us: Ints
    weight: Floats
    row: Ints | None = None
    rows: int = 1

    def mean_per_bin(self, edges: Floats) -> Floats:
        """Exact time average in each bin between the edges (B+1,), in microseconds. Returns (rows, B)."""
        bins, shape = len(edges) - 1, (self.rows, len(edges))
        row = np.zeros(len(self.from_us), dtype=np.int64) if self.row is None else self.row
        level, moment = np.zeros(shape), np.zeros(shape)
        for instant, sign in ((self.from_us, 1.0), (self.until_us, -1.0)):
            t = np.clip(instant.astype(np.float64), edges[0], edges[-1]) - edges[0]
            # the integral at edge e grows by weight * (e - t) from the first edge at or after t on
            at = row * (bins + 1) + np.searchsorted(edges - edges[0], t)
            level += sign * np.bincount(at, self.weight, level.size).reshape(shape)
            moment += sign * np.bincount(at, self.weight * t, level.size).reshape(shape)
        integral = np.cumsum(level, axis=1) * (edges - edges[0]) - np.cumsum(moment, axis=1)
        mean: Floats = np.diff(integral, axis=1) / np.diff(edges)
        mean[np.abs(mean) < 1e-9 * float(np.abs(mean).max(initial=0.0))] = 0.0
        return mean
