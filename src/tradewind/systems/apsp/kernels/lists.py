"""List all paths that can matter: those whose cost is close enough to their flow's cheapest.

Under prices y with Σ_f cheapest_f = Σ room y - slack, a routing that fits the room can only use paths whose cost is at most
slack above their flow's cheapest. Where the bound is near, these are few, and the search works on lists instead of graphs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from tradewind.model.arrays import Bools, Floats, Ints
from tradewind.solvers.kernel import kernel
from tradewind.systems.apsp.kernels.columns import Bans, Priced
from tradewind.systems.apsp.kernels.problem import Gather, Routing


class Columns(NamedTuple):
    """Listed paths for the kernels: column c loads each of used[start[c] : start[c + 1]] with amount[c].

    flow (C,): number of the column's flow, below `flows`.
    """

    flow: Ints
    amount: Ints
    start: Ints
    used: Ints
    flows: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Lists:
    """Paths of every flow, column by column.

    flows (F,): nodes that send; the arcs of column c are arcs[start[c] : start[c + 1]].
    """

    flows: Ints
    columns: Columns
    arcs: Ints

    @property
    def size(self) -> int:
        return int(self.columns.flow.size)

    def routing(self, nodes: int, pick: Ints) -> Routing:
        """The routing in which flow f takes column pick[f], (F,)."""
        paths: list[tuple[int, ...]] = [()] * nodes
        flow, start = self.columns.flow, self.columns.start
        for c in pick.tolist():
            paths[int(self.flows[flow[c]])] = tuple(self.arcs[start[c] : start[c + 1]].tolist())
        return tuple(paths)


class _Search(NamedTuple):
    """Where paths are listed: arcs from start[u] on leave node u; room, price (A,); weight by hops; data of each source."""

    start: Ints
    head: Ints
    room: Ints
    price: Floats
    weight: Ints
    sink: int
    size: int


class _Found(NamedTuple):
    """Room for listed paths: their arcs one after the other; number of arcs and source of each path.

    written (2,): paths and arcs written so far.
    """

    arcs: Ints
    lengths: Ints
    owner: Ints
    written: Ints


class _Walk(NamedTuple):
    """Working memory of a walk, by depth: node, next arc to try, price so far (n + 1,); on (n,): nodes on the path."""

    node: Ints
    cursor: Ints
    spent: Floats
    on: Bools


@kernel
def _nearest(search: _Search) -> Floats:
    """Least price of any path to the sink over arcs that hold the source's data over one hop, (n,)."""
    n = search.start.size - 1
    nearest = np.full(n, np.inf)
    nearest[search.sink] = 0.0
    for _ in range(n):
        for u in range(n):
            for a in range(search.start[u], search.start[u + 1]):
                if search.room[a] >= search.size * search.weight[1]:
                    nearest[u] = min(nearest[u], search.price[a] + nearest[search.head[a]])
    return nearest


@kernel
def _layers(search: _Search, need: int, hops: int, dist: Floats) -> None:
    """dist[j, u], j <= hops: least price of a walk of exactly j arcs from u to the sink, over arcs with room for `need`."""
    start, head, room, price = search.start, search.head, search.room, search.price
    dist[0, :] = np.inf
    dist[0, search.sink] = 0.0
    for j in range(1, hops + 1):
        for u in range(start.size - 1):
            least = np.inf
            for a in range(start[u], start[u + 1]):
                if room[a] >= need and price[a] + dist[j - 1, head[a]] < least:
                    least = price[a] + dist[j - 1, head[a]]
            dist[j, u] = least


@kernel
def _write(walk: _Walk, source: int, hops: int, found: _Found) -> bool:
    """Add the path that the walk has reached; False if there is no room."""
    paths, length = found.written
    if paths == found.lengths.size or length + hops > found.arcs.size:
        return False
    for j in range(hops):
        found.arcs[length + j] = walk.cursor[j] - 1
    found.lengths[paths] = hops
    found.owner[paths] = source
    found.written[0] += 1
    found.written[1] += hops
    return True


@kernel
def _list_from(search: _Search, source: int, most: float, dist: Floats, walk: _Walk, found: _Found) -> bool:
    """List the simple paths of one source with exactly dist.shape[0] - 1 arcs; False if there is no room."""
    start, head, room, price, weight, sink, size = search
    node, cursor, spent, on = walk
    hops = dist.shape[0] - 1
    need = size * weight[hops]
    depth = 0
    node[0] = source
    cursor[0] = start[source]
    on[source] = True
    while depth >= 0:
        x = node[depth]
        if depth == hops or cursor[depth] == start[x + 1]:
            if depth == hops and not _write(walk, source, hops, found):
                return False
            on[x] = False
            depth -= 1
            continue
        a = cursor[depth]
        cursor[depth] += 1
        y = head[a]
        rest = hops - depth - 1
        if on[y] or room[a] < need or (y == sink and rest > 0):
            continue
        cost = spent[depth] + price[a]
        if not need * (cost + dist[rest, y]) <= most:
            continue
        depth += 1
        node[depth] = y
        cursor[depth] = start[y]
        spent[depth] = cost
        on[y] = True
    return True


@kernel
def _list(search: _Search, sources: Ints, most: Floats, found: _Found) -> bool:
    """List the simple paths of each source whose weight[hops] * size * Σ price is at most its `most`; False if no room."""
    n = search.start.size - 1
    dist = np.empty((n, n))
    nearest = _nearest(search)
    walk = _Walk(np.empty(n + 1, np.int64), np.empty(n + 1, np.int64), np.zeros(n + 1), np.zeros(n, np.bool_))
    for h in range(1, n):
        need = search.size * search.weight[h]
        live = False
        for s in range(sources.size):
            live = live or need * nearest[sources[s]] <= most[s]
        if not live:
            break
        _layers(search, need, h, dist)
        for s in range(sources.size):
            reaches = need * dist[h, sources[s]] <= most[s]
            if reaches and not _list_from(search, sources[s], most[s], dist[: h + 1], walk, found):
                return False
    return True


def list_paths(
    problem: Gather, sink: int, room: Ints, price: Floats, priced: Priced, bans: Bans, limit: int
) -> Lists | None:
    """Every path that whole prices (R,) leave, given the cheapest paths under them; None if there are more than `limit`."""
    g, data = problem.graph, problem.data
    flows = np.flatnonzero((data > 0) & (np.arange(g.nodes) != sink))
    most = priced.cost + (float((room * price).sum()) - float(priced.cost.sum()))
    groups: dict[tuple[int, frozenset[int]], list[int]] = {}
    for f in flows.tolist():
        groups.setdefault((int(data[f]), bans.get(f, frozenset())), []).append(f)
    out, lengths, owner = (np.empty(k * limit, dtype=np.int64) for k in (16, 1, 1))
    found: list[tuple[Ints, Ints, Ints]] = []
    total = 0
    for (size, banned), members in groups.items():
        free = room[g.resource]
        free[list(banned)] = -1
        group = np.array(members, dtype=np.int64)
        search = _Search(g.start, g.head, free, price[g.resource], problem.weight, sink, size)
        buffers = _Found(out, lengths, owner, np.zeros(2, dtype=np.int64))
        fits = _list(search, group, most[group], buffers)
        paths, arcs = buffers.written.tolist()
        total += paths
        if not fits or total > limit:
            return None
        found.append((out[:arcs].copy(), lengths[:paths].copy(), owner[:paths].copy()))
    arcs_of = np.concatenate([f[0] for f in found])
    length = np.concatenate([f[1] for f in found])
    node = np.concatenate([f[2] for f in found])
    columns = Columns(
        flow=np.searchsorted(flows, node),
        amount=data[node] * problem.weight[length],
        start=np.concatenate([[0], np.cumsum(length)]).astype(np.int64),
        used=g.resource[arcs_of],
        flows=flows.size,
    )
    return Lists(flows=flows, columns=columns, arcs=arcs_of)
