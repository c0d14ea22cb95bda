"""How the regret grows with the number of jobs and the horizon, and what Theorem 2 promises of it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from tradewind.lab.study import Effort, Instance, Judged, Row, Theorem, spreads
from tradewind.systems.dps.kernels.fixed import LIGHT, QUICK
from tradewind.systems.dps.study.rows import MARKET, bfp, seeds
from tradewind.systems.dps.study.runs import Knobs, arrays, best_fixed, drawn, sell, sell_fixed

PRINTED = "dps-paper, printed"
"""dps-paper with theta and delta as Theorem 2 needs them."""
CONSTANTS = {"dps-paper": Knobs(), PRINTED: Knobs(theta=-1.0, delta=-1.0), "dps": Knobs()}
FALLS = -0.05
"""Slope of the regret's share from which it falls: that of a share that stays as it is, is 0 up to chance."""
SIZES = (1_250, 2_500, 5_000, 10_000)


def growth_rows(effort: Effort) -> list[Row]:
    """Regret at the end and its share of bfp's profit: the horizon fixed and the jobs growing, and both growing."""
    rows: list[Row] = []
    search = effort.pick(QUICK, LIGHT)
    for seed in seeds(effort, effort.pick(3, 5)):
        for size in effort.pick((SIZES[0], *SIZES[2:]), SIZES):
            for grows, slots in (("jobs", 10_000), ("slots", size)):
                market = drawn(MARKET, seed, size, slots)
                reference = sell_fixed(market, best_fixed(MARKET, seed, search, size, slots)).outcome.profit
                for name, knobs in CONSTANTS.items():
                    regret = reference - sell(market, name.partition(",")[0], seed, knobs).outcome.profit
                    what: dict[str, str | float] = {"grows": grows, "policy": name, "size": float(size)}
                    line = f"{name}, {grows} grow"
                    rows.append({**what, "line": line, "share": regret / reference, "regret": regret})
    return spreads(rows, ("grows", "size", "policy", "line"), "share", "regret")


def slope(rows: Sequence[Row], policy: str, grows: str, column: str = "share") -> float:
    """Slope of log column over log size by least squares; -inf where that of the largest size is not positive."""
    points = sorted(
        (float(r["size"]), float(r[column])) for r in rows if r["policy"] == policy and r["grows"] == grows
    )
    if points[-1][1] <= 0:
        return -math.inf
    kept = np.log([p for p in points if p[1] > 0])
    return float(np.polyfit(kept[:, 0], kept[:, 1], 1)[0]) if len(kept) > 1 else math.inf


def sublinear(grows: str) -> Callable[[Sequence[Row], str], Judged]:
    """Predicate: the regret grows more slowly than what there is to earn, so its share falls, beyond chance in all."""

    def holds(rows: Sequence[Row], policy: str) -> Judged:
        mine = [r for r in rows if (r["policy"], r["grows"]) == (policy, grows)]
        small, large = (end(mine, key=lambda r: float(r["size"])) for end in (min, max))
        clear = float(large["high"]) < float(small["low"])
        ends = f"{float(small['share']):.0%} to {float(large['share']):.0%} of bfp's profit"
        found = slope(rows, policy, grows)
        if found == -math.inf:
            return Judged(clear, f"no regret at the largest size; {ends}")
        raw = slope(rows, policy, grows, "regret")
        return Judged(
            found < FALLS and clear,
            f"regret ~ {grows}^{raw:.2f}, its share of bfp's profit ~ {grows}^{found:.2f}; {ends}",
        )

    return holds


def regret_bound(effort: Effort) -> list[Instance]:
    """(K + M)((N log N)^(1/2) + (T C_max log N)^(2/3)) beside the regret of dps-paper, and the profit of bfp."""
    found = []
    for seed in seeds(effort, effort.pick(1, 5)):
        market = drawn(MARKET, seed)
        _, cluster = arrays(market)
        items = np.concatenate([cluster.idle_k.sum(axis=1), cluster.idle_m.sum(axis=1)])
        n = len(market.k)
        size = math.sqrt(n * math.log(n)) + (market.slots * float(items.max()) * math.log(n)) ** (2 / 3)
        most = bfp(effort, seed).outcome.profit
        for name, knobs in CONSTANTS.items():
            if name != "dps":
                regret = most - sell(market, "dps-paper", seed, knobs).outcome.profit
                limit = len(items) * size
                note = f"bfp earns {most:,.0f}, so the constant is {limit / most:,.0f} times all there is to lose"
                found.append(Instance(f"{MARKET}, seed {seed}, {name}", limit, regret, regret <= limit, note))
    return found


THEOREM_2 = Theorem(
    name="Theorem 2",
    words="The regret against the best fixed prices is O((K + M)((N log N)^(1/2) + (T C_max log N)^(2/3))); with factor 1.",
    instances=regret_bound,
)
