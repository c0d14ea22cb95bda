"""A preemptive schedule of fixed jobs by weight: at every event the jobs with the least weighted remaining work run."""

import numpy as np

from tradewind.model.arrays import Floats, Ints
from tradewind.solvers.kernel import kernel


@kernel
def weighted_schedule(
    arrive: Ints, runtime: Ints, units: Ints, weight: Floats, capacity: int
) -> tuple[Ints, Ints, int]:
    """Completion (N,) of jobs in order of arrival, and rows (job, begin, end) of the stretches in which they run.

    Jobs are taken in order of weight * remaining time * units, each if it fits beside those taken before. Returns the number
    of rows used as well; 0 where there are more than fit into the array.
    """
    n = arrive.size
    left = runtime.copy()
    finish = np.zeros(n, np.int64)
    begin = np.full(n, -1, np.int64)
    rows = np.empty((40 * n + 100, 3), np.int64)
    used = 0
    here = np.empty(n, np.int64)
    key = np.empty(n)
    count, coming, now = 0, 0, np.int64(0)
    while count > 0 or coming < n:
        if count == 0:
            now = max(now, arrive[coming])
        while coming < n and arrive[coming] <= now:
            here[count] = coming
            count += 1
            coming += 1
        for i in range(count):
            key[i] = weight[here[i]] * left[here[i]] * units[here[i]]
        order = np.argsort(key[:count], kind="mergesort")
        free = capacity
        until = arrive[coming] if coming < n else np.int64(2**62)
        for i in order:
            j = here[i]
            if units[j] <= free:
                free -= units[j]
                if begin[j] < 0:
                    begin[j] = now
                until = min(until, now + left[j])
            elif begin[j] >= 0:  # stopped
                if used == len(rows):
                    return finish, rows, 0
                rows[used] = (j, begin[j], now)
                used += 1
                begin[j] = -1
        kept = 0
        for i in range(count):
            j = here[i]
            if begin[j] >= 0:
                left[j] -= until - now
                if left[j] <= 0:
                    if used == len(rows):
                        return finish, rows, 0
                    rows[used] = (j, begin[j], until)
                    used += 1
                    finish[j] = until
                    continue
            here[kept] = j
            kept += 1
        count, now = kept, until
    return finish, rows, used
