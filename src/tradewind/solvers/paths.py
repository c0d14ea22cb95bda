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
FIRST_HOPS = 32
"""Hops for which there is room at first in paths of searches by hops."""


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


class _Search(NamedTuple):
    """Bellman-Ford by hops to one sink, a layer of one more hop at a time.

    tail, head (A,), and the arcs that enter v: into[first[v] : first[v + 1]]
    dist (n,)   cost of the cheapest path so far, event (n,) its row in the trail; fresh, via (n,): what the layer finds
    trail       rows of (first arc of a path, row of the path after it, hops); row 0 is the sink's
    """

    tail: Ints
    head: Ints
    into: Ints
    first: Ints
    dist: Floats
    event: Ints
    fresh: Floats
    via: Ints


@kernel
def _begin(tail: Ints, head: Ints, nodes: int) -> _Search:
    """An empty search, with the arcs sorted by head."""
    first, into = np.zeros(nodes + 1, np.int64), np.empty(head.size, np.int64)
    for a in range(head.size):
        first[head[a]] += 1
    for v in range(nodes):
        first[v + 1] += first[v]
    for a in range(head.size - 1, -1, -1):
        first[head[a]] -= 1
        into[first[head[a]]] = a
    costs, places = np.empty((2, nodes)), np.empty((2, nodes), np.int64)
    return _Search(tail, head, into, first, costs[0], places[0], costs[1], places[1])


@kernel
def _add_hop(search: _Search, room: Ints, need: int, price: Floats, now: Ints, then: Ints) -> int:
    """Fill `then` with the nodes that one more hop brings nearer, over arcs with room; how many.

    Only the nodes `now` that the last hop brought nearer can do so. Of equal arcs the lowest number counts.
    """
    tail, _, into, first, dist, _, fresh, via = search
    count = 0
    for v in now:
        for k in range(first[v], first[v + 1]):
            a = into[k]
            if room[a] < need:
                continue
            u = tail[a]
            c = dist[v] + price[a]
            if c < fresh[u]:
                if via[u] < 0:
                    then[count] = u
                    count += 1
                fresh[u] = c
                via[u] = a
            elif c == fresh[u] and via[u] > a:
                via[u] = a
    return count


@kernel
def _settle(search: _Search, nodes: Ints, trail: Ints, rows: int) -> None:
    """Write what a layer found for these nodes into the rows of the trail from `rows` on."""
    _, head, _, _, dist, event, fresh, via = search
    for k in range(nodes.size):
        u = nodes[k]
        below = event[head[via[u]]]
        trail[rows + k, 0] = via[u]
        trail[rows + k, 1] = below
        trail[rows + k, 2] = trail[below, 2] + 1
    for k in range(nodes.size):
        u = nodes[k]
        event[u] = rows + k
        dist[u] = fresh[u]
        via[u] = -1


@kernel
def _grown(table: Ints, rows: int, columns: int) -> Ints:
    """A table with so many rows and columns, and what was there."""
    wide = np.empty((rows, columns), np.int64)
    wide[: table.shape[0], : table.shape[1]] = table
    return wide


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
def _same_arcs(room: Ints, size: int, weight: Ints, low: int) -> int:
    """The most hops of a path that may use the same arcs as one of `low` hops; 0 if there is no such arc."""
    least, any_arc = UNREACHED, False
    for a in range(room.size):
        if room[a] >= size * weight[low]:
            least, any_arc = min(least, room[a]), True
    high = low if any_arc else 0
    while any_arc and high + 1 < weight.size and size * weight[high + 1] <= least:
        high += 1
    return high


@kernel
def cheapest_by_hops(
    tail: Ints, head: Ints, room: Ints, price: Floats, sink: int, data: Ints, weight: Ints
) -> tuple[Floats, Ints, Ints]:
    """For every node u with data: the path p to the sink that minimises weight[hops] * sum of price over p.

    A path of h hops is admitted only if every arc on it has room >= data[u] * weight[h]. One hop-indexed
    Bellman-Ford serves all nodes with the same data; it restarts only where a longer path loses an arc. A layer visits only
    the nodes that the layer before brought nearer, so a search takes little more than one visit per node.

    tail, head, room (A,); price (A,) >= 0; data (n,), 0: no flow; weight (n,) nondecreasing, weight[0] = 0.
    Returns cost (n,) (inf: no admitted path; 0 where data is 0 or at the sink), length (n,) in hops, and arcs
    (n, longest): the path's arcs in order from u are arcs[u, :length[u]]; the rest of a row is undefined.
    """
    n = data.size
    best, length, path = (
        np.full(n, np.inf),
        np.zeros(n, np.int64),
        np.empty((n, min(n, FIRST_HOPS)), np.int64),
    )
    search, trail = _begin(tail, head, n), np.empty((4 * n, 3), np.int64)
    wanted, places = np.empty(n, np.bool_), np.empty((3, n), np.int64)
    chosen, now, then = places[0], places[1], places[2]
    longest = 0
    for seed in range(n):
        if seed == sink or data[seed] == 0:
            best[seed] = 0.0
        if not _mark(data, sink, seed, wanted):
            continue
        low = 1
        while low < n:
            high = _same_arcs(room, data[seed], weight, low)
            if high == 0:
                break
            search.dist[:] = np.inf
            search.fresh[:] = np.inf
            search.via[:] = -1
            search.dist[sink] = search.fresh[sink] = 0.0
            search.event[sink] = trail[0, 2] = 0
            chosen[:] = 0
            now[0] = sink
            h, count, rows = 0, 1, 1
            while h < high and count > 0:
                h += 1
                count = _add_hop(search, room, data[seed] * weight[low], price, now[:count], then)
                while rows + count > trail.shape[0]:
                    trail = _grown(trail, 2 * trail.shape[0], 3)
                _settle(search, then[:count], trail, rows)
                rows += count
                now, then = then, now
                # beyond low hops, only a path that has become cheaper can cost less
                if h < low and count > 0:
                    continue
                whole = h <= low
                for k in range(n if whole else count):
                    u = k if whole else now[k]
                    cost = weight[max(h, low)] * search.dist[u]
                    if wanted[u] and cost < best[u]:
                        best[u] = cost
                        chosen[u] = search.event[u]
            for u in range(n):
                if chosen[u] > 0:
                    row = chosen[u]
                    length[u] = trail[row, 2]
                    longest = max(longest, length[u])
                    while longest > path.shape[1]:
                        path = _grown(path, n, 2 * path.shape[1])
                    for k in range(length[u]):
                        path[u, k] = trail[row, 0]
                        row = trail[row, 1]
            if count == 0:
                break
            low = high + 1
    return best, length, path[:, : max(longest, 1)]


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
