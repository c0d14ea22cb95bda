"""Paths in a directed graph: hop distances, cheapest paths by number of hops, simple paths.

A graph is a list of arcs sorted by tail. Several arcs may draw on one resource (the two directions of a
shared link do); a graph whose links have a capacity per direction has one resource per arc.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from tradewind.model.arrays import Floats, Ints
from tradewind.solvers.kernel import kernel

UNREACHED = np.iinfo(np.int64).max // 4


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


def graph_of_links(nodes: int, links: Iterable[tuple[int, int]], *, shared: bool = False) -> Graph:
    """Both directions of every link: resources 2k and 2k + 1 for link k, or k alone when shared."""
    arcs: list[tuple[int, int, int]] = []
    for k, (u, v) in enumerate(links):
        arcs.append((u, v, k if shared else 2 * k))
        arcs.append((v, u, k if shared else 2 * k + 1))
    return make_graph(nodes, arcs)


@kernel
def _hops_to(tail_start: Ints, neighbour: Ints, root: int, out: Ints) -> None:
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


@kernel
def _walk(step: Ints, head: Ints, node: int, sink: int, layer: int, out: Ints) -> int:
    """Follows the arcs that Bellman-Ford took, step (layers, n), from a node to the sink; fills out, returns the hops."""
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
def cheapest_by_hops(
    tail: Ints, head: Ints, room: Ints, price: Floats, sink: int, data: Ints, weight: Ints
) -> tuple[Floats, Ints, Ints]:
    """For every node u with data: the path p to the sink that minimises weight[hops] * sum of price over p.

    A path of h hops is admitted only if every arc on it has room >= data[u] * weight[h]. One hop-indexed
    Bellman-Ford serves all nodes with the same data; it restarts only where a longer path loses an arc.

    tail, head, room (A,); price (A,) >= 0; data (n,), 0 = no flow; weight (n,) nondecreasing, weight[0] = 0.
    Returns cost (n,) (inf: no admitted path; 0 where data is 0 or at the sink), length (n,) in hops, and arcs
    (n, longest): the path's arcs in order from u are arcs[u, :length[u]], the rest of a row means nothing.
    """
    n = data.size
    arcs = tail.size
    best = np.full(n, np.inf)
    length = np.zeros(n, np.int64)
    path = np.empty((n, n), np.int64)
    dist = np.empty((n, n))
    step = np.empty((n, n), np.int64)
    chosen = np.empty(n, np.int64)
    live = np.empty(arcs, np.int64)
    done = np.zeros(n, np.bool_)
    longest = 0
    for u in range(n):
        if data[u] == 0 or u == sink:
            best[u] = 0.0
            done[u] = True
    for seed in range(n):
        if done[seed]:
            continue
        size = data[seed]
        low = 1
        while low < n:
            count = 0
            least = UNREACHED
            for a in range(arcs):
                if room[a] >= size * weight[low]:
                    live[count] = a
                    count += 1
                    least = min(least, room[a])
            if count == 0:
                break
            high = low
            while high + 1 < n and size * weight[high + 1] <= least:
                high += 1
            dist[0, :] = np.inf
            dist[0, sink] = 0.0
            chosen[:] = 0
            settled = False
            h = 0
            while h < high and not settled:
                h += 1
                settled = True
                for u in range(n):
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
                if h >= low:
                    for u in range(n):
                        if data[u] == size and not done[u] and weight[h] * dist[h, u] < best[u]:
                            best[u] = weight[h] * dist[h, u]
                            chosen[u] = h
            if settled and h < low:
                # nothing changes beyond layer h, and hop counts from low on use these same arcs
                for u in range(n):
                    if data[u] == size and not done[u] and weight[low] * dist[h, u] < best[u]:
                        best[u] = weight[low] * dist[h, u]
                        chosen[u] = h
            for u in range(n):
                if chosen[u] > 0:
                    length[u] = _walk(step, head, u, sink, chosen[u], path[u])
                    longest = max(longest, length[u])
            if settled:
                break
            low = high + 1
        for u in range(n):
            if data[u] == size:
                done[u] = True
    return best, length, path[:, : max(longest, 1)]


@kernel
def cheapest_lifted(
    tail: Ints, head: Ints, room: Ints, price: Floats, lift: Ints, sink: int, data: Ints, weight: Ints
) -> tuple[Floats, Ints, Ints]:
    """Like cheapest_by_hops, where a flow on arc a counts with at least lift[a] (A,); cost (n,) is of all of a flow's data.

    What an arc costs depends on the path's hops in its own way, so every number of hops has a Bellman-Ford of its own.
    """
    n = data.size
    best = np.full(n, np.inf)
    length = np.zeros(n, np.int64)
    path = np.empty((n, n), np.int64)
    dist = np.empty((n, n))
    step = np.empty((n, n), np.int64)
    done = np.zeros(n, np.bool_)
    for u in range(n):
        if data[u] == 0 or u == sink:
            best[u] = 0.0
            done[u] = True
    for seed in range(n):
        if done[seed]:
            continue
        size = data[seed]
        settled = False
        for h in range(1, n):
            need = size * weight[h]
            dist[0, :] = np.inf
            dist[0, sink] = 0.0
            j = 0
            settled = False
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
                if data[u] == size and not done[u] and dist[j, u] < best[u]:
                    best[u] = dist[j, u]
                    length[u] = _walk(step, head, u, sink, j, path[u])
            if settled:
                break  # no path of more hops is cheaper: all of its arcs cost at least as much
        for u in range(n):
            if data[u] == size:
                done[u] = True
    return best, length, path[:, : max(length.max(), 1)]


def simple_paths(graph: Graph, source: int, sink: int, *, limit: int | None = None) -> list[tuple[int, ...]]:
    """Simple paths from source to sink as arc tuples, fewest hops first, then by arc numbers.

    With a limit, the first `limit` of that order: lengths are opened one by one, so a large graph with a small
    limit costs little.
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
