"""Tiresias on edge sites: preemptive, least resources times remaining work first.

As the Eris paper describes it (Sec. VI-B). `tiresias` gives every job the same number of workers or none;
`tiresias-elastic` as many as are useful and fit. `las` is another policy, for traces.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from tradewind.model.view import View
from tradewind.systems.eris.kernels.spot import units_left
from tradewind.systems.eris.shared.edge import EdgeScheduler, Turn, rival_spec


class Tiresias(EdgeScheduler):
    """Orders jobs in every slot by remaining work times the dominant share of a worker."""

    def turns(self, view: View) -> Iterable[Turn]:
        pool = np.maximum(self.ledger.whole, 1)
        load = {}
        for index in self.left:
            task = self.task(view.job(index))
            load[index] = float((task.worker / pool).max()) * units_left(task)
        return [Turn(i, exact=True, stays=False) for i in sorted(load, key=lambda i: (load[i], i))]


TIRESIAS = rival_spec(
    "tiresias",
    "Rival of Eris: preemptive, least resources x remaining work first; a fixed number of workers",
    lambda setup, rules, params: Tiresias(setup, rules),
)
TIRESIAS_ELASTIC = rival_spec(
    "tiresias-elastic",
    "tiresias with as many workers as are useful and fit",
    lambda setup, rules, params: Tiresias(setup, rules),
)
