"""Eris's search for one bid in plain numpy, as a reference for the compiled kernels: it finds the same payments."""

from __future__ import annotations

import numpy as np

from tradewind.model.arrays import Floats
from tradewind.systems.eris.kernels.task import Market, TrainingTask


def slot_curve(task: TrainingTask, market: Market, t: int, limit: int) -> Floats:
    """Cost (limit + 1,) in USD of 0..limit workers in slot t: for every site of the server the cheapest workers, sorted."""
    free, whole = market.free[t], task.chunk_bytes * int(task.data.sum())
    room = int(market.room[t])
    curve = np.full(limit + 1, np.inf)
    curve[0] = 0.0
    asked = task.worker > 0
    useful = -((task.data + room // task.chunk_bytes) * -task.need // task.rate)
    most = np.minimum((free[:, asked] // task.worker[asked]).min(axis=1), useful)
    beside = np.minimum(((free - task.server)[:, asked] // task.worker[asked]).min(axis=1), useful)
    worker_usd, server_usd = market.usd[t] @ task.worker, market.usd[t] @ task.server
    away_usd = worker_usd + task.traffic_bytes * market.byte_usd[t]
    kept = np.minimum(np.arange(limit + 1) * task.per_worker * task.chunk_bytes, whole)
    away = (room - kept) // max(task.traffic_bytes, 1)
    order = np.argsort(worker_usd, kind="stable")
    n = np.flatnonzero(kept <= room)[1:]
    for p in np.flatnonzero((free >= task.server).all(axis=1)):
        others, own = order[order != p], max(0, beside[p])
        remote = np.repeat(away_usd[others], most[others])
        least, highest = np.maximum(0, n - own), np.minimum(np.minimum(n, len(remote)), away[n])
        k = np.clip(np.searchsorted(remote, worker_usd[p]), least, np.maximum(least, highest))
        total = (
            np.append(0.0, np.cumsum(remote))[np.minimum(k, len(remote))]
            + (n - k) * worker_usd[p]
            + server_usd[p]
        )
        curve[n] = np.minimum(curve[n], np.where(least <= highest, total, np.inf))
    return curve


def plain_payments(task: TrainingTask, market: Market, worth: Floats, flat_usd: float) -> dict[int, float]:
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
