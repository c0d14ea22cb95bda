"""Paths in a directed graph: hop distances, cheapest paths by number of hops, simple paths.

A graph is a list of arcs sorted by tail. Several arcs may draw on one resource (the two directions of a
shared link do); a graph whose links have a capacity per direction has one resource per arc.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from tradewind.model.arrays import Bools, Floats, Ints
from tradewind.solvers.kernel import kernel

UNREACHED = np.iinfo(np.int64).max // 4
"""Hops between nodes without a path."""
FIRST_ROWS = 32
"""Hops for which there is room at first in searches by hops."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Graph:
    """Arcs sorted by tail: the arcs that leave node u are start[u] .. start[u + 1] - 1.

    tail, head, resource: (A,) int64; start: (n + 1,) int64; reverse: (A,) the arc the other way, -1 if none.
    """

    nodes: int
    tail: Ints
    head: Ints
    resource: Ints
    start: Ints
    reverse: Ints

    @property
    def arcs(self) -> int:
        return int(self.tail.size)

    @property
    def resources(self) -> int:
        return int(self.resource.max()) + 1 if self.resource.size else 0


def make_graph(nodes: int, arcs: Sequence[tuple[int, int, int]]) -> Graph:
    """Build a graph from (tail, head, resource) triples; at most one arc per (tail, head)."""
    ordered = sorted(arcs)
    tail = np.array([a[0] for a in ordered], dtype=np.int64)
    head = np.array([a[1] for a in ordered], dtype=np.int64)
    resource = np.array([a[2] for a in ordered], dtype=np.int64)
    place = {(int(u), int(v)): k for k, (u, v, _) in enumerate(ordered)}
    if len(place) != len(ordered):
        raise ValueError("two arcs join the same pair of nodes in the same direction; merge them first")
    reverse = np.array([place.get((v, u), -1) for u, v, _ in ordered], dtype=np.int64)
    start = np.searchsorted(tail, np.arange(nodes + 1)).astype(np.int64)
    graph = Graph(nodes=nodes, tail=tail, head=head, resource=resource, start=start, reverse=reverse)
    for array in (graph.tail, graph.head, graph.resource, graph.start, graph.reverse):
        array.setflags(write=False)
    return graph


@kernel
def _hops_to(tail_start: Ints, neighbour: Ints, root: int, out: Ints) -> None:
    """Fill out (n,) with the fewest hops from each node to the root, by breadth-first search on reversed arcs."""
    queue = np.empty(out.size, np.int64)
    out[:] = UNREACHED
    out[root] = 0
    queue[0] = root
    first, last = 0, 1
    while first < last:
        u = queue[first]
        first += 1
        for k in range(tail_start[u], tail_start[u + 1]):
            v = neighbour[k]
            if out[v] == UNREACHED:
                out[v] = out[u] + 1
                queue[last] = v
                last += 1


@kernel
def _all_hops(start: Ints, neighbour: Ints, nodes: int) -> Ints:
    table = np.empty((nodes, nodes), np.int64)
    for root in range(nodes):
        _hops_to(start, neighbour, root, table[root])
    return table


def hops_to_all(graph: Graph) -> Ints:
    """Fewest hops to every sink: (n, n) with row v holding the hops from each node to v; UNREACHED if none."""
    order = np.lexsort((graph.tail, graph.head))
    start = np.searchsorted(graph.head[order], np.arange(graph.nodes + 1)).astype(np.int64)
    table: Ints = _all_hops(start, np.ascontiguousarray(graph.tail[order]), graph.nodes)
    return table


class _Layers(NamedTuple):
    """Bellman-Ford by hops, (rows, n): dist[h, u] to the sink in at most h hops, and the arc step[h, u] that it takes.

    step is -1 where h - 1 hops do as well. Only the arcs live[:count] may be used.
    """

    tail: Ints
    head: Ints
    live: Ints
    dist: Floats
    step: Ints


@kernel(inline="always")  # a call made cheapest_by_hops 10% slower on 12 nodes
def _add_hop(layers: _Layers, count: int, price: Floats, h: int) -> bool:
    """Fill layer h from layer h - 1; return whether nothing changed."""
    tail, head, live, dist, step = layers
    settled = True
    for u in range(dist.shape[1]):
        dist[h, u] = dist[h - 1, u]
        step[h, u] = -1
    for k in range(count):
        a = live[k]
        c = dist[h - 1, head[a]] + price[a]
        u = tail[a]
        if c < dist[h, u]:
            dist[h, u] = c
            step[h, u] = a
            settled = False
    return settled


@kernel(inline="always")
def _improve(layers: _Layers, h: int, factor: float, wanted: Bools, best: Floats, chosen: Ints) -> None:
    """Lower best[u] of wanted nodes to factor * dist[h, u]; chosen[u] is the layer of the best."""
    dist = layers.dist
    for u in range(best.size):
        if wanted[u] and factor * dist[h, u] < best[u]:
            best[u] = factor * dist[h, u]
            chosen[u] = h


@kernel
def _walk(step: Ints, head: Ints, node: int, sink: int, layer: int, out: Ints) -> int:
    """Follow the arcs of Bellman-Ford, step (layers, n), from a node to the sink; fill `out` and return the hops."""
    hops = 0
    while node != sink:
        arc = step[layer, node]
        if arc >= 0:
            out[hops] = arc
            node = head[arc]
            hops += 1
        layer -= 1
    return hops


@kernel
def _mark(data: Ints, sink: int, seed: int, wanted: Bools) -> bool:
    """Mark the nodes with as much data as `seed`; False if an earlier node had as much, or if there is nothing to route."""
    if seed == sink or data[seed] == 0:
        return False
    for u in range(seed):
        if u != sink and data[u] == data[seed]:
            return False
    for u in range(data.size):
        wanted[u] = u != sink and data[u] == data[seed]
    return True


@kernel
def _same_arcs(room: Ints, size: int, weight: Ints, low: int, live: Ints) -> tuple[int, int]:
    """Fill `live` with the arcs that a path of `low` hops may use; (their number, the most hops with the same arcs)."""
    count = 0
    least = UNREACHED
    for a in range(room.size):
        if room[a] >= size * weight[low]:
            live[count] = a
            count += 1
            least = min(least, room[a])
    high = low
    while high + 1 < weight.size and size * weight[high + 1] <= least:
        high += 1
    return count, high


@kernel
def cheapest_by_hops(
    tail: Ints, head: Ints, room: Ints, price: Floats, sink: int, data: Ints, weight: Ints
) -> tuple[Floats, Ints, Ints]:
    """For every node u with data: the path p to the sink that minimises weight[hops] * sum of price over p.

    A path of h hops is admitted only if every arc on it has room >= data[u] * weight[h]. One hop-indexed
    Bellman-Ford serves all nodes with the same data; it restarts only where a longer path loses an arc.

    tail, head, room (A,); price (A,) >= 0; data (n,), 0: no flow; weight (n,) nondecreasing, weight[0] = 0.
    Returns cost (n,) (inf: no admitted path; 0 where data is 0 or at the sink), length (n,) in hops, and arcs
    (n, longest): the path's arcs in order from u are arcs[u, :length[u]]; the rest of a row is undefined.
    """
    # most paths are short, and to touch n * n numbers takes longer than the search
    rows = min(data.size, FIRST_ROWS)
    while True:
        done, best, length, path = _within_rows(tail, head, room, price, (sink, rows), data, weight)
        if done:
            return best, length, path
        rows = min(data.size, 4 * rows)


@kernel
def _within_rows(
    tail: Ints, head: Ints, room: Ints, price: Floats, to: tuple[int, int], data: Ints, weight: Ints
) -> tuple[bool, Floats, Ints, Ints]:
    """`cheapest_by_hops` (to: the sink, and the rows of layers that there are); False first where they are too few."""
    sink, rows = to
    n = data.size
    best, length, path = np.full(n, np.inf), np.zeros(n, np.int64), np.empty((n, rows), np.int64)
    live = np.empty(tail.size, np.int64)
    layers = _Layers(tail, head, live, np.empty((rows, n)), np.empty((rows, n), np.int64))
    wanted, chosen = np.empty(n, np.bool_), np.empty(n, np.int64)
    longest = 0
    for seed in range(n):
        if seed == sink or data[seed] == 0:
            best[seed] = 0.0
        if not _mark(data, sink, seed, wanted):
            continue
        low = 1
        while low < n:
            count, high = _same_arcs(room, data[seed], weight, low, live)
            if count == 0:
                break
            layers.dist[0, :] = np.inf
            layers.dist[0, sink] = 0.0
            chosen[:] = 0
            settled = False
            h = 0
            last = min(high, rows - 1)
            while h < last and not settled:
                h += 1
                settled = _add_hop(layers, count, price, h)
                if h >= low:
                    _improve(layers, h, weight[h], wanted, best, chosen)
            if not settled and last < high:
                return False, best, length, path[:, :1]
            if settled and h < low:
                # nothing changes beyond layer h, and hop counts from low on use these same arcs
                _improve(layers, h, weight[low], wanted, best, chosen)
            for u in range(n):
                if chosen[u] > 0:
                    length[u] = _walk(layers.step, head, u, sink, chosen[u], path[u])
                    longest = max(longest, length[u])
            if settled:
                break
            low = high + 1
    return True, best, length, path[:, : max(longest, 1)]


@kernel
def cheapest_lifted(
    tail: Ints, head: Ints, room: Ints, price: Floats, lift: Ints, sink: int, data: Ints, weight: Ints
) -> tuple[Floats, Ints, Ints]:
    """Like cheapest_by_hops, but a flow on arc a counts with at least lift[a] (A,); cost (n,) is for all of a flow's data.

    The cost of an arc depends on the hops of the path, so every number of hops needs its own Bellman-Ford.
    """
    n = data.size
    best, length, path = np.full(n, np.inf), np.zeros(n, np.int64), np.empty((n, n), np.int64)
    dist, step = np.empty((n, n)), np.empty((n, n), np.int64)
    wanted = np.empty(n, np.bool_)
    for seed in range(n):
        if seed == sink or data[seed] == 0:
            best[seed] = 0.0
        if not _mark(data, sink, seed, wanted):
            continue
        for h in range(1, n):
            need = data[seed] * weight[h]
            dist[0, :] = np.inf
            dist[0, sink] = 0.0
            settled = False
            j = 0
            while j < h and not settled:
                j += 1
                settled = True
                for u in range(n):
                    dist[j, u] = dist[j - 1, u]
                    step[j, u] = -1
                for a in range(tail.size):
                    if room[a] >= need:
                        c = dist[j - 1, head[a]] + price[a] * max(need, lift[a])
                        if c < dist[j, tail[a]]:
                            dist[j, tail[a]] = c
                            step[j, tail[a]] = a
                            settled = False
            for u in range(n):
                if wanted[u] and dist[j, u] < best[u]:
                    best[u] = dist[j, u]
                    length[u] = _walk(step, head, u, sink, j, path[u])
            if settled:
                break  # no path of more hops is cheaper: all of its arcs cost at least as much
    return best, length, path[:, : max(length.max(), 1)]


def simple_paths(graph: Graph, source: int, sink: int, *, limit: int | None = None) -> list[tuple[int, ...]]:
    """Simple paths from source to sink as arc tuples, fewest hops first, then by arc numbers.

    With a limit, the first `limit` in that order: lengths are searched one by one, so a small limit is fast even
    in a large graph.
    """
    hops = hops_to_all(graph)[sink]
    if source == sink or hops[source] >= UNREACHED:
        return []
    found: list[tuple[int, ...]] = []
    for length in range(int(hops[source]), graph.nodes):
        found.extend(_paths_of_length(graph, source, sink, length, hops))
        if limit is not None and len(found) >= limit:
            return found[:limit]
    return found


def _paths_of_length(graph: Graph, source: int, sink: int, length: int, hops: Ints) -> list[tuple[int, ...]]:
    """Simple paths of exactly `length` hops; hops (n,): fewest hops to the sink."""
    found: list[tuple[int, ...]] = []
    start, head = graph.start.tolist(), graph.head.tolist()
    to_sink = hops.tolist()
    on_path = [False] * graph.nodes
    on_path[source] = True
    stack: list[int] = []
    cursor = [start[source]]
    node = source
    while cursor:
        left = length - len(stack)
        if cursor[-1] == start[node + 1] or left == 0:
            if left == 0 and node == sink:
                found.append(tuple(stack))
            cursor.pop()
            if stack:
                on_path[node] = False
                stack.pop()
                node = head[stack[-1]] if stack else source
            continue
        arc = cursor[-1]
        cursor[-1] += 1
        nxt = head[arc]
        if on_path[nxt] or to_sink[nxt] > left - 1 or (nxt == sink and left > 1):
            continue
        stack.append(arc)
        on_path[nxt] = True
        node = nxt
        cursor.append(start[nxt])
    return found
