"""Cheapest rings of every size at once: a group knapsack over the servers of each rack, then over racks.

Rings are elementary: a server is visited once, with at most what it holds. (A closed walk under prices would revisit
servers and make bounds too large.) One pass costs O(S N^2) for all sizes 1 … N.

Small kernels are inlined, because every call with a tuple counts the references of all its arrays. Measured for `cheapest`
on 50 servers: 1.9 us with calls, 1.1 us inlined, 1.4 us when each array was a parameter.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tradewind.model.arrays import Bytes, Floats, Ints
from tradewind.solvers.kernel import kernel
from tradewind.systems.gadget.kernels.slot import Capacity, Rings, Slot, SlotPrices

INF = np.inf
ONE_SERVER, ONE_RACK, SEVERAL_RACKS = 0, 1, 2
"""Where the cheapest ring of a size lies (`Scratch.kind`)."""


class Request(NamedTuple):
    """A ring that one job asks for: need (R,) of a worker, bit/s of a hop, workers at most, open (S,) or empty."""

    need: Ints
    band: int
    widest: int
    open: Bytes


class Scratch(NamedTuple):
    """Tables of `cheapest`.

    Input: what a worker costs on each server (S,), a visit of the server in a ring of several (S,) and a visit of the
    rack in a ring over several racks (G,).

    cost   (N + 1,) least cost of a ring of k workers, inf where there is none
    kind   (N + 1,) ONE_SERVER, ONE_RACK or SEVERAL_RACKS
    where  (N + 1,) server or rack of the first two kinds
    inner  (G, N + 1) least cost inside a rack over several servers
    pick   (S, N + 1) workers taken at each server for it
    outer  (N + 1,) least cost over several racks
    part   (W, N + 1) workers taken in each rack of the window for it
    """

    per_worker: Floats
    per_server: Floats
    per_rack: Floats
    cost: Floats
    kind: Ints
    where: Ints
    inner: Floats
    pick: Ints
    outer: Floats
    part: Ints


@kernel
def make_scratch(servers: int, racks: int, widest: int) -> Any:
    """Tables for a cluster of this size."""
    return Scratch(
        np.empty(servers), np.empty(servers), np.empty(racks),
        np.empty(widest + 1), np.empty(widest + 1, np.int64), np.empty(widest + 1, np.int64),
        np.empty((racks, widest + 1)), np.empty((servers, widest + 1), np.int64),
        np.empty(widest + 1), np.empty((racks, widest + 1), np.int64),
    )  # fmt: skip


@kernel
def open_row(open_: Bytes, i: int) -> Any:
    """(S,) 1 where job i may run; empty: everywhere."""
    return open_[i] if open_.shape[0] > 0 else open_[:0].reshape(0)


@kernel(forceinline=True)
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
def cheapest(free: Capacity, window: Ints, request: Request, scratch: Scratch) -> None:
    """Least cost of a ring of k = 1 … widest workers on the racks in `window`, and how to trace it, into scratch."""
    widest, cost, kind, outer = request.widest, scratch.cost, scratch.kind, scratch.outer
    for k in range(widest + 1):
        cost[k] = INF
        kind[k] = -1
        outer[k] = INF
    cost[0] = 0.0
    outer[0] = 0.0
    for w in range(window.size):
        g = window[w]
        reach = _one_rack(free, g, request, scratch)
        for k in range(widest + 1):
            scratch.part[w, k] = 0
        if window.size > 1 and free.trunk[g] >= request.band and reach > 0:
            _add_rack(scratch, w, g, reach, widest)
    for k in range(1, widest + 1):
        if outer[k] < cost[k]:
            cost[k] = outer[k]
            kind[k] = SEVERAL_RACKS


@kernel(forceinline=True)
def _one_rack(free: Capacity, g: int, request: Request, scratch: Scratch) -> int:
    """Cheapest rings on one server and inside rack g; returns the workers that its servers with enough link can hold."""
    need, band, widest, open_ = request
    room, link, first, _ = free
    per_worker, per_server, pick = scratch.per_worker, scratch.per_server, scratch.pick
    cost, kind, where, table = scratch.cost, scratch.kind, scratch.where, scratch.inner[g]
    for k in range(widest + 1):
        table[k] = INF
    table[0] = 0.0
    reach = 0
    for s in range(first[g], first[g + 1]):
        row = pick[s]
        for k in range(widest + 1):
            row[k] = 0
        if open_.size > 0 and open_[s] == 0:
            continue
        most = most_workers(room[s], need, widest)
        if most == 0:
            continue
        fee = per_worker[s]
        for k in range(1, most + 1):
            if k * fee < cost[k]:
                cost[k] = k * fee
                kind[k] = ONE_SERVER
                where[k] = s
        if link[s] < band:
            continue
        reach = min(widest, reach + most)
        visit = per_server[s]
        for k in range(reach, 0, -1):
            best = table[k]
            taken = 0
            for j in range(1, min(most, k) + 1):
                v = table[k - j] + j * fee + visit
                if v < best:
                    best = v
                    taken = j
            table[k] = best
            row[k] = taken
    for k in range(1, reach + 1):
        if table[k] < cost[k]:
            cost[k] = table[k]
            kind[k] = ONE_RACK
            where[k] = g
    return reach


@kernel(forceinline=True)
def _add_rack(scratch: Scratch, w: int, g: int, reach: int, widest: int) -> None:
    """Extend the rings over several racks by rack g, the w-th of the window."""
    outer, table, taken_here = scratch.outer, scratch.inner[g], scratch.part[w]
    visit = scratch.per_rack[g]
    for k in range(widest, 0, -1):
        best = outer[k]
        taken = 0
        for j in range(1, min(reach, k) + 1):
            v = outer[k - j] + table[j] + visit
            if v < best:
                best = v
                taken = j
        outer[k] = best
        taken_here[k] = taken


@kernel(forceinline=True)
def trace(k: int, first: Ints, window: Ints, scratch: Scratch, servers: Ints, workers: Ints) -> None:
    """Write the ring of k workers that `cheapest` found, rack by rack, to rows (N,)."""
    if scratch.kind[k] == ONE_SERVER:
        servers[0] = scratch.where[k]
        workers[0] = k
        return
    if scratch.kind[k] == ONE_RACK:
        _trace_rack(k, scratch.where[k], first, scratch.pick, servers, workers)
        return
    left = k
    count = 0
    for w in range(window.size - 1, -1, -1):
        j = scratch.part[w, left]
        if j > 0:
            count += _trace_rack(j, window[w], first, scratch.pick, servers[count:], workers[count:])
            left -= j
        if left == 0:
            break


@kernel(forceinline=True)
def _trace_rack(k: int, g: int, first: Ints, pick: Ints, servers: Ints, workers: Ints) -> int:
    """Write the servers of rack g that hold k workers; returns how many."""
    left = k
    count = 0
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
def price_jobs(slot: Slot, prices: SlotPrices, best: Floats, rings: Rings) -> None:
    """Write each job's ring with the largest gain - cost at prices, and that value to best (I,); size 0 where none gains."""
    free = Capacity(slot.room, slot.link, slot.first, slot.trunk)
    widest, servers, racks = slot.gain.shape[1] - 1, slot.room.shape[0], slot.trunk.size
    window = np.arange(racks)
    scratch = make_scratch(servers, racks, widest)
    for i in range(slot.need.shape[0]):
        need, band = slot.need[i], slot.band[i]
        for s in range(servers):
            fee = 0.0
            for r in range(need.size):
                fee += need[r] * prices.room[s, r]
            scratch.per_worker[s] = fee
            scratch.per_server[s] = band * prices.link[s]
        for g in range(racks):
            scratch.per_rack[g] = band * prices.trunk[g]
        cheapest(free, window, Request(need, band, widest, open_row(slot.open, i)), scratch)
        top, at = 0.0, 0
        for k in range(1, widest + 1):
            v = slot.gain[i, k] - scratch.cost[k]
            if v > top:
                top = v
                at = k
        best[i] = top
        rings.size[i] = at
        rings.server[i] = -1
        rings.workers[i] = 0
        if at > 0:
            trace(at, slot.first, window, scratch, rings.server[i], rings.workers[i])
