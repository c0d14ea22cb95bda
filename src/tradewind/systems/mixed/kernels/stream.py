"""Streams: the ways to serve a slot, and the best way through the slots with deployment and slots left out."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tradewind.model.arrays import Floats, Ints
from tradewind.solvers.kernel import kernel
from tradewind.solvers.transport import ship
from tradewind.systems.mixed.kernels.market import SMALL, Market, most_units, price


class Ways(NamedTuple):
    """Ways to serve each slot; those of slot t are first[t] to first[t + 1].

    workers  (W, H); server (W,) its place, -1: none; usd, gb (W,) own cost and GB moved
    places   (W,) number of its set of places; deploy (Z, Z) USD from one set to another, set 0 is empty
    worth    (T,) what serving the slot adds
    """

    first: Ints
    workers: Ints
    server: Ints
    usd: Floats
    gb: Floats
    places: Ints
    deploy: Floats
    worth: Floats


@kernel
def divisions(
    volume: Floats, move_usd: Floats, move_gb: Floats, each: float, most: Ints, limit: int
) -> tuple[Ints, Floats, Floats, bool]:
    """Workers (W, H) that process all data, with the USD and GB of moving it; dominated ones are left out.

    volume (Q,) GB, move_usd and move_gb (Q, H) per GB, each GB per worker, most (H,) workers per place. The last value says
    whether all divisions were looked at: at most `limit` are. One that has no more workers anywhere and moves for no
    more money dominates another.
    """
    hosts = move_usd.shape[1]
    fewest = int(np.ceil(volume.sum() / each - 1e-9))
    largest = 0
    for q in range(len(volume)):
        largest += int(np.ceil(volume[q] / each - 1e-9))
    found = np.zeros((limit, hosts), dtype=np.int64)
    usd, gb = np.zeros(limit), np.zeros(limit)
    count, seen = 0, 0
    flow, room, y = np.zeros(move_usd.shape), np.zeros(hosts), np.zeros(hosts, dtype=np.int64)
    for total in range(fewest, largest + 1):
        y[:] = 0
        at = 0
        left = total
        while at >= 0:  # all vectors with this sum, place by place
            if at == hosts - 1:
                y[at] = left
                seen += 1
                if seen > limit:
                    return found[:count], usd[:count], gb[:count], False
                if left <= most[at]:
                    for h in range(hosts):
                        room[h] = y[h] * each
                    cost = ship(move_usd, volume, room, flow)
                    fine = cost < np.inf
                    for k in range(count):
                        if not fine:
                            break
                        fine = usd[k] > cost + 1e-12
                        for h in range(hosts):
                            fine = fine or found[k, h] > y[h]
                    if fine:
                        found[count] = y
                        usd[count] = cost
                        gb[count] = (flow * move_gb).sum()
                        count += 1
                y[at] = 0
                at -= 1
                while at >= 0 and (left == 0 or y[at] == most[at]):
                    left += y[at]
                    y[at] = 0
                    at -= 1
                if at >= 0:
                    y[at] += 1
                    left -= 1
                    at += 1
            else:
                at += 1
    return found[:count], usd[:count], gb[:count], True


@kernel
def best_ways(m: Market, worker: Floats, server: Floats, ways: Ways, best: Floats, which: Ints) -> None:
    """Fill best (T, Z) with the USD of the cheapest way of each slot and set of places, which (T, Z) with the way, -1: none.

    A server pays what is left of a tier after the workers beside it.
    """
    total, hosts = len(ways.worth), m.linear.shape[1]
    last, most = m.free.shape[1] - 1, ways.workers.max() if len(ways.workers) else 0
    cost, serve = np.empty((hosts, most + 1)), np.empty((hosts, most + 1))
    best[:, :] = np.inf
    which[:, :] = -1
    for t in range(total):
        if ways.first[t] == ways.first[t + 1]:
            continue
        for h in range(hosts):
            fit = most_units(m, t, h, worker, most)
            for n in range(most + 1):
                cost[h, n] = price(m, t, h, worker, n) if n <= fit else np.inf
                serve[h, n] = np.inf
                if n <= fit and most_units(m, t, h, server + n * worker, 1):
                    serve[h, n] = price(m, t, h, server + n * worker, 1) - cost[h, n]
        for w in range(ways.first[t], ways.first[t + 1]):
            z = ways.places[w]
            usd = ways.usd[w] + ways.gb[w] * m.byte_usd[t]
            if usd >= best[t, z] or ways.gb[w] > m.free[t, last] + SMALL:
                continue
            for h in range(hosts):
                usd += cost[h, ways.workers[w, h]]
            s = ways.server[w]
            if s >= 0 and usd < best[t, z]:
                usd += serve[s, ways.workers[w, s]]
            if usd < best[t, z]:
                best[t, z] = usd
                which[t, z] = w


@kernel
def best_stream(m: Market, worker: Floats, server: Floats, ways: Ways, before: int, chosen: Ints) -> float:
    """Fill chosen (T,) with the way of each slot, -1 where it is left out; return the profit. Exact at linear prices.

    before: set of places just before the first slot.
    """
    total, sets = len(ways.worth), len(ways.deploy)
    best, which = np.empty((total, sets)), np.empty((total, sets), dtype=np.int64)
    best_ways(m, worker, server, ways, best, which)
    gain = np.full((total + 1, sets), -np.inf)
    gain[0, before] = 0.0
    origin, way = np.zeros((total + 1, sets), dtype=np.int64), np.full((total + 1, sets), -1, dtype=np.int64)
    for t in range(total):
        for z in range(sets):
            if gain[t, z] > gain[t + 1, 0]:
                gain[t + 1, 0] = gain[t, z]
                origin[t + 1, 0] = z
        for y in range(1, sets):
            if which[t, y] < 0:
                continue
            for z in range(sets):
                found = gain[t, z] - ways.deploy[z, y]
                if found > gain[t + 1, y]:
                    gain[t + 1, y] = found
                    origin[t + 1, y], way[t + 1, y] = z, which[t, y]
            gain[t + 1, y] += ways.worth[t] - best[t, y]
    at = int(np.argmax(gain[total]))
    profit: float = gain[total, at]
    for t in range(total, 0, -1):
        chosen[t - 1] = way[t, at]
        at = origin[t, at]
    return profit


@kernel
def written(
    ways: Ways, before: int, chosen: Ints, workers: Ints, servers: Ints, gb: Floats, own: Floats
) -> float:
    """Fill workers and servers (T, H), GB moved and own cost (T,) with the chosen ways; return their worth."""
    value, at = 0.0, before
    for t in range(len(chosen)):
        w = chosen[t]
        if w < 0:
            continue
        if t > 0 and chosen[t - 1] < 0:
            at = 0
        value += ways.worth[t]
        own[t] = ways.usd[w] + ways.deploy[at, ways.places[w]]
        at = ways.places[w]
        workers[t] = ways.workers[w]
        gb[t] = ways.gb[w]
        if ways.server[w] >= 0:
            servers[t, ways.server[w]] = 1
    return value


@kernel
def relaxed_stream(
    m: Market, worker: Floats, places: Ints, volume: Floats, move_usd: Floats, each: float, worth: Floats
) -> float:
    """What no schedule exceeds at linear prices, by slot: workers in parts, at the best place of every source.

    volume (T, Q) GB, move_usd (Q, H) per GB.
    """
    total = 0.0
    for t in range(len(worth)):
        usd = 0.0
        for q in range(volume.shape[1]):
            best = np.inf
            for h in range(m.linear.shape[1]):
                if places[t, h]:
                    best = min(best, move_usd[q, h] + price(m, t, h, worker, 1) / each)
            if volume[t, q] > 0.0:
                usd += volume[t, q] * best
        total += max(0.0, worth[t] - usd)
    return total
