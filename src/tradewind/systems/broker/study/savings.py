"""What each freedom of the plan saves: the same market planned without it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tradewind.model.arrays import Bools, Ints
from tradewind.systems.broker.bound.problem import Whole
from tradewind.systems.broker.kernels.problem import Problem
from tradewind.systems.broker.kernels.search import Books, respond
from tradewind.systems.broker.policy import planned
from tradewind.systems.broker.shared.plan import books as nobody
from tradewind.systems.broker.shared.plan import cost, no_toll, selfish, with_plans

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
    p, names = found.problem, np.array([machine.gpu for machine in found.market.machines])
    kinds = np.unique(names[p.offer])
    uses = [(names[p.offer] == gpu) & ((p.other < 0) | (names[p.other] == gpu)) for gpu in kinds]
    plans = [only(found, use, 0) for use in uses]
    best = min(range(len(plans)), key=lambda i: cost(p, plans[i]))
    return only(found, uses[best], rounds)


def at_home(found: Whole, rounds: int) -> Books:
    """Every job in the region where most of its data lies."""
    p, site = found.problem, found.market.site[found.problem.offer]
    homes = [max(r.job.parts, key=lambda part: part[1])[0] if r.job.parts else -1 for r in found.requests]
    return only(found, (site == np.repeat(homes, np.diff(p.first))) & (p.other < 0), rounds)


def one_site(found: Whole, rounds: int) -> Books:
    """No job at two sites."""
    return only(found, found.problem.other < 0, rounds)


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
    return only(found, (p.machines == wanted) & (p.other < 0), rounds)


def egress_ignored(found: Whole, rounds: int) -> Books:
    """Plans that take data as moved for nothing."""
    p = found.problem
    blind = p._replace(
        own=np.zeros_like(p.own), moved_usd=np.zeros_like(p.moved_usd), floor=np.full_like(p.floor, -1.0)
    )
    return _counted(found, blind, rounds)


def no_spot(found: Whole, rounds: int) -> Books:
    """Machines on demand alone."""
    p, spot = found.problem, found.market.spot
    return only(found, (spot[p.offer] == 0.0) & ((p.other < 0) | (spot[p.other] == 0.0)), rounds)


def no_pools(found: Whole, rounds: int) -> Books:
    """Plans that know no discount; they get those that they happen to reach."""
    p = found.problem
    return _counted(
        found, p._replace(account=np.full_like(p.account, -1), moved=np.full_like(p.moved, -1)), rounds
    )


def first_come(found: Whole, rounds: int) -> Books:
    """Every job on what those before it left, as cheap as it can."""
    del rounds
    books = nobody(found.problem, found.before)
    order = np.arange(len(found.problem.unserved))
    respond(found.problem, books, order, no_toll(found.problem), books.spent)
    return books


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
    "two sites": one_site,
    "spot": no_spot,
    "pooling": no_pools,
    "capacity": first_come,
    "together": alone,
}
"""Freedom -> plans without it. "capacity" is planning jobs together instead of one after the other, "together" that and
pooling."""
