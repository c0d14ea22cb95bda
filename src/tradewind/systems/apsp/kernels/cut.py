"""Cut-through transport with equal data: the best sink and routing exactly, in polynomial time.

With weight 1 a load is a number of flows, so for a given time t the question is an integral maximum flow with
capacities floor(t * B). From below: a minimum cut that is too small raises t to the least level k / B at which this cut
would be large enough; the first t without such a cut is the optimum. The cut, price 1 on its resources,
is the certificate. (Theorem 1 of the paper claims NP-hardness; it does not hold for this transport.)
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from tradewind.model.arrays import Bools, Ints
from tradewind.solvers.maxflow import max_flow
from tradewind.systems.apsp.kernels.bound import degree_levels
from tradewind.systems.apsp.kernels.problem import (
    Gather,
    Routing,
    hop_weight,
    room_within,
    sinks_that_reach_all,
    time_of,
)
from tradewind.systems.apsp.kernels.proof import Leaf, SinkBound
from tradewind.systems.apsp.kernels.solve import Placement

KEPT = 8


def is_cut_through(problem: Gather) -> bool:
    """Weight 1 for every path, and every source sends the same amount of data."""
    sizes = np.unique(problem.data[problem.data > 0])
    return bool((problem.weight[1:] == 1).all()) and sizes.tolist() == [1]


def even_use(problem: Gather, sink: int) -> Routing:
    """The routing with the fewest flows per bandwidth on the worst link, regardless of hops and sizes."""
    flat = replace(
        problem,
        data=np.minimum(problem.data, 1),
        weight=hop_weight(problem.graph.nodes, "cut-through")[0],
    )
    return solve_cut_through(flat, np.array([sink], dtype=np.int64)).routing


@dataclass(frozen=True, slots=True)
class _Trial:
    """One maximum flow: a routing if all sources get through, else the source side (n,) of a minimum cut."""

    routing: Routing | None
    inside: Bools


def solve_cut_through(problem: Gather, sinks: Ints | None = None) -> Placement:
    """The optimum over all sinks (or those given), every sink bounded."""
    if not is_cut_through(problem):
        raise ValueError("needs weight 1 for all paths and data 1 at every source")
    hops, reach = sinks_that_reach_all(problem)
    allowed = reach if sinks is None else np.intersect1d(reach, sinks)
    if allowed.size == 0:
        raise ValueError("no allowed sink can be reached by every source")
    around = degree_levels(problem, hops)
    best: tuple[Fraction, int, Routing] | None = None
    bounds: dict[int, SinkBound] = {}
    found: dict[int, Fraction] = {}
    cuts: list[Bools] = []
    for sink in allowed[np.argsort(around[allowed], kind="stable")].tolist():
        limit = None if best is None else best[0]
        bounds[sink], routing = _sink(problem, sink, limit, cuts)
        if routing is not None:
            time = time_of(problem, routing)
            found[sink] = time
            if best is None or time < best[0]:
                best = (time, sink, routing)
    assert best is not None
    return Placement(
        sink=best[1],
        routing=best[2],
        time=best[0],
        bound=min(b.level for b in bounds.values()),
        bounds=bounds,
        best=found,
    )


def _sink(
    problem: Gather, sink: int, limit: Fraction | None, cuts: list[Bools]
) -> tuple[SinkBound, Routing | None]:
    """Raise the level cut by cut until a flow fits or the level reaches the limit.

    cuts: source sides that stopped earlier sinks, newest first; they are tried before any flow.
    """
    outside = np.arange(problem.graph.nodes) != sink
    bound = _level_of(problem, sink, outside)
    for inside in cuts:
        if limit is not None and bound.level < limit and not inside[sink]:
            other = _level_of(problem, sink, inside)
            bound = other if other.level > bound.level else bound
    while limit is None or bound.level < limit:
        trial = _flow(problem, sink, room_within(problem, bound.level))
        if trial.routing is not None:
            return bound, trial.routing
        bound = _level_of(problem, sink, trial.inside)
        cuts.insert(0, trial.inside)
        del cuts[KEPT:]
    return bound, None


def _level_of(problem: Gather, sink: int, inside: Bools) -> SinkBound:
    """The least level at which the cut around `inside` (n,) lets all data inside it out."""
    g = problem.graph
    cut = np.unique(g.resource[inside[g.tail] & ~inside[g.head]])
    level = enough(problem.capacity[cut], int(problem.data[inside].sum()))
    return SinkBound(sink, level, Leaf(tuple((int(r), 1) for r in cut)))


def enough(capacity: Ints, demand: int) -> Fraction:
    """Least t with Σ floor(t * capacity) >= demand."""
    sizes = [int(b) for b in capacity]
    level = Fraction(demand, sum(sizes))
    while sum(level.numerator * b // level.denominator for b in sizes) < demand:
        level = min(Fraction(level.numerator * b // level.denominator + 1, b) for b in sizes)
    return level


def _flow(problem: Gather, sink: int, room: Ints) -> _Trial:
    g = problem.graph
    sources = np.flatnonzero((problem.data > 0) & (np.arange(g.nodes) != sink))
    origin = g.nodes
    tail = np.concatenate([g.tail, np.full(sources.size, origin)])
    head = np.concatenate([g.head, sources])
    capacity = np.concatenate([room[g.resource], np.ones(sources.size, dtype=np.int64)])
    value, flow, side = max_flow(g.nodes + 1, tail, head, capacity, origin, sink)
    if value < sources.size:
        return _Trial(None, side[: g.nodes] == 1)
    both = np.flatnonzero(g.reverse >= 0)
    net = flow[: g.arcs].copy()
    net[both] -= np.minimum(flow[both], flow[g.reverse[both]])
    return _Trial(_paths(problem, sink, sources.tolist(), net), np.zeros(g.nodes, dtype=np.bool_))


def _paths(problem: Gather, sink: int, sources: list[int], flow: Ints) -> Routing:
    """Decompose an integral flow into one path per source; loops are removed."""
    g = problem.graph
    left = flow.tolist()
    start, head = g.start.tolist(), g.head.tolist()
    routing: list[tuple[int, ...]] = [()] * g.nodes
    for source in sources:
        arcs: list[int] = []
        place = {source: 0}
        node = source
        while node != sink:
            arc = next(a for a in range(start[node], start[node + 1]) if left[a] > 0)
            left[arc] -= 1
            node = head[arc]
            if node in place:
                for a in arcs[place[node] :]:
                    place.pop(head[a], None)
                del arcs[place.get(node, 0) :]
                place[node] = len(arcs)
            else:
                arcs.append(arc)
                place[node] = len(arcs)
        routing[source] = tuple(arcs)
    return tuple(routing)
