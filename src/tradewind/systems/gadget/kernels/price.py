"""Cheapest rings of every size at once: a group knapsack over the servers of each rack, then over racks.

Rings are elementary: a server is visited once, with at most what it holds. (A closed walk under prices would revisit
servers and make bounds too large.) One pass costs O(S N^2) for all sizes 1 … N.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tradewind.model.arrays import Floats, Ints
from tradewind.solvers.kernel import kernel

INF = np.inf


@kernel
def most_workers(room: Ints, need: Ints, widest: int) -> int:
    """Workers of `need` (R,) that fit into `room` (R,), at most `widest`."""
    most = widest
    for r in range(need.size):
        if need[r] > 0:
            k = room[r] // need[r]
            if k < most:
                most = k
    return max(most, 0)


@kernel
def cheapest(
    room: Ints, link: Ints, first: Ints, trunk: Ints, window: Ints, need: Ints, band: int, widest: int,
    fee: Floats, toll: Floats, gate: Floats, open_row: np.ndarray,
    cost: Floats, kind: Ints, where: Ints, inner: Floats, pick: Ints, outer: Floats, part: Ints,
) -> None:  # fmt: skip
    """Least cost of a ring of k = 1 … widest workers on the racks in `window`, and how to trace it.

    fee (S,) per worker, toll (S,) per visit of a server in a ring of several, gate (G,) per visit of a rack in a ring of
    several racks; open_row (S,) or empty. Writes cost (N+1,), kind (N+1,): 0 one server, 1 one rack, 2 several racks,
    where (N+1,): server or rack of kinds 0 and 1; inner (G, N+1) and pick (S, N+1): best inside a rack and workers
    taken at each server; outer (N+1,), part (W, N+1): over racks, workers taken in each.
    """
    for k in range(widest + 1):
        cost[k] = INF
        kind[k] = -1
        outer[k] = INF
    cost[0] = 0.0
    outer[0] = 0.0
    for w in range(window.size):
        g = window[w]
        table = inner[g]
        for k in range(widest + 1):
            table[k] = INF
        table[0] = 0.0
        reach = 0  # workers that the servers so far can hold
        for s in range(first[g], first[g + 1]):
            row = pick[s]
            for k in range(widest + 1):
                row[k] = 0
            if open_row.size > 0 and open_row[s] == 0:
                continue
            c = most_workers(room[s], need, widest)
            if c == 0:
                continue
            f = fee[s]
            for k in range(1, c + 1):
                if k * f < cost[k]:
                    cost[k] = k * f
                    kind[k] = 0
                    where[k] = s
            if link[s] < band:
                continue
            reach = min(widest, reach + c)
            t = toll[s]
            for k in range(reach, 0, -1):
                best = table[k]
                taken = 0
                for j in range(1, min(c, k) + 1):
                    v = table[k - j] + j * f + t
                    if v < best:
                        best = v
                        taken = j
                table[k] = best
                row[k] = taken
        for k in range(1, reach + 1):
            if table[k] < cost[k]:
                cost[k] = table[k]
                kind[k] = 1
                where[k] = g
        use = part[w]
        for k in range(widest + 1):
            use[k] = 0
        if window.size < 2 or trunk[g] < band or reach == 0:
            continue
        t = gate[g]
        for k in range(widest, 0, -1):
            best = outer[k]
            taken = 0
            for j in range(1, min(reach, k) + 1):
                v = outer[k - j] + table[j] + t
                if v < best:
                    best = v
                    taken = j
            outer[k] = best
            use[k] = taken
    for k in range(1, widest + 1):
        if outer[k] < cost[k]:
            cost[k] = outer[k]
            kind[k] = 2


@kernel
def trace(
    k: int, first: Ints, window: Ints, kind: Ints, where: Ints, pick: Ints, part: Ints,
    servers: Ints, workers: Ints,
) -> Any:  # fmt: skip
    """Writes the ring of k workers that `cheapest` found, rack by rack; returns the servers it visits."""
    count = 0
    if kind[k] == 0:
        servers[0] = where[k]
        workers[0] = k
        return 1
    if kind[k] == 1:
        count += _trace_rack(k, where[k], first, pick, servers, workers, 0)
        return count
    left = k
    for w in range(window.size - 1, -1, -1):
        j = part[w, left]
        if j > 0:
            count = _trace_rack(j, window[w], first, pick, servers, workers, count)
            left -= j
        if left == 0:
            break
    return count


@kernel
def _trace_rack(k: int, g: int, first: Ints, pick: Ints, servers: Ints, workers: Ints, count: int) -> int:
    left = k
    for s in range(first[g + 1] - 1, first[g] - 1, -1):
        j = pick[s, left]
        if j > 0:
            servers[count] = s
            workers[count] = j
            count += 1
            left -= j
        if left == 0:
            break
    return count


@kernel
def price_jobs(
    room: Ints, link: Ints, first: Ints, trunk: Ints, need: Ints, band: Ints, gain: Floats, open_: np.ndarray,
    p_room: Floats, p_link: Floats, p_trunk: Floats, best: Floats, servers: Ints, workers: Ints, size: Ints,
) -> None:  # fmt: skip
    """For each job the ring with the largest gain - cost at prices (size 0 where none is above 0).

    Writes best (I,), servers and workers (I, N), size (I,).
    """
    count, widest = gain.shape[0], gain.shape[1] - 1
    spots, racks = room.shape[0], trunk.size
    window = np.arange(racks)
    cost, outer = np.empty(widest + 1), np.empty(widest + 1)
    kind, where = np.empty(widest + 1, np.int64), np.empty(widest + 1, np.int64)
    inner, pick = np.empty((racks, widest + 1)), np.empty((spots, widest + 1), np.int64)
    part = np.empty((racks, widest + 1), np.int64)
    fee, toll, gate = np.empty(spots), np.empty(spots), np.empty(racks)
    everywhere = np.ones(0, np.int8)
    for i in range(count):
        for s in range(spots):
            f = 0.0
            for r in range(need.shape[1]):
                f += need[i, r] * p_room[s, r]
            fee[s] = f
            toll[s] = band[i] * p_link[s]
        for g in range(racks):
            gate[g] = band[i] * p_trunk[g]
        row = open_[i] if open_.shape[0] > 0 else everywhere
        cheapest(
            room, link, first, trunk, window, need[i], band[i], widest, fee, toll, gate, row,
            cost, kind, where, inner, pick, outer, part,
        )  # fmt: skip
        top, at = 0.0, 0
        for k in range(1, widest + 1):
            v = gain[i, k] - cost[k]
            if v > top:
                top = v
                at = k
        best[i] = top
        size[i] = at
        for j in range(servers.shape[1]):
            servers[i, j] = -1
            workers[i, j] = 0
        if at > 0:
            trace(at, first, window, kind, where, pick, part, servers[i], workers[i])
