"""Eris's search for one bid in straightforward numpy, to measure the kernels against: the same prices by plain means."""

from __future__ import annotations

import numpy as np

from tradewind.maths.auction_oracle import Market, Task
from tradewind.maths.auction_slot import Floats


def slot_curve(task: Task, market: Market, t: int, limit: int) -> Floats:
    """Cost (limit + 1,) in USD of 0..limit workers in slot t: for every site of the server the cheapest workers, sorted."""
    free, kept = market.free[t], task.chunk_bytes * int(task.data.sum())
    room = int(market.room[t])
    curve = np.full(limit + 1, np.inf)
    curve[0] = 0.0
    if room < kept:
        return curve
    asked = task.worker > 0
    useful = -((task.data + room // task.chunk_bytes) * -task.need // task.rate)
    most = np.minimum((free[:, asked] // task.worker[asked]).min(axis=1), useful)
    beside = np.minimum(((free - task.server)[:, asked] // task.worker[asked]).min(axis=1), useful)
    worker_usd, server_usd = market.usd[t] @ task.worker, market.usd[t] @ task.server
    away_usd = worker_usd + task.traffic_bytes * market.byte_usd[t]
    away = (room - kept) // max(task.traffic_bytes, 1)
    order = np.argsort(worker_usd, kind="stable")
    for p in np.flatnonzero((free >= task.server).all(axis=1)):
        others = order[order != p]
        remote = np.repeat(away_usd[others], most[others])[:away]
        units = np.sort(np.concatenate((np.full(max(0, beside[p]), worker_usd[p]), remote)))[:limit]
        total = server_usd[p] + np.cumsum(units)
        curve[1 : len(total) + 1] = np.minimum(curve[1 : len(total) + 1], total)
    return curve


def plain_payments(task: Task, market: Market, worth: Floats, flat_usd: float) -> dict[int, float]:
    """Completion slot -> payment in USD of every offer of `flat_menu`, for a whole number of chunks per worker."""
    units, found, best = task.units, {}, 0.0
    value = np.full(units + 1, np.inf)
    value[0] = 0.0
    for t in range(len(worth)):
        if worth[t] <= best:
            break
        curve = slot_curve(task, market, t, units)
        after = np.array([(value[n::-1] + curve[: n + 1]).min() for n in range(units + 1)])
        if after[units] < value[units]:
            found[t] = float(after[units]) + flat_usd
            best = max(best, worth[t] - found[t])
        value = after
    return {t: usd for t, usd in found.items() if usd < worth[t]}
