"""Eris as printed: Algorithms 2 and 3 with their errors, and what remains of a schedule once it must be feasible.

Known errors, all kept on purpose (`eris` corrects them):

| where            | what                                                                                          |
|------------------|-----------------------------------------------------------------------------------------------|
| Algorithm 2      | the state is the number of chunks left, not their location: every slot finds all data again   |
| (10), 2nd term   | the bandwidth that earlier pairs took is not subtracted                                       |
| (10), 3rd term   | a destination that was listed twice is subtracted twice                                       |
| line 2           | half of the ordered pairs are listed (here: from the site with the smaller number)            |
| line 14          | data that leaves a site is not subtracted from its workers; workers are rounded up in total only |
| line 16          | the server goes where most workers are, whether it fits there or not, whatever it costs       |

Symbols as in slot.py and search.py; all sizes in chunks, bytes and milli-units.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from tradewind.model.arrays import Floats, Ints
from tradewind.solvers.kernel import kernel
from tradewind.systems.eris.kernels.chunks import workers_for
from tradewind.systems.eris.kernels.data import assign, by_slot, moves
from tradewind.systems.eris.kernels.minplus import minplus
from tradewind.systems.eris.kernels.slot import site_terms
from tradewind.systems.eris.kernels.task import Market, Schedule, TrainingTask


@dataclass(frozen=True, slots=True, kw_only=True)
class PrintedSchedule:
    """Result of Algorithm 2: slots used (S,), server sites (S,), workers (S, R), moves (S, R, R) in chunks.

    usd: its cost at the posted prices; payoff: mu of (5), 0 if nothing pays; possible: whether any cost was finite
    """

    slots: Ints
    servers: Ints
    workers: Ints
    moves: Ints
    usd: float
    payoff: float
    possible: bool


@kernel
def _pairs(worker_usd: Floats, chunk_usd: float, rate: int, need: int) -> tuple[Ints, Ints]:
    """Line 2: pairs (source, destination) with Omega < 0 by rising Omega (9); the paper's text has the opposite sign."""
    sites = len(worker_usd)
    count = sites * (sites - 1) // 2
    metric, a, b = np.zeros(count), np.zeros(count, np.int64), np.zeros(count, np.int64)
    at = 0
    for r in range(sites):
        for q in range(r + 1, sites):
            omega = chunk_usd - need / rate * (worker_usd[r] - worker_usd[q])
            if omega < 0:
                metric[at], a[at], b[at] = omega, r, q
                at += 1
    order = np.argsort(metric[:at], kind="mergesort")
    return a[order], b[order]


class _Slot(NamedTuple):
    """A slot as Algorithm 3 sees it: `SlotSites` without `with_server`, and

    a, b       pairs (a[i], b[i]) of line 2
    chunk_usd  USD to move a chunk
    room       bytes
    """

    worker_usd: Floats
    server_usd: Floats
    most: Ints
    order: Ints
    a: Ints
    b: Ints
    chunk_usd: float
    traffic_usd: float
    room: int


class _Deployment(NamedTuple):
    """What Algorithm 3 fills in: workers (R,), moves (R, R), chunks that enter and leave each site (R,)."""

    workers: Ints
    moves: Ints
    into: Ints
    out: Ints


@kernel
def _slot(task: TrainingTask, market: Market, t: int) -> _Slot:
    """Slot t of the market."""
    worker_usd, server_usd, most, _ = site_terms(
        market.usd[t], market.free[t], task.worker, task.server, task.most
    )
    chunk_usd = task.chunk_bytes * market.byte_usd[t]
    a, b = _pairs(worker_usd, chunk_usd, task.rate, task.need)
    order = np.argsort(worker_usd, kind="mergesort")
    traffic_usd = task.traffic_bytes * market.byte_usd[t]
    return _Slot(worker_usd, server_usd, most, order, a, b, chunk_usd, traffic_usd, market.room[t])


@kernel
def _moves(slot: _Slot, task: TrainingTask, chunks: int, plan: _Deployment) -> int:
    """Lines 3-11: fills moves, into and out by (10); returns the chunks moved in all."""
    _, moves, into, out = plan
    data = task.data
    moves[:, :], into[:], out[:] = 0, 0, 0
    fits = slot.most * task.rate // task.need
    room = max(0, slot.room) // task.chunk_bytes
    excluded = np.zeros(len(data), np.bool_)
    listed = np.zeros(len(data), np.int64)
    taken_off, total = 0, 0
    a, b = slot.a, slot.b
    for j in range(len(a)):
        r, q = a[j], b[j]
        if excluded[r] or excluded[q]:
            continue
        left = chunks - taken_off
        if left < 0:  # it only falls from here on
            break
        amount = min(min(data[r] - out[r], room), min(left, fits[q] - data[q] - into[q]))
        if amount < 0:
            excluded[q] = True
        else:
            moves[r, q] = amount
            into[q] += amount
            out[r] += amount
            total += amount
            taken_off += listed[q] * amount
        listed[q] += 1
        taken_off += data[q] + into[q]
    return total


@kernel
def _deploy(slot: _Slot, task: TrainingTask, chunks: int, plan: _Deployment) -> tuple[float, int]:
    """Algorithm 3: cost in USD (inf: declared infeasible) and the server's site for `chunks` in a slot."""
    moved, workers = _moves(slot, task, chunks, plan), plan.workers
    total, placed = workers_for(chunks, task.rate, task.need), 0
    for r in slot.order:
        useful = workers_for(task.data[r] + plan.into[r], task.rate, task.need)
        workers[r] = min(useful, min(slot.most[r], total - placed))
        placed += workers[r]
    server = int(np.argmax(workers))
    away = placed - workers[server]
    if placed < total or slot.room - task.chunk_bytes * moved - task.traffic_bytes * away < 0:
        return np.inf, server
    cost = moved * slot.chunk_usd + away * slot.traffic_usd + slot.server_usd[server]
    for r in range(len(workers)):
        cost += workers[r] * slot.worker_usd[r]
    return cost, server


@kernel
def _curve(slot: _Slot, task: TrainingTask, plan: _Deployment) -> Floats:
    """Cost (D + 1,) of 0..D chunks in a slot."""
    units = int(task.data.sum())
    curve = np.full(units + 1, np.inf)
    curve[0] = 0.0  # no workers, no server: (2c) as printed wants one in every slot
    reach = min(int(slot.most.sum()), task.most)
    for chunks in range(1, units + 1):
        if workers_for(chunks, task.rate, task.need) > reach:
            break
        curve[chunks], _ = _deploy(slot, task, chunks, plan)
    return curve


@kernel
def _search(task: TrainingTask, market: Market, worth: Floats) -> tuple[int, float, float, Ints, bool]:
    """Algorithm 2: the completion slot that pays most (-1: none), its cost, its payoff, chunks per slot (T,), and whether
    any cost was finite.

    Completion times whose utility is not above the best payoff so far cannot pay more and are left out.
    """
    horizon, sites, _ = market.usd.shape
    units = int(task.data.sum())
    value, after = np.full(units + 1, np.inf), np.full(units + 1, np.inf)
    value[0] = 0.0
    choice = np.zeros((horizon, units + 1), np.int64)
    plan = _Deployment(
        np.zeros(sites, np.int64),
        np.zeros((sites, sites), np.int64),
        np.zeros(sites, np.int64),
        np.zeros(sites, np.int64),
    )
    best, payoff, cost, possible = -1, 0.0, np.inf, False
    for t in range(horizon):
        if worth[t] <= payoff:
            break
        minplus(value, _curve(_slot(task, market, t), task, plan), after, choice[t])
        value[:] = after
        possible = possible or value[units] < np.inf
        if worth[t] - value[units] > payoff:
            best, payoff, cost = t, worth[t] - value[units], value[units]
    loads, n = np.zeros(horizon, np.int64), units
    for t in range(best, -1, -1):
        loads[t] = choice[t, n]
        n -= loads[t]
    return best, cost, payoff, loads, possible


def printed(task: TrainingTask, market: Market, worth: Floats) -> PrintedSchedule:
    """Algorithm 2 with Algorithm 3 in it: the schedule with the largest payoff (5) at the posted prices."""
    best, usd, payoff, loads, possible = _search(task, market, worth)
    slots = np.flatnonzero(loads) if best >= 0 else np.zeros(0, np.int64)
    sites = len(task.data)
    servers = np.zeros(len(slots), np.int64)
    workers, moves = np.zeros((len(slots), sites), np.int64), np.zeros((len(slots), sites, sites), np.int64)
    into, out = np.zeros(sites, np.int64), np.zeros(sites, np.int64)
    for s, t in enumerate(slots.tolist()):
        plan = _Deployment(workers[s], moves[s], into, out)
        _, servers[s] = _deploy(_slot(task, market, t), task, loads[t], plan)
    return PrintedSchedule(
        slots=slots,
        servers=servers,
        workers=workers,
        moves=moves,
        usd=float(usd),
        payoff=float(payoff),
        possible=bool(possible),
    )


def _fits_beside(task: TrainingTask, free: Ints, workers: Ints) -> Ints:
    """Sites where the server fits beside these workers (R,); free (R, K)."""
    left = free - workers[:, None] * task.worker - task.server
    return np.flatnonzero((left >= 0).all(axis=1))


def repair(task: TrainingTask, market: Market, found: PrintedSchedule) -> Schedule | None:
    """The printed workers with a server that fits and every chunk trained once, moved if necessary; None: impossible.

    usd is its cost, which may be more than the printed schedule claimed.
    """
    if not len(found.slots):
        return None
    servers, usd = found.servers.copy(), 0.0
    space = np.zeros(len(servers), np.int64)
    for s, t in enumerate(found.slots):
        where = _fits_beside(task, market.free[t], found.workers[s])
        if not len(where):
            return None
        if servers[s] not in where:  # the cheapest site: its price and the traffic that it causes
            away = found.workers[s].sum() - found.workers[s, where]
            price = market.usd[t, where] @ task.server + away * task.traffic_bytes * market.byte_usd[t]
            servers[s] = where[int(np.argmin(price))]
        remote = int(found.workers[s].sum() - found.workers[s, servers[s]])
        left = int(market.room[t]) - remote * task.traffic_bytes
        if left < 0:
            return None
        space[s] = left // task.chunk_bytes
        usd += float((found.workers[s] * (market.usd[t] @ task.worker)).sum())
        usd += float(market.usd[t, servers[s]] @ task.server)
        usd += remote * task.traffic_bytes * float(market.byte_usd[t])
    cap = found.workers * task.rate // task.need
    chunk_usd = task.chunk_bytes * market.byte_usd[found.slots]
    assigned = assign(cap, task.data, chunk_usd, space)
    if not assigned.possible:
        return None
    return Schedule(
        slots=tuple(found.slots.tolist()),
        servers=tuple(servers.tolist()),
        workers=found.workers,
        flows=by_slot(*moves(cap, task.data, assigned)),
        usd=usd + float((assigned.moved * chunk_usd).sum()),
    )


def carried_out(task: TrainingTask, market: Market, found: PrintedSchedule) -> tuple[Schedule, int]:
    """The feasible part of the printed schedule, and the number of chunks that it does not train.

    Slots in which the server does not fit are skipped; data is moved as printed while it lasts.
    """
    left = task.data.copy()
    kept, rows = [], []
    for s, t in enumerate(found.slots):
        if found.servers[s] not in _fits_beside(task, market.free[t], found.workers[s]):
            continue
        cap = found.workers[s] * task.rate // task.need
        row = []
        for a, b in np.argwhere(found.moves[s]):
            amount = int(min(found.moves[s, a, b], left[a], cap[b]))
            if amount > 0:
                row.append((int(a), int(b), amount))
                left[a] -= amount
                cap[b] -= amount
        here = np.minimum(cap, left)
        left -= here
        row += [(int(r), int(r), int(here[r])) for r in np.flatnonzero(here)]
        kept.append(s)
        rows.append(row)
    schedule = Schedule(
        slots=tuple(found.slots[kept].tolist()),
        servers=tuple(found.servers[kept].tolist()),
        workers=found.workers[kept],
        flows=rows,
        usd=found.usd,
    )
    return schedule, int(left.sum())
