"""Column generation over all paths of a gathering problem, with one persistent HiGHS model per sink.

    minimise  λ
    subject to  Σ_p x_{fp} = 1                                   for every flow f          (10c)
                Σ_f Σ_{p through r} data_f weight[|p|] x_{fp} <= λ room_r   for every resource r  (10a)

The paper's Problem 4 with z = x / T and λ = T. Paths are priced, not enumerated: for duals y >= 0 with
Σ room_r y_r = 1 the flows' cheapest paths add up to a lower bound on λ (the Lagrangian bound), so the run can
stop as soon as λ <= 1 (a fractional routing fits) or the bound exceeds 1 (none does). A resource that cannot hold two flows
counts as full with one (lift_of), which changes nothing for whole flows and tightens the LP.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import highspy
import numpy as np

from tradewind.model.arrays import Floats, Ints
from tradewind.solvers.highs import INFINITY, quiet_solver
from tradewind.solvers.paths import cheapest_by_hops, cheapest_lifted
from tradewind.systems.apsp.kernels.problem import Gather, lift_of

REDUCED = 1e-6
"""A path joins the master if its reduced cost is below minus this share of a flow's part of λ."""


def simplex_solver() -> highspy.Highs:
    """A solver for LPs that grow: no presolve, and primal simplex, since columns join what was optimal before."""
    return quiet_solver(seed=7, presolve="off", solver="simplex", simplex_strategy=4)


Bans = Mapping[int, frozenset[int]]
"""Arcs that a flow must not use, by flow."""
NO_BANS: Bans = {}


@dataclass(slots=True)
class PathPool:
    """Paths found so far for one sink: flow (node) and arcs of each."""

    flow: list[int] = field(default_factory=list)
    arcs: list[tuple[int, ...]] = field(default_factory=list)
    known: set[tuple[int, ...]] = field(default_factory=set)

    def add(self, flow: int, arcs: tuple[int, ...]) -> bool:
        """Add a path unless it is known (its first arc identifies its flow); returns whether it was new."""
        if arcs in self.known:
            return False
        self.known.add(arcs)
        self.flow.append(flow)
        self.arcs.append(arcs)
        return True


@dataclass(frozen=True, slots=True, kw_only=True)
class Relaxation:
    """Result of column generation.

    value: λ of the restricted master (inf: some flow has no admitted path); bound: best Lagrangian bound;
    price (R,): the duals that gave the bound, scaled to integers; share: x of every pooled path that the
    room admits, as (pool index, share) pairs; optimal: no path can improve λ.
    """

    value: float
    bound: float
    price: Floats
    share: list[tuple[int, float]]
    optimal: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class StopRule:
    """When to stop: λ at most `fits`, bound above `exceeds`, or after `rounds` pricing rounds."""

    fits: float = -1.0
    exceeds: float = INFINITY
    rounds: int = 400


def integer_prices(problem: Gather, room: Ints, dual: Floats) -> Floats:
    """Scale duals (R,) to integers small enough that every sum over flows is exact in float64 (below 2**52).

    A resource without room for any flow has no price: no path uses it, so its price would only weaken the bound.
    """
    usable = room >= problem.least
    clean = np.where(usable & (dual > 1e-12 * max(float(dual.max(initial=0.0)), 1e-300)), dual, 0.0)
    total = float((clean * np.maximum(room, 0)).sum())
    if total <= 0.0:
        clean = usable.astype(np.float64)
        total = float((clean * np.maximum(room, 0)).sum()) + 1.0
    return np.floor(clean * ((1 << 48) / total))


@dataclass(frozen=True, slots=True)
class Priced:
    """Cheapest paths under prices: bound on λ, cost (n,) of all of a flow's data, one path per flow with data."""

    bound: float
    cost: Floats
    length: Ints
    arcs: Ints
    barred: dict[int, tuple[int, ...]]

    def path(self, flow: int) -> tuple[int, ...]:
        if flow in self.barred:
            return self.barred[flow]
        return tuple(self.arcs[flow, : self.length[flow]].tolist())


def lagrangian(problem: Gather, sink: int, room: Ints, price: Floats, bans: Bans = NO_BANS) -> Priced:
    """Bound on λ: Σ_f data_f min_p weight[|p|] price(p) / Σ_r room_r price_r, over the paths the bans leave."""
    free = room[problem.graph.resource]
    data = problem.data
    lift = lift_of(problem, room) if problem.least > 1 else None
    if bans:
        data = data.copy()
        data[list(bans)] = 0
    cost, length, arcs = _cheapest(problem, sink, free, price, lift, data)
    barred: dict[int, tuple[int, ...]] = {}
    for flow, banned in bans.items():
        alone = np.zeros_like(problem.data)
        alone[flow] = problem.data[flow]
        left = free.copy()
        left[list(banned)] = -1
        c, m, a = _cheapest(problem, sink, left, price, lift, alone)
        cost[flow] = c[flow]
        barred[flow] = tuple(a[flow, : m[flow]].tolist())
    spent = float(cost.sum()) if np.isfinite(cost).all() else INFINITY
    return Priced(spent / max(float((room * price).sum()), 1e-300), cost, length, arcs, barred)


def _cheapest(
    problem: Gather, sink: int, free: Ints, price: Floats, lift: Ints | None, data: Ints
) -> tuple[Floats, Ints, Ints]:
    """Cost (n,), length (n,) and arcs of every flow's cheapest path; free (A,), price and lift (R,), None = no lift."""
    g = problem.graph
    paid = price[g.resource]
    if lift is not None and lift.any():
        lifted: tuple[Floats, Ints, Ints] = cheapest_lifted(
            g.tail, g.head, free, paid, lift[g.resource], sink, data, problem.weight
        )
        return lifted
    cost, length, arcs = cheapest_by_hops(g.tail, g.head, free, paid, sink, data, problem.weight)
    return np.where(data > 0, cost * data, cost), length, arcs


class _Master:
    """The restricted master problem, kept in HiGHS between rounds."""

    def __init__(self, problem: Gather, sink: int, room: Ints, unit: float) -> None:
        self.problem, self.room, self.unit = problem, room, unit
        self.lift = lift_of(problem, room).tolist()
        self.flows = np.flatnonzero((problem.data > 0) & (np.arange(problem.data.size) != sink))
        self.row_of = {int(f): k for k, f in enumerate(self.flows)}
        self.columns: list[int] = []
        self.solver = h = simplex_solver()
        f, r = len(self.flows), problem.capacity.size
        empty = np.empty(0, dtype=np.int32)
        lower = np.concatenate([np.ones(f), np.full(r, -INFINITY)])
        upper = np.concatenate([np.ones(f), np.zeros(r)])
        h.addRows(f + r, lower, upper, 0, np.zeros(f + r, dtype=np.int32), empty, np.empty(0))
        used = np.flatnonzero(room > 0)
        rows = (used + f).astype(np.int32)
        # HiGHS's tolerances are absolute: λ is held in a unit near its value, and its cost makes an average
        # flow's dual about 1
        h.addCol(float(max(f, 1)), 0.0, INFINITY, len(rows), rows, -room[used] * unit)

    def add(self, pool: PathPool, chosen: list[int]) -> None:
        problem, f = self.problem, len(self.flows)
        resource, data, weight = (
            problem.graph.resource.tolist(),
            problem.data.tolist(),
            problem.weight.tolist(),
        )
        starts: list[int] = []
        index: list[int] = []
        value: list[float] = []
        for k in chosen:
            arcs = pool.arcs[k]
            load = float(data[pool.flow[k]] * weight[len(arcs)])
            starts.append(len(index))
            index.append(self.row_of[pool.flow[k]])
            value.append(1.0)
            index.extend([resource[a] + f for a in arcs])
            value.extend([max(load, float(self.lift[resource[a]])) for a in arcs])
        count = len(chosen)
        self.columns.extend(chosen)
        zeros = np.zeros(count)
        self.solver.addCols(
            count,
            zeros,
            zeros,
            np.full(count, INFINITY),
            len(index),
            np.array(starts, dtype=np.int32),
            np.array(index, dtype=np.int32),
            np.array(value),
        )

    def solve(self) -> tuple[float, Floats, Floats]:
        """(λ, duals of the flows, duals y >= 0 of the resources)."""
        h = self.solver
        h.run()
        if h.getModelStatus() != highspy.HighsModelStatus.kOptimal:
            # bandwidths from 1 bit/s to Gbit/s in one LP: callers then keep or delay a plan, or have no bound
            raise ValueError(f"the LP over paths ended as {h.getModelStatus()}; bandwidths differ too much")
        f = len(self.flows)
        dual = np.array(h.getSolution().row_dual) * (self.unit / f)
        return (
            float(h.getInfo().objective_function_value) * (self.unit / f),
            dual[:f],
            np.maximum(-dual[f:], 0.0),
        )

    def shares(self) -> list[tuple[int, float]]:
        x = list(self.solver.getSolution().col_value)[1:]
        return [(k, v) for k, v in zip(self.columns, x, strict=True) if v > 1e-9]


def usable(problem: Gather, room: Ints, pool: PathPool, bans: Bans = NO_BANS) -> list[int]:
    """Pooled paths that their flow may use and whose every resource could hold the flow on its own."""
    free = room[problem.graph.resource].tolist()
    data, weight = problem.data.tolist(), problem.weight.tolist()
    found: list[int] = []
    for k, (flow, arcs) in enumerate(zip(pool.flow, pool.arcs, strict=True)):
        need = data[flow] * weight[len(arcs)]
        banned = bans.get(flow)
        if all(free[a] >= need for a in arcs) and (banned is None or banned.isdisjoint(arcs)):
            found.append(k)
    return found


def relax(
    problem: Gather, sink: int, room: Ints, pool: PathPool, stop: StopRule, bans: Bans = NO_BANS
) -> Relaxation:
    """Column generation for one sink under room (R,); new paths join the pool."""
    price = integer_prices(problem, room, np.ones(room.size))
    found = lagrangian(problem, sink, room, price, bans)
    best = found.bound
    if best >= INFINITY or best > stop.exceeds:
        return Relaxation(value=INFINITY, bound=best, price=price, share=[], optimal=best >= INFINITY)
    master = _Master(problem, sink, room, best)
    flows = master.flows.tolist()
    for f in flows:
        pool.add(f, found.path(f))
    master.add(pool, usable(problem, room, pool, bans))
    value, optimal = INFINITY, False
    for _ in range(stop.rounds):
        value, convex, dual = master.solve()
        if value <= stop.fits:
            break
        scaled = integer_prices(problem, room, dual)
        found = lagrangian(problem, sink, room, scaled, bans)
        if found.bound > best:
            best, price = found.bound, scaled
        if best > stop.exceeds:
            break
        unit = float((scaled * room).sum())
        gain = found.cost[master.flows] / unit - convex
        cheap = np.flatnonzero(gain < -REDUCED * value / len(flows)).tolist()
        fresh = [flows[k] for k in cheap if pool.add(flows[k], found.path(flows[k]))]
        if not fresh:
            optimal = True
            break
        master.add(pool, list(range(len(pool.flow) - len(fresh), len(pool.flow))))
    return Relaxation(value=value, bound=best, price=price, share=master.shares(), optimal=optimal)
