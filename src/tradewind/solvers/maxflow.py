"""Integral maximum flow (Dinic's algorithm) on arcs with capacities, and its minimum cut.

The helpers are inlined: calls made max_flow 7% slower on 12 nodes.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tradewind.model.arrays import Ints
from tradewind.solvers.kernel import kernel


class _Residual(NamedTuple):
    """Residual graph: 2 a is arc a, 2 a + 1 its reverse; the arcs that leave node u are order[start[u]:start[u + 1]]."""

    start: Ints
    order: Ints
    head: Ints
    left: Ints


@kernel(inline="always")
def _residual(nodes: int, tail: Ints, head: Ints, capacity: Ints) -> _Residual:
    arcs = tail.size
    to = np.empty(2 * arcs, np.int64)
    left = np.empty(2 * arcs, np.int64)
    count = np.zeros(nodes + 1, np.int64)
    for a in range(arcs):
        to[2 * a] = head[a]
        to[2 * a + 1] = tail[a]
        left[2 * a] = capacity[a]
        left[2 * a + 1] = 0
        count[tail[a] + 1] += 1
        count[head[a] + 1] += 1
    start = np.cumsum(count)
    fill = start[:-1].copy()
    order = np.empty(2 * arcs, np.int64)
    for e in range(2 * arcs):
        u = tail[e // 2] if e % 2 == 0 else head[e // 2]
        order[fill[u]] = e
        fill[u] += 1
    return _Residual(start, order, to, left)


@kernel(inline="always")
def _levels(residual: _Residual, source: int, level: Ints, queue: Ints) -> None:
    """Fill level (n,) with the hops from the source over arcs with capacity left; -1 if unreachable."""
    start, order, head, left = residual
    level[:] = -1
    level[source] = 0
    queue[0] = source
    first, last = 0, 1
    while first < last:
        u = queue[first]
        first += 1
        for k in range(start[u], start[u + 1]):
            e = order[k]
            if left[e] > 0 and level[head[e]] < 0:
                level[head[e]] = level[u] + 1
                queue[last] = head[e]
                last += 1


@kernel(inline="always")
def _augment(residual: _Residual, level: Ints, source: int, sink: int, stack: Ints) -> int:
    """Push flow along shortest paths until none is left; return its value."""
    start, order, head, left = residual
    cursor = start[:-1].copy()
    value, depth, u = 0, 0, source
    while True:
        if u == sink:
            push = left[stack[0]]
            for i in range(1, depth):
                push = min(push, left[stack[i]])
            value += push
            for i in range(depth - 1, -1, -1):
                left[stack[i]] -= push
                left[stack[i] ^ 1] += push
                if left[stack[i]] == 0:
                    depth = i
                    u = head[stack[i] ^ 1]
        elif cursor[u] < start[u + 1]:
            e = order[cursor[u]]
            if left[e] > 0 and level[head[e]] == level[u] + 1:
                stack[depth] = e
                depth += 1
                u = head[e]
            else:
                cursor[u] += 1
        elif depth == 0:
            return value
        else:
            depth -= 1
            u = head[stack[depth] ^ 1]
            cursor[u] += 1


@kernel
def max_flow(
    nodes: int, tail: Ints, head: Ints, capacity: Ints, source: int, sink: int
) -> tuple[int, Ints, Ints]:
    """(value, flow (A,), side (n,)): an integral maximum flow and the source side of a minimum cut (1 = inside).

    tail, head, capacity: (A,) int64. Arcs may be parallel. Deterministic: arcs are tried in their order.
    """
    residual = _residual(nodes, tail, head, capacity)
    level = np.empty(nodes, np.int64)
    queue = np.empty(nodes, np.int64)
    stack = np.empty(nodes, np.int64)
    value = 0
    while True:
        _levels(residual, source, level, queue)
        if level[sink] < 0:
            break
        value += _augment(residual, level, source, sink, stack)
    flow = np.empty(tail.size, np.int64)
    for a in range(tail.size):
        flow[a] = capacity[a] - residual.left[2 * a]
    side = np.zeros(nodes, np.int64)
    for u in range(nodes):
        if level[u] >= 0:
            side[u] = 1
    return value, flow, side
