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

UNLIMITED = 1 << 40
"""Number of flows on a resource that no branch has limited."""


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
    """Room for listed paths: their arcs one after the other; number of arcs and source of each path."""

    arcs: Ints
    lengths: Ints
    owner: Ints


@kernel
def _list(search: _Search, sources: Ints, most: Floats, found: _Found) -> tuple[int, int]:
    """List the simple paths of each source whose weight[hops] * size * Σ price is at most its `most`.

    Returns how many paths and arcs were written; (-1, -1) if they do not fit into `found`.
    """
    start, head, room, price, weight, sink, size = search
    out, lengths, owner = found
    n = start.size - 1
    dist = np.empty((n, n))
    nearest = np.full(n, np.inf)
    nearest[sink] = 0.0
    for _ in range(n):
        for u in range(n):
            for a in range(start[u], start[u + 1]):
                if room[a] >= size * weight[1]:
                    nearest[u] = min(nearest[u], price[a] + nearest[head[a]])
    node = np.empty(n + 1, np.int64)
    cursor = np.empty(n + 1, np.int64)
    spent = np.zeros(n + 1)
    on = np.zeros(n, np.bool_)
    paths = 0
    length = 0
    for h in range(1, n):
        need = size * weight[h]
        live = False
        for s in range(sources.size):
            live = live or need * nearest[sources[s]] <= most[s]
        if not live:
            break
        dist[0, :] = np.inf
        dist[0, sink] = 0.0
        for j in range(1, h + 1):
            for u in range(n):
                least = np.inf
                for a in range(start[u], start[u + 1]):
                    if room[a] >= need and price[a] + dist[j - 1, head[a]] < least:
                        least = price[a] + dist[j - 1, head[a]]
                dist[j, u] = least
        for s in range(sources.size):
            u = sources[s]
            if not need * dist[h, u] <= most[s]:
                continue
            depth = 0
            node[0] = u
            cursor[0] = start[u]
            on[u] = True
            while depth >= 0:
                x = node[depth]
                if depth == h or cursor[depth] == start[x + 1]:
                    if depth == h:
                        if paths == lengths.size or length + h > out.size:
                            return -1, -1
                        for j in range(h):
                            out[length + j] = cursor[j] - 1
                        length += h
                        lengths[paths] = h
                        owner[paths] = u
                        paths += 1
                    on[x] = False
                    depth -= 1
                    continue
                a = cursor[depth]
                cursor[depth] += 1
                y = head[a]
                rest = h - depth - 1
                if on[y] or room[a] < need or (y == sink and rest > 0):
                    continue
                cost = spent[depth] + price[a]
                if not need * (cost + dist[rest, y]) <= most[s]:
                    continue
                depth += 1
                node[depth] = y
                cursor[depth] = start[y]
                spent[depth] = cost
                on[y] = True
    return paths, length


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
        paths, arcs = _list(search, group, most[group], _Found(out, lengths, owner))
        total += paths
        if paths < 0 or total > limit:
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


@kernel
def propagate(alive: Bools, columns: Columns, room: Ints, least: Ints, most: Ints) -> bool:
    """Drop (in alive (C,)) paths that do not fit beside what every other flow must load anyway; False: no routing is left.

    least, most (R,): how many flows must and may use a resource.
    """
    flow, amount, start, used, flows = columns
    resources = room.size
    count = np.empty((flows, resources), np.int64)
    lightest = np.empty((flows, resources), np.int64)
    paths = np.empty(flows, np.int64)
    load = np.empty(resources, np.int64)
    must = np.empty(resources, np.int64)
    may = np.empty(resources, np.int64)
    while True:
        count[:] = 0
        paths[:] = 0
        for c in range(flow.size):
            if alive[c]:
                f = flow[c]
                paths[f] += 1
                for k in range(start[c], start[c + 1]):
                    r = used[k]
                    if count[f, r] == 0 or amount[c] < lightest[f, r]:
                        lightest[f, r] = amount[c]
                    count[f, r] += 1
        load[:] = 0
        must[:] = 0
        may[:] = 0
        for f in range(flows):
            if paths[f] == 0:
                return False
            for r in range(resources):
                if count[f, r] > 0:
                    may[r] += 1
                    if count[f, r] == paths[f]:
                        must[r] += 1
                        load[r] += lightest[f, r]
        for r in range(resources):
            if load[r] > room[r] or must[r] > most[r] or may[r] < least[r]:
                return False
        dropped = False
        for c in range(flow.size):
            if not alive[c]:
                continue
            f = flow[c]
            for k in range(start[c], start[c + 1]):
                r = used[k]
                forced = count[f, r] == paths[f]
                beside = load[r] - lightest[f, r] if forced else load[r]
                if beside + amount[c] > room[r] or (not forced and must[r] == most[r]):
                    alive[c] = False
                    dropped = True
                    break
        for r in range(resources):
            if least[r] > 0 and may[r] == least[r]:
                for c in range(flow.size):
                    if alive[c] and count[flow[c], r] > 0:
                        uses = False
                        for k in range(start[c], start[c + 1]):
                            uses = uses or used[k] == r
                        if not uses:
                            alive[c] = False
                            dropped = True
        if not dropped:
            return True


@kernel
def drop(alive: Bools, columns: Columns, load_price: Ints, number_price: Ints, budget: int) -> int:
    """Drop paths that exceed their flow's cheapest by more than the slack; how many, or -1 if nothing is left.

    load_price, number_price (R,) as in proof.Drop; budget: what a routing may cost at most.
    """
    flow, amount, start, used, flows = columns
    cost = np.zeros(flow.size, np.int64)
    cheapest = np.full(flows, 1 << 62)
    for c in range(flow.size):
        if alive[c]:
            for k in range(start[c], start[c + 1]):
                cost[c] += amount[c] * load_price[used[k]] + number_price[used[k]]
            cheapest[flow[c]] = min(cheapest[flow[c]], cost[c])
    slack = budget
    for f in range(flows):
        slack -= cheapest[f]
    if slack < 0:
        return -1
    dropped = 0
    for c in range(flow.size):
        if alive[c] and cost[c] - cheapest[flow[c]] > slack:
            alive[c] = False
            dropped += 1
    return dropped


@kernel
def usage(x: Floats, columns: Columns, resources: int) -> tuple[Floats, Floats]:
    """(share of each flow on each resource, largest load of it there): (F, R) each, over columns with x (C,) > 0."""
    flow, amount, start, used, flows = columns
    share = np.zeros((flows, resources))
    heaviest = np.zeros((flows, resources))
    for c in range(flow.size):
        if x[c] > 1e-9:
            for k in range(start[c], start[c + 1]):
                share[flow[c], used[k]] += x[c]
                heaviest[flow[c], used[k]] = max(heaviest[flow[c], used[k]], float(amount[c]))
    return share, heaviest


@kernel
def cheapest_columns(
    alive: Bools, columns: Columns, load_price: Floats, number_price: Floats, worth: Floats
) -> Ints:
    """Per flow the column that costs most below what the flow is worth (F,), if any does."""
    flow, amount, start, used, _ = columns
    least = np.full(worth.size, -1e-8)
    best = np.full(worth.size, -1, np.int64)
    for c in range(flow.size):
        if alive[c]:
            cost = -worth[flow[c]]
            for k in range(start[c], start[c + 1]):
                cost += amount[c] * load_price[used[k]] + number_price[used[k]]
            if cost < least[flow[c]]:
                least[flow[c]] = cost
                best[flow[c]] = c
    return best[best >= 0]
