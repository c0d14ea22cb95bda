"""The step of Eris's dynamic program from slot to slot: what is done in this slot beside what was done before."""

from __future__ import annotations

import numpy as np

from tradewind.model.arrays import Floats, Ints
from tradewind.solvers.kernel import kernel
from tradewind.systems.eris.kernels.slot import SAME


@kernel
def minplus(before: Floats, cost: Floats, out: Floats, choice: Ints) -> None:
    """out[n] = min_d before[n - d] + cost[d]; all (N + 1,). Of equal sums the one with least in this slot is taken.

    Equal means up to rounding (SAME): what is done earlier leaves later slots to those who come later.
    """
    limit = len(before) - 1
    top, reach = limit, limit
    while top > 0 and cost[top] == np.inf:
        top -= 1
    while reach > 0 and before[reach] == np.inf:
        reach -= 1
    out[:], choice[:] = before, 0
    other, other_choice = before.copy(), np.zeros(limit + 1, np.int64)
    for d in range(1, top + 1, 2):  # there and back
        count = min(reach, limit - d) + 1
        _take(before, count, cost[d], d, out, choice, other, other_choice)
        if d < limit:
            count = min(reach, limit - d - 1) + 1
            _take(before, count, cost[d + 1], d + 1, other, other_choice, out, choice)
        out[d], choice[d] = other[d], other_choice[d]


@kernel
def _take(
    before: Floats,
    count: int,
    usd: float,
    d: int,
    best: Floats,
    take: Ints,
    best_next: Floats,
    take_next: Ints,
) -> None:
    """From the best with less than d in this slot to the best with up to d, for the first `count` n from d on.

    Two tables, because a condition on what is read and not on what is written compiles to vector instructions.
    """
    shift = np.uint64(d)  # unsigned: an index that cannot be negative needs no test
    for i in range(np.uint64(count)):
        total = before[i] + usd
        less = total < best[shift + i] * (1 - SAME)
        best_next[shift + i] = total if less else best[shift + i]
        take_next[shift + i] = d if less else take[shift + i]
