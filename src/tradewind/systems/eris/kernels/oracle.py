"""The best schedule of one bidder at posted prices, for every completion time (Eris, problem (7), corrected).

A min-plus pass over slots gives the cheapest workers that could train all data until each slot (a lower bound: where
the data lies is left out). Each completion time is then made real: workers are placed, every chunk gets its site and
slot, and only what that costs is offered. The bound is the certificate: no schedule of problem (7) is cheaper.

The paper's dynamic program counts chunks in total while its slots count them per site, so data is used twice; here
chunks are assigned once, after the workers.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from tradewind.model.arrays import Floats, Ints
from tradewind.solvers.kernel import kernel
from tradewind.systems.eris.kernels.chunks import chunk_curve, deploy_chunks, workers_for
from tradewind.systems.eris.kernels.data import assign, by_slot, capacity, moves
from tradewind.systems.eris.kernels.minplus import minplus
from tradewind.systems.eris.kernels.slot import cost_curve, deploy, remote_limit, remote_limits, site_terms
from tradewind.systems.eris.kernels.task import Market, Menu, Schedule, Task

_Tables = tuple[Ints, Ints, Floats, Ints, Ints, Ints, Floats, Ints]
EXACT = 1e-12
"""A later completion time is offered only if it is cheaper by more than this share."""
GAP = 1e-4
"""Completion times whose real cost exceeds the bound by more than this share are searched again."""
ROUNDS, SMALL = 4, 24
"""Further passes for tasks of at most SMALL units; larger ones get one."""


@kernel
def least_cost(
    usd: Floats, free: Ints, room: Ints, worker: Ints, server: Ints, traffic: int, rate: int, need: int, widest: int,
    chunks: int,
) -> float:  # fmt: skip
    """No schedule of any completion time costs less: the cheapest workers of every slot, as many as bandwidth allows."""
    horizon, sites, kinds = usd.shape
    price, room_for, lowest = np.full(horizon, np.inf), np.zeros(horizon, np.int64), np.inf
    for t in range(horizon):
        widest_local = 0
        for r in range(sites):
            each, its, fits, count = 0.0, 0.0, True, widest
            for k in range(kinds):
                each += worker[k] * usd[t, r, k]
                its += server[k] * usd[t, r, k]
                fits = fits and free[t, r, k] >= server[k]
                if worker[k] > 0:
                    count = min(count, max(0, free[t, r, k]) // worker[k])
            if count > 0:
                price[t] = min(price[t], each)
                widest_local = max(widest_local, count)
            if fits:
                lowest = min(lowest, its)
        room_for[t] = widest_local + remote_limit(room[t], traffic, widest)
    left, total = workers_for(chunks, rate, need), lowest
    for t in np.argsort(price):
        if left <= 0 or price[t] == np.inf:
            break
        take = min(left, room_for[t])
        total += take * price[t]
        left -= take
    return total if left <= 0 else np.inf


@kernel
def _trace(
    last: int, units: int, tables: _Tables, rate: int, need: int, per_worker: int
) -> tuple[Ints, Ints, Ints]:
    """Slots used (S,), the server's site (S,) and workers (S, R) of the cheapest way to train all until `last`."""
    choice, site, worker_usd, most, with_server, order, traffic_usd, remote = tables
    sites = worker_usd.shape[1]
    slots, servers = np.zeros(last + 1, np.int64), np.zeros(last + 1, np.int64)
    workers = np.zeros((last + 1, sites), np.int64)
    count, n = 0, units
    for t in range(last, -1, -1):
        d = choice[t, n]
        if d > 0:
            p = site[t, d]
            slots[count], servers[count] = t, p
            if per_worker > 0:
                deploy(
                    worker_usd[t],
                    most[t],
                    with_server[t],
                    order[t],
                    traffic_usd[t],
                    remote[t, d],
                    p,
                    d,
                    workers[count],
                )
            else:
                deploy_chunks(
                    worker_usd[t],
                    most[t],
                    with_server[t],
                    traffic_usd[t],
                    remote[t, 0],
                    p,
                    rate,
                    need,
                    d,
                    workers[count],
                )
            count += 1
            n -= d
    return slots[:count][::-1].copy(), servers[:count][::-1].copy(), workers[:count][::-1].copy()


@kernel
def _realise(
    slots: Ints, servers: Ints, workers: Ints, byte_usd: Floats, room: Ints, data: Ints, rate: int, need: int,
    chunk_bytes: int, traffic: int, local: Ints, idle: Ints,
) -> float:  # fmt: skip
    """USD for moving chunks (inf: the bandwidth does not suffice); fills local and idle (S, R)."""
    used = len(slots)
    cap = capacity(workers, rate, need)
    chunk_usd, space, moved = np.zeros(used), np.zeros(used, np.int64), np.zeros(used, np.int64)
    for s in range(used):
        away = workers[s].sum() - workers[s, servers[s]]
        chunk_usd[s] = chunk_bytes * byte_usd[slots[s]]
        space[s] = (room[slots[s]] - traffic * away) // chunk_bytes
    if not assign(cap, data, chunk_usd, space, local, idle, moved):
        return np.inf
    return float((moved * chunk_usd).sum())


@kernel
def _plan(
    last: int, units: int, tables: _Tables, byte_usd: Floats, room: Ints, data: Ints, rate: int, need: int,
    per_worker: int, chunk_bytes: int, traffic: int,
) -> tuple[Ints, Ints, Ints, Ints, Ints]:  # fmt: skip
    """As `_trace`, and what is trained where: rows (source, destination, chunks) and where each slot's begin (S + 1,)."""
    slots, servers, workers = _trace(last, units, tables, rate, need, per_worker)
    local, idle = np.zeros_like(workers), np.zeros_like(workers)
    _realise(slots, servers, workers, byte_usd, room, data, rate, need, chunk_bytes, traffic, local, idle)
    rows, begin = moves(capacity(workers, rate, need), data, local, idle)
    return slots, servers, workers, rows, begin


@kernel
def _ahead(
    slots: Ints, workers: Ints, byte_usd: Floats, share: Floats, chunk_bytes: int, each: float, shadow: float
) -> float:
    """USD that workers (S, R) who train `each` chunks paid beforehand for moves."""
    paid = 0.0
    for s in range(len(slots)):
        chunks = 0.0
        for r in range(len(share)):
            chunks += share[r] * workers[s, r]
        paid += each * (chunk_bytes * byte_usd[slots[s]] + shadow) * chunks
    return paid


@kernel
def _search(
    usd: Floats, byte_usd: Floats, free: Ints, room: Ints, worker: Ints, server: Ints, data: Ints, rate: int, need: int,
    chunk_bytes: int, traffic: int, per_worker: int, units: int, widest: int, worth: Floats, least_usd: float,
    reserve: int, share: Floats, shadow: float, flat_usd: float,
) -> tuple[Floats, Floats, _Tables]:  # fmt: skip
    """All completion times in one pass, until no later one can pay.

    worth (T,): utility of completing in a slot; least_usd: no completion costs less. reserve: bytes of bandwidth kept for
    the data of every remote worker (then workers without a full load are left out);
    share (R,): of its chunks a worker at a site pays the move beforehand, and `shadow` USD on top of each (all 0 in the
    pass that gives the bound); what was paid beforehand is given back once the moves are known.
    flat_usd: what carrying the data costs, however it is carried (-1: what the moves cost). Then every slot that is used
    keeps room for all that is trained in it, so that each way to place the workers can be made real, and `real` is the
    exact minimum.
    """
    horizon, sites, _ = usd.shape
    # Rows of slots that the search does not reach stay empty: most bids are decided by a few.
    value = np.empty((horizon + 1, units + 1))
    lower, lower_next = np.full(units + 1, np.inf), np.full(units + 1, np.inf)
    value[0], value[0, 0], lower[0] = np.inf, 0.0, 0.0
    choice, site = np.empty((horizon, units + 1), np.int64), np.empty((horizon, units + 1), np.int64)
    worker_usd = np.empty((horizon, sites))
    most, with_server = np.empty((horizon, sites), np.int64), np.empty((horizon, sites), np.int64)
    order, traffic_usd = np.empty((horizon, sites), np.int64), np.empty(horizon)
    remote = np.empty((horizon, units + 1), np.int64)
    tables = (choice, site, worker_usd, most, with_server, order, traffic_usd, remote)
    real, bound = np.full(horizon, np.inf), np.full(horizon, np.inf)
    dull, by_data = np.zeros(units + 1, np.int64), np.argsort(-data, kind="mergesort")
    limit = min(units, widest) if per_worker > 0 else units
    whole = chunk_bytes * data.sum()
    best, cheapest = max(0.0, least_usd), np.inf
    for t in range(horizon):
        if worth[t] <= best:
            break
        terms = site_terms(usd[t], free[t], worker, server, widest)
        ahead = share * (rate / need * (chunk_bytes * byte_usd[t] + shadow))
        worker_usd[t], most[t], with_server[t] = terms[0] + ahead, terms[2], terms[3]
        brought = max(0, room[t]) // chunk_bytes
        for r in range(sites):  # more workers than there can be data for never help
            reach = data[r] + brought
            useful = reach * need // rate if reserve > 0 else workers_for(reach, rate, need)
            most[t, r], with_server[t, r] = min(most[t, r], useful), min(with_server[t, r], useful)
        order[t] = by_data[np.argsort(worker_usd[t][by_data], kind="mergesort")]
        traffic_usd[t] = traffic * byte_usd[t]
        if flat_usd >= 0 and per_worker > 0:
            remote[t] = remote_limits(room[t], traffic, per_worker * chunk_bytes, whole, units)
        elif flat_usd >= 0:  # all workers beside the server, unless bandwidth suffices for any split
            away = remote_limit(room[t] - whole, traffic, widest) if room[t] >= whole else 0
            remote[t] = away if away >= units * workers_for(1, rate, need) else 0
        else:
            remote[t] = remote_limit(room[t], traffic + reserve, widest)
        if per_worker > 0:
            curve, where = cost_curve(
                worker_usd[t], terms[1], most[t], with_server[t], order[t], traffic_usd[t], remote[t], limit
            )
            site[t], site[t, : limit + 1] = -1, where
            full = np.full(units + 1, np.inf)
            full[: limit + 1] = curve
            minplus(value[t], full, value[t + 1], choice[t])
            bound[t] = value[t + 1, units]
        else:
            curve, site[t] = chunk_curve(
                worker_usd[t],
                terms[1],
                most[t],
                with_server[t],
                traffic_usd[t],
                remote[t, 0],
                rate,
                need,
                units,
            )
            if flat_usd >= 0 and room[t] < whole:
                for d in range(1, units + 1):
                    if workers_for(d, rate, need) * rate // need * chunk_bytes > room[t]:
                        curve[d] = np.inf
            minplus(value[t], curve, value[t + 1], choice[t])
            # A valid bound: d chunks need at least ceil(d E / P) workers, wherever they are.
            count = min(widest, workers_for(units, rate, need))
            least, _ = cost_curve(
                worker_usd[t],
                terms[1],
                most[t],
                with_server[t],
                order[t],
                traffic_usd[t],
                np.full(count + 1, remote[t, 0]),
                count,
            )
            full = np.full(units + 1, np.inf)
            for d in range(units + 1):
                g = workers_for(d, rate, need)
                if g <= count:
                    full[d] = least[g]
            minplus(lower, full, lower_next, dull)
            lower[:] = lower_next
            bound[t] = lower[units]
        if value[t + 1, units] < value[t, units] * (1 - EXACT) or (
            value[t + 1, units] < np.inf and value[t, units] == np.inf
        ):
            if flat_usd >= 0:
                real[t] = value[t + 1, units] + flat_usd
                best = max(best, worth[t] - real[t])
                continue
            slots, servers, workers = _trace(t, units, tables, rate, need, per_worker)
            local, idle = np.zeros_like(workers), np.zeros_like(workers)
            extra = _realise(
                slots, servers, workers, byte_usd, room, data, rate, need, chunk_bytes, traffic, local, idle
            )
            paid = _ahead(slots, workers, byte_usd, share, chunk_bytes, rate / need, shadow)
            real[t] = value[t + 1, units] - paid + extra
            if real[t] < cheapest:
                cheapest = real[t]
                best = max(best, worth[t] - real[t])
    return real, bound, tables


def flat_menu(task: Task, market: Market, worth: Floats, flat_usd: float) -> Menu:
    """As `menu` where carrying the data costs flat_usd in all, however it is carried: every price is an exact minimum.

    So no price falls when slots, room or capacity are taken away, prices rise, or the task grows: a bidder who comes late
    or asks for more never pays less. With fractional P / E, workers leave their server's site only in slots whose
    bandwidth suffices for any split.
    """
    found = _pass(_bid(task, market, worth), 0, np.zeros(len(task.data)), 0.0, task.units, flat_usd)
    real = found[0]
    offers: list[Schedule] = []
    payoff = 0.0
    for t in np.flatnonzero(real < worth).tolist():
        offers.append(_schedule(task, market, found, t, float(real[t])))
        payoff = max(payoff, float(worth[t] - real[t]))
    return Menu(offers=tuple(offers), bound_usd=np.minimum.accumulate(real), payoff=payoff, bound=payoff)


def menu(task: Task, market: Market, worth: Floats) -> Menu:
    """Offers for every completion time that could pay, each realisable and cheaper than all before it.

    worth (T,): utility of completing in each slot of the market, non-increasing. It only leaves out completion times
    that are worth less than they cost: what is offered for one does not depend on it.
    """
    bid = _bid(task, market, worth)
    first = _pass(bid, 0, np.zeros(len(task.data)), 0.0, task.units)
    real, bound = first[0], first[1]
    # Further passes serve a completion time only where the first left a gap until there, and are guided by the earliest
    # completion alone, so that a price never depends on how far the reported worth made the search go.
    gap = np.isfinite(bound) & (real < np.inf) & (real > bound * (1 + GAP))
    lost = np.isfinite(bound) & (real == np.inf)
    lost[1:] &= bound[1:] < bound[:-1] * (1 - EXACT)
    lost, gap = np.logical_or.accumulate(lost), np.logical_or.accumulate(gap | lost)
    tried, cost, best = [first], real.copy(), np.zeros(len(worth), np.int64)
    for served, how in ((gap, False), (lost, True)):
        for found in _closer(bid, first, how) if served.any() else ():
            better = served & (found[0] < cost)
            cost[better], best[better] = found[0][better], len(tried)
            tried.append(found)
    offers: list[Schedule] = []
    cheapest, payoff = np.inf, 0.0
    for t in np.flatnonzero(cost < np.inf).tolist():
        usd = float(cost[t])
        if usd < cheapest * (1 - EXACT):
            cheapest = usd
            if worth[t] > usd:
                offers.append(_schedule(task, market, tried[best[t]], t, usd))
                payoff = max(payoff, float(worth[t]) - usd)
    top = float(np.max(worth - bound, initial=0.0))
    return Menu(offers=tuple(offers), bound_usd=bound, payoff=payoff, bound=top)


@dataclass(frozen=True, slots=True)
class _Bid:
    """What all passes for a bidder share; least_usd: no schedule costs less."""

    task: Task
    market: Market
    worth: Floats
    least_usd: float


_Pass = tuple[Floats, Floats, _Tables, int]


def _bid(task: Task, market: Market, worth: Floats) -> _Bid:
    least = least_cost(
        market.usd, market.free, market.room, task.worker, task.server, task.traffic_bytes, task.rate, task.need,
        task.most, int(task.data.sum()),
    )  # fmt: skip
    return _Bid(task, market, worth, least)


def _closer(bid: _Bid, first: _Pass, lost: bool) -> list[_Pass]:
    """Passes in which workers pay ahead for moves where more is trained than lies there (share of the excess).

    lost: some completion time could not be made real; then moves also bear a shadow price, and bandwidth is kept. More
    workers than the data needs in total are tried as well, up to what every site needs by itself, and no moves at all.
    """
    task, market = bid.task, bid.market
    start = int(np.argmax(np.isfinite(first[1])))
    whole = -(-task.rate // task.need)
    shadows, sizes = [(0, 0.0)], [task.units]
    if lost:
        keep = whole * task.chunk_bytes
        dear = float((market.usd[start] @ task.worker).max()) / whole + 1.0
        shadows += [(0, dear), (keep, 0.0), (keep, dear)]
    if task.per_worker and (lost or task.units <= SMALL):
        alone = int((-(-task.data // task.per_worker)).sum())
        sizes = sorted({task.units, min(task.units + 1, alone), (task.units + alone) // 2, alone})
    found = []
    for units in sizes:
        for reserve, shadow in shadows:
            share, at = np.where(task.data == 0, 1.0, 0.0), first
            for _ in range(ROUNDS if task.units <= SMALL else 1):
                start = int(np.argmax(np.isfinite(at[1])))
                _, _, workers = _trace(start, at[3], at[2], task.rate, task.need, task.per_worker)
                trained = (workers * task.rate // task.need).sum(axis=0)
                excess = (trained - task.data) / np.maximum(trained, 1)
                share = np.clip(share + np.where(trained > 0, excess, -0.5), 0.0, 1.0)
                at = _pass(bid, reserve, share, shadow, units)
                if not np.isfinite(at[1]).any():
                    break
                found.append(at)
    return [*found, _unmoved(bid)] if lost else found


def _unmoved(bid: _Bid) -> _Pass:
    """A pass in which a chunk is too large to be moved, so that a site never has more workers than its own data needs."""
    task = bid.task
    alone = -(-task.data // task.per_worker) if task.per_worker else task.data
    heavy = replace(task, chunk_bytes=int(bid.market.room.max()) + 1)
    return _pass(replace(bid, task=heavy), 0, np.zeros(len(task.data)), 0.0, int(alone.sum()))


def _pass(bid: _Bid, reserve: int, share: Floats, shadow: float, units: int, flat_usd: float = -1.0) -> _Pass:
    task, market = bid.task, bid.market
    real, bound, tables = _search(
        market.usd, market.byte_usd, market.free, market.room, task.worker, task.server, task.data, task.rate, task.need,
        task.chunk_bytes, task.traffic_bytes, task.per_worker, units, task.most, bid.worth, bid.least_usd, reserve,
        share, shadow, flat_usd,
    )  # fmt: skip
    return real, bound, tables, units


def _schedule(task: Task, market: Market, found: _Pass, last: int, usd: float) -> Schedule:
    slots, servers, workers, rows, begin = _plan(
        last, found[3], found[2], market.byte_usd, market.room, task.data, task.rate, task.need, task.per_worker,
        task.chunk_bytes, task.traffic_bytes,
    )  # fmt: skip
    return Schedule(
        slots=tuple(slots.tolist()),
        servers=tuple(servers.tolist()),
        workers=workers,
        flows=by_slot(rows, begin),
        usd=usd,
    )
