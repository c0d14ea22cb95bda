"""Figures of ours: acceptance and prices that were learned, nine markets, uncertain runtimes, tiny markets."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import pairwise

import numpy as np

from tradewind.lab.study import Effort, Part, Row, mean_of, spread
from tradewind.systems.dps.bound import MarketArrays, relaxed
from tradewind.systems.dps.kernels.demand import accept_chance
from tradewind.systems.dps.kernels.fixed import QUICK, best_fixed_prices
from tradewind.systems.dps.kernels.state import NO_PRICE, YES
from tradewind.systems.dps.study.exact import optimum
from tradewind.systems.dps.study.rows import MARKET, MOST, ONLINE, bfp, seeds
from tradewind.systems.dps.study.runs import (
    arrays,
    bound_of,
    drawn,
    learn,
    learned,
    sell,
    sell_fixed,
    sell_printed,
    sold,
    uncertain,
)
from tradewind.systems.dps.workload.draw import KINDS, MarketSize, draw_market
from tradewind.systems.dps.workload.generator import scenario_of

REQUIRED = dict(zip(KINDS, (0.94, 1.01, 1.08, 1.09, 1.25, 0.95, 1.02, 1.15, 0.85), strict=True))
"""Least profit of dps over bfp that we accept, per market."""
GOAL = dict(zip(KINDS, (0.98, 1.06, 1.15, 1.16, 1.32, 1.00, 1.10, 1.24, 1.00), strict=True))
SIGMAS = (0.0, 0.5, 1.0)


def acceptance_rows(effort: Effort) -> list[Row]:
    """Expected acceptance before the answer, in ten classes, against the share that accepted."""
    rows: list[Row] = []
    for name in effort.pick(("balanced", "bimodal"), ("balanced", "km", "drift", "bimodal")):
        chances, answers = [], []
        for seed in seeds(effort):
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
    for seed in seeds(effort, effort.pick(1, MOST)):
        reference = bfp(effort, seed, name).outcome.profit
        profit = {p: sold(name, seed, p).outcome.profit for p in ONLINE}
        profit["bfp-tau"] = bfp(effort, seed, name, with_runtime=True).outcome.profit
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


def uncertain_rows(effort: Effort) -> list[Row]:
    """Profit as a share of bfp's where runtimes turn out other than (1) says: known at completion, guessed at admission.

    The paper's bandits price no runtime and learn it when a job completes, (11)-(12); dps prices the guess.
    """
    rows: list[Row] = []
    for seed in seeds(effort, effort.pick(1, MOST)):
        for sigma in SIGMAS:
            market = uncertain(MARKET, seed, sigma)
            stream, cluster = arrays(market)
            prices = best_fixed_prices(stream, cluster, market.budget, QUICK)
            reference = sell_fixed(market, prices).outcome.profit
            profit = {name: sell(market, name, seed).outcome.profit for name in ONLINE if name != "dps"}
            profit["dps"] = learn(market, seed, drawn(MARKET, seed))[0].outcome.profit
            rows += [{"sigma": sigma, "policy": p, "of bfp": v / reference} for p, v in profit.items()]
    return spread(rows, ("sigma", "policy"), "of bfp")


def tiny_rows(effort: Effort) -> list[Row]:
    """Tiny markets: the exact optimum of (2), the certified bound, and what sellers earn, as shares of the optimum."""
    rows: list[Row] = []
    size = MarketSize(slots=12, jobs=12, servers=2, worker_types=2, server_types=1, workers_per_server=40)
    for name in ("balanced", "saturated"):
        for seed in range(1, 1 + effort.pick(3, 10)):
            draw = draw_market(KINDS[name], seed, size)
            stream, cluster = arrays(draw)
            best = optimum(MarketArrays(stream, cluster, draw.budget, (), ()), size.slots)
            earned = {
                "certified bound": relaxed(scenario_of(draw, name, {}))[0],
                "exact optimum": best,
                "bfp": best_fixed_prices(stream, cluster, draw.budget, QUICK).profit,
                "bfp-printed": sell_printed(draw).outcome.profit,
                **{p: sell(draw, p, seed).outcome.profit for p in ("dps", "dps-paper")},
            }
            rows += [{"market": name, "policy": p, "of optimum": v / best} for p, v in earned.items()]
    return spread(rows, ("market", "policy"), "of optimum")


def summary_uncertain(rows: Sequence[Row]) -> str:
    """How much of bfp is left when runtimes are uncertain."""
    listed = [
        f"{p} " + ", ".join(f"{mean_of(rows, 'of bfp', sigma=s, policy=p):.2f}" for s in SIGMAS)
        for p in ("dps-paper", "dps-simple", "dps")
    ]
    return f"profit over bfp with a lognormal error of {', '.join(map(str, SIGMAS))}: {'; '.join(listed)}"


def summary_tiny(rows: Sequence[Row]) -> str:
    """How far the certified bound is above the optimum, and the sellers below."""
    names = dict.fromkeys(str(row["policy"]) for row in rows)
    return "of the exact optimum: " + ", ".join(
        f"{n} {mean_of(rows, 'of optimum', policy=n):.2f}" for n in names
    )


def summary_acceptance(rows: Sequence[Row]) -> str:
    """How far the learned acceptance is off."""
    weight = np.array([float(r["n"]) for r in rows])
    off = np.array([abs(float(r["expected"]) - float(r["realised"])) for r in rows])
    mean = float((weight * off).sum() / weight.sum())
    return f"on average the expected acceptance differs from the realised one by {mean:.1%}"


def summary_prices(rows: Sequence[Row]) -> str:
    """Do prices follow budgets that rise and fall?"""
    half = max(float(r["slot"]) for r in rows) / 2
    first = float(np.mean([float(r["price"]) for r in rows if float(r["slot"]) < half]))
    second = float(np.mean([float(r["price"]) for r in rows if float(r["slot"]) >= half]))
    return (
        "budgets are high in the first half and low in the second; "
        f"the prices asked are {first:.2f} and {second:.2f}"
    )


def summary_markets(rows: Sequence[Row]) -> str:
    """Which of our own targets are met?"""
    ours = {name: mean_of(rows, "of bfp", market=name, policy="dps") for name in KINDS}
    low = [name for name in KINDS if ours[name] < REQUIRED[name]]
    goal = [name for name in KINDS if ours[name] < GOAL[name]]
    listed = ", ".join(f"{name} {value:.2f}" for name, value in ours.items())
    return (
        f"dps over bfp: {listed}. Below our requirement: {', '.join(low) or 'none'}; "
        f"below our goal: {', '.join(goal) or 'none'}. The paper has no such table."
    )
