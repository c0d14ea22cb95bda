"""The rows of Figures 2-7 of Zhang et al., Section V: curves over time, mean and interval over seeds.

Learners were tuned on seeds from 100 on; the studies use seeds from 1 on.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tradewind.lab.study import Effort, Row, spread, spreads
from tradewind.model.arrays import Floats
from tradewind.systems.dps.kernels.fixed import LIGHT, QUICK
from tradewind.systems.dps.kernels.sales import ACCEPTED
from tradewind.systems.dps.study.runs import (
    STRONG,
    Knobs,
    Sold,
    best_fixed,
    bound_of,
    drawn,
    profit_until,
    sell_fixed,
    sell_printed,
    sold,
)

MARKET = "balanced"
ONLINE = ("dps", "dps-paper", "dps-simple", "top", "random")
BOTH = ("dps-paper", "dps")
RIVALS = ("dps-rs", "bfp")
"""Whom Figure 7 compares DPS with."""
MOST = 10
"""Most seeds of a full study."""
SLOTS = np.linspace(0, 10_000, 21)
HALF = SLOTS[-1:] / 2
DELTAS = {
    "0.05": Knobs(delta=0.05),
    "0.1": Knobs(delta=0.1),
    "0.2": Knobs(),
    "0.2, servers 0.05": Knobs(delta_m=0.05),
    "0.05, servers 0.2": Knobs(delta=0.05, delta_m=0.2),
    "0.5": Knobs(delta=0.5),
    "formula": Knobs(delta=-1.0),
}
"""Steps of the price grid that are tried, of workers and servers apart too; `formula` is Theorem 2's."""
THETAS = {**{f"{t:g}": Knobs(theta=t) for t in (0.0, 0.02, 0.05, 0.11, 0.3)}, "formula": Knobs(theta=-1.0)}


def seeds(effort: Effort, most: int = MOST) -> range:
    """The seeds of a study."""
    return range(1, 1 + min(effort.seeds, most))


def bfp(
    effort: Effort, seed: int, market: str = MARKET, with_runtime: bool = False, jobs: int = 10_000
) -> Sold:
    """The best fixed prices in hindsight; a quick study and large markets search less."""
    search = QUICK if effort.quick else LIGHT if jobs > 10_000 else STRONG
    prices = best_fixed(market, seed, search._replace(with_runtime=with_runtime), jobs)
    return sell_fixed(drawn(market, seed, jobs), prices)


def _lines(curve: Floats, **what: str | float) -> list[Row]:
    return [{"slot": t, **what, "regret": y} for t, y in zip(SLOTS.tolist(), curve.tolist(), strict=True)]


def regret_rows(effort: Effort) -> list[Row]:
    """Regret over time, per policy, against the strong bfp and against bfp-printed."""
    rows: list[Row] = []
    for seed in seeds(effort):
        market = drawn(MARKET, seed)
        fixed = {
            "bfp": profit_until(market, bfp(effort, seed), SLOTS),
            "bfp-printed": profit_until(market, sell_printed(market), SLOTS),
        }
        curves = {name: profit_until(market, sold(MARKET, seed, name), SLOTS) for name in ONLINE}
        curves |= {"bfp-tau": profit_until(market, bfp(effort, seed, with_runtime=True), SLOTS)}
        curves |= {
            "bfp-printed": fixed["bfp-printed"],
            "non-peeking bound": bound_of(MARKET, seed) * SLOTS / SLOTS[-1],
        }
        for against, reference in fixed.items():
            for name in curves if against == "bfp" else BOTH:
                line = name if against == "bfp" else f"{name}, against {against}"
                rows += _lines(reference - curves[name], policy=name, against=against, line=line)
    return spread(rows, ("slot", "policy", "against", "line"), "regret")


def profit_rows(effort: Effort) -> list[Row]:
    """Profit of each policy as a share of bfp's, and what dps-paper and dps earn over it, seed by seed."""
    rows: list[Row] = []
    for seed in seeds(effort):
        market = drawn(MARKET, seed)
        sales = {name: sold(MARKET, seed, name) for name in ONLINE}
        sales |= {"bfp": bfp(effort, seed), "bfp-tau": bfp(effort, seed, with_runtime=True)}
        sales |= {"bfp-printed": sell_printed(market)}
        profit = {name: found.outcome.profit for name, found in sales.items()}
        half = {name: float(profit_until(market, found, HALF)[0]) for name, found in sales.items()}
        profit["non-peeking bound"] = bound_of(MARKET, seed)
        half["non-peeking bound"] = profit["non-peeking bound"] / 2
        rows += [
            {
                "policy": name,
                "of bfp": value / profit["bfp"],
                **{_over(p): profit[p] / value for p in BOTH},
                **{f"{_over(p)}, gain": profit[p] / value - half[p] / max(half[name], 1e-9) for p in BOTH},
            }
            for name, value in profit.items()
        ]
    return spreads(rows, ("policy",), "of bfp", *map(_over, BOTH), *(f"{_over(p)}, gain" for p in BOTH))


def _over(policy: str) -> str:
    return f"{policy} over it"


def jobs_rows(effort: Effort) -> list[Row]:
    """Regret over time for 0.1, 1, 5 and (in full) 10 times the default number of jobs, at the same load."""
    rows: list[Row] = []
    for seed in seeds(effort, 3):
        for jobs in effort.pick((1_000, 10_000, 50_000), (1_000, 10_000, 50_000, 100_000)):
            market = drawn(MARKET, seed, jobs)
            reference = profit_until(market, bfp(effort, seed, jobs=jobs), SLOTS)
            for name in BOTH:
                curve = profit_until(market, sold(MARKET, seed, name, jobs=jobs), SLOTS)
                line = f"{name}, {jobs:,} jobs"
                rows += _lines(reference - curve, policy=name, jobs=float(jobs), line=line)
    return spread(rows, ("slot", "policy", "jobs", "line"), "regret")


def _constant_rows(effort: Effort, name: str, values: Mapping[str, Knobs]) -> list[Row]:
    rows: list[Row] = []
    for seed in seeds(effort):
        market = drawn(MARKET, seed)
        reference = profit_until(market, bfp(effort, seed), SLOTS)
        for text, knobs in values.items():
            curve = profit_until(market, sold(MARKET, seed, "dps-paper", knobs), SLOTS)
            rows += _lines(reference - curve, **{name: text})
    return spread(rows, ("slot", name), "regret")


def delta_rows(effort: Effort) -> list[Row]:
    """Regret of dps-paper over time by the step of the price grid."""
    return _constant_rows(effort, "delta", DELTAS)


def theta_rows(effort: Effort) -> list[Row]:
    """Regret of dps-paper over time by the length of the free stage."""
    return _constant_rows(effort, "theta", THETAS)


def placement_rows(effort: Effort) -> list[Row]:
    """Profit so far, and runtimes of the jobs completed so far, with the paper's placement, at random, and ours."""
    rows: list[Row] = []
    for seed in seeds(effort):
        market = drawn(MARKET, seed)
        each = {name: sold(MARKET, seed, name) for name in ("dps-paper", "dps-rs", "dps")}
        each |= {"bfp": bfp(effort, seed)}
        profit = {name: profit_until(market, found, SLOTS) for name, found in each.items()}
        for name, found in each.items():
            yes = found.outcome.answer == ACCEPTED
            runtime = found.outcome.runtime[yes]
            done = runtime[:, None] * (market.arrive[yes][:, None] + runtime[:, None] < SLOTS)
            columns = {
                "profit": profit[name],
                **{f"over {rival}": profit[name] - profit[rival] for rival in RIVALS},
                "runtime": done.sum(axis=0),
                "mean runtime": done.sum(axis=0) / np.maximum(1, (done > 0).sum(axis=0)),
            }
            for at, slot in enumerate(SLOTS.tolist()):
                rows.append(
                    {"slot": slot, "policy": name}
                    | {key: float(values[at]) for key, values in columns.items()}
                )
    more = [*(f"over {rival}" for rival in RIVALS), "runtime", "mean runtime"]
    return spreads(rows, ("slot", "policy"), "profit", *more)
