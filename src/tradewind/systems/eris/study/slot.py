"""Algorithms 2 and 3 of Eris against the optimum of their problems (7) and (8): one bidder, random states of the network."""

from __future__ import annotations

import numpy as np

from tradewind.lab.study import Effort, Row, spread
from tradewind.systems.eris.kernels.milp import Bidder, solve
from tradewind.systems.eris.kernels.paper import printed
from tradewind.systems.eris.kernels.printed_slot import Reading
from tradewind.systems.eris.kernels.repair import carried_out
from tradewind.systems.eris.kernels.task import Market, TrainingTask

KINDS = ("equal", "dearer", "breaks a rule", "finds nothing")
ENOUGH = 1e5
"""USD, more than any schedule costs, so that the payoff reveals the cost."""
FORMULAS = Reading(False, False, False)


def state(seed: int, slots: int = 1) -> tuple[TrainingTask, Market]:
    """Two to four half-used sites at prices (6) with gamma 1000, up to 20 chunks, one to three chunks per worker."""
    rng = np.random.default_rng((8, seed))
    sites = int(rng.integers(2, 5))
    capacity = np.array([24, 4, 32]) * 1000
    free = (capacity * (1 - rng.uniform(0, 0.7, (slots, sites, 3))) // 1000 * 1000).astype(np.int64)
    busy = rng.uniform(0, 0.9, slots)
    data = rng.integers(0, 6, sites)
    data[0] += data.sum() == 0
    task = TrainingTask(
        worker=np.array([rng.integers(1, 4), 1, rng.integers(2, 7)]) * 1000,
        server=np.array([rng.integers(1, 4), 0, rng.integers(2, 7)]) * 1000,
        data=data,
        rate=int(rng.integers(1, 4)) * 1000,
        need=1000,
        chunk_bytes=2_000_000,
        traffic_bytes=int(rng.choice([25_900_000, 97_400_000, 283_000_000])),
    )
    market = Market(
        usd=(1000 ** (1 - free / capacity) - 1) / 1000,
        byte_usd=(1000**busy - 1) / 1e9,
        free=free,
        room=(20e9 * (1 - busy) * rng.uniform(0, 0.2)).astype(np.int64),
    )
    return task, market


def judged(task: TrainingTask, market: Market, reading: Reading = FORMULAS) -> tuple[str, float] | None:
    """Outcome of Algorithm 2 in a state, and its cost / least cost - 1; None if the slots cannot train everything.

    With one slot this is Algorithm 3.
    """
    worth = np.full(len(market.room), ENOUGH)
    best = solve(market, [Bidder(task=task, start=0, worth=worth)])
    if not best.optimal or best.value <= 0:
        return None
    found = printed(task, market, worth, reading)
    if found.payoff <= 0:
        return "finds nothing", float("nan")
    least = ENOUGH - best.value
    excess = found.usd / max(least, 1e-9) - 1
    if carried_out(task, market, found)[1]:
        return "breaks a rule", excess
    return ("equal" if excess < 1e-6 else "dearer"), excess


def tried(wanted: int, slots: int = 1, reading: Reading = FORMULAS) -> list[tuple[str, float]]:
    """Outcomes of so many random states in which everything can be trained."""
    found: list[tuple[str, float]] = []
    for seed in range(10 * wanted):
        if len(found) == wanted:
            break
        if (result := judged(*state(seed, slots), reading)) is not None:
            found.append(result)
    return found


def slot_rows(effort: Effort) -> list[Row]:
    """Share of the states by outcome of Algorithm 3; `excess` is the median of its cost / least cost - 1."""
    found = tried(effort.pick(40, 400))
    rows: list[Row] = [{"outcome": k, "share": float(kind == k)} for kind, _ in found for k in KINDS]
    over = {k: [x for kind, x in found if kind == k and np.isfinite(x)] for k in KINDS}
    return [
        {
            **r,
            "states": len(over[str(r["outcome"])]),
            "excess": float(np.median(over[str(r["outcome"])] or [0.0])),
        }
        for r in spread(rows, ("outcome",), "share")
    ]
