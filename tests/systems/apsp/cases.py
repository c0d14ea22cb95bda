"""Small networks for the tests of paths, bounds and placements."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np

from tests.solvers.graphs import graph_of_links
from tradewind.audit.placement import Checker, Claim
from tradewind.solvers.paths import simple_paths
from tradewind.systems.apsp.kernels.bound import wide_room
from tradewind.systems.apsp.kernels.paper import listed_paths
from tradewind.systems.apsp.kernels.problem import Gather, hop_weight, time_of
from tradewind.systems.apsp.kernels.proof import CertificateNames, Proof, SinkBound, proof_as_data
from tradewind.systems.apsp.kernels.restricted import best_of_pool
from tradewind.systems.apsp.workload.draw import draw_mbps
from tradewind.systems.apsp.workload.topologies import read_topology


def random_problem(
    seed: int, *, nodes: int = 5, extra: int = 3, transport: str = "store-and-forward", shared: bool = False
) -> Gather:
    """A connected random network with integer capacities; every node sends 1."""
    rng = np.random.default_rng(seed)
    links = [(int(rng.integers(v)), v) for v in range(1, nodes)]
    spare = [(u, v) for u in range(nodes) for v in range(u + 1, nodes) if (u, v) not in links]
    picks = rng.choice(len(spare), size=min(extra, len(spare)), replace=False)
    links += [spare[int(k)] for k in picks]
    graph = graph_of_links(nodes, links, shared=shared)
    width = rng.integers(2, 30, size=len(links))
    capacity = (width if shared else np.repeat(width, 2)).astype(np.int64)
    weight, _ = hop_weight(nodes, transport)
    return Gather(graph=graph, capacity=capacity, data=np.ones(nodes, dtype=np.int64), weight=weight)


def shipped(name: str, seed: int, rule: str = "power", transport: str = "store-and-forward") -> Gather:
    """A draw of bandwidths on a network that ships with the project."""
    topology = read_topology(name)
    a, b = topology.ends()
    graph = graph_of_links(len(topology.nodes), list(zip(a.tolist(), b.tolist(), strict=True)))
    mbps = draw_mbps(topology.km(), rule, 500, np.random.default_rng(seed))
    weight, _ = hop_weight(graph.nodes, transport)
    return Gather(
        graph=graph,
        capacity=np.repeat(mbps, 2),
        data=np.ones(graph.nodes, dtype=np.int64),
        weight=weight,
    )


def brute_force(problem: Gather, sink: int) -> Fraction:
    """The least time over every combination of simple paths."""
    graph = problem.graph
    flows = [u for u in np.flatnonzero(problem.data > 0).tolist() if u != sink]
    choices = [simple_paths(graph, u, sink) for u in flows]
    best: Fraction | None = None
    for pick in product(*choices):
        routing: list[tuple[int, ...]] = [()] * graph.nodes
        for u, arcs in zip(flows, pick, strict=True):
            routing[u] = arcs
        time = time_of(problem, tuple(routing))
        best = time if best is None or time < best else best
    assert best is not None
    return best


def exact(problem: Gather) -> Fraction:
    """The least time over all sinks, by one MILP over all simple paths per sink."""
    room, factor = wide_room(problem)
    times = []
    for sink in range(problem.graph.nodes):
        pool = listed_paths(problem, sink, None)
        routing = best_of_pool(problem, room, pool, float(factor), 10_000_000)
        assert routing is not None
        times.append(time_of(problem, routing))
    return min(times)


def proof_data(problem: Gather, proof: Proof) -> dict[str, Any]:
    """A proof in the form of a certificate whose resources keep their numbers."""
    return proof_as_data(CertificateNames(problem.graph, np.arange(problem.capacity.size)), proof)


def checker(problem: Gather) -> Checker:
    """The audit's checker for a problem with all nodes as sinks."""
    g = problem.graph
    arcs = list(zip(g.tail.tolist(), g.head.tolist(), g.resource.tolist(), strict=True))
    return Checker(
        Claim(
            arcs=arcs,
            capacity=problem.capacity.tolist(),
            data=problem.data.tolist(),
            weight=problem.weight.tolist(),
            sinks=list(range(g.nodes)),
        )
    )


def wrong(problem: Gather, bound: SinkBound) -> str:
    """What the audit's checker reports about a bound; empty if it holds."""
    return checker(problem).wrong(bound.sink, bound.level, proof_data(problem, bound.proof))
