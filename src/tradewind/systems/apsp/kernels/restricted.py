"""The program over a given pool of paths: as an LP it is the paper's Problem 4, as a MILP the best routing in the pool.

    minimise  T    subject to    Σ_p x_{fp} = 1  for every flow,    Σ data_f weight[|p|] x_{fp} <= T capacity_r  for every r

Columns are handed over one by one, in the pool's order. Written row by row (solvers.highs.Program) HiGHS would end in other
vertices: measured, 1 of 21 LPs of B4 and Internet2 and 9 of 14 MILPs of germany50, GtsCe and UsCarrier gave another answer.
"""

from __future__ import annotations

from collections.abc import Sequence

import highspy
import numpy as np

from tradewind.model.arrays import Ints
from tradewind.solvers.highs import INFINITY, quiet_solver
from tradewind.systems.apsp.kernels.columns import PathPool, usable
from tradewind.systems.apsp.kernels.problem import Gather, Routing

SEED = 7


def pool_program(problem: Gather, pool: PathPool, chosen: Sequence[int], unit: float) -> highspy.HighsLp:
    """The LP over the chosen paths of a pool; the last column is T in units of `unit`."""
    flows = sorted({pool.flow[k] for k in chosen})
    row = {f: i for i, f in enumerate(flows)}
    count, resources = len(flows), problem.capacity.size
    resource, data, weight = problem.graph.resource.tolist(), problem.data.tolist(), problem.weight.tolist()
    starts, index, value = [0], list[int](), list[float]()
    for k in chosen:
        arcs = pool.arcs[k]
        index.append(row[pool.flow[k]])
        value.append(1.0)
        index.extend([count + resource[a] for a in arcs])
        value.extend([float(data[pool.flow[k]] * weight[len(arcs)])] * len(arcs))
        starts.append(len(index))
    index.extend(range(count, count + resources))
    value.extend((-problem.capacity * unit).tolist())
    starts.append(len(index))
    lp = highspy.HighsLp()
    lp.num_col_, lp.num_row_ = len(chosen) + 1, count + resources
    lp.col_cost_ = np.append(np.zeros(len(chosen)), 1.0)
    lp.col_lower_ = np.zeros(lp.num_col_)
    lp.col_upper_ = np.full(lp.num_col_, INFINITY)
    lp.row_lower_ = np.append(np.ones(count), np.full(resources, -INFINITY))
    lp.row_upper_ = np.append(np.ones(count), np.zeros(resources))
    lp.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    lp.a_matrix_.start_ = np.array(starts, dtype=np.int32)
    lp.a_matrix_.index_ = np.array(index, dtype=np.int32)
    lp.a_matrix_.value_ = np.array(value)
    return lp


def best_of_pool(problem: Gather, room: Ints, pool: PathPool, unit: float, nodes: int) -> Routing | None:
    """One pooled path per flow, least time; None if nothing was found.

    room (R,) only says which paths are admitted; unit: a time near the answer's, for scaling. HiGHS stops after
    `nodes` branch-and-bound nodes. It gets no starting solution: its own dives end better than repairs of ours.
    """
    chosen = usable(problem, room, pool)
    lp = pool_program(problem, pool, chosen, unit)
    lp.col_upper_ = np.append(np.ones(len(chosen)), INFINITY)
    whole, continuous = highspy.HighsVarType.kInteger, highspy.HighsVarType.kContinuous
    lp.integrality_ = [*[whole] * len(chosen), continuous]
    solver = quiet_solver(SEED, mip_max_nodes=nodes)
    solver.passModel(lp)
    solver.run()
    if solver.getInfo().primal_solution_status != highspy.SolutionStatus.kSolutionStatusFeasible:
        return None
    routing: list[tuple[int, ...]] = [()] * problem.graph.nodes
    for k, x in zip(chosen, solver.getSolution().col_value, strict=False):
        if x > 0.5:
            routing[pool.flow[k]] = pool.arcs[k]
    return tuple(routing)
