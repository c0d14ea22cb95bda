"""Integral routings for one sink: categorical draws from a fractional routing, then min-conflict rerouting.

The search looks for a routing whose loads all fit a given room per resource. Rerouting one flow is
an exact best response: for each hop count a hop-limited Bellman-Ford finds the path with the least added
overflow. Resources that stay overloaded get a higher weight, which leads the search out of dead ends.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from tradewind.model.arrays import Floats, Ints
from tradewind.solvers.kernel import kernel
from tradewind.solvers.paths import Graph
from tradewind.systems.apsp.kernels.columns import PathPool
from tradewind.systems.apsp.kernels.problem import Gather, Routing


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchEffort:
    """Limits of a search: draws from the fractional routing, rerouting moves, hops beyond the shortest path."""

    draws: int = 64
    moves: int = 2000
    detour: int = 4


@kernel
def _next(state: Ints) -> int:
    """A 64-bit xorshift step; returns a nonnegative integer below 2**31."""
    x = state[0]
    x ^= x << 13
    x ^= (x >> 7) & 0x01FFFFFFFFFFFFFF
    x ^= x << 17
    state[0] = x
    return int((x >> 16) & 0x7FFFFFFF)


@kernel
def draw_one_path_per_flow(first: Ints, cumulative: Floats, draws: int, seed: int) -> Ints:
    """Categorical draws (lines 6-14 of Algorithm 2, corrected): (draws, F) column numbers, never none.

    first (F + 1,): the columns of flow f are first[f] .. first[f + 1] - 1; cumulative (C,): running share
    within each flow, ending at 1.
    """
    # Paper: a Bernoulli trial per path until one succeeds, which leaves a flow without a path with positive
    # probability; here one draw per flow from its shares.
    state = np.array([seed * 2654435761 + 88172645463325252], np.int64)
    flows = first.size - 1
    out = np.empty((draws, flows), np.int64)
    for d in range(draws):
        for f in range(flows):
            u = _next(state) / 2147483648.0 * cumulative[first[f + 1] - 1]
            c = first[f]
            while c < first[f + 1] - 1 and cumulative[c] <= u:
                c += 1
            out[d, f] = c
    return out


@kernel
def _least_overflow(picks: Ints, start: Ints, used: Ints, amount: Ints, room: Ints, scale: Floats) -> int:
    """The draw with the least overflow: sum over resources of scale * max(0, load - room)."""
    best = -1
    least = np.inf
    load = np.zeros(room.size, np.int64)
    for d in range(picks.shape[0]):
        load[:] = 0
        for f in range(picks.shape[1]):
            c = picks[d, f]
            for k in range(start[c], start[c + 1]):
                load[used[k]] += amount[c]
        over = 0.0
        for r in range(room.size):
            if load[r] > room[r]:
                over += scale[r] * (load[r] - room[r])
        if over < least:
            least = over
            best = d
    return best


def best_draw(
    problem: Gather,
    pool: PathPool,
    share: list[tuple[int, float]],
    room: Ints,
    effort: SearchEffort,
    seed: int,
) -> Routing:
    """The categorical draw with the least overflow among `effort.draws`."""
    share = sorted(share, key=lambda item: (pool.flow[item[0]], -item[1], item[0]))
    flows = np.array([pool.flow[k] for k, _ in share], dtype=np.int64)
    order, begin = np.unique(flows, return_index=True)
    first = np.append(begin, len(share)).astype(np.int64)
    cumulative = np.empty(len(share))
    values = np.array([v for _, v in share])
    for f in range(order.size):
        cumulative[first[f] : first[f + 1]] = np.cumsum(values[first[f] : first[f + 1]])
    lengths = [len(pool.arcs[k]) for k, _ in share]
    start = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    used = problem.graph.resource[np.concatenate([pool.arcs[k] for k, _ in share]).astype(np.int64)]
    amount = problem.data[flows] * problem.weight[np.array(lengths)]
    picks = draw_one_path_per_flow(first, cumulative, effort.draws, seed)
    scale = 1.0 / np.maximum(room, 1)
    pick = picks[_least_overflow(picks, start, used, amount, room, scale)]
    routing: list[tuple[int, ...]] = [()] * problem.graph.nodes
    for f, c in zip(order.tolist(), pick.tolist(), strict=True):
        routing[f] = pool.arcs[share[c][0]]
    return tuple(routing)


class _Target(NamedTuple):
    """What rerouting aims at: loads within room (R,) on the way to one sink.

    Arcs from start[u] on leave node u; hops (n,) to the sink; weight by hops; a path may have `detour` hops more than the
    shortest one.
    """

    start: Ints
    head: Ints
    resource: Ints
    hops: Ints
    weight: Ints
    room: Ints
    sink: int
    detour: int


class _Scratch(NamedTuple):
    """Working memory: cost and arc by hops and node (n, n), the path found (n,), state of the random numbers (1,)."""

    cost: Floats
    step: Ints
    out: Ints
    state: Ints


@kernel
def _best_response(
    node: int, size: int, target: _Target, load: Ints, heavy: Floats, scratch: _Scratch
) -> int:
    """Find the path of one flow that adds the least overflow to the other flows' load; return its number of hops.

    heavy (R,): cost of a unit of overflow. The path is in scratch.out; ties are broken at random.
    """
    start, head, resource, hops, weight, room, sink, detour = target
    cost, step, out, state = scratch
    n = hops.size
    least = np.inf
    length = 0
    for h in range(hops[node], min(hops[node] + detour, n - 1) + 1):
        need = size * weight[h]
        for j in range(h + 1):
            for x in range(n):
                cost[j, x] = np.inf
        cost[0, node] = 0.0
        for j in range(h):
            for x in range(n):
                c = cost[j, x]
                if c >= least or x == sink:
                    continue
                for a in range(start[x], start[x + 1]):
                    y = head[a]
                    if hops[y] > h - j - 1:
                        continue
                    r = resource[a]
                    over = load[r] + need - room[r]
                    added = 0.0
                    if over > 0:
                        added = heavy[r] * min(over, need)
                    # among equals: shorter paths, and resources with room to spare
                    added += 1e-4 * heavy[r] * need * (load[r] + need) / (room[r] + 1.0)
                    added *= 1.0 + 1e-3 * (_next(state) & 1023) / 1024.0
                    if c + added < cost[j + 1, y]:
                        cost[j + 1, y] = c + added
                        step[j + 1, y] = a
        if cost[h, sink] < least:
            least = cost[h, sink]
            length = h
            x = sink
            for j in range(h, 0, -1):
                a = step[j, x]
                out[j - 1] = a
                # the tail of arc a: found by layer, as arcs are sorted by tail
                lo, hi = 0, n
                while hi - lo > 1:
                    mid = (lo + hi) // 2
                    if start[mid] <= a:
                        lo = mid
                    else:
                        hi = mid
                x = lo
    return length


@kernel
def _simple(out: Ints, length: int, node: int, head: Ints) -> bool:
    for i in range(length):
        if head[out[i]] == node:
            return False
        for j in range(i):
            if head[out[i]] == head[out[j]]:
                return False
    return True


class _Paths(NamedTuple):
    """A routing: the first length[u] entries of path[u] are the arcs of flow u, (n, n) and (n,)."""

    path: Ints
    length: Ints


@kernel
def _repair(target: _Target, data: Ints, scale: Floats, routing: _Paths, moves: int, seed: int) -> float:
    """Reroute flows of overloaded resources until every load fits or the moves are spent.

    The routing ends as the best one seen; returns its overflow, weighted by scale (R,); 0 means that it fits.
    """
    _, head, resource, _, weight, room, _, _ = target
    path, length = routing
    n = data.size
    state = np.array([seed * 2654435761 + 88172645463325252], np.int64)
    load = np.zeros(room.size, np.int64)
    for u in range(n):
        for k in range(length[u]):
            load[resource[path[u, k]]] += data[u] * weight[length[u]]
    heavy = scale.copy()
    out = np.empty(n, np.int64)
    scratch = _Scratch(np.empty((n, n)), np.empty((n, n), np.int64), out, state)
    flows = np.empty(n, np.int64)
    tight = np.empty(room.size, np.int64)
    least = np.inf
    kept_path = path.copy()
    kept_length = length.copy()
    for move in range(moves + 1):
        over = 0.0
        count = 0
        for r in range(room.size):
            if load[r] > room[r]:
                over += scale[r] * (load[r] - room[r])
                tight[count] = r
                count += 1
        if over < least:
            least = over
            kept_path[:] = path
            kept_length[:] = length
        if count == 0 or move == moves:
            break
        r = tight[_next(state) % count]
        count = 0
        for u in range(n):
            for k in range(length[u]):
                if resource[path[u, k]] == r:
                    flows[count] = u
                    count += 1
                    break
        u = flows[_next(state) % count]
        for k in range(length[u]):
            load[resource[path[u, k]]] -= data[u] * weight[length[u]]
        m = _best_response(u, data[u], target, load, heavy, scratch)
        if m > 0 and _simple(out, m, u, head):
            length[u] = m
            for k in range(m):
                path[u, k] = out[k]
        for k in range(length[u]):
            load[resource[path[u, k]]] += data[u] * weight[length[u]]
        if load[r] > room[r] and (_next(state) & 3) == 0:
            heavy[r] += 0.25 * scale[r]
    path[:] = kept_path
    length[:] = kept_length
    return least


def repair(
    problem: Gather, sink: int, hops: Ints, room: Ints, routing: Routing, effort: SearchEffort, seed: int
) -> tuple[float, Routing]:
    """(overflow left, routing): the best routing seen while rerouting towards loads within the room (R,)."""
    g: Graph = problem.graph
    width = g.nodes
    path = np.zeros((g.nodes, width), dtype=np.int64)
    length = np.array([len(arcs) for arcs in routing], dtype=np.int64)
    for u, arcs in enumerate(routing):
        path[u, : len(arcs)] = arcs
    scale = 1.0 / np.maximum(problem.capacity / problem.capacity.mean(), 1e-9)
    target = _Target(g.start, g.head, g.resource, hops, problem.weight, room, sink, effort.detour)
    left = _repair(target, problem.data, scale, _Paths(path, length), effort.moves, seed)
    return float(left), tuple(tuple(path[u, : length[u]].tolist()) for u in range(g.nodes))
