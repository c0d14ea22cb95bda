"""Inequalities that whole schedules satisfy and mixtures of schedules violate: what can be complete by a slot.

Capacity from slot a to slot t is limited, and a job that is complete by t used its part of it, except for what it could
do before a. Over whole jobs this is a knapsack; its mixed-integer rounding (Marchand and Wolsey 2001) cuts off what the
configuration LP otherwise allows: with room for 1.8 jobs until t it counts 1.8 of them as complete.
A cut is  sum over jobs and completion slots of factor * share <= limit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from tradewind.model.arrays import Floats, Ints
from tradewind.solvers.kernel import kernel
from tradewind.systems.eris.kernels.column import Pooled

SLACK = 1e-7
"""Share by which every limit is widened before rounding, so that floating-point errors cannot make a cut invalid."""
LEAST = 0.01
"""Minimum violation, relative to the norm of the factors, for a cut to be added."""
LONGEST, MOST = 12, 200
"""Maximum slots of a window, and maximum cuts added at a time."""
PARTS = 3
"""A job's need, whole and divided by up to PARTS, is tried as the unit of rounding."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """job, slot, factor (N,): weight of a schedule of the job that completes in the slot; limit of the weighted sum."""

    job: Ints
    slot: Ints
    factor: Floats
    limit: float


class _JobTable(NamedTuple):
    """Jobs as arrays: use (J,) of one resource by a worker, server (J,), the rest (J,) as in Pooled."""

    use: Floats
    server: Floats
    beside: Ints
    widest: Ints
    units: Ints
    start: Ints


@kernel
def need(jobs: _JobTable, i: int, first: int, last: int) -> float:
    """Least amount of the resource that job i used from slot `first` on if it completes in slot `last`."""
    left = jobs.units[i] - jobs.widest[i] * max(0, first - jobs.start[i])
    if left <= 0:
        return 0.0
    slots = last - max(first, jobs.start[i]) + 1
    away = max(0, left - jobs.beside[i] * slots)
    return float(jobs.use[i] * away + jobs.server[i] * -(-left // jobs.widest[i]))


@kernel
def rounded(value: float, part: float) -> float:
    """Mixed-integer rounding for a limit with fractional part `part`."""
    whole = np.floor(value)
    return float(whole + max(0.0, value - whole - part) / (1.0 - part))


@kernel
def _room(limit: float, unit: float, flipped: Ints, weight: Floats) -> float:
    """The limit in units once the complemented items are counted by their missing part."""
    return float((limit - (flipped * weight).sum()) / unit)


@kernel
def _violation(
    room: float, unit: float, flipped: Ints, weight: Floats, share: Floats, item: Ints, needs: Floats, parts: Floats
) -> float:  # fmt: skip
    """Violation of the cut, relative to the norm of its factors.

    weight, share (N,): least need and completed part of every item; item, needs, parts (M,): the same by completion.
    """
    floor = np.floor(room)
    part = room - floor
    if part > 0.97:
        return 0.0
    total, norm = -floor, 1e-12
    for n in range(len(weight)):
        if flipped[n]:
            factor = rounded(-weight[n] / unit, part)
            total += factor * (1.0 - share[n])
            norm += factor * factor
    for m in range(len(item)):
        if not flipped[item[m]]:
            factor = rounded(needs[m] / unit, part)
            total += factor * parts[m]
            norm += factor * factor
    return float(total / np.sqrt(norm))


@kernel
def _window(
    jobs: _JobTable, shares: Floats, first: int, last: int, limit: float
) -> tuple[float, float, Ints]:
    """The best cut of a window: relative violation (0: none), unit, and which jobs are complemented (J,).

    shares (J, T): part of each job that completes in each slot. A complemented job is counted by its missing part.
    """
    count = len(jobs.units)
    weight, share = np.zeros(count), np.zeros(count)
    entries = count * max(0, last + 1 - jobs.start.min())
    item, needs, parts, m = np.zeros(entries, np.int64), np.zeros(entries), np.zeros(entries), 0
    for i in range(count):
        if jobs.start[i] <= last:
            weight[i] = need(jobs, i, first, last)
        if weight[i] <= 0.0:
            continue
        for t in range(jobs.start[i], last + 1):
            if shares[i, t] > 1e-9:
                item[m], needs[m], parts[m] = i, need(jobs, i, first, t), shares[i, t]
                share[i] += shares[i, t]
                m += 1
    item, needs, parts = item[:m], needs[:m], parts[:m]
    flipped = np.zeros(count, np.int64)
    best, unit = 0.0, 0.0
    if weight.sum() <= limit or (needs * parts).sum() < 0.5 * limit:
        return best, unit, flipped
    for n in range(count):
        flipped[n] = share[n] > 0.5
    for n in range(count):
        for split in range(1, PARTS + 1):
            if share[n] > 1e-6:
                tried = weight[n] / split
                room = _room(limit, tried, flipped, weight)
                much = _violation(room, tried, flipped, weight, share, item, needs, parts)
                if much > best:
                    best, unit = much, tried
    if unit == 0.0:
        return best, unit, flipped
    for n in range(count):
        if share[n] > 1e-6:
            flipped[n] = 1 - flipped[n]
            room = _room(limit, unit, flipped, weight)
            much = _violation(room, unit, flipped, weight, share, item, needs, parts)
            if much > best + 1e-9:
                best = much
            else:
                flipped[n] = 1 - flipped[n]
    return best, unit, flipped


def _cut(jobs: _JobTable, first: int, last: int, limit: float, unit: float, flipped: Ints) -> Cut:
    """The cut with all its factors, including schedules that are not yet columns; jobs by row of the table."""
    here = [i for i in range(len(jobs.units)) if jobs.start[i] <= last]
    weight = np.array([need(jobs, i, first, last) for i in here])
    room = _room(limit, unit, flipped[here], weight)
    part, most = room - np.floor(room), float(np.floor(room))
    entries = []
    for i, least in zip(here, weight.tolist(), strict=True):
        if flipped[i]:
            factor = -rounded(-least / unit, part)
            most += factor
        for t in range(int(jobs.start[i]), last + 1):
            value = factor if flipped[i] else rounded(need(jobs, i, first, t) / unit, part)
            if value > 0.0:
                entries.append((i, t, value))
    job, slot, factors = zip(*entries, strict=True)
    return Cut(job=np.array(job), slot=np.array(slot), factor=np.array(factors), limit=most)


def violated(jobs: Sequence[Pooled], capacity: Floats, shares: Floats, kinds: Sequence[int]) -> list[Cut]:
    """Cuts that the shares (J, T) violate, the worst first; kinds: columns of capacity (T, K + 1) to examine."""
    found = []
    start = np.array([job.start for job in jobs])
    gone = start + np.array([-(-job.units // job.widest) for job in jobs])
    for k in kinds:
        traffic = k == capacity.shape[1] - 1
        limits = np.cumsum(np.append(0.0, capacity[:, k])) * (1.0 + SLACK)
        for first in range(len(capacity)):
            here = np.flatnonzero((start < first + LONGEST) & (gone > first))
            if not len(here):
                continue
            near, theirs = _table([jobs[i] for i in here.tolist()], k, traffic), shares[here]
            for last in range(first, min(len(capacity), first + LONGEST)):
                limit = float(limits[last + 1] - limits[first])
                much, unit, flipped = _window(near, theirs, first, last, limit)
                if much > LEAST:
                    found.append((much, here, near, first, last, limit, unit, flipped))
    found.sort(key=lambda cut: -cut[0])
    cuts = []
    for _, here, near, first, last, limit, unit, flipped in found[:MOST]:
        cut = _cut(near, first, last, limit, unit, flipped)
        cuts.append(Cut(job=here[cut.job], slot=cut.slot, factor=cut.factor, limit=cut.limit))
    return cuts


def _table(jobs: Sequence[Pooled], kind: int, traffic: bool) -> _JobTable:
    """The jobs' use of one resource. Bandwidth is not used by workers beside the server, nor by the server itself."""
    none = np.zeros(len(jobs), np.int64)
    return _JobTable(
        use=np.array([job.use[kind] for job in jobs]),
        server=np.zeros(len(jobs)) if traffic else np.array([job.server[kind] for job in jobs]),
        beside=np.array([job.beside for job in jobs]) if traffic else none,
        widest=np.array([job.widest for job in jobs]),
        units=np.array([job.units for job in jobs]),
        start=np.array([job.start for job in jobs]),
    )
