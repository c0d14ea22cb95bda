"""The step of Eris's dynamic program from slot to slot: what is done in this slot plus what was done before."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tradewind.model.arrays import Floats, Ints
from tradewind.solvers.kernel import kernel
from tradewind.systems.eris.kernels.slot import SAME


class _Best(NamedTuple):
    """Least sums (N + 1,), and how much of each is done in this slot."""

    usd: Floats
    take: Ints


@kernel
def minplus(before: Floats, cost: Floats, out: Floats, choice: Ints) -> None:
    """out[n] = min_d before[n - d] + cost[d]; all (N + 1,). Of equal sums the one with the least in this slot is taken.

    Equal means up to rounding (SAME): work done earlier leaves later slots to later bidders.
    """
    limit = len(before) - 1
    top, reach = limit, limit
    while top > 0 and cost[top] == np.inf:
        top -= 1
    while reach > 0 and before[reach] == np.inf:
        reach -= 1
    out[:], choice[:] = before, 0
    here, there = _Best(out, choice), _Best(before.copy(), np.zeros(limit + 1, np.int64))
    for d in range(1, top + 1, 2):  # from one table to the other and back
        _take(before, min(reach, limit - d) + 1, cost[d], d, here, there)
        if d < limit:
            _take(before, min(reach, limit - d - 1) + 1, cost[d + 1], d + 1, there, here)
        out[d], choice[d] = there.usd[d], there.take[d]


@kernel
def _take(before: Floats, count: int, usd: float, d: int, known: _Best, out: _Best) -> None:
    """From the best with less than d in this slot to the best with up to d, for the first `count` n from d on.

    Two tables, because a condition on what is read and not on what is written compiles to vector instructions. Reading
    the tuples' fields inside the loop prevents that: 45 instead of 4.4 us for a step of 150 units.
    """
    best, take = known
    best_next, take_next = out
    shift = np.uint64(d)  # unsigned: an index that cannot be negative needs no test
    for i in range(np.uint64(count)):
        total = before[i] + usd
        less = total < best[shift + i] * (1 - SAME)
        best_next[shift + i] = total if less else best[shift + i]
        take_next[shift + i] = d if less else take[shift + i]
