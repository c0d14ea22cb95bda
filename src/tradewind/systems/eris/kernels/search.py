"""One pass over all completion times of a bidder: cheapest workers per slot, chunks assigned afterwards.

A min-plus pass over slots gives the cheapest workers that could train all data by each slot (a lower bound, because the
location of the data is left out). Each completion time is then made feasible: workers are placed and every chunk gets a
site and a slot. oracle.py turns passes into menus.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tradewind.model.arrays import Floats, Ints
from tradewind.solvers.kernel import kernel
from tradewind.systems.eris.kernels.chunks import chunk_curve, deploy_chunks, workers_for
from tradewind.systems.eris.kernels.data import Assignment, assign, capacity, moves
from tradewind.systems.eris.kernels.minplus import minplus
from tradewind.systems.eris.kernels.slot import (
    NOT_AT_ALL,
    SlotSites,
    cost_curve,
    deploy,
    remote_limit,
    remote_limits,
    site_terms,
)
from tradewind.systems.eris.kernels.task import Market, TrainingTask

EXACT = 1e-12
"""A later completion time counts only if it is cheaper by more than this share."""
MOVES_PRICED = -1.0
"""`flat_usd` of a pass in which data pays for its moves."""


class Settings(NamedTuple):
    """Settings of a pass.

    units       steps of the dynamic program (see `TrainingTask.units`)
    per_worker  chunks that a worker trains in a slot, 0 for a fraction
    reserve     bytes of bandwidth kept for the data of every remote worker; workers without a full load are left out
    share       (R,) part of its chunks for which a worker pays the move in advance; returned once the moves are known
    shadow      USD on top of each such chunk
    flat_usd    price of carrying the data however it is carried, or MOVES_PRICED. With a flat price every slot in use keeps
                room for all that it trains, so each placement of workers is feasible and `real` is the exact minimum

    The bound needs a pass with reserve, share and shadow all 0.
    """

    units: int
    per_worker: int
    reserve: int
    share: Floats
    shadow: float
    flat_usd: float


class Tables(NamedTuple):
    """What a pass remembers of each slot: choice, site, remote (T, units + 1); the rest as in `SlotSites`, with (T,) first.

    Rows of slots that the search did not reach are not initialised.
    """

    choice: Ints
    site: Ints
    remote: Ints
    worker_usd: Floats
    server_usd: Floats
    most: Ints
    with_server: Ints
    order: Ints
    traffic_usd: Floats


class Placement(NamedTuple):
    """Slots used (S,), the server's site (S,) and workers (S, R)."""

    slots: Ints
    servers: Ints
    workers: Ints


@kernel
def least_cost(task: TrainingTask, market: Market) -> float:
    """Lower bound on any schedule: the cheapest workers of every slot, as many as bandwidth allows."""
    usd, free = market.usd, market.free
    horizon, sites, kinds = usd.shape
    price, room_for, lowest = np.full(horizon, np.inf), np.zeros(horizon, np.int64), np.inf
    for t in range(horizon):
        widest_local = 0
        for r in range(sites):
            each, its, fits, count = 0.0, 0.0, True, task.most
            for k in range(kinds):
                each += task.worker[k] * usd[t, r, k]
                its += task.server[k] * usd[t, r, k]
                fits = fits and free[t, r, k] >= task.server[k]
                if task.worker[k] > 0:
                    count = min(count, max(0, free[t, r, k]) // task.worker[k])
            if count > 0:
                price[t] = min(price[t], each)
                widest_local = max(widest_local, count)
            if fits:
                lowest = min(lowest, its)
        room_for[t] = widest_local + remote_limit(market.room[t], task.traffic_bytes, task.most)
    left, total = workers_for(task.data.sum(), task.rate, task.need), lowest
    for t in np.argsort(price):
        if left <= 0 or price[t] == np.inf:
            break
        take = min(left, room_for[t])
        total += take * price[t]
        left -= take
    return total if left <= 0 else np.inf


@kernel
def search(
    task: TrainingTask, market: Market, worth: Floats, least_usd: float, settings: Settings
) -> tuple[Floats, Floats, Tables]:
    """Feasible cost and lower bound (T,) of every completion time, until no later one can pay; and the tables.

    worth (T,): utility of completing in a slot; least_usd: lower bound on the cost of any completion
    """
    horizon, sites, _ = market.usd.shape
    units, flat = settings.units, settings.flat_usd >= 0
    tables = _empty_tables(horizon, sites, units)
    value = np.empty((horizon + 1, units + 1))
    lower, lower_next = np.full(units + 1, np.inf), np.full(units + 1, np.inf)
    value[0], value[0, 0], lower[0] = np.inf, 0.0, 0.0
    real, bound = np.full(horizon, np.inf), np.full(horizon, np.inf)
    unused, by_data = np.zeros(units + 1, np.int64), np.argsort(-task.data, kind="mergesort")
    best, cheapest = max(0.0, least_usd), np.inf
    for t in range(horizon):
        if worth[t] <= best:
            break
        _fill_sites(t, task, market, settings, by_data, tables)
        _fill_remote(t, task, market, settings, tables)
        if settings.per_worker > 0:
            minplus(value[t], _whole_curve(t, task, settings, tables), value[t + 1], tables.choice[t])
            bound[t] = value[t + 1, units]
        else:
            curve = _fractional_curve(t, task, market, settings, tables)
            minplus(value[t], curve, value[t + 1], tables.choice[t])
            minplus(lower, _lower_curve(t, task, settings, tables), lower_next, unused)
            lower[:] = lower_next
            bound[t] = lower[units]
        usd = value[t + 1, units]
        if usd >= value[t, units] * (1 - EXACT):
            continue
        if flat:
            real[t] = usd + settings.flat_usd
            best = max(best, worth[t] - real[t])
            continue
        placed = trace(t, task, settings, tables)
        moving, _ = _feasible(placed, task, market)
        real[t] = usd - _paid_ahead(placed, task, market, settings) + moving
        if real[t] < cheapest:
            cheapest = real[t]
            best = max(best, worth[t] - real[t])
    return real, bound, tables


@kernel
def _empty_tables(horizon: int, sites: int, units: int) -> Tables:
    """Tables without content: most bids are decided by a few slots, so nothing is initialised in advance."""
    return Tables(
        np.empty((horizon, units + 1), np.int64),
        np.empty((horizon, units + 1), np.int64),
        np.empty((horizon, units + 1), np.int64),
        np.empty((horizon, sites)),
        np.empty((horizon, sites)),
        np.empty((horizon, sites), np.int64),
        np.empty((horizon, sites), np.int64),
        np.empty((horizon, sites), np.int64),
        np.empty(horizon),
    )


@kernel
def _sites(tables: Tables, t: int) -> SlotSites:
    """The sites of slot t."""
    return SlotSites(
        tables.worker_usd[t],
        tables.server_usd[t],
        tables.most[t],
        tables.with_server[t],
        tables.order[t],
        tables.traffic_usd[t],
    )


@kernel
def _fill_sites(
    t: int, task: TrainingTask, market: Market, settings: Settings, by_data: Ints, out: Tables
) -> None:
    """Writes the sites of slot t: prices with what is paid in advance, and no more workers than there can be data for."""
    rate, need = task.rate, task.need
    terms = site_terms(market.usd[t], market.free[t], task.worker, task.server, task.most)
    chunk_usd = task.chunk_bytes * market.byte_usd[t] + settings.shadow
    out.worker_usd[t] = terms[0] + settings.share * (rate / need * chunk_usd)
    out.server_usd[t], out.most[t], out.with_server[t] = terms[1], terms[2], terms[3]
    brought = max(0, market.room[t]) // task.chunk_bytes
    for r in range(len(task.data)):
        reach = task.data[r] + brought
        useful = reach * need // rate if settings.reserve > 0 else workers_for(reach, rate, need)
        out.most[t, r] = min(out.most[t, r], useful)
        out.with_server[t, r] = min(out.with_server[t, r], useful)
    out.order[t] = by_data[np.argsort(out.worker_usd[t][by_data], kind="mergesort")]
    out.traffic_usd[t] = task.traffic_bytes * market.byte_usd[t]


@kernel
def _fill_remote(t: int, task: TrainingTask, market: Market, settings: Settings, out: Tables) -> None:
    """Writes how many of n workers may be away from their server in slot t."""
    room, traffic, units = market.room[t], task.traffic_bytes, settings.units
    whole = task.chunk_bytes * task.data.sum()
    if settings.flat_usd < 0:
        out.remote[t] = remote_limit(room, traffic + settings.reserve, task.most)
    elif settings.per_worker > 0:
        out.remote[t] = remote_limits(room, traffic, settings.per_worker * task.chunk_bytes, whole, units)
    else:  # all workers beside the server, unless bandwidth suffices for any split
        away = remote_limit(room - whole, traffic, task.most) if room >= whole else 0
        out.remote[t] = away if away >= units * workers_for(1, task.rate, task.need) else 0


@kernel
def _whole_curve(t: int, task: TrainingTask, settings: Settings, tables: Tables) -> Floats:
    """Cost (units + 1,) of 0..units workers in slot t; writes the server's sites."""
    limit = min(settings.units, task.most)
    cost, where = cost_curve(_sites(tables, t), tables.remote[t], limit)
    tables.site[t], tables.site[t, : limit + 1] = NOT_AT_ALL, where
    curve = np.full(settings.units + 1, np.inf)
    curve[: limit + 1] = cost
    return curve


@kernel
def _fractional_curve(
    t: int, task: TrainingTask, market: Market, settings: Settings, tables: Tables
) -> Floats:
    """Cost (units + 1,) of training 0..units chunks in slot t; writes the server's sites."""
    units, rate, need = settings.units, task.rate, task.need
    curve, tables.site[t] = chunk_curve(_sites(tables, t), task, tables.remote[t, 0], units)
    if settings.flat_usd >= 0 and market.room[t] < task.chunk_bytes * task.data.sum():
        for d in range(1, units + 1):
            if workers_for(d, rate, need) * rate // need * task.chunk_bytes > market.room[t]:
                curve[d] = np.inf
    return curve


@kernel
def _lower_curve(t: int, task: TrainingTask, settings: Settings, tables: Tables) -> Floats:
    """Lower bound (units + 1,) on training 0..units chunks: d of them need at least ceil(d E / P) workers anywhere."""
    units = settings.units
    count = min(task.most, workers_for(units, task.rate, task.need))
    least, _ = cost_curve(_sites(tables, t), np.full(count + 1, tables.remote[t, 0]), count)
    curve = np.full(units + 1, np.inf)
    for d in range(units + 1):
        g = workers_for(d, task.rate, task.need)
        if g <= count:
            curve[d] = least[g]
    return curve


@kernel
def trace(last: int, task: TrainingTask, settings: Settings, tables: Tables) -> Placement:
    """The cheapest workers that train everything by slot `last`."""
    sites = tables.worker_usd.shape[1]
    slots, servers = np.zeros(last + 1, np.int64), np.zeros(last + 1, np.int64)
    workers = np.zeros((last + 1, sites), np.int64)
    count, n = 0, settings.units
    for t in range(last, -1, -1):
        d = tables.choice[t, n]
        if d > 0:
            p, here = tables.site[t, d], _sites(tables, t)
            slots[count], servers[count] = t, p
            if settings.per_worker > 0:
                deploy(here, tables.remote[t, d], p, d, workers[count])
            else:
                deploy_chunks(here, task, tables.remote[t, 0], p, d, workers[count])
            count += 1
            n -= d
    return Placement(slots[:count][::-1].copy(), servers[:count][::-1].copy(), workers[:count][::-1].copy())


@kernel
def _feasible(placed: Placement, task: TrainingTask, market: Market) -> tuple[float, Assignment]:
    """USD for moving chunks (inf: the bandwidth does not suffice), and the assignment."""
    used = len(placed.slots)
    chunk_usd, space = np.zeros(used), np.zeros(used, np.int64)
    for s in range(used):
        away = placed.workers[s].sum() - placed.workers[s, placed.servers[s]]
        chunk_usd[s] = task.chunk_bytes * market.byte_usd[placed.slots[s]]
        space[s] = (market.room[placed.slots[s]] - task.traffic_bytes * away) // task.chunk_bytes
    found = assign(capacity(placed.workers, task.rate, task.need), task.data, chunk_usd, space)
    return (float((found.moved * chunk_usd).sum()) if found.possible else np.inf), found


@kernel
def _paid_ahead(placed: Placement, task: TrainingTask, market: Market, settings: Settings) -> float:
    """USD that the placed workers paid in advance for moves."""
    paid, each = 0.0, task.rate / task.need
    for s in range(len(placed.slots)):
        chunks = 0.0
        for r in range(len(settings.share)):
            chunks += settings.share[r] * placed.workers[s, r]
        chunk_usd = task.chunk_bytes * market.byte_usd[placed.slots[s]] + settings.shadow
        paid += each * chunk_usd * chunks
    return paid


@kernel
def plans(
    lasts: Ints, task: TrainingTask, market: Market, settings: Settings, tables: Tables
) -> list[tuple[Placement, Ints, Ints]]:
    """For each completion slot `trace`, the rows (source, destination, chunks) of `moves` and where each slot's begin.

    All at once, because a named tuple that is passed from Python costs 1.6 us.
    """
    found = []
    for last in lasts:
        placed = trace(last, task, settings, tables)
        _, assigned = _feasible(placed, task, market)
        rows, begin = moves(capacity(placed.workers, task.rate, task.need), task.data, assigned)
        found.append((placed, rows.copy(), begin))
    return found
