"""Alternatives to a parameter server on the same network: an aggregation tree, and a ring with its order.

Times are in the unit of data / capacity; latency (A,) per arc may be in any unit of time and is returned separately.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from tradewind.model.arrays import Floats, Ints
from tradewind.solvers.kernel import kernel
from tradewind.solvers.paths import Graph
from tradewind.systems.apsp.kernels.network import BITS_BOTH_WAYS, Net
from tradewind.systems.apsp.kernels.problem import Gather, slowest


@dataclass(frozen=True, slots=True, kw_only=True)
class AggregationTree:
    """Pipelined aggregation: every arc to the root carries the data once. arcs: (child, arc to its parent)."""

    root: int
    arcs: tuple[tuple[int, int], ...]
    narrowest: int
    depth_latency: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RingTour:
    """Members in order; paths[i] leads from member i to the next; slowest: max over resources of load / capacity.

    load counts weight[hops] once for every member whose path crosses the resource; latency: longest path's.
    """

    order: tuple[int, ...]
    paths: tuple[tuple[int, ...], ...]
    slowest: Fraction
    latency: float


def _widest_forest(graph: Graph, capacity: Ints) -> list[int]:
    """Arcs (one per link) of a spanning tree whose narrowest link is as wide as possible (Kruskal)."""
    width = np.minimum(capacity[graph.resource], capacity[graph.resource[np.maximum(graph.reverse, 0)]])
    links = [a for a in range(graph.arcs) if graph.reverse[a] >= 0 and graph.tail[a] < graph.head[a]]
    links.sort(key=lambda a: (-int(width[a]), a))
    leader = list(range(graph.nodes))

    def find(u: int) -> int:
        while leader[u] != u:
            leader[u] = leader[leader[u]]
            u = leader[u]
        return u

    kept: list[int] = []
    for a in links:
        u, v = find(int(graph.tail[a])), find(int(graph.head[a]))
        if u != v:
            leader[u] = v
            kept.append(a)
    return kept


def _neighbours(graph: Graph, links: list[int]) -> list[list[tuple[int, int]]]:
    """(other node, arc towards it) around every node of the tree, by node number."""
    near: list[list[tuple[int, int]]] = [[] for _ in range(graph.nodes)]
    for a in links:
        near[int(graph.tail[a])].append((int(graph.head[a]), a))
        near[int(graph.head[a])].append((int(graph.tail[a]), int(graph.reverse[a])))
    for around in near:
        around.sort()
    return near


def _prune(graph: Graph, links: list[int], members: set[int]) -> list[int]:
    """Drop leaves of the tree that are not members until none is left."""
    kept = set(links)
    while True:
        degree = np.zeros(graph.nodes, dtype=np.int64)
        for a in kept:
            degree[graph.tail[a]] += 1
            degree[graph.head[a]] += 1
        bare = {
            a
            for a in kept
            for u in (int(graph.tail[a]), int(graph.head[a]))
            if degree[u] == 1 and u not in members
        }
        if not bare:
            return sorted(kept)
        kept -= bare


def tree_seconds(net: Net, tree: AggregationTree) -> tuple[float, float]:
    """Seconds of an epoch over a tree when every member sends one unit of data: transfer, latency."""
    return BITS_BOTH_WAYS * net.unit_bytes / (tree.narrowest * net.unit_bps), 2 * tree.depth_latency


def ring_seconds(net: Net, tour: RingTour) -> tuple[float, float]:
    """Seconds of an epoch over a ring when every member sends one unit of data: transfer, latency."""
    n = len(tour.order)
    return net.seconds(tour.slowest) * (n - 1) / n, 2 * (n - 1) * tour.latency


def aggregation_tree(problem: Gather, members: Ints, latency: Floats) -> AggregationTree:
    """A tree over the members whose narrowest link is the widest possible; the root has the least depth.

    Every spanning tree crosses each cut, so no tree has a wider narrowest link than the maximum spanning tree.
    """
    graph, capacity, wanted = problem.graph, problem.capacity, set(members.tolist())
    links = _prune(graph, _widest_forest(graph, capacity), wanted)
    near = _neighbours(graph, links)
    best: tuple[float, int, list[tuple[int, int]]] | None = None
    for root in sorted(wanted):
        depth, arcs = _hang(graph, near, root, latency)
        if best is None or depth < best[0]:
            best = (depth, root, arcs)
    assert best is not None
    ends = [a for _, a in best[2]]
    both = np.array(ends + [int(graph.reverse[a]) for a in ends], dtype=np.int64)
    narrowest = int(capacity[graph.resource[both]].min()) if ends else 0
    return AggregationTree(root=best[1], arcs=tuple(best[2]), narrowest=narrowest, depth_latency=best[0])


def _hang(
    graph: Graph, near: list[list[tuple[int, int]]], root: int, latency: Floats
) -> tuple[float, list[tuple[int, int]]]:
    """(largest latency to the root, arcs towards it) of the tree hung from a root."""
    depth = {root: 0.0}
    arcs: list[tuple[int, int]] = []
    queue = [root]
    for u in queue:
        for v, a in near[u]:
            if v not in depth:
                up = int(graph.reverse[a])
                depth[v] = depth[u] + float(latency[up])
                arcs.append((v, up))
                queue.append(v)
    return max(depth.values()), arcs


@kernel
def _fast_paths(tail: Ints, head: Ints, cost: Floats, nodes: int) -> Ints:
    """First arc (n, n) of a cheapest path from u to v (Bellman-Ford per destination), -1 where there is none."""
    first = np.full((nodes, nodes), -1, np.int64)
    for v in range(nodes):
        dist = np.full(nodes, np.inf)
        dist[v] = 0.0
        changed = True
        while changed:
            changed = False
            for a in range(tail.size):
                c = dist[head[a]] + cost[a]
                if c < dist[tail[a]] - 1e-12:
                    dist[tail[a]] = c
                    first[tail[a], v] = a
                    changed = True
    return first


def _walk(graph: Graph, first: Ints, u: int, v: int) -> tuple[int, ...]:
    arcs: list[int] = []
    while u != v:
        arcs.append(int(first[u, v]))
        u = int(graph.head[arcs[-1]])
    return tuple(arcs)


def ring(problem: Gather, members: Ints, latency: Floats, moves: int) -> RingTour:
    """A good ring: the tour of the widest spanning tree, or an order improved by reversals (2-opt), the better one.

    With cut-through transport and a capacity per direction the tour is optimal: it uses every arc of the tree
    once, and any ring crosses every cut both ways. `moves` limits the reversals that are tried.
    """
    graph, wanted = problem.graph, set(members.tolist())
    links = _prune(graph, _widest_forest(graph, problem.capacity), wanted)
    near = _neighbours(graph, links)
    tree_first = _fast_paths(*_only(graph, links), graph.nodes)
    order = _tour(near, min(wanted), wanted)
    best = _measure(_Paths(problem, latency, tree_first), order)
    cost = 1.0 / problem.capacity[graph.resource] + 1e-9
    wide_first = _fast_paths(graph.tail, graph.head, cost, graph.nodes)
    for first in (tree_first, wide_first):
        best = min(best, _reversals(_Paths(problem, latency, first), order, moves), key=_rank)
    return best


def _rank(found: RingTour) -> tuple[Fraction, float]:
    return found.slowest, found.latency


def _only(graph: Graph, links: list[int]) -> tuple[Ints, Ints, Floats]:
    """tail, head and cost that keep only the arcs of some links (the others cost infinity)."""
    cost = np.full(graph.arcs, np.inf)
    for a in links:
        cost[a] = cost[int(graph.reverse[a])] = 1.0
    return graph.tail, graph.head, cost


def _tour(near: list[list[tuple[int, int]]], root: int, members: set[int]) -> list[int]:
    """Members in depth-first order."""
    order: list[int] = []
    seen: set[int] = set()
    stack = [root]
    while stack:
        u = stack.pop()
        if u in seen:
            continue
        seen.add(u)
        if u in members:
            order.append(u)
        stack.extend(v for v, _ in reversed(near[u]) if v not in seen)
    return order


class _Paths(NamedTuple):
    """What a ring is measured with: latency (A,), and the first arc (n, n) of the path from u to v."""

    problem: Gather
    latency: Floats
    first: Ints


def _measure(paths: _Paths, order: list[int]) -> RingTour:
    """The ring that visits the members in this order."""
    problem, latency, first = paths
    graph = problem.graph
    legs = tuple(_walk(graph, first, u, v) for u, v in zip(order, order[1:] + order[:1], strict=True))
    load = np.zeros(problem.capacity.size, dtype=np.int64)
    for arcs in legs:
        load[graph.resource[list(arcs)]] += problem.weight[len(arcs)]
    most = slowest(load, problem.capacity)
    wait = max(float(latency[list(arcs)].sum()) for arcs in legs)
    return RingTour(order=tuple(order), paths=legs, slowest=most, latency=wait)


def _reversals(paths: _Paths, order: list[int], moves: int) -> RingTour:
    """Reverse stretches of the order while that helps; at most `moves` are measured."""
    best = _measure(paths, order)
    current, tried, improved = list(order), 0, True
    while improved and tried < moves:
        improved = False
        for i in range(1, len(current) - 1):
            for j in range(i + 1, len(current)):
                if tried >= moves:
                    return best
                tried += 1
                other = current[:i] + current[i : j + 1][::-1] + current[j + 1 :]
                found = _measure(paths, other)
                if _rank(found) < _rank(best):
                    best, current, improved = found, other, True
    return best
