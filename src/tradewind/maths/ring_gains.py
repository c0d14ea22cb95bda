"""What k more worker-slots are worth: on the concave envelope of a utility, from what is done to what can be reached.

A sigmoid is flat at its foot: measured by itself the first slot of a job that needs four is worth nothing, and a
greedy scheduler never begins. On the envelope the first slot is worth its share of what the whole climb brings. The paper
assumes a concave utility in its proofs and uses the sigmoid in its experiments.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from tradewind.maths.ring_slot import Floats


@njit(cache=True)
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


def gains(values: Floats, widest: int) -> Floats:
    """(widest + 1,) gain of 0 … widest more units on the envelope of values (reach + 1,); -inf beyond the reach.

    values[x] is the utility after x more units. A utility that falls is not followed down: its envelope stays at
    the top, because nobody has to do more.
    """
    best = np.maximum.accumulate(values)
    line = envelope(best)
    result = np.full(widest + 1, -np.inf)
    most = min(widest, len(line) - 1)
    result[: most + 1] = line[: most + 1] - line[0]
    return result
