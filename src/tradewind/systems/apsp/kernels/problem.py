"""Gathering at one sink: every source sends its data to a common sink along one path.

    time = max over resources r of load_r / capacity_r,
    load_r = sum over flows f on r of data_f * weight[hops_f]

The weight of a path's hop count is the transport model: hops (store and forward, the paper's |p| in (4)),
1 (cut-through) or 1 + (hops - 1) / K (K chunks). All of data, weight and capacity are integers, so a load is
an integer and a time is a fraction k / capacity_r: bounds may round, and every comparison here is exact.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from math import gcd

import numpy as np

from tradewind.model.arrays import Ints
from tradewind.solvers.paths import UNREACHED, Graph, cheapest_by_hops, hops_to_all

Routing = tuple[tuple[int, ...], ...]
"""Per node the arcs of its path to the sink, () for the sink and for nodes without data."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gather:
    """The problem as arrays: capacity (R,), data (n,) with 0 for no source, weight (n,) by hops, weight[0] = 0.

    least: smallest load that any flow puts on a resource, that of the smallest data over one hop.
    """

    graph: Graph
    capacity: Ints
    data: Ints
    weight: Ints
    least: int = field(init=False)

    def __post_init__(self) -> None:
        g = self.graph
        if g.nodes < 2:
            raise ValueError(f"a network needs at least 2 nodes to send anything; it has {g.nodes}")
        if self.capacity.shape != (g.resources,) or self.data.shape != (g.nodes,):
            raise ValueError("capacity needs one entry per resource, data one per node")
        if (self.capacity <= 0).any():
            r = int(np.flatnonzero(self.capacity <= 0)[0])
            raise ValueError(f"resource {r} has capacity {self.capacity[r]}; it must be positive")
        if (self.data < 0).any() or not self.data.any():
            raise ValueError("data must be >= 0 everywhere and positive somewhere")
        if self.weight.shape != (g.nodes,) or self.weight[0] != 0 or (np.diff(self.weight) < 0).any():
            raise ValueError("weight must be 0 for 0 hops and must not fall with the number of hops")
        largest = int(self.data.sum()) * int(self.weight[-1])
        if largest * int(self.capacity.max()) >= 1 << 62:
            raise ValueError("data x weight x capacity exceeds 64 bits; use sizes in a coarser unit")
        object.__setattr__(self, "least", int(self.data[self.data > 0].min()) * int(self.weight[1]))


def hop_weight(nodes: int, transport: str) -> tuple[Ints, int]:
    """The weight table of a transport and its scale: weight[h] / scale is w(h).

    transport: "store-and-forward" (w = h), "cut-through" (w = 1), "chunks:K" (w = 1 + (h - 1) / K).
    """
    hops = np.arange(nodes, dtype=np.int64)
    if transport == "store-and-forward":
        return hops, 1
    if transport == "cut-through":
        return np.minimum(hops, 1), 1
    kind, _, text = transport.partition(":")
    if kind == "chunks" and text.isdigit() and int(text) >= 1:
        chunks = int(text)
        return np.where(hops > 0, chunks + hops - 1, 0), chunks
    raise ValueError(
        f"transport is {transport!r}; allowed are store-and-forward, cut-through and chunks:K with K >= 1"
    )


def coarsest(values: Ints) -> tuple[Ints, int]:
    """Divide integers by their greatest common divisor: (values // unit, unit)."""
    unit = 0
    for value in values.tolist():
        unit = gcd(unit, int(value))
    unit = max(unit, 1)
    return values // unit, unit


def loads_of(problem: Gather, routing: Routing) -> Ints:
    """Load per resource (R,) of a routing."""
    load = np.zeros(problem.capacity.size, dtype=np.int64)
    for u, arcs in enumerate(routing):
        if arcs:
            np.add.at(load, problem.graph.resource[list(arcs)], problem.data[u] * problem.weight[len(arcs)])
    return load


def time_of(problem: Gather, routing: Routing) -> Fraction:
    """max over resources of load / capacity, exactly."""
    return slowest(loads_of(problem, routing), problem.capacity)


def slowest(load: Ints, capacity: Ints) -> Fraction:
    """max of load / capacity as a fraction; the largest float ratios are compared exactly."""
    ratio = load / capacity
    close = np.flatnonzero(ratio >= ratio.max() * (1 - 1e-12))
    return max(Fraction(int(load[r]), int(capacity[r])) for r in close)


def room_below(problem: Gather, level: Fraction) -> Ints:
    """Largest integer load per resource (R,) that keeps load / capacity strictly below the level."""
    num, den = level.numerator, level.denominator
    if num < (1 << 62) // int(problem.capacity.max()):
        return (num * problem.capacity - 1) // den
    return np.array([(num * int(b) - 1) // den for b in problem.capacity], dtype=np.int64)


def room_within(problem: Gather, level: Fraction) -> Ints:
    """Largest integer load per resource (R,) with load / capacity <= level."""
    num, den = level.numerator, level.denominator
    if num < (1 << 62) // int(problem.capacity.max()):
        return (num * problem.capacity) // den
    return np.array([(num * int(b)) // den for b in problem.capacity], dtype=np.int64)


def lift_of(problem: Gather, room: Ints) -> Ints:
    """Least load to count per flow (R,): the whole room where only one flow fits, 0 elsewhere."""
    least = problem.least
    if least == 1:
        return np.zeros_like(room)
    return np.where((room > least) & (room < 2 * least), room, 0)


def next_level(problem: Gather, room: Ints) -> Fraction:
    """Least time of any load above the room: min over resources of (room + 1) / capacity."""
    ratio = (room + 1) / problem.capacity
    close = np.flatnonzero(ratio <= ratio.min() * (1 + 1e-12))
    return min(Fraction(int(room[r]) + 1, int(problem.capacity[r])) for r in close)


def sinks_that_reach_all(problem: Gather) -> tuple[Ints, Ints]:
    """(hops (n, n), sinks): hop counts to every sink and the nodes every source can send to."""
    hops = hops_to_all(problem.graph)
    source = problem.data > 0
    ok = (hops[:, source] < UNREACHED).all(axis=1)
    return hops, np.flatnonzero(ok).astype(np.int64)


def fewest_hops(problem: Gather, sink: int) -> Routing:
    """Every source on a path with the fewest hops; of several the one over the lowest arc numbers."""
    g = problem.graph
    room = np.full(g.arcs, UNREACHED)
    _, length, arcs = cheapest_by_hops(
        g.tail, g.head, room, np.ones(g.arcs), sink, problem.data, problem.weight
    )
    return tuple(tuple(arcs[u, : length[u]].tolist()) for u in range(g.nodes))
