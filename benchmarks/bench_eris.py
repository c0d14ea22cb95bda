"""Eris: milliseconds per bid, welfare as a share of the certified bound on held-out seeds, seconds for the bound."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from tradewind.maths.auction_oracle import Market, Task, menu
from tradewind.optimum.eris import pooled_bound
from tradewind.policies import find
from tradewind.studies.simulate import simulate
from tradewind.workloads import generate

TARGETS = {
    "testbed": (10, 0.83, 0.95),
    "simulator": (2, 0.995, 0.995),
    "contended": (3, 0.85, 0.95),
    "crowded": (2, 0.80, 0.93),
}
"""Size -> seeds (from 1), targets of eris and eris-preemptive."""


def _bid(sites: int, chunks: int, per_worker: int, seed: int) -> tuple[Task, Market, Any]:
    """A bid in a network that is used up to 30%, over 150 slots."""
    rng = np.random.default_rng(seed)
    capacity = np.tile(np.array([24_000, 4_000, 32_000]), (sites, 1))
    free = (capacity * (1 - rng.uniform(0, 0.3, (150, sites, 3))) // 1000 * 1000).astype(np.int64)
    busy = rng.uniform(0, 0.3, 150)
    task = Task(
        worker=np.array([2000, 1000, 4000]),
        server=np.array([2000, 0, 4000]),
        data=np.bincount(rng.integers(0, sites, chunks), minlength=sites),
        rate=per_worker * 20_000,
        need=20_000,
        chunk_bytes=2_000_000,
        traffic_bytes=97_400_000,
    )
    market = Market(
        usd=(30 ** (1 - free / capacity) - 1) / 1000,
        byte_usd=(30**busy - 1) / 1e9,
        free=free,
        room=(20e9 * (1 - busy)).astype(np.int64),
    )
    return task, market, 6000 / (1 + np.exp(np.arange(150) / 3))


def _ms(sites: int, chunks: int, per_worker: int) -> float:
    """Median milliseconds of a bid."""
    menu(*_bid(sites, chunks, per_worker, 0))
    spent = []
    for seed in range(1, 8):
        bid = _bid(sites, chunks, per_worker, seed)
        begin = time.process_time()
        menu(*bid)
        spent.append(1e3 * (time.process_time() - begin))
    return float(np.median(spent))


def rows() -> list[dict[str, Any]]:
    """All figures against their targets."""
    found: list[dict[str, Any]] = [
        {"name": name, "measured": _ms(*shape), "unit": "ms", "target": target, "better": "lower"}
        for name, shape, target in (
            ("bid, 50 sites, 150 chunks", (50, 150, 4), 5.0),
            ("bid, 500 sites, 2000 chunks", (500, 2000, 10), 150.0),
        )
    ]
    for size, (seeds, ours, free) in TARGETS.items():
        scenarios = [generate("eris", {"size": size}, seed) for seed in range(1, seeds + 1)]
        begin = time.process_time()
        limits = [pooled_bound(scenario).bound for scenario in scenarios]
        spent = (time.process_time() - begin) / seeds
        for name, target in (("eris", ours), ("eris-preemptive", free), ("fcfs", None)):
            shares = [simulate(s, find(name)).value / b for s, b in zip(scenarios, limits, strict=True)]
            found.append({
                "name": f"{size}: {name} / bound", "measured": float(np.mean(shares)), "spread": float(np.std(shares)),
                "unit": "", "target": target, "better": "higher",
            })  # fmt: skip
        found.append(
            {"name": f"{size}: bound", "measured": spent, "unit": "s", "target": 300.0, "better": "lower"}
        )
    return found
