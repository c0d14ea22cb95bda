"""Inequalities that whole schedules keep and mixtures of schedules break: what can be complete by a slot.

From slot a to slot t there is only so much of every resource, and a job that is complete by t had its part of it, except
what it could do before a. Over whole jobs this is a knapsack; its mixed-integer rounding (Marchand and Wolsey 2001)
cuts off what the configuration LP otherwise allows: with room for 1.8 jobs until t it counts 1.8 of them complete.
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
"""Share by which every limit is widened before it is rounded, so that no error of rounding makes a cut false."""
LEAST = 0.01
"""Violation, over the length of the factors, below which a cut is not worth a row."""
LONGEST, MOST = 12, 200
"""Slots of a window, and cuts that are added at a time, at most."""
PARTS = 3
"""A job's need is tried as the unit of rounding, whole and in up to PARTS parts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """job, slot, factor (N,): what a schedule of the job that is complete in the slot counts; limit of the sum."""

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
    """Of the resource, what job i took from slot `first` on at least if it is complete in slot `last`."""
    left = jobs.units[i] - jobs.widest[i] * max(0, first - jobs.start[i])
    if left <= 0:
        return 0.0
    slots = last - max(first, jobs.start[i]) + 1
    away = max(0, left - jobs.beside[i] * slots)
    return float(jobs.use[i] * away + jobs.server[i] * -(-left // jobs.widest[i]))


@kernel
def rounded(value: float, part: float) -> float:
    """Mixed-integer rounding beside a limit with fractional part `part`."""
    whole = np.floor(value)
    return float(whole + max(0.0, value - whole - part) / (1.0 - part))


@kernel
def _room(limit: float, unit: float, turned: Ints, weight: Floats) -> float:
    """The limit in units once the turned items are counted by what is missing of them."""
    return float((limit - (turned * weight).sum()) / unit)


@kernel
def _violation(
    room: float, unit: float, turned: Ints, weight: Floats, share: Floats, item: Ints, needs: Floats, parts: Floats
) -> float:  # fmt: skip
    """By how much the cut is violated, over the length of its factors.

    weight, share (N,): least need and completed part of every item; item, needs, parts (M,): the same by completion.
    """
    floor = np.floor(room)
    part = room - floor
    if part > 0.97:
        return 0.0
    total, norm = -floor, 1e-12
    for n in range(len(weight)):
        if turned[n]:
            factor = rounded(-weight[n] / unit, part)
            total += factor * (1.0 - share[n])
            norm += factor * factor
    for m in range(len(item)):
        if not turned[item[m]]:
            factor = rounded(needs[m] / unit, part)
            total += factor * parts[m]
            norm += factor * factor
    return float(total / np.sqrt(norm))


@kernel
def _window(
    jobs: _JobTable, shares: Floats, first: int, last: int, limit: float
) -> tuple[float, float, Ints]:
    """The best cut of a window: violation over length (0: none), unit, and which jobs are turned (J,).

    shares (J, T): part of each job that is complete in each slot. A turned job is counted by what is missing of it.
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
    turned = np.zeros(count, np.int64)
    best, unit = 0.0, 0.0
    if weight.sum() <= limit or (needs * parts).sum() < 0.5 * limit:
        return best, unit, turned
    for n in range(count):
        turned[n] = share[n] > 0.5
    for n in range(count):
        for split in range(1, PARTS + 1):
            if share[n] > 1e-6:
                tried = weight[n] / split
                room = _room(limit, tried, turned, weight)
                much = _violation(room, tried, turned, weight, share, item, needs, parts)
                if much > best:
                    best, unit = much, tried
    if unit == 0.0:
        return best, unit, turned
    for n in range(count):
        if share[n] > 1e-6:
            turned[n] = 1 - turned[n]
            room = _room(limit, unit, turned, weight)
            much = _violation(room, unit, turned, weight, share, item, needs, parts)
            if much > best + 1e-9:
                best = much
            else:
                turned[n] = 1 - turned[n]
    return best, unit, turned


def _cut(jobs: _JobTable, first: int, last: int, limit: float, unit: float, turned: Ints) -> Cut:
    """The cut with all its factors, also of schedules that nobody has thought of yet; jobs by place in the bids."""
    here = [i for i in range(len(jobs.units)) if jobs.start[i] <= last]
    weight = np.array([need(jobs, i, first, last) for i in here])
    room = _room(limit, unit, turned[here], weight)
    part, most = room - np.floor(room), float(np.floor(room))
    entries = []
    for i, least in zip(here, weight.tolist(), strict=True):
        if turned[i]:
            factor = -rounded(-least / unit, part)
            most += factor
        for t in range(int(jobs.start[i]), last + 1):
            value = factor if turned[i] else rounded(need(jobs, i, first, t) / unit, part)
            if value > 0.0:
                entries.append((i, t, value))
    job, slot, factors = zip(*entries, strict=True)
    return Cut(job=np.array(job), slot=np.array(slot), factor=np.array(factors), limit=most)


def violated(jobs: Sequence[Pooled], capacity: Floats, shares: Floats, kinds: Sequence[int]) -> list[Cut]:
    """Cuts that the shares (J, T) break, the worst first; kinds: columns of capacity (T, K + 1) to look at."""
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
                much, unit, turned = _window(near, theirs, first, last, limit)
                if much > LEAST:
                    found.append((much, here, near, first, last, limit, unit, turned))
    found.sort(key=lambda cut: -cut[0])
    cuts = []
    for _, here, near, first, last, limit, unit, turned in found[:MOST]:
        cut = _cut(near, first, last, limit, unit, turned)
        cuts.append(Cut(job=here[cut.job], slot=cut.slot, factor=cut.factor, limit=cut.limit))
    return cuts


def _table(jobs: Sequence[Pooled], kind: int, traffic: bool) -> _JobTable:
    """The jobs as they use one resource; only bandwidth spares the workers beside the server, and has no server's part."""
    none = np.zeros(len(jobs), np.int64)
    return _JobTable(
        use=np.array([job.use[kind] for job in jobs]),
        server=np.zeros(len(jobs)) if traffic else np.array([job.server[kind] for job in jobs]),
        beside=np.array([job.beside for job in jobs]) if traffic else none,
        widest=np.array([job.widest for job in jobs]),
        units=np.array([job.units for job in jobs]),
        start=np.array([job.start for job in jobs]),
    )
