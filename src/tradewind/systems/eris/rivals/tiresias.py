"""Tiresias on edge sites: preemptive, the job with the least resources times remaining work first.

As the Eris paper describes it (Sec. VI-B). `tiresias` gives every job the same number of workers or none;
`tiresias-elastic` as many as are of use and fit. Not to be confused with `las`, which runs traces.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from tradewind.model.view import View
from tradewind.systems.eris.kernels.spot import units_left
from tradewind.systems.eris.shared.edge import EdgeScheduler, Turn, line


class Tiresias(EdgeScheduler):
    """Every slot anew by remaining work times the dominant share of a worker."""

    def turns(self, view: View) -> Iterable[Turn]:
        pool = np.maximum(self.ledger.capacity[view.slot].sum(axis=0), 1)
        load = {}
        for index in self.left:
            task = self.task(view.job(index))
            load[index] = float((task.worker / pool).max()) * units_left(task)
        return [Turn(i, exact=True, stays=False) for i in sorted(load, key=lambda i: (load[i], i))]


TIRESIAS = line(
    "tiresias",
    "Eris's rival: preemptive, least resources x remaining work first, a fixed number of workers",
    lambda setup, rules, params: Tiresias(setup, rules),
)
TIRESIAS_ELASTIC = line(
    "tiresias-elastic",
    "tiresias with as many workers as are of use and fit",
    lambda setup, rules, params: Tiresias(setup, rules),
)
