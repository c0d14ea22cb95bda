"""The best schedules of one bidder at posted prices, for every completion time (Eris, problem (7), corrected).

A pass (search.py) gives a lower bound and a feasible schedule for every completion time; only feasible schedules are
offered. The bound is the certificate: no schedule of problem (7) is cheaper.

The paper's dynamic program counts chunks in total while its slots count them per site, so it uses data twice; here
chunks are assigned once, after the workers.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tradewind.model.arrays import Bools, Floats
from tradewind.systems.eris.kernels.data import by_slot
from tradewind.systems.eris.kernels.search import (
    EXACT,
    MOVES_PRICED,
    Settings,
    Tables,
    least_cost,
    plans,
    search,
    trace,
)
from tradewind.systems.eris.kernels.task import Market, Menu, Schedule, TrainingTask

GAP = 1e-4
"""Completion times whose feasible cost exceeds the bound by more than this share are searched again."""
ROUNDS, SMALL = 4, 24
"""Further passes for tasks of at most SMALL units; larger ones get one."""


class _Bid(NamedTuple):
    """What all passes for a bidder share; least_usd: lower bound on the cost of any schedule."""

    task: TrainingTask
    market: Market
    worth: Floats
    least_usd: float


class _Pass(NamedTuple):
    """A finished pass: feasible cost and lower bound (T,), with its settings and tables."""

    real: Floats
    bound: Floats
    settings: Settings
    tables: Tables

    @property
    def earliest(self) -> int:
        """First completion slot that the bound does not rule out."""
        return int(np.argmax(np.isfinite(self.bound)))


def flat_menu(task: TrainingTask, market: Market, worth: Floats, flat_usd: float) -> Menu:
    """As `menu`, but carrying the data costs flat_usd in all, however it is carried: every price is an exact minimum.

    So no price falls when slots, room or capacity are taken away, prices rise, or the task grows: a bidder who comes late
    or asks for more never pays less. With fractional P / E, workers leave their server's site only in slots whose
    bandwidth suffices for any split.
    """
    found = _pass(_bid(task, market, worth), _plain(task, flat_usd))
    lasts = np.flatnonzero(found.real < worth).tolist()
    offers = _schedules(task, market, found, lasts, found.real)
    payoff = max((float(worth[t] - found.real[t]) for t in lasts), default=0.0)
    bound_usd = np.minimum.accumulate(found.real)
    return Menu(offers=tuple(offers), bound_usd=bound_usd, payoff=payoff, bound=payoff)


def menu(task: TrainingTask, market: Market, worth: Floats) -> Menu:
    """Offers for every completion time that could pay, each feasible and cheaper than all before it.

    worth (T,): utility of completing in each slot of the market, non-increasing. It only leaves out completion times
    that are worth less than they cost: the price of a completion time does not depend on it.
    """
    bid = _bid(task, market, worth)
    first = _pass(bid, _plain(task, MOVES_PRICED))
    # Further passes serve a completion time only where the first left a gap until there, and are guided by the earliest
    # completion alone, so that a price never depends on how far the reported worth made the search go.
    gap, lost = _open(first)
    tried, cost, best = [first], first.real.copy(), np.zeros(len(worth), np.int64)
    for served, how in ((gap, False), (lost, True)):
        for found in _closer(bid, first, how) if served.any() else ():
            better = served & (found.real < cost)
            cost[better], best[better] = found.real[better], len(tried)
            tried.append(found)
    lasts = [t for t in _cheaper(cost) if worth[t] > cost[t]]
    offers: list[Schedule] = []
    for number in {int(best[t]) for t in lasts}:
        offers += _schedules(task, market, tried[number], [t for t in lasts if best[t] == number], cost)
    offers.sort(key=lambda offer: offer.slots[-1])
    payoff = max((float(worth[t] - cost[t]) for t in lasts), default=0.0)
    top = float(np.max(worth - first.bound, initial=0.0))
    return Menu(offers=tuple(offers), bound_usd=first.bound, payoff=payoff, bound=top)


def _cheaper(cost: Floats) -> list[int]:
    """Completion slots that cost less than all before them."""
    found, cheapest = [], np.inf
    for t in np.flatnonzero(cost < np.inf).tolist():
        if cost[t] < cheapest * (1 - EXACT):
            cheapest = cost[t]
            found.append(t)
    return found


def _bid(task: TrainingTask, market: Market, worth: Floats) -> _Bid:
    return _Bid(task, market, worth, least_cost(task, market))


def _plain(task: TrainingTask, flat_usd: float) -> Settings:
    """Settings of the pass that gives the bound."""
    return Settings(task.units, task.per_worker, 0, np.zeros(len(task.data)), 0.0, flat_usd)


def _pass(bid: _Bid, settings: Settings) -> _Pass:
    real, bound, tables = search(bid.task, bid.market, bid.worth, bid.least_usd, settings)
    return _Pass(real, bound, settings, tables)


def _open(first: _Pass) -> tuple[Bools, Bools]:
    """Completion times (T,) from which on a gap to the bound is left, and from which on one was not feasible."""
    real, bound = first.real, first.bound
    gap = np.isfinite(bound) & (real < np.inf) & (real > bound * (1 + GAP))
    lost = np.isfinite(bound) & (real == np.inf)
    lost[1:] &= bound[1:] < bound[:-1] * (1 - EXACT)
    return np.logical_or.accumulate(gap | lost), np.logical_or.accumulate(lost)


def _closer(bid: _Bid, first: _Pass, lost: bool) -> list[_Pass]:
    """Passes in which workers pay in advance for moves where more is trained than is stored (share of the excess).

    lost: some completion time was not feasible. Then moves also bear a shadow price, bandwidth is kept, more workers than
    the data needs in total are tried, up to what every site needs by itself, and a pass without any moves.
    """
    task, market = bid.task, bid.market
    whole = -(-task.rate // task.need)
    shadows, sizes = [(0, 0.0)], [task.units]
    if lost:
        keep = whole * task.chunk_bytes
        dear = float((market.usd[first.earliest] @ task.worker).max()) / whole + 1.0
        shadows += [(0, dear), (keep, 0.0), (keep, dear)]
    if task.per_worker and (lost or task.units <= SMALL):
        alone = int((-(-task.data // task.per_worker)).sum())
        sizes = sorted({task.units, min(task.units + 1, alone), (task.units + alone) // 2, alone})
    found = []
    for units in sizes:
        for reserve, shadow in shadows:
            share, at = np.where(task.data == 0, 1.0, 0.0), first
            for _ in range(ROUNDS if task.units <= SMALL else 1):
                share = _next_share(task, at, share)
                at = _pass(bid, Settings(units, task.per_worker, reserve, share, shadow, MOVES_PRICED))
                if not np.isfinite(at.bound).any():
                    break
                found.append(at)
    return [*found, _unmoved(bid)] if lost else found


def _next_share(task: TrainingTask, at: _Pass, share: Floats) -> Floats:
    """Raises the share (R,) of sites that train more than they store in a pass, and lowers it where nothing is trained."""
    workers = trace(at.earliest, task, at.settings, at.tables).workers
    trained = (workers * task.rate // task.need).sum(axis=0)
    excess = (trained - task.data) / np.maximum(trained, 1)
    return np.clip(share + np.where(trained > 0, excess, -0.5), 0.0, 1.0)


def _unmoved(bid: _Bid) -> _Pass:
    """A pass in which a chunk is too large to be moved, so that a site never has more workers than its own data needs."""
    task = bid.task
    alone = -(-task.data // task.per_worker) if task.per_worker else task.data
    heavy = task._replace(chunk_bytes=int(bid.market.room.max()) + 1)
    settings = _plain(task, MOVES_PRICED)._replace(units=int(alone.sum()))
    return _pass(bid._replace(task=heavy), settings)


def _schedules(
    task: TrainingTask, market: Market, found: _Pass, lasts: list[int], usd: Floats
) -> list[Schedule]:
    """The schedules of a pass for these completion slots; usd (T,): what each costs."""
    if not lasts:
        return []
    return [
        Schedule(
            slots=tuple(placed.slots.tolist()),
            servers=tuple(placed.servers.tolist()),
            workers=placed.workers,
            flows=by_slot(rows, begin),
            usd=float(usd[t]),
        )
        for t, (placed, rows, begin) in zip(
            lasts, plans(np.array(lasts), task, market, found.settings, found.tables), strict=True
        )
    ]
