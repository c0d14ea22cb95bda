"""Networks small enough for a testbed: topologies of `plan-wan` scaled down, or a random mesh; and exchanges on them."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from itertools import combinations, permutations

import numpy as np

from tradewind.model.errors import InputError
from tradewind.systems.apsp.kernels.network import Net, Wire, make_net
from tradewind.systems.apsp.workload.bandwidth import drawn_mbps, resolve_rule
from tradewind.systems.apsp.workload.topologies import SHIPPED, read_topology
from tradewind.systems.apsp.workload.topology import Topology
from tradewind.worlds.testbed.traffic import Exchange, ring_exchange, server_exchange
from tradewind.worlds.testbed.wan import MOST_LATENCY_US, Path, Wan, WanLink, shortest

MESH = "mesh"
MESH_SITES = 4
MESH_MBPS = (1000, 6000)
MBPS = 1_000_000
MOST_RINGS = 6
NO_LATENCY, REAL = "none", "real"


def network(
    topology: str,
    *,
    scale: float,
    sites: int = 0,
    rule: str = "auto",
    seed: int = 0,
    latency: str = NO_LATENCY,
) -> Wan:
    """A mesh (a link of its own between any two sites), or a topology as plan-wan reads it, times `scale`.

    sites    how many; 0 means all (4 in a mesh). Of a topology, the sites nearest to its best connected one are kept.
    latency  of links: none, real (as a topology states it, or by length), or milliseconds for all
    """
    every_us = _every_us(latency)
    if not 0 < scale <= 1:
        raise InputError(
            f"found {scale:g}; allowed is above 0, up to 1 (0.01: a hundredth of real rates)",
            where="--scale",
        )
    if topology == MESH:
        if every_us is None:
            raise InputError(
                f"found {REAL}, but links of a mesh have no length; state milliseconds", where="--latency"
            )
        return _mesh(sites or MESH_SITES, scale, seed, every_us)
    if not topology:
        raise InputError(
            f"name a topology: {', '.join((MESH, *SHIPPED))}, or a .graphml, .gml, .json or .csv file"
        )
    found = read_topology(topology)
    there, back = drawn_mbps(found, resolve_rule(found, rule), 500, seed)
    keep = _nearest(found, sites) if sites else list(range(len(found.nodes)))
    number = {node: k for k, node in enumerate(keep)}
    waits_us = found.latency_us() if every_us is None else [every_us] * len(found.links)
    return Wan(
        name=found.name,
        sites=tuple(found.nodes[node] for node in keep),
        links=tuple(
            WanLink(
                number[link.a],
                number[link.b],
                round(int(ab) * MBPS * scale),
                round(int(ba) * MBPS * scale),
                us,
            )
            for link, ab, ba, us in zip(found.links, there, back, waits_us, strict=True)
            if link.a in number and link.b in number
        ),
    )


def _every_us(latency: str) -> int | None:
    """Latency in microseconds of every link; None: that of each."""
    if latency in (NO_LATENCY, REAL):
        return 0 if latency == NO_LATENCY else None
    try:
        ms = float(latency)
    except ValueError:
        ms = -1.0
    if not 0 <= 1000 * ms <= MOST_LATENCY_US:
        raise InputError(
            f"found {latency!r}; allowed are {NO_LATENCY}, {REAL} and milliseconds up to {MOST_LATENCY_US // 1000}",
            where="--latency",
        )
    return round(1000 * ms)


def _mesh(sites: int, scale: float, seed: int, latency_us: int) -> Wan:
    if sites < 2:
        raise InputError(f"found {sites}; a network has at least 2", where="--sites")
    rng = np.random.default_rng(np.random.SeedSequence(entropy=seed, spawn_key=(9,)))
    pairs = list(combinations(range(sites), 2))
    low, high = MESH_MBPS
    mbps = rng.integers(low, high, (len(pairs), 2), endpoint=True).tolist()
    return Wan(
        name=MESH,
        sites=tuple(f"site-{k + 1}" for k in range(sites)),
        links=tuple(
            WanLink(a, b, round(ab * MBPS * scale), round(ba * MBPS * scale), latency_us)
            for (a, b), (ab, ba) in zip(pairs, mbps, strict=True)
        ),
    )


def _nearest(topology: Topology, count: int) -> list[int]:
    """The best connected site and those nearest to it by hops, in the topology's order."""
    if not 2 <= count <= len(topology.nodes):
        raise InputError(f"found {count}; {topology.name} has {len(topology.nodes)} sites", where="--sites")
    near: list[list[int]] = [[] for _ in topology.nodes]
    for link in topology.links:
        near[link.a].append(link.b)
        near[link.b].append(link.a)
    start = max(range(len(near)), key=lambda node: (len(near[node]), -node))
    seen, queue = [start], deque([start])
    while queue and len(seen) < count:
        for other in sorted(near[queue.popleft()]):
            if other not in seen and len(seen) < count:
                seen.append(other)
                queue.append(other)
    if len(seen) < count:
        raise InputError("some sites are cut off from the others", where=topology.name)
    return sorted(seen)


def exchanges(wan: Wan, seed: int = 0) -> list[Exchange]:
    """A server at every site, and rings: all orders of up to 4 sites, else some drawn ones."""
    paths, n = shortest(wan), len(wan.sites)
    found = [server_exchange(wan, site, paths) for site in range(n)]
    if n <= 4:
        orders = [(0, *rest) for rest in permutations(range(1, n))]
    else:
        rng = np.random.default_rng(np.random.SeedSequence(entropy=seed, spawn_key=(10,)))
        drawn = {tuple(range(n))} | {
            (0, *(1 + rng.permutation(n - 1)).tolist()) for _ in range(MOST_RINGS - 1)
        }
        orders = sorted(drawn)
    return found + [ring_exchange(wan, order, paths) for order in orders]


def as_net(wan: Wan, transport: str = "cut-through") -> Net:
    """The network as placement methods see it: every site sends, packets are forwarded one by one."""
    wires = [Wire(link.a, link.b, link.ab_bps, link.ba_bps, False) for link in wan.links]
    return make_net(len(wan.sites), wires, range(len(wan.sites)), transport)


def walk(net: Net, source: int, arcs: Sequence[int]) -> Path:
    """The sites along some arcs."""
    return (source, *(int(net.problem.graph.head[arc]) for arc in arcs))
