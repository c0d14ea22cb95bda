"""Turn links in bit/s into a gathering problem, and its results into seconds, bandwidth per flow and certificates.

A link's two directions are resources 2k (a to b) and 2k + 1 (b to a) in certificates; a shared link has 2k alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from tradewind.model.arrays import Ints
from tradewind.model.units import US_PER_S
from tradewind.solvers.paths import make_graph
from tradewind.systems.apsp.kernels.cut import is_cut_through, solve_cut_through
from tradewind.systems.apsp.kernels.fill import fill
from tradewind.systems.apsp.kernels.problem import Gather, Routing, coarsest, hop_weight
from tradewind.systems.apsp.kernels.proof import CertificateNames, Leaf, SinkBound, proof_as_data
from tradewind.systems.apsp.kernels.search import SearchEffort
from tradewind.systems.apsp.kernels.solve import Placement, SolveSettings, solve

DENSE = 16
BITS_BOTH_WAYS = 16
"""8 bits per byte, pushed and pulled: T = 2 * 8 * D * max load / B."""


class Wire(NamedTuple):
    """A link: ends, bit/s that can be pushed each way and pulled back, whether both ways share ab_bps.

    What is pushed is pulled back over the same path: on an empty link both ways have the smaller of its two bandwidths, the
    paper's assumption (Sec. III-C) that a path is as fast up as down, made safe.
    """

    a: int
    b: int
    ab_bps: int
    ba_bps: int
    shared: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Net:
    """A gathering problem, and how its numbers translate into links, seconds and bit/s.

    link (A,)    link number of each arc
    public (R,)  number of each resource in certificates
    unit_bps     bit/s of one unit of capacity
    unit_bytes   bytes of one unit of data; 1 where sizes are not given and every source sends 1 unit
    scale        weight[h] / scale is w(h)
    """

    problem: Gather
    link: Ints
    public: Ints
    unit_bps: int
    scale: int
    unit_bytes: int = 1

    def seconds(self, level: Fraction, model_bytes: int = 1) -> float:
        """Time of an epoch's communication, push and pull, without latency."""
        return float(BITS_BOTH_WAYS * self.unit_bytes * model_bytes * level / (self.scale * self.unit_bps))

    def epoch_us(self, level: Fraction) -> int:
        """Least microseconds of an epoch's communication at a level, as the world counts them: each way rounded by itself.

        Rounding never turns an order around, so a lower bound on the level gives one on what a run can show.
        """
        one_way = (
            Fraction(BITS_BOTH_WAYS // 2 * self.unit_bytes * US_PER_S) * level / (self.scale * self.unit_bps)
        )
        return 2 * round(one_way)

    def sizes_as_data(self) -> dict[str, Any]:
        """Sources, bytes of a unit, and units per source where they differ, for a certificate."""
        sources = np.flatnonzero(self.problem.data)
        units = self.problem.data[sources].tolist()
        found: dict[str, Any] = {"model_bytes": self.unit_bytes, "sources": sources.tolist()}
        return found if set(units) == {1} else {**found, "amounts": units}

    def path_links(self, arcs: Sequence[int]) -> tuple[int, ...]:
        """Link numbers along a path."""
        return tuple(int(self.link[a]) for a in arcs)

    def rates_bps(self, routing: Routing) -> list[int]:
        """Bandwidth per flow (n,): what the slowest flow needs, the rest shared max-min; whole bit/s, rounded down.

        Raises ValueError where that is less than 1 bit/s.
        """
        speed = fill(self.problem, routing)
        rates = [
            int(float(self.problem.data[u] * self.problem.weight[len(arcs)]) * speed[u] * self.unit_bps)
            for u, arcs in enumerate(routing)
        ]
        if any(arcs and not rate for arcs, rate in zip(routing, rates, strict=True)):
            raise ValueError("less than 1 bit/s is left for some flow")
        return rates


def make_net(
    nodes: int, wires: Sequence[Wire], sources: Sequence[int] | Mapping[int, int], transport: str
) -> Net:
    """The problem of gathering from sources that send 1 unit each, or (a mapping) their numbers of bytes.

    Directions without bandwidth are left out; of parallel links the widest is kept.
    """
    widest: dict[tuple[int, int], tuple[int, int]] = {}
    for k, wire in enumerate(wires):
        for ends, bps in _ways(wire):
            if bps > widest.get(ends, (0, 0))[0]:
                widest[ends] = (bps, k)
    arcs, capacity, public = [], [], []
    link_of = {ends: k for ends, (_, k) in widest.items()}
    for k, wire in enumerate(wires):
        ways = [(way, ends, bps) for way, (ends, bps) in enumerate(_ways(wire)) if link_of.get(ends) == k]
        for n, (way, (u, v), bps) in enumerate(ways):
            if n == 0 or not wire.shared:
                capacity.append(bps)
                public.append(2 * k + (0 if wire.shared else way))
            arcs.append((u, v, len(capacity) - 1))
    if not arcs:
        raise ValueError("no link has any bandwidth left")
    graph = make_graph(nodes, arcs)
    units, unit = coarsest(np.array(capacity, dtype=np.int64))
    weight, scale = hop_weight(nodes, transport)
    data = np.zeros(nodes, dtype=np.int64)
    unit_bytes = 1
    data[list(sources)] = 1
    if isinstance(sources, Mapping):
        amounts, unit_bytes = coarsest(np.array(list(sources.values()), dtype=np.int64))
        data[list(sources)] = amounts
    link = [link_of[u, v] for u, v in zip(graph.tail.tolist(), graph.head.tolist(), strict=True)]
    return Net(
        problem=Gather(graph=graph, capacity=units, data=data, weight=weight),
        link=np.array(link, dtype=np.int64),
        public=np.array(public, dtype=np.int64),
        unit_bps=unit,
        scale=scale,
        unit_bytes=unit_bytes,
    )


def _ways(wire: Wire) -> tuple[tuple[tuple[int, int], int], tuple[tuple[int, int], int]]:
    """(from, to) and bit/s of both directions of a link."""
    back = wire.ab_bps if wire.shared else wire.ba_bps
    return ((wire.a, wire.b), wire.ab_bps), ((wire.b, wire.a), back)


def place(net: Net, settings: SolveSettings, sinks: Sequence[int] | None = None) -> Placement:
    """The best sink and routing: exactly by max-flow where transport allows it, else by the general search."""
    allowed = None if sinks is None else np.array(sorted(sinks), dtype=np.int64)
    senders = np.flatnonzero(net.problem.data)
    if senders.size == 1 and (allowed is None or senders[0] in allowed):
        return _single_source(
            net, int(senders[0]), range(net.problem.graph.nodes) if allowed is None else allowed.tolist()
        )
    if is_cut_through(net.problem):
        return solve_cut_through(net.problem, allowed)
    return solve(net.problem, settings, allowed)


def _single_source(net: Net, sink: int, allowed: Sequence[int]) -> Placement:
    """A single source has the server at its own site: nothing is sent."""
    zero = Fraction(0)
    return Placement(
        sink=sink,
        routing=((),) * net.problem.graph.nodes,
        time=zero,
        bound=zero,
        bounds={v: SinkBound(v, zero, Leaf(())) for v in allowed},
        best={sink: zero},
    )


def settings_for(problem: Gather, gap: float) -> SolveSettings:
    """Exact on networks that branch and price can settle; on larger ones, stop at the gap.

    On dense networks (more than DENSE arcs per node) an LP takes a hundred times longer, so fewer are solved.
    """
    nodes, arcs = problem.graph.nodes, problem.graph.arcs
    if nodes <= SolveSettings().tree_size:
        # the tree settles what a short search leaves open, so keep the search before it short
        return SolveSettings(quick=SearchEffort(draws=32, moves=60), squeezes=40, presort_rounds=20)
    fraction = Fraction(gap).limit_denominator(1_000_000)
    if arcs > DENSE * nodes:
        few = SearchEffort(draws=128, moves=600)
        return SolveSettings(gap=fraction, long=few, rounds=1, raise_nodes=40, after_stuck=0)
    return SolveSettings(gap=fraction)


def bounds_as_data(net: Net, bounds: dict[int, SinkBound]) -> dict[str, Any]:
    """Level and proof of every sink, keyed by its number as text."""
    names = CertificateNames(net.problem.graph, net.public)
    return {
        str(sink): {
            "level": [bound.level.numerator, bound.level.denominator],
            "proof": proof_as_data(names, bound.proof),
        }
        for sink, bound in sorted(bounds.items())
    }
