"""Lower bounds with certificates for gathering at one sink.

A certificate proves that no routing to this sink is faster than the level. It holds prices y >= 0, integers: with
room_r the largest integer load below level * capacity_r, every routing that is faster than the level would
need Σ_f data_f (cheapest admitted path of f under y) <= Σ_r room_r y_r, and the sum on the left is larger.
Loads are integers, so rounding the room down is sound, and a path whose own load exceeds the room of one of its
resources is not admitted. Where prices alone do not decide, they leave few paths to every flow, and the certificate
is a tree over these lists; where they leave too many, some flow must first avoid the one or the other half of the
arcs that leave some node.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from tradewind.model.arrays import Floats, Ints
from tradewind.systems.apsp.kernels.columns import (
    NO_BANS,
    Bans,
    PathPool,
    Relaxation,
    StopRule,
    lagrangian,
    relax,
)
from tradewind.systems.apsp.kernels.lists import list_paths
from tradewind.systems.apsp.kernels.problem import (
    Gather,
    Routing,
    loads_of,
    next_level,
    room_below,
    room_within,
)
from tradewind.systems.apsp.kernels.proof import Listed, Proof, SinkBound, Split, leaf_of, pairs_of
from tradewind.systems.apsp.kernels.tree import ListTree

SURE = 1.0 + 1e-12
"""A bound on λ above this refutes; the margin covers rounding."""
FINE = 1 << 40
"""Parts of a unit of time in which levels are tried."""
MOST_LISTED = 6000
"""Up to this many paths in all lists together, the tree works on lists."""


def refutes(problem: Gather, sink: int, level: Fraction, price: Floats, bans: Bans = NO_BANS) -> bool:
    """Do integer prices (R,) prove that no routing is faster than the level?"""
    return lagrangian(problem, sink, room_below(problem, level), price, bans).bound > SURE


def degree_prices(problem: Gather, sink: int) -> Floats:
    """Price 1 on every resource that enters the sink: the degree bound's certificate, (R,)."""
    price = np.zeros(problem.capacity.size)
    price[problem.graph.resource[problem.graph.head == sink]] = 1.0
    return price


def degree_levels(problem: Gather, hops: Ints) -> Floats:
    """Degree bound of every sink (n,): weighted shortest hops over the capacity around it; inf if cut off."""
    g = problem.graph
    around = np.zeros(g.nodes)
    for v in range(g.nodes):
        around[v] = problem.capacity[np.unique(g.resource[g.head == v])].sum()
    reach = hops < g.nodes
    need = np.where(reach, problem.weight[np.minimum(hops, g.nodes - 1)], 0) @ problem.data
    cut = ((~reach) & (problem.data > 0)).any(axis=1) | (around == 0)
    return np.where(cut, np.inf, need / np.maximum(around, 1))


def sharpen(
    problem: Gather, sink: int, price: Floats, low: Fraction, high: float, steps: int = 24
) -> Fraction:
    """The highest level below `high` that prices (R,) refute, by bisection; `low` must be refuted by them."""
    for _ in range(steps):
        if float(low) >= high * (1 - 1e-9):
            break
        following = next_level(problem, room_within(problem, low))
        if float(following) >= high * (1 - 1e-9):  # no time that a load can take lies between
            return following if refutes(problem, sink, following, price) else low
        middle = Fraction(int((float(low) + high) / 2 * FINE), FINE)
        if middle <= low:
            break
        if refutes(problem, sink, middle, price):
            low = max(low, next_level(problem, room_below(problem, middle)))
        else:
            high = float(middle)
    return low


def wide_room(problem: Gather) -> tuple[Ints, int]:
    """Room (R,) proportional to capacity that holds any two flows, and the factor: time = λ * factor."""
    largest = 2 * int(problem.data.max()) * int(problem.weight[-1])
    factor = -(-largest // int(problem.capacity.min()))
    return problem.capacity * factor, factor


def relaxed_level(problem: Gather, sink: int, pool: PathPool) -> tuple[Relaxation, float, Fraction]:
    """The LP over all paths (Problem 4): (relaxation, its time, a level that its prices refute)."""
    room, factor = wide_room(problem)
    relaxed = relax(problem, sink, room, pool, StopRule())
    level = Fraction(relaxed.bound * factor * (1 - 1e-9)).limit_denominator(1 << 30)
    lower = Fraction(1, 1_000_000)
    while level > 0 and not refutes(problem, sink, level, relaxed.price):
        level *= 1 - lower
        lower = min(
            2 * lower, Fraction(1)
        )  # where bandwidths differ by many orders the prices may be far off
    return relaxed, relaxed.value * factor, level


def integer_level(
    problem: Gather, sink: int, pool: PathPool, bound: SinkBound, stop_at: Fraction | None = None
) -> tuple[SinkBound, Relaxation | None]:
    """Raise a bound as far as integer room allows: refute, sharpen the level with the new prices, repeat.

    Ends when a fractional routing fits at the level (it is returned, with λ <= 1 under the room within the
    level) or when the level reaches stop_at.
    """
    while stop_at is None or bound.level < stop_at:
        room = room_within(problem, bound.level)
        relaxed = relax(problem, sink, room, pool, StopRule(fits=1.0, exceeds=SURE))
        if relaxed.bound <= SURE:
            return bound, relaxed
        level = next_level(problem, room)
        high = 2.0 * float(level) if stop_at is None else float(stop_at)
        level = sharpen(problem, sink, relaxed.price, level, high)
        bound = SinkBound(sink, level, leaf_of(relaxed.price))
    return bound, None


@dataclass(frozen=True, slots=True)
class RoomVerdict:
    """Whether some routing fits the room: a routing, a proof that none does, or neither (open)."""

    routing: Routing | None
    proof: Proof | None
    nodes: int


def decide(problem: Gather, sink: int, room: Ints, pool: PathPool, max_nodes: int) -> RoomVerdict:
    """Branch and price, over lists as soon as they are short: a routing with load <= room (R,), or what refutes it.

    max_nodes: LPs that may be solved.
    """
    ask = _Question(problem, sink, room, pool, max_nodes)
    routing, proof = ask.decide({}, None)
    return RoomVerdict(routing, proof, max_nodes - ask.left)


@dataclass(slots=True)
class _Question:
    """One call of `decide`; left: LPs that may still be solved."""

    problem: Gather
    sink: int
    room: Ints
    pool: PathPool
    left: int

    def decide(
        self, bans: dict[int, frozenset[int]], hint: Floats | None
    ) -> tuple[Routing | None, Proof | None]:
        """One node of the tree; hint: the prices of the node above, which may refute this one without an LP."""
        problem, sink, room, pool = self.problem, self.sink, self.room, self.pool
        if self.left <= 0:
            return None, None
        self.left -= 1
        if hint is not None and lagrangian(problem, sink, room, hint, bans).bound > SURE:
            return None, leaf_of(hint)
        relaxed = relax(problem, sink, room, pool, StopRule(exceeds=SURE), bans)
        if relaxed.bound > SURE:
            return None, leaf_of(relaxed.price)
        by_flow: dict[int, list[tuple[float, int]]] = {}
        for k, share in relaxed.share:
            by_flow.setdefault(pool.flow[k], []).append((-share, k))
        routing = _rounded(problem, by_flow, pool)
        if (loads_of(problem, routing) <= room).all():
            return routing, None
        priced = lagrangian(problem, sink, room, relaxed.price, bans)
        lists = list_paths(problem, sink, room, relaxed.price, priced, bans, MOST_LISTED)
        if lists is not None:
            tree = ListTree(problem, room, lists, self.left)
            routing_listed, below = tree.decide()
            self.left = tree.left
            return routing_listed, None if below is None else Listed(pairs_of(relaxed.price), below)
        return self._split(bans, relaxed, by_flow)

    def _split(
        self,
        bans: dict[int, frozenset[int]],
        relaxed: Relaxation,
        by_flow: dict[int, list[tuple[float, int]]],
    ) -> tuple[Routing | None, Proof | None]:
        """Branch on where a flow goes: the one with the longest path, which loads most."""
        pool = self.pool
        split = [
            (-max(len(pool.arcs[k]) for _, k in items), max(-s for s, _ in items), f)
            for f, items in by_flow.items()
            if len(items) > 1
        ]
        if not split:
            return None, None
        flow = min(split)[2]
        paths = [pool.arcs[k] for _, k in sorted(by_flow[flow])[:2]]
        node, first, second = _divergence(self.problem, paths)
        proofs: list[Proof] = []
        for banned in (second, first):
            child = dict(bans)
            child[flow] = bans.get(flow, frozenset()) | frozenset(banned)
            routing_below, proof = self.decide(child, relaxed.price)
            if routing_below is not None or proof is None:
                return routing_below, None
            proofs.append(proof)
        return None, Split(flow, node, first, second, proofs[1], proofs[0])


def _rounded(problem: Gather, by_flow: dict[int, list[tuple[float, int]]], pool: PathPool) -> Routing:
    routing: list[tuple[int, ...]] = [()] * problem.graph.nodes
    for flow, items in by_flow.items():
        routing[flow] = pool.arcs[min(items)[1]]
    return tuple(routing)


def _divergence(
    problem: Gather, paths: list[tuple[int, ...]]
) -> tuple[int, tuple[int, ...], tuple[int, ...]]:
    """Where two paths of a flow part: (node, its arcs with the first path's, its other arcs)."""
    at = next(i for i, (a, b) in enumerate(zip(*paths, strict=False)) if a != b)
    one = paths[0][at]
    node = int(problem.graph.tail[one])
    arcs = range(int(problem.graph.start[node]), int(problem.graph.start[node + 1]))
    return node, (one,), tuple(a for a in arcs if a != one)
