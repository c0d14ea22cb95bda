"""Theorem 2 of APSP: its factor on drawn networks beside what rounding really loses."""

from __future__ import annotations

import math

import numpy as np

from tradewind.lab.study import Effort, Instance, Theorem
from tradewind.systems.apsp.kernels.paper import algorithm_2, listed_paths, problem_4
from tradewind.systems.apsp.study.draws import RULES, net_of


def factor(nodes: int, alpha: float) -> float:
    """(2 ln n + 2 sqrt(ln^2 n + 2 alpha ln n)) / alpha + 1."""
    log = math.log(nodes)
    return (2 * log + 2 * math.sqrt(log * log + 2 * alpha * log)) / alpha + 1


def measured(network: str, rule: str, seed: int) -> tuple[float, float, float]:
    """(factor over all paths, factor over the paths that the LP uses, time of Algorithm 2 over the LP at its site).

    alpha of (13) is the least B_e / h with h = |p| D: the capacity of a link in the LP's time over what a flow puts on it.
    """
    problem = net_of(network, rule, 500, seed).problem
    found = algorithm_2(problem, np.random.default_rng((seed, 77)), limit=None)
    pool = listed_paths(problem, found.sink, None)
    time, x = problem_4(problem, pool)
    least = {True: math.inf, False: math.inf}
    for flow, arcs, share in zip(pool.flow, pool.arcs, x.tolist(), strict=True):
        load = float(problem.data[flow] * problem.weight[len(arcs)])
        alpha = float(problem.capacity[problem.graph.resource[list(arcs)]].min()) * time / load
        for used in (False, True) if share > 1e-9 else (False,):
            least[used] = min(least[used], alpha)
    nodes = problem.graph.nodes
    return factor(nodes, least[False]), factor(nodes, least[True]), float(found.time) / time


def theorem2(effort: Effort) -> list[Instance]:
    """The factor on the draws of Table III, worst ratio of the draws."""
    rows = []
    for network in ("b4", "internet2"):
        for rule in RULES:
            draws = [measured(network, rule, seed) for seed in range(effort.pick(min(effort.seeds, 3), 20))]
            worst = max(ratio for _, _, ratio in draws)
            for note, k in (
                ("alpha over all paths, as printed", 0),
                ("alpha over the paths that the LP uses", 1),
            ):
                low, high = min(d[k] for d in draws), max(d[k] for d in draws)
                text = f"{note}; {low:.3g} to {high:.3g} over {len(draws)} draws, worst ratio shown"
                rows.append(Instance(f"{network} {rule}", low, worst, worst <= low, text))
    return rows


THEOREMS = (
    Theorem(
        name="Theorem 2",
        words="Rounding exceeds link bandwidths by at most (2 ln n + 2 sqrt(ln^2 n + 2 alpha ln n)) / alpha + 1, with n "
        "nodes and alpha of Eq. (13); the time of Algorithm 2 over the LP at its site is that excess.",
        instances=theorem2,
    ),
)
