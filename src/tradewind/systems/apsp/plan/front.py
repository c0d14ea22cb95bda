"""Time of an epoch against the cost of its traffic: points that no other point beats in both."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from tradewind.model.arrays import Floats, Ints
from tradewind.model.units import US_PER_S
from tradewind.solvers.paths import cheapest_by_hops, simple_paths
from tradewind.systems.apsp.kernels.problem import Gather, Routing, loads_of, time_of
from tradewind.systems.apsp.plan.solve import WanPlan
from tradewind.systems.apsp.shared.placement import Chosen

SINKS = 6
STEPS = 60
PATHS = 8


class FrontPoint(NamedTuple):
    """A plan on the front: sink, routing, time (load / capacity) and USD per epoch."""

    sink: int
    routing: Routing
    time: float
    usd: float


def pareto(found: WanPlan) -> dict[str, Any]:
    """Time against the cost of traffic, where links have prices: the points, and the sites they leave out."""
    prices = [link.ab_usd_per_gb + link.ba_usd_per_gb for link in found.topology.links]
    if not any(prices) or len(found.network.pinned) < 2:
        return {"pareto": [], "pareto_without": []}
    known = [p if link.priced else np.inf for p, link in zip(prices, found.topology.links, strict=True)]
    usd = np.array([known[k] for k in found.net.link.tolist()]) * found.net.unit_bytes / 1e9
    problem, out = payable(found.net.problem, usd)
    points = [
        {
            "server": found.topology.nodes[point.sink],
            "usd_per_epoch": point.usd,
            "transfer_s": found.net.epoch_us(time_of(problem, point.routing)) / US_PER_S,
            "epoch_s": found.epoch_s(Chosen(point.sink, point.routing)),
        }
        for point in front(problem, usd, found.chosen)
    ]
    return {"pareto": points, "pareto_without": [found.topology.nodes[v] for v in out]}


def payable(problem: Gather, usd: Floats) -> tuple[Gather, list[int]]:
    """The problem without the sources that no arc with a known price joins to the largest group of them; who is out."""
    g = problem.graph
    group = np.arange(g.nodes)
    arcs = np.flatnonzero(np.isfinite(usd))
    while True:
        before = group.copy()
        np.minimum.at(group, g.tail[arcs], before[g.head[arcs]])
        np.minimum.at(group, g.head[arcs], before[g.tail[arcs]])
        if (group == before).all():
            break
    sources = problem.data > 0
    inside = group == np.bincount(group[sources], minlength=g.nodes).argmax()
    out = np.flatnonzero(sources & ~inside).tolist()
    return replace(problem, data=np.where(inside, problem.data, 0)) if out else problem, out


def front(problem: Gather, usd: Floats, chosen: Chosen) -> list[FrontPoint]:
    """Points by rising cost: from each promising site's cheapest routing, the bottleneck is relieved step by step.

    usd (A,): price of a unit of data on an arc, inf where unknown: such arcs are not used. A heuristic front: each point
    is a real plan, but better ones may exist. Sources without data in the problem are dropped from the chosen routing.
    """
    own = tuple(arcs if problem.data[u] else () for u, arcs in enumerate(chosen.routing))
    found = [p for p in [_point(problem, usd, chosen.sink, own)] if np.isfinite(p.usd)]
    starts = [_cheapest(problem, usd, v) for v in range(problem.graph.nodes)]
    cheap = sorted((p for p in starts if p is not None), key=lambda p: (p.usd, p.time))
    quick = sorted(cheap, key=lambda p: (p.time, p.usd))
    starts_by_sink = {p.sink: p for p in (*cheap[:SINKS], *quick[:SINKS])}
    for start in starts_by_sink.values():
        found.extend(_relieve(problem, usd, start))
    kept: list[FrontPoint] = []
    for point in sorted(found, key=lambda p: (p.usd, p.time, p.sink)):
        if not kept or point.time < kept[-1].time * (1 - 1e-9):
            kept.append(point)
    return kept


def _point(problem: Gather, usd: Floats, sink: int, routing: Routing) -> FrontPoint:
    cost = sum(float(usd[list(arcs)].sum()) * int(problem.data[u]) for u, arcs in enumerate(routing) if arcs)
    return FrontPoint(sink, routing, float((loads_of(problem, routing) / problem.capacity).max()), cost)


def _cheapest(problem: Gather, usd: Floats, sink: int) -> FrontPoint | None:
    """Every flow on its cheapest path."""
    g = problem.graph
    room = np.full(g.arcs, np.iinfo(np.int64).max // 4)
    flat = np.minimum(np.arange(g.nodes), 1)
    price = usd + 1e-9 * float(usd[np.isfinite(usd)].max(initial=1e-9))
    cost, length, arcs = cheapest_by_hops(g.tail, g.head, room, price, sink, problem.data, flat)
    if not np.isfinite(cost[problem.data > 0]).all():
        return None
    routing = tuple(tuple(arcs[u, : length[u]].tolist()) for u in range(g.nodes))
    return _point(problem, usd, sink, routing)


def _relieve(problem: Gather, usd: Floats, start: FrontPoint) -> list[FrontPoint]:
    """Move one flow off the slowest resource at a time, the one that costs least among those that help."""
    points, routing = [start], list(start.routing)
    load = loads_of(problem, start.routing)
    choices: dict[int, list[tuple[int, ...]]] = {}
    for _ in range(STEPS):
        ratio = load / problem.capacity
        worst, slowest = int(ratio.argmax()), float(ratio.max())
        best: tuple[float, float, int, tuple[int, ...]] | None = None
        for u, arcs in enumerate(routing):
            if arcs and worst in problem.graph.resource[list(arcs)]:
                if u not in choices:
                    every = simple_paths(problem.graph, u, start.sink, limit=PATHS)
                    choices[u] = [path for path in every if np.isfinite(usd[list(path)]).all()]
                rest = _moved(problem, load, u, arcs, -1)
                for other in choices[u]:
                    after = _moved(problem, rest, u, other, +1)
                    time = float((after / problem.capacity).max())
                    extra = float(usd[list(other)].sum() - usd[list(arcs)].sum()) * int(problem.data[u])
                    if time < slowest * (1 - 1e-9) and (best is None or (extra, time) < best[:2]):
                        best = (extra, time, u, other)
        if best is None:
            break
        _, _, u, other = best
        load = _moved(problem, _moved(problem, load, u, routing[u], -1), u, other, +1)
        routing[u] = other
        points.append(_point(problem, usd, start.sink, tuple(routing)))
    return points


def _moved(problem: Gather, load: Ints, u: int, arcs: tuple[int, ...], sign: int) -> Ints:
    after = load.copy()
    after[problem.graph.resource[list(arcs)]] += sign * problem.data[u] * problem.weight[len(arcs)]
    return after
