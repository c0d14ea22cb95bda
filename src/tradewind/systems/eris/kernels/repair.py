"""What remains of a schedule of Eris as printed once it must be feasible: repaired, or carried out as far as it goes."""

from __future__ import annotations

import numpy as np

from tradewind.model.arrays import Ints
from tradewind.systems.eris.kernels.data import assign, by_slot, moves
from tradewind.systems.eris.kernels.paper import PrintedSchedule
from tradewind.systems.eris.kernels.task import Market, Schedule, TrainingTask


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
