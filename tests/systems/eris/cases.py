"""Random small bidders and markets for the tests of Eris's oracle."""

from __future__ import annotations

import numpy as np

from tradewind.model.arrays import Floats
from tradewind.systems.eris.kernels.task import Market, Schedule, TrainingTask

FRACTIONS = (1.9, 0.5, 1.5, 2.5, 0.75)


def small(seed: int, *, fractional: bool = False) -> tuple[TrainingTask, Market, Floats]:
    """Up to 4 sites, 5 slots and 24 chunks; bandwidth from plenty to less than a chunk."""
    rng = np.random.default_rng(seed)
    sites, slots = int(rng.integers(1, 5)), int(rng.integers(2, 6))
    top = [rng.integers(2, 13, sites), rng.integers(0, 5, sites), rng.integers(4, 25, sites)]
    capacity = np.array(top).T * 1000
    free = (capacity * (1 - rng.uniform(0, 1, (slots, sites, 3))) // 1000 * 1000).astype(np.int64)
    usd = (1000 ** (1 - free / np.maximum(capacity, 1)) - 1) / 1000 * rng.choice([0.1, 1.0])
    budget, busy = int(rng.integers(1, 40)) * 50_000_000, rng.uniform(0, 1, slots)
    byte_usd = (1000**busy - 1) / 1e9 * rng.choice([1, 10, 100])
    epochs, whole = int(rng.choice([20, 30])), int(rng.integers(1, 6))
    per_worker = float(rng.choice(FRACTIONS)) if fractional else float(whole)
    data = rng.integers(0, 7, sites)
    data[0] += data.sum() == 0
    worker = [rng.integers(1, 4), rng.integers(0, 2), rng.integers(2, 7)]
    task = TrainingTask(
        worker=np.array(worker) * 1000,
        server=np.array([rng.integers(1, 4), 0, rng.integers(2, 7)]) * 1000,
        data=data,
        rate=round(epochs * 1000 * per_worker),
        need=epochs * 1000,
        chunk_bytes=2_000_000,
        traffic_bytes=int(rng.choice([0, 25_900_000, 97_400_000, 283_000_000])),
    )
    market = Market(usd=usd, byte_usd=byte_usd, free=free, room=(budget * (1 - busy)).astype(np.int64))
    return task, market, 3000 * rng.uniform(1, 2) / (1 + np.exp(np.arange(slots) / 3))


def faults(task: TrainingTask, market: Market, found: Schedule) -> list[str]:
    """Faults of a schedule, recomputed from the model's rules alone."""
    wrong, usd, left = [], 0.0, task.data.copy()
    for s, t in enumerate(found.slots):
        workers, server = found.workers[s], found.servers[s]
        moved, trained = 0, np.zeros(len(task.data), dtype=np.int64)
        for source, target, chunks in found.flows[s]:
            left[source] -= chunks
            trained[target] += chunks
            moved += chunks if source != target else 0
        sent = moved * task.chunk_bytes + (workers.sum() - workers[server]) * task.traffic_bytes
        used = np.outer(workers, task.worker)
        used[server] += task.server
        if (task.rate * workers < task.need * trained).any():
            wrong.append(f"slot {t}: too few workers")
        if (used > market.free[t]).any() or sent > market.room[t]:
            wrong.append(f"slot {t}: too much is used")
        usd += float((used * market.usd[t]).sum()) + float(sent * market.byte_usd[t])
    if left.any():
        wrong.append(f"data is not trained once: {left}")
    if abs(usd - found.usd) > 1e-6 * max(1.0, usd):
        wrong.append(f"costs {usd}, reported {found.usd}")
    return wrong
