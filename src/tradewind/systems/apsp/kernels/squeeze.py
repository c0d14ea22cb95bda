"""Prices that refute a sink without an LP: multiplicative weights on the resources that cheapest paths overload."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tradewind.model.arrays import Floats, Ints
from tradewind.solvers.kernel import kernel
from tradewind.solvers.paths import cheapest_by_hops, cheapest_lifted
from tradewind.systems.apsp.kernels.columns import integer_prices
from tradewind.systems.apsp.kernels.problem import Gather, lift_of


class _Flows(NamedTuple):
    """A gathering problem towards one sink: arcs (A,), data (n,), weight by hops, room and lift (R,)."""

    tail: Ints
    head: Ints
    resource: Ints
    data: Ints
    weight: Ints
    room: Ints
    lift: Ints
    sink: int


@kernel
def _squeeze(flows: _Flows, price: Floats, rounds: int) -> tuple[float, Floats]:
    """(best bound on λ, its prices (R,)) after at most `rounds` rounds; stops as soon as the bound exceeds 1.

    Each round routes every flow on its cheapest path and raises prices in proportion to the overload.
    """
    tail, head, resource, data, weight, room, lift, sink = flows
    price = price.copy()
    kept = price.copy()
    best = -1.0
    load = np.zeros(room.size)
    lifted = lift.max() > 0
    for turn in range(rounds):
        free, paid = room[resource], price[resource]
        if lifted:
            cost, length, arcs = cheapest_lifted(tail, head, free, paid, lift[resource], sink, data, weight)
        else:
            cost, length, arcs = cheapest_by_hops(tail, head, free, paid, sink, data, weight)
        spent = 0.0
        for u in range(data.size):
            spent += cost[u] if lifted else data[u] * cost[u]
        budget = 0.0
        for r in range(room.size):
            budget += max(room[r], 0) * price[r]
        bound = spent / budget if budget > 0.0 else np.inf
        if bound > best:
            best = bound
            kept[:] = price
        if best > 1.0 + 1e-9 or not np.isfinite(spent):
            break
        load[:] = 0.0
        for u in range(data.size):
            for k in range(length[u]):
                r = resource[arcs[u, k]]
                load[r] += max(data[u] * weight[length[u]], lift[r])
        most = 0.0
        for r in range(room.size):
            if room[r] > 0:
                most = max(most, load[r] / room[r])
        if most == 0.0:  # nothing is sent: the only source is the sink
            break
        step = 1.2 / (1.0 + 0.08 * turn)
        for r in range(room.size):
            if room[r] > 0:
                price[r] *= np.exp(step * (load[r] / room[r] / most - 0.5))
    return best, kept


def squeeze(problem: Gather, sink: int, room: Ints, start: Floats, rounds: int) -> tuple[float, Floats]:
    """(bound on λ, integer prices (R,)) after some rounds of multiplicative weights, started near `start` (R,)."""
    g = problem.graph
    base = 1.0 / np.maximum(problem.capacity, 1)
    begin = base / float((base * room).sum()) + 4.0 * start / max(float((start * room).sum()), 1e-300)
    lift = lift_of(problem, room)
    flows = _Flows(g.tail, g.head, g.resource, problem.data, problem.weight, room, lift, sink)
    bound, price = _squeeze(flows, begin, rounds)
    return float(bound), integer_prices(problem, room, price)
