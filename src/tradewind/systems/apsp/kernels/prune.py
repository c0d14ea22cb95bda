"""Drop listed paths that cannot be part of a routing, and price those that are left."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tradewind.model.arrays import Bools, Floats, Ints
from tradewind.solvers.kernel import kernel
from tradewind.systems.apsp.kernels.lists import Columns

UNLIMITED = 1 << 40
"""Number of flows on a resource that no branch has limited."""


class _Counts(NamedTuple):
    """Paths that are alive: number over a resource (F, R), their lightest load there (F, R), number in all (F,)."""

    over: Ints
    lightest: Ints
    paths: Ints


class _Certain(NamedTuple):
    """Per resource (R,): load that is certain, flows that must use it, flows that may."""

    load: Ints
    must: Ints
    may: Ints


@kernel
def _count(alive: Bools, columns: Columns, counts: _Counts) -> None:
    """Count the paths that are alive."""
    flow, amount, start, used, _ = columns
    count, lightest, paths = counts
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


@kernel
def _add_up(counts: _Counts, certain: _Certain) -> bool:
    """What is certain on every resource; False if a flow has no path."""
    count, lightest, paths = counts
    load, must, may = certain
    load[:] = 0
    must[:] = 0
    may[:] = 0
    for f in range(paths.size):
        if paths[f] == 0:
            return False
        for r in range(load.size):
            if count[f, r] > 0:
                may[r] += 1
                if count[f, r] == paths[f]:
                    must[r] += 1
                    load[r] += lightest[f, r]
    return True


@kernel
def _drop_overloading(
    alive: Bools, columns: Columns, counts: _Counts, certain: _Certain, room: Ints, most: Ints
) -> bool:
    """Drop paths that do not fit beside certain loads and numbers of flows; whether any was dropped."""
    flow, amount, start, used, _ = columns
    count, lightest, paths = counts
    load, must, _ = certain
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
    return dropped


@kernel
def _drop_avoiding(alive: Bools, columns: Columns, count: Ints, may: Ints, least: Ints) -> bool:
    """Drop paths that avoid a resource which all flows that may use it must use; whether any was dropped."""
    flow, _, start, used, _ = columns
    dropped = False
    for r in range(may.size):
        if least[r] > 0 and may[r] == least[r]:
            for c in range(flow.size):
                if alive[c] and count[flow[c], r] > 0:
                    uses = False
                    for k in range(start[c], start[c + 1]):
                        uses = uses or used[k] == r
                    if not uses:
                        alive[c] = False
                        dropped = True
    return dropped


@kernel
def propagate(alive: Bools, columns: Columns, room: Ints, least: Ints, most: Ints) -> bool:
    """Drop (in alive (C,)) paths that do not fit beside what every other flow must load anyway; False: no routing is left.

    least, most (R,): how many flows must and may use a resource.
    """
    flows, resources = columns.flows, room.size
    both = (flows, resources)
    counts = _Counts(np.empty(both, np.int64), np.empty(both, np.int64), np.empty(flows, np.int64))
    certain = _Certain(
        np.empty(resources, np.int64), np.empty(resources, np.int64), np.empty(resources, np.int64)
    )
    while True:
        _count(alive, columns, counts)
        if not _add_up(counts, certain):
            return False
        for r in range(resources):
            if certain.load[r] > room[r] or certain.must[r] > most[r] or certain.may[r] < least[r]:
                return False
        overloading = _drop_overloading(alive, columns, counts, certain, room, most)
        avoiding = _drop_avoiding(alive, columns, counts.over, certain.may, least)
        if not overloading and not avoiding:
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
