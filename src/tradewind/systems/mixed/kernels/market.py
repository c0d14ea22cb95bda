"""The market that jobs answer to: what is free, what it costs, and the cost of n workers at a place and slot."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tradewind.model.arrays import Floats, Ints
from tradewind.solvers.kernel import kernel

SMALL = 1e-9


class Market(NamedTuple):
    """T slots, H places (hosts), R resources, N nodes, A accounts of rent with at most L tiers. Amounts in units and GB.

    free      (T, N * R + 1) what is left of every node's resources, and of the GB that may be moved in a slot
    linear    (T, H, R) USD per unit: prices of scarcity and, while pricing, rent at its average when full
    byte_usd  (T,) USD per GB moved
    spent     (T, A) units rented by others; factor (T, A) USD per slot of a unit-hour; starts, usd (A, L) tiers
    account   (H, R) account that a place's use is billed to, -1 for none
    above     (H, D) nodes whose limits a place's use counts against, -1 after the last
    tiers     whether the true increments of the bill are added to `linear`
    """

    free: Floats
    linear: Floats
    byte_usd: Floats
    spent: Floats
    factor: Floats
    starts: Floats
    usd: Floats
    account: Ints
    above: Ints
    tiers: bool


class Answer(NamedTuple):
    """A schedule: workers and servers (T, H), GB moved (T,), its value and own cost, and its profit at these prices.

    own   (T,) USD of moved data, parameter traffic and deployment by slot
    data  (T, H, parts) chunks processed, for data sets; profit -inf: there is none
    """

    profit: float
    value: float
    own: Floats
    workers: Ints
    servers: Ints
    gb: Floats
    data: Ints

    @property
    def gain(self) -> float:
        """Value less own cost."""
        return self.value - float(self.own.sum())


@kernel
def bill(m: Market, a: int, units: float) -> float:
    """F of an account at an amount, per unit of the factor."""
    total = 0.0
    for k in range(m.starts.shape[1]):
        low = m.starts[a, k]
        if units <= low:
            break
        high = m.starts[a, k + 1] if k + 1 < m.starts.shape[1] else np.inf
        total += (min(units, high) - low) * m.usd[a, k]
    return total


@kernel
def most_units(m: Market, t: int, h: int, need: Floats, count: int) -> int:
    """How many workers that need so much fit at a place, at most `count`."""
    width = m.linear.shape[2]
    found = count
    for d in range(m.above.shape[1]):
        node = m.above[h, d]
        if node < 0:
            break
        for r in range(width):
            if need[r] > 0.0:
                found = min(found, int((m.free[t, node * width + r] + SMALL) / need[r]))
    return max(found, 0)


@kernel
def price(m: Market, t: int, h: int, need: Floats, count: int) -> float:
    """USD of so many workers at a place in a slot, beside what others rent."""
    total = 0.0
    for r in range(need.shape[0]):
        units = need[r] * count
        if units > 0.0:
            total += units * m.linear[t, h, r]
            a = m.account[h, r]
            if m.tiers and a >= 0:
                more = bill(m, a, m.spent[t, a] + units) - bill(m, a, m.spent[t, a])
                total += more * m.factor[t, a]
    return total


@kernel
def table(m: Market, need: Floats, places: Ints, most: int, cost: Floats) -> None:
    """Fill cost (T, H, most + 1): USD of n workers at (slot, place), infinite where they do not fit or may not be.

    places (T, H): 1 where and when the job may run.
    """
    for t in range(cost.shape[0]):
        for h in range(cost.shape[1]):
            fit = most_units(m, t, h, need, most) if places[t, h] else 0
            cost[t, h, 0] = 0.0
            for n in range(1, most + 1):
                cost[t, h, n] = price(m, t, h, need, n) if n <= fit else np.inf


@kernel
def spread(cost: Floats, together: bool, best: Floats, pick: Ints) -> None:
    """Cheapest places for every number of workers in a slot: best (n + 1,), pick (H, n + 1) workers at the last place.

    cost (H, n + 1). together: all at one place.
    """
    places, width = cost.shape
    for n in range(width):
        best[n] = np.inf
    best[0] = 0.0
    if together:
        for h in range(places):
            for n in range(width):
                pick[h, n] = 0
        for n in range(1, width):
            at = -1
            for h in range(places):
                if cost[h, n] < best[n]:
                    best[n] = cost[h, n]
                    at = h
            if at >= 0:
                pick[at, n] = n
        return
    for h in range(places):
        for n in range(width - 1, -1, -1):
            found = best[n]
            which = 0
            for k in range(1, n + 1):
                if cost[h, k] == np.inf:
                    break
                usd = best[n - k] + cost[h, k]
                if usd < found:
                    found = usd
                    which = k
            best[n] = found
            pick[h, n] = which


@kernel
def placed(pick: Ints, together: bool, count: int, workers: Ints) -> None:
    """Fill workers (H,) with the places that `spread` chose for a number of workers."""
    left = count
    for h in range(pick.shape[0] - 1, -1, -1):
        workers[h] = pick[h, left]
        if workers[h] and together:
            return
        left -= workers[h]


@kernel
def post(
    m: Market, worker: Floats, server: Floats, workers: Ints, servers: Ints, gb: Floats, sign: float
) -> float:
    """Add a schedule to the market (sign 1) or take it out (-1); return by how much the bill rises."""
    total = 0.0
    slots, places, width = m.linear.shape
    for t in range(slots):
        m.free[t, m.free.shape[1] - 1] -= sign * gb[t]
        for h in range(places):
            if not workers[t, h] and not servers[t, h]:
                continue
            for r in range(width):
                units = worker[r] * workers[t, h] + server[r] * servers[t, h]
                if units == 0.0:
                    continue
                for d in range(m.above.shape[1]):
                    node = m.above[h, d]
                    if node < 0:
                        break
                    m.free[t, node * width + r] -= sign * units
                a = m.account[h, r]
                if a >= 0:
                    before = bill(m, a, m.spent[t, a])
                    m.spent[t, a] += sign * units
                    if abs(m.spent[t, a]) < SMALL:
                        m.spent[t, a] = 0.0
                    total += (bill(m, a, m.spent[t, a]) - before) * m.factor[t, a]
    return total


@kernel
def schedule_usd(m: Market, worker: Floats, server: Floats, workers: Ints, servers: Ints) -> float:
    """USD of all workers of a schedule, then of its servers, each slot and place by itself."""
    total = 0.0
    for t in range(workers.shape[0]):
        for h in range(workers.shape[1]):
            if workers[t, h]:
                total += price(m, t, h, worker, workers[t, h])
    serving = 0.0
    for t in range(servers.shape[0]):
        for h in range(servers.shape[1]):
            if servers[t, h]:
                serving += price(m, t, h, server, 1)
    return total + serving


@kernel
def used(
    above: Ints, worker: Floats, server: Floats, workers: Ints, servers: Ints, units: Floats, rows: Floats
) -> None:
    """Fill the units at every place (T, H, R), and add them to the limits of all nodes above it (T, N * R + 1)."""
    width = len(worker)
    for t in range(units.shape[0]):
        for h in range(units.shape[1]):
            for r in range(width):
                units[t, h, r] = workers[t, h] * worker[r] + servers[t, h] * server[r]
                if units[t, h, r] == 0.0:
                    continue
                for d in range(above.shape[1]):
                    node = above[h, d]
                    if node < 0:
                        break
                    rows[t, node * width + r] += units[t, h, r]


@kernel
def fits(m: Market, worker: Floats, server: Floats, workers: Ints, servers: Ints, gb: Floats) -> bool:
    """Whether a schedule fits into what is free."""
    post(m, worker, server, workers, servers, gb, 1.0)
    fine = True
    for t in range(m.free.shape[0]):
        for k in range(m.free.shape[1]):
            if m.free[t, k] < -SMALL:
                fine = False
    post(m, worker, server, workers, servers, gb, -1.0)
    return fine
