"""What each freedom of the plan saves: the same market planned without it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tradewind.model.arrays import Bools, Ints
from tradewind.systems.broker.bound.problem import Whole
from tradewind.systems.broker.kernels.problem import Problem
from tradewind.systems.broker.kernels.search import Books
from tradewind.systems.broker.policy import planned
from tradewind.systems.broker.shared.plan import cost, selfish, with_plans

Without = Callable[[Whole, int], Books]
"""(market, rounds of search) -> plans without a freedom, counted at the true prices."""


def only(found: Whole, allowed: Bools, rounds: int) -> Books:
    """Plans on these options (N,); a job that has none of them keeps all of its own."""
    p = found.problem
    kept = allowed.copy()
    for j in range(len(p.unserved)):
        rows = slice(p.first[j], p.first[j + 1])
        if not allowed[rows].any():
            kept[rows] = True
    return _counted(found, p._replace(latest=np.where(kept, p.latest, -1)), rounds)


def _counted(found: Whole, p: Problem, rounds: int) -> Books:
    """Plans made for a changed problem, at the prices of the true one."""
    chosen = planned(found.market, p, found.before, rounds)
    return with_plans(found.problem, found.before, chosen.plan)


def one_type(found: Whole, rounds: int) -> Books:
    """All jobs on the one GPU type that is cheapest for them together."""
    gpus = np.array([machine.gpu for machine in found.market.machines])[found.problem.offer]
    plans = [only(found, gpus == gpu, 0) for gpu in np.unique(gpus)]
    best = min(range(len(plans)), key=lambda i: cost(found.problem, plans[i]))
    return only(found, gpus == np.unique(gpus)[best], rounds)


def at_home(found: Whole, rounds: int) -> Books:
    """Every job in the region where most of its data lies."""
    p, site = found.problem, found.market.site[found.problem.offer]
    homes = [max(r.job.parts, key=lambda part: part[1])[0] if r.job.parts else -1 for r in found.requests]
    return only(found, site == np.repeat(homes, np.diff(p.first)), rounds)


def at_once(found: Whole, rounds: int) -> Books:
    """Every job as soon as its data has arrived."""
    p = found.problem
    return _counted(found, p._replace(latest=np.minimum(p.latest, p.earliest + p.need[:, 0] - 1)), rounds)


def as_asked(found: Whole, rounds: int) -> Books:
    """Every job with a quarter of its largest number of GPUs, as the generator's users ask."""
    p = found.problem
    asked = [
        max((n for n in r.job.gpus if 4 * n <= r.job.gpus[-1]), default=r.job.gpus[0]) for r in found.requests
    ]
    size = np.array([machine.gpus for machine in found.market.machines], dtype=np.int64)[p.offer]
    wanted: Ints = -(-np.repeat(asked, np.diff(p.first)) // size)
    return only(found, p.machines == wanted, rounds)


def egress_ignored(found: Whole, rounds: int) -> Books:
    """Plans that take data as moved for nothing."""
    p = found.problem
    blind = p._replace(
        own=np.zeros_like(p.own), moved_usd=np.zeros_like(p.moved_usd), floor=np.full_like(p.floor, -1.0)
    )
    return _counted(found, blind, rounds)


def no_spot(found: Whole, rounds: int) -> Books:
    """Machines on demand alone."""
    return only(found, found.market.spot[found.problem.offer] == 0.0, rounds)


def alone(found: Whole, rounds: int) -> Books:
    """Every job alone: no discount together, no turns on scarce machines."""
    del rounds
    return selfish(found.problem, found.before)


SOURCES: dict[str, Without] = {
    "GPU type": one_type,
    "region": at_home,
    "time": at_once,
    "workers": as_asked,
    "egress": egress_ignored,
    "spot": no_spot,
    "together": alone,
}
"""Freedom -> plans without it. "together" is pooling where there are pools, and capacity where machines are scarce."""
