"""The rows of DPS's figures: Figures 2-7 of Zhang et al., Section V, and our own.

Learners were tuned on seeds from 100 on; the studies use seeds from 1 on.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import pairwise

import numpy as np

from tradewind.lab.study import Effort, Part, Row, spread
from tradewind.systems.dps.kernels.demand import accept_chance
from tradewind.systems.dps.kernels.fixed import LIGHT, QUICK
from tradewind.systems.dps.kernels.sales import ACCEPTED
from tradewind.systems.dps.kernels.state import NO_PRICE, YES
from tradewind.systems.dps.study.runs import (
    STRONG,
    Knobs,
    Sold,
    best_fixed,
    bound_of,
    drawn,
    learned,
    profit_until,
    sell_fixed,
    sold,
)
from tradewind.systems.dps.workload.draw import KINDS

MARKET = "balanced"
ONLINE = ("dps", "dps-paper", "dps-simple", "top", "random")
MOST_SEEDS = 5
"""Most seeds of a full study: a search for strong fixed prices takes 15 s, and there are 45 of them."""


def mean_of(rows: Sequence[Row], value: str, **where: str | float) -> float:
    """Mean of a column over the rows that have these values in other columns."""
    found = [float(r[value]) for r in rows if all(r[key] == want for key, want in where.items())]
    return float(np.mean(found)) if found else float("nan")


def _seeds(effort: Effort, most: int = MOST_SEEDS) -> range:
    return range(1, 1 + min(effort.seeds, most))


def _bfp(
    effort: Effort, seed: int, market: str = MARKET, with_runtime: bool = False, jobs: int = 10_000
) -> Sold:
    search = (QUICK if effort.quick else STRONG)._replace(with_runtime=with_runtime)
    return sell_fixed(drawn(market, seed, jobs), best_fixed(market, seed, search, jobs))


def regret_rows(effort: Effort) -> list[Row]:
    """Regret against bfp over time, per policy."""
    slots = np.linspace(0, 10_000, 21)
    rows: list[Row] = []
    for seed in _seeds(effort):
        market = drawn(MARKET, seed)
        reference = profit_until(market, _bfp(effort, seed), slots)
        curves = {name: profit_until(market, sold(MARKET, seed, name), slots) for name in ONLINE}
        curves["bfp-tau"] = profit_until(market, _bfp(effort, seed, with_runtime=True), slots)
        curves["non-peeking bound"] = bound_of(MARKET, seed) * slots / slots[-1]
        for name, curve in curves.items():
            rows += [
                {"slot": float(t), "policy": name, "regret": float(y - c)}
                for t, y, c in zip(slots, reference, curve, strict=True)
            ]
    return spread(rows, ("slot", "policy"), "regret")


def profit_rows(effort: Effort) -> list[Row]:
    """Profit of each policy as a share of bfp's."""
    rows: list[Row] = []
    for seed in _seeds(effort):
        reference = _bfp(effort, seed).outcome.profit
        profit = {name: sold(MARKET, seed, name).outcome.profit for name in ONLINE}
        profit["bfp"] = reference
        profit["bfp-tau"] = _bfp(effort, seed, with_runtime=True).outcome.profit
        profit["non-peeking bound"] = bound_of(MARKET, seed)
        rows += [{"policy": name, "of bfp": value / reference} for name, value in profit.items()]
    return spread(rows, ("policy",), "of bfp")


def jobs_rows(effort: Effort) -> list[Row]:
    """Regret of dps-paper and dps per job, for several numbers of jobs at the same load."""
    rows: list[Row] = []
    for seed in _seeds(effort, 3):
        for jobs in effort.pick((1_000, 4_000, 10_000), (1_000, 10_000, 30_000)):
            search = QUICK if effort.quick else LIGHT
            reference = sell_fixed(
                drawn(MARKET, seed, jobs), best_fixed(MARKET, seed, search, jobs)
            ).outcome.profit
            for name in ("dps-paper", "dps"):
                lost = reference - sold(MARKET, seed, name, jobs=jobs).outcome.profit
                rows.append({"jobs": float(jobs), "policy": name, "regret of bfp": lost / reference})
    return spread(rows, ("jobs", "policy"), "regret of bfp")


def _constant_rows(effort: Effort, name: str, values: tuple[float, ...]) -> list[Row]:
    rows: list[Row] = []
    for seed in _seeds(effort):
        reference = _bfp(effort, seed).outcome.profit
        for value in values:
            knobs = Knobs(**{name: value})
            earned = sold(MARKET, seed, "dps-paper", knobs).outcome.profit
            rows.append({name: "formula" if value < 0 else f"{value:g}", "regret": reference - earned})
    return spread(rows, (name,), "regret")


def delta_rows(effort: Effort) -> list[Row]:
    """Regret of dps-paper by the step of the price grid."""
    return _constant_rows(effort, "delta", (0.05, 0.1, 0.2, 0.3, 0.5, -1.0))


def theta_rows(effort: Effort) -> list[Row]:
    """Regret of dps-paper by the length of the free stage."""
    return _constant_rows(effort, "theta", (0.0, 0.02, 0.05, 0.11, 0.3, -1.0))


def placement_rows(effort: Effort) -> list[Row]:
    """Profit and mean runtime of accepted jobs with the paper's placement, at random, and ours."""
    rows: list[Row] = []
    for seed in _seeds(effort):
        reference = _bfp(effort, seed).outcome.profit
        for name in ("dps-paper", "dps-rs", "dps"):
            out = sold(MARKET, seed, name).outcome
            runtime = float(out.runtime[out.answer == ACCEPTED].mean())
            rows.append({"policy": name, "of bfp": out.profit / reference, "runtime": runtime})
    means = spread(rows, ("policy",), "of bfp")
    return [{**row, "runtime": mean_of(rows, "runtime", policy=str(row["policy"]))} for row in means]


def acceptance_rows(effort: Effort) -> list[Row]:
    """Expected acceptance before the answer, in ten classes, against the share that accepted."""
    rows: list[Row] = []
    for name in effort.pick(("balanced", "bimodal"), ("balanced", "km", "drift", "bimodal")):
        chances, answers = [], []
        for seed in _seeds(effort):
            _, learner = learned(name, seed)
            asked = np.flatnonzero(learner.answer != NO_PRICE)
            chances += [accept_chance(gap, spread, learner.noise) for gap, spread in learner.offer[asked, 1:]]
            answers += [learner.answer[row] == YES for row in asked]
        expected, accepted = np.array(chances), np.array(answers, dtype=float)
        level = np.minimum((expected * 10).astype(int), 9)
        for each in np.unique(level):
            mine = level == each
            share, n = float(accepted[mine].mean()), int(mine.sum())
            half = 1.96 * float(np.sqrt(max(share * (1 - share), 1e-9) / n))
            rows.append(
                {"expected": float(expected[mine].mean()), "market": name, "realised": share, "low": share - half,
                 "high": share + half, "n": float(n)}
            )  # fmt: skip
    return rows


def price_rows(effort: Effort) -> list[Row]:
    """Mean unit price of dps over time, for the most expensive, the median and the cheapest type of worker."""
    market = drawn("drift", 1)
    asked = learned("drift", 1)[0].outcome.payment
    unit = asked / (market.d_k + market.d_m)
    kinds = np.arange(len(market.bps_k))
    mean = np.array([unit[(market.k == k) & (asked > 0)].mean() for k in kinds])
    order = kinds[np.argsort(mean)]
    rows: list[Row] = []
    edges = np.linspace(0, market.slots, 21)
    for k in (order[-1], order[len(order) // 2], order[0]):
        for low, high in pairwise(edges):
            mine = (market.k == k) & (asked > 0) & (market.arrive >= low) & (market.arrive < high)
            if mine.any():
                rows.append(
                    {
                        "slot": float((low + high) / 2),
                        "type": f"worker-{k + 1:02d}",
                        "price": float(unit[mine].mean()),
                    }
                )
    return rows


def one_market(effort: Effort, name: str) -> list[Row]:
    """Profit over strong bfp in one of the nine markets; a quick study uses one seed."""
    rows: list[Row] = []
    for seed in _seeds(effort, effort.pick(1, MOST_SEEDS)):
        reference = _bfp(effort, seed, name).outcome.profit
        profit = {p: sold(name, seed, p).outcome.profit for p in ONLINE}
        profit["bfp-tau"] = _bfp(effort, seed, name, with_runtime=True).outcome.profit
        profit["non-peeking bound"] = bound_of(name, seed)
        rows += [{"market": name, "policy": p, "of bfp": v / reference} for p, v in profit.items()]
    return spread(rows, ("market", "policy"), "of bfp")


def market_rows(effort: Effort) -> list[Row]:
    """Profit over strong bfp in the nine markets."""
    return [row for name in KINDS for row in one_market(effort, name)]


def market_parts(effort: Effort) -> list[Part]:
    """One part per market, so that an interruption loses at most one."""
    del effort
    return [Part(name=name, rows=partial(one_market, name=name)) for name in KINDS]


def join_markets(effort: Effort, parts: Sequence[Sequence[Row]]) -> list[Row]:
    """The rows of all markets."""
    del effort
    return [row for rows in parts for row in rows]
