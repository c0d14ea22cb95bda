"""The paper's Algorithm 2: for every candidate sink the LP over listed paths (Problem 4), rounded at random."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import highspy
import numpy as np

from tradewind.model.arrays import Floats, Ints
from tradewind.solvers.highs import quiet_solver
from tradewind.solvers.paths import simple_paths
from tradewind.systems.apsp.kernels.columns import Pool
from tradewind.systems.apsp.kernels.problem import Gather, Routing, sinks_that_reach_all, time_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Paper:
    """What Algorithm 2 returns: sink, routing, time, and the time it found for every candidate."""

    sink: int
    routing: Routing
    time: Fraction
    times: dict[int, Fraction]


def listed_paths(problem: Gather, sink: int, limit: int | None) -> Pool:
    """P_f: all simple paths to the sink, or the `limit` with the fewest hops per flow."""
    pool = Pool()
    for u in np.flatnonzero(problem.data > 0).tolist():
        for arcs in simple_paths(problem.graph, u, sink, limit=limit):
            pool.add(u, arcs)
    return pool


def problem_4(problem: Gather, pool: Pool) -> tuple[float, Floats]:
    """Problem 4 over the listed paths: (T, x (C,)), x_{fp} = z_{fp} / m. Stated in x and T = 1/m, the same LP."""
    flows = sorted(set(pool.flow))
    row = {f: i for i, f in enumerate(flows)}
    count, resources = len(flows), problem.capacity.size
    starts, index, value = [0], [], []
    for f, arcs in zip(pool.flow, pool.arcs, strict=True):
        index.append(row[f])
        value.append(1.0)
        for r in problem.graph.resource[list(arcs)].tolist():
            index.append(count + r)
            value.append(float(problem.data[f] * problem.weight[len(arcs)]))
        starts.append(len(index))
    unit = float(problem.data.sum() * problem.weight[1]) / float(problem.capacity.mean())
    index.extend(range(count, count + resources))
    value.extend((-problem.capacity * unit).tolist())
    starts.append(len(index))
    lp = highspy.HighsLp()
    lp.num_col_, lp.num_row_ = len(pool.flow) + 1, count + resources
    lp.col_cost_ = np.append(np.zeros(len(pool.flow)), 1.0)
    lp.col_lower_ = np.zeros(lp.num_col_)
    lp.col_upper_ = np.full(lp.num_col_, highspy.kHighsInf)
    lp.row_lower_ = np.append(np.ones(count), np.full(resources, -highspy.kHighsInf))
    lp.row_upper_ = np.append(np.ones(count), np.zeros(resources))
    lp.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    lp.a_matrix_.start_ = np.array(starts, dtype=np.int32)
    lp.a_matrix_.index_ = np.array(index, dtype=np.int32)
    lp.a_matrix_.value_ = np.array(value)
    solver = quiet_solver(seed=7)
    solver.passModel(lp)
    solver.run()
    if solver.getModelStatus() != highspy.HighsModelStatus.kOptimal:
        raise RuntimeError(f"Problem 4 ended as {solver.getModelStatus()}")
    x = np.array(solver.getSolution().col_value)
    return float(x[-1] * unit), np.clip(x[:-1], 0.0, 1.0)


def rounded(problem: Gather, pool: Pool, x: Floats, rng: np.random.Generator) -> Routing:
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


def rounded_as_printed(problem: Gather, pool: Pool, x: Floats, rng: np.random.Generator) -> Routing:
    """Lines 6-14 word for word: a Bernoulli trial per path until one succeeds. A flow may get no path: ()."""
    routing: list[tuple[int, ...]] = [()] * problem.graph.nodes
    for k, f in enumerate(pool.flow):
        if not routing[f] and rng.random() < x[k]:
            routing[f] = pool.arcs[k]
    return tuple(routing)


def algorithm_2(
    problem: Gather, rng: np.random.Generator, *, limit: int | None, sinks: Ints | None = None
) -> Paper:
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
    return Paper(sink=best[1], routing=best[2], time=best[0], times=times)
