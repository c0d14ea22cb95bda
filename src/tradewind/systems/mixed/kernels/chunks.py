"""The best schedule of a data set: chunks of parts go to cells (slot, place) at least cost, by shortest augmenting paths."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tradewind.model.arrays import Floats, Ints
from tradewind.solvers.kernel import kernel
from tradewind.systems.mixed.kernels.market import Market, most_units, price


class Chunks(NamedTuple):
    """A data set: chunks left of each part (Q,), USD and GB to bring a chunk from a part to a place (Q, H).

    rate   chunks that a worker processes in a slot
    most   workers in a slot
    server demand (R,) of its parameter server, 0 where it has none
    worth  (T,) value of a completion in each slot
    """

    left: Ints
    usd: Floats
    gb: Floats
    rate: float
    most: int
    server: Floats
    worth: Floats


class Cells(NamedTuple):
    """Where chunks may go: USD of a chunk of each part (T, H, Q), chunks that fit in a cell (T, H) and in a slot (T,)."""

    usd: Floats
    room: Ints
    slot_room: Ints


@kernel
def cells_of(m: Market, need: Floats, places: Ints, c: Chunks) -> Cells:
    """Unit prices: of the true bill the mean up to what fits; the server's price is shared by the most workers."""
    total, hosts = m.linear.shape[0], m.linear.shape[1]
    usd = np.full((total, hosts, len(c.left)), np.inf)
    room, slot_room = np.zeros((total, hosts), dtype=np.int64), np.zeros(total, dtype=np.int64)
    last = m.free.shape[1] - 1
    for t in range(total):
        serving = 0.0
        if c.server.sum() > 0.0:
            serving = np.inf
            for h in range(hosts):
                if places[t, h] and most_units(m, t, h, c.server, 1):
                    serving = min(serving, price(m, t, h, c.server, 1))
            if serving == np.inf:
                continue
        slot_room[t] = int(c.most * c.rate + 1e-9)
        for h in range(hosts):
            fit = most_units(m, t, h, need, c.most) if places[t, h] else 0
            room[t, h] = int(fit * c.rate + 1e-9)
            if room[t, h]:
                each = (price(m, t, h, need, fit) / fit + serving / c.most) / c.rate
                for q in range(len(c.left)):
                    if c.gb[q, h] <= m.free[t, last] + 1e-9:
                        usd[t, h, q] = each + c.usd[q, h] + c.gb[q, h] * m.byte_usd[t]
    return Cells(usd, room, slot_room)


@kernel
def assign(cells: Cells, left: Ints, end: int, x: Ints) -> float:
    """Fill x (T, H, Q) with a cheapest assignment to the slots before `end`; return its USD, infinite if it does not fit.

    A path goes from a part with chunks left to a free cell, or takes the place of another part's chunk in the same slot,
    which then looks for another one.
    """
    hosts, parts = x.shape[1], x.shape[2]
    x[:, :, :] = 0
    wanted = left.copy()
    in_cell, in_slot = np.zeros((end, hosts), dtype=np.int64), np.zeros(end, dtype=np.int64)
    into, swap = np.empty(parts), np.empty((parts, parts))
    goal, cell = np.zeros((parts, 2), dtype=np.int64), np.zeros((parts, parts, 3), dtype=np.int64)
    dist, via = np.empty(parts), np.empty(parts, dtype=np.int64)
    total = 0.0
    for _ in range(left.sum()):
        into[:] = np.inf
        swap[:, :] = np.inf
        for t in range(end):
            full = in_slot[t] >= cells.slot_room[t]
            for h in range(hosts):
                tight = in_cell[t, h] >= cells.room[t, h]
                for q in range(parts):
                    usd = cells.usd[t, h, q]
                    if usd == np.inf:
                        continue
                    if not full and not tight:
                        if usd < into[q]:
                            into[q] = usd
                            goal[q, 0], goal[q, 1] = t, h
                        continue
                    for g in range(
                        hosts
                    ):  # whose chunk makes room: in this cell, or in another of a full slot
                        if (tight and g != h) or not in_cell[t, g]:
                            continue
                        for p in range(parts):
                            if p != q and x[t, g, p] and usd - cells.usd[t, g, p] < swap[q, p]:
                                swap[q, p] = usd - cells.usd[t, g, p]
                                cell[q, p, 0], cell[q, p, 1], cell[q, p, 2] = t, h, g
        for q in range(parts):
            dist[q] = 0.0 if wanted[q] else np.inf
            via[q] = -1
        for _round in range(parts):
            for q in range(parts):
                for p in range(parts):
                    if dist[q] + swap[q, p] < dist[p] - 1e-12:
                        dist[p] = dist[q] + swap[q, p]
                        via[p] = q
        at, best = -1, np.inf
        for q in range(parts):
            if dist[q] + into[q] < best:
                at, best = q, dist[q] + into[q]
        if at < 0:
            return np.inf
        total += best
        t, h = goal[at, 0], goal[at, 1]
        in_slot[t] += 1
        in_cell[t, h] += 1
        x[t, h, at] += 1
        for _hop in range(parts):
            if via[at] < 0:
                break
            q = via[at]
            t, h, g = cell[q, at, 0], cell[q, at, 1], cell[q, at, 2]
            x[t, g, at] -= 1
            in_cell[t, g] -= 1
            x[t, h, q] += 1
            in_cell[t, h] += 1
            at = q
        wanted[at] -= 1
    return total


@kernel
def best_chunks(m: Market, need: Floats, places: Ints, c: Chunks, x: Ints) -> tuple[float, float]:
    """Fill x (T, H, Q); return (profit at the unit prices, value). No schedule is better at linear prices."""
    cells = cells_of(m, need, places, c)
    total, parts = len(c.worth), len(c.left)
    hope, cheapest = np.empty(total), np.full(parts, np.inf)
    room = 0
    for t in range(
        total
    ):  # what a completion in this slot could bring if every chunk had the cheapest cell so far
        hope[t] = c.worth[t]
        room += cells.slot_room[t]
        for q in range(parts):
            cheapest[q] = min(cheapest[q], cells.usd[t, :, q].min())
            if c.left[q]:
                hope[t] -= c.left[q] * cheapest[q]
        if room < c.left.sum():
            hope[t] = -np.inf
    trial = np.zeros_like(x)
    profit, value = -np.inf, 0.0
    for t in np.argsort(-hope):
        if hope[t] <= profit or hope[t] == -np.inf:
            break
        usd = assign(cells, c.left, t + 1, trial)
        if c.worth[t] - usd > profit:
            profit, value = c.worth[t] - usd, c.worth[t]
            x[:, :, :] = trial
    return profit, value
