"""The paper's Algorithm 2: for every candidate sink the LP over listed paths (Problem 4), rounded at random."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import highspy
import numpy as np

from tradewind.model.arrays import Floats, Ints
from tradewind.solvers.highs import quiet_solver
from tradewind.solvers.paths import simple_paths
from tradewind.systems.apsp.kernels.columns import PathPool
from tradewind.systems.apsp.kernels.problem import Gather, Routing, sinks_that_reach_all, time_of
from tradewind.systems.apsp.kernels.restricted import SEED, pool_program


@dataclass(frozen=True, slots=True, kw_only=True)
class PaperPlacement:
    """Result of Algorithm 2: sink, routing, time, and the time found for every candidate."""

    sink: int
    routing: Routing
    time: Fraction
    times: dict[int, Fraction]


def listed_paths(problem: Gather, sink: int, limit: int | None) -> PathPool:
    """P_f: all simple paths to the sink, or the `limit` with the fewest hops per flow."""
    pool = PathPool()
    for u in np.flatnonzero(problem.data > 0).tolist():
        for arcs in simple_paths(problem.graph, u, sink, limit=limit):
            pool.add(u, arcs)
    return pool


def problem_4(problem: Gather, pool: PathPool) -> tuple[float, Floats]:
    """Problem 4 over the listed paths: (T, x (C,)), x_{fp} = z_{fp} / m. Stated in x and T = 1/m, the same LP."""
    unit = float(problem.data.sum() * problem.weight[1]) / float(problem.capacity.mean())
    solver = quiet_solver(SEED)
    solver.passModel(pool_program(problem, pool, range(len(pool.flow)), unit))
    solver.run()
    if solver.getModelStatus() != highspy.HighsModelStatus.kOptimal:
        raise RuntimeError(f"Problem 4 ended as {solver.getModelStatus()}")
    x = np.array(solver.getSolution().col_value)
    return float(x[-1] * unit), np.clip(x[:-1], 0.0, 1.0)


def rounded(problem: Gather, pool: PathPool, x: Floats, rng: np.random.Generator) -> Routing:
    """Lines 6-14, corrected: one path per flow, drawn with probability x_{fp}."""
    # Paper: lines 7-13 run a Bernoulli trial per path and stop at the first success, so a flow can end without a path;
    # here one categorical draw per flow.
    routing: list[tuple[int, ...]] = [()] * problem.graph.nodes
    of = np.array(pool.flow)
    for f in sorted(set(pool.flow)):
        rows = np.flatnonzero(of == f)
        share = x[rows] / x[rows].sum()
        routing[f] = pool.arcs[int(rows[rng.choice(rows.size, p=share)])]
    return tuple(routing)


def algorithm_2(
    problem: Gather, rng: np.random.Generator, *, limit: int | None, sinks: Ints | None = None
) -> PaperPlacement:
    """The paper's algorithm with the corrected draw; `limit` paths per flow (None: all simple paths)."""
    _, reach = sinks_that_reach_all(problem)
    allowed = reach if sinks is None else np.intersect1d(reach, sinks)
    if allowed.size == 0:
        raise ValueError("no allowed sink can be reached by every source")
    best: tuple[Fraction, int, Routing] | None = None
    times: dict[int, Fraction] = {}
    for sink in allowed.tolist():
        pool = listed_paths(problem, sink, limit)
        if not pool.flow:  # the only source is the sink itself
            routing: Routing = ((),) * problem.graph.nodes
        else:
            _, x = problem_4(problem, pool)
            routing = rounded(problem, pool, x, rng)
        times[sink] = time_of(problem, routing)
        if best is None or times[sink] < best[0]:
            best = (times[sink], sink, routing)
    assert best is not None
    return PaperPlacement(sink=best[1], routing=best[2], time=best[0], times=times)
