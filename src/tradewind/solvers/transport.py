"""The transport problem by shortest augmenting paths: ship supplies to capacities at least cost."""

import numpy as np

from tradewind.model.arrays import Floats, Ints
from tradewind.solvers.kernel import kernel


@kernel
def _label(
    cost: Floats, flow: Floats, start: int, tiny: float, to_sink: Floats, via: Ints, into: Ints
) -> None:
    """Shortest paths from source ``start`` to every sink in the residual graph of ``flow`` (label-correcting).

    Fills to_sink (R,) lengths, via (R,) the source from which the path enters a sink, into (S,) the sink from which
    it enters a source. Residual arcs back from a sink have negative cost, hence no plain Dijkstra.
    """
    sources, sinks = cost.shape
    open_ = np.ones(sinks, dtype=np.bool_)
    to_source = np.full(sources, np.inf)
    to_source[start] = 0.0
    slack = 0.0
    for r in range(sinks):
        to_sink[r] = cost[start, r]
        via[r] = start
        if cost[start, r] < np.inf:
            slack = max(slack, 1e-13 * cost[start, r])
    while True:
        near = -1
        best = np.inf
        for r in range(sinks):
            if open_[r] and to_sink[r] < best:
                best = to_sink[r]
                near = r
        if near < 0:
            return
        open_[near] = False
        for s in range(sources):
            if flow[s, near] <= tiny or best - cost[s, near] >= to_source[s] - slack:
                continue
            to_source[s] = best - cost[s, near]
            into[s] = near
            for r in range(sinks):
                if to_source[s] + cost[s, r] < to_sink[r] - slack:
                    to_sink[r] = to_source[s] + cost[s, r]
                    via[r] = s
                    open_[r] = True


@kernel
def _push(flow: Floats, start: int, end: int, most: float, tiny: float, via: Ints, into: Ints) -> float:
    """Send as much as fits, at most ``most``, along the labelled path from ``start`` to ``end``."""
    amount = most
    r = end
    while via[r] != start:
        s = via[r]
        r = into[s]
        amount = min(amount, flow[s, r])
    r = end
    while True:
        s = via[r]
        flow[s, r] += amount
        if s == start:
            return amount
        r = into[s]
        flow[s, r] -= amount
        if flow[s, r] <= tiny:
            flow[s, r] = 0.0


@kernel
def ship(cost: Floats, supply: Floats, capacity: Floats, flow: Floats) -> float:
    """Fill ``flow`` (S, R) with a cheapest shipment; return its cost, or infinity if it does not fit.

    cost (S, R) >= 0 per unit, infinite where forbidden; supply (S,); capacity (R,). Every augmentation follows a
    shortest residual path, so what is shipped is always shipped at least cost. Amounts below 1e-14 of the total
    supply count as zero; integral supplies and capacities give integral flows.
    """
    sources, sinks = cost.shape
    room = np.empty(sinks)
    for r in range(sinks):
        room[r] = capacity[r]
    tiny = 0.0
    for s in range(sources):
        tiny += 1e-14 * supply[s]
        for r in range(sinks):
            flow[s, r] = 0.0
    to_sink = np.empty(sinks)
    via = np.empty(sinks, dtype=np.int64)
    into = np.empty(sources, dtype=np.int64)
    total = 0.0
    for start in range(sources):
        left = supply[start]
        while left > tiny:
            end = 0
            for r in range(1, sinks):
                if cost[start, r] < cost[start, end]:
                    end = r
            if room[end] > tiny and cost[start, end] < np.inf:
                # The cheapest sink of all still has room: no detour over other sources can beat it.
                amount = min(left, room[end])
                flow[start, end] += amount
                total += amount * cost[start, end]
            else:
                _label(cost, flow, start, tiny, to_sink, via, into)
                end = -1
                for r in range(sinks):
                    if room[r] > tiny and to_sink[r] < np.inf and (end < 0 or to_sink[r] < to_sink[end]):
                        end = r
                if end < 0:
                    return np.inf
                amount = _push(flow, start, end, min(left, room[end]), tiny, via, into)
                total += amount * to_sink[end]
            room[end] -= amount
            left -= amount
    return total


def transport(cost: Floats, supply: Floats, capacity: Floats) -> tuple[Floats, float]:
    """A cheapest shipment (S, R) and its cost; the cost is infinite if the supply does not fit.

    cost (S, R) >= 0 per unit (infinite = forbidden), supply (S,) >= 0, capacity (R,) >= 0.
    """
    cost = np.ascontiguousarray(cost, dtype=np.float64)
    flow = np.zeros(cost.shape)
    total = ship(
        cost,
        np.ascontiguousarray(supply, dtype=np.float64),
        np.ascontiguousarray(capacity, dtype=np.float64),
        flow,
    )
    return flow, float(total)
