"""What k more worker-slots are worth: on the concave envelope of a utility, from what is done to what can be reached.

A sigmoid is flat at its foot: by itself, the first slot of a job that needs four is worth nothing, and a greedy
scheduler never starts it. On the envelope the first slot is worth its share of what the whole climb brings. The paper
assumes a concave utility in its proofs and uses the sigmoid in its experiments.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tradewind.model.arrays import Floats, Ints
from tradewind.solvers.kernel import kernel


@kernel
def envelope(values: Floats) -> Floats:
    """Smallest concave majorant on 0 … n of values (n + 1,), by the upper hull; never falling below the values."""
    n = values.size
    hull = np.empty(n, np.int64)
    size = 0
    for x in range(n):
        while size > 1:
            a, b = hull[size - 2], hull[size - 1]
            if (values[b] - values[a]) * (x - a) <= (values[x] - values[a]) * (b - a):
                size -= 1
            else:
                break
        hull[size] = x
        size += 1
    result = np.empty(n)
    for h in range(size - 1):
        a, b = hull[h], hull[h + 1]
        for x in range(a, b):
            result[x] = values[a] + (values[b] - values[a]) * (x - a) / (b - a)
    result[n - 1] = values[n - 1]
    return result


@kernel
def upper_hull(x: Floats, y: Floats) -> Ints:
    """Indices of the corners of the smallest concave majorant of points whose x rises."""
    hull = np.empty(x.size, np.int64)
    size = 0
    for i in range(x.size):
        while size > 1:
            a, b = hull[size - 2], hull[size - 1]
            if (y[b] - y[a]) * (x[i] - x[a]) <= (y[i] - y[a]) * (x[b] - x[a]):
                size -= 1
            else:
                break
        hull[size] = i
        size += 1
    return hull[:size]


def gains(values: Floats, widest: int) -> Floats:
    """(widest + 1,) gain of 0 … widest more units on the envelope of values (reach + 1,); -inf beyond the reach.

    values[x] is the utility after x more units. Where a utility falls, so does its envelope: workers beyond the peak cost.
    """
    line = envelope(values)
    result = np.full(widest + 1, -np.inf)
    most = min(widest, len(line) - 1)
    result[: most + 1] = line[: most + 1] - line[0]
    return result


def climbs(values: Floats) -> bool:
    """Whether a utility (n + 1,) is convex anywhere, so that its envelope counts gains that are earned later."""
    bends = np.diff(np.maximum.accumulate(values), 2)
    return bool((bends > 1e-9 * max(1.0, float(values.max() - values.min()))).any())


@dataclass(frozen=True, slots=True, kw_only=True)
class Climb:
    """A job's way to its utility.

    values  (reach + 1,) utility after x more worker-slots
    need    share of the cluster that a worker takes
    widest  largest ring
    """

    values: Floats
    need: float
    widest: int

    @property
    def line(self) -> Floats:
        """The concave envelope, from 0."""
        best = np.maximum.accumulate(self.values)
        line: Floats = envelope(best) - best[0]
        return line


def price_of_waiting(jobs: Sequence[Climb], slots: int) -> float:
    """Price of the whole cluster for a slot at which all that these jobs want fits into `slots` slots; 0 if it fits anyway.

    Each job can have its widest ring in each slot. Jobs that may still arrive are not counted.
    """
    density, need = [], []
    for job in jobs:
        worth = np.diff(job.line[: job.widest * slots + 1]) / job.need
        density.append(worth[worth > 0.0])
        need.append(np.full(len(density[-1]), job.need))
    if not density:
        return 0.0
    worths, needs = np.concatenate(density), np.concatenate(need)
    order = np.argsort(-worths, kind="stable")
    out = int(np.searchsorted(np.cumsum(needs[order]), slots, side="right"))
    return float(worths[order[out]]) if out < len(order) else 0.0


def gains_now(job: Climb, price: float, slots: int) -> Floats:
    """(widest + 1,) what k worker-slots now add, where `slots` later slots can be bought at the price of waiting."""
    line, cost = job.line, price * job.need
    wanted = int((np.diff(line) > cost).sum())
    now = np.minimum(np.arange(job.widest + 1), len(line) - 1)
    later = np.clip(wanted - now, 0, job.widest * slots)
    worth = line[now + later] - cost * later
    gain: Floats = worth - worth[0]
    return gain
