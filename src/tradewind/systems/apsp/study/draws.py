"""Bandwidth draws of a WAN solved for every site: the data of APSP's tables and figures. Arrays only, no runs.

Times are in seconds per byte of the model (T is proportional to D), so one draw serves all four models.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np

from tradewind.systems.apsp.kernels.alternatives import aggregation_tree, ring, ring_seconds, tree_seconds
from tradewind.systems.apsp.kernels.cut import even_use
from tradewind.systems.apsp.kernels.network import Net, Wire, make_net, place, settings_for
from tradewind.systems.apsp.kernels.paper import algorithm_2
from tradewind.systems.apsp.kernels.problem import fewest_hops, time_of
from tradewind.systems.apsp.workload.bandwidth import drawn_mbps
from tradewind.systems.apsp.workload.draw import WIDEST_MBPS
from tradewind.systems.apsp.workload.topologies import read_topology
from tradewind.systems.apsp.workload.topology import Topology

MBPS = 1_000_000
RULES = ("power", "linear", "inverse")


@dataclass(frozen=True, slots=True, kw_only=True)
class Draw:
    """One draw: seconds per byte of every site's routing, and of the chosen site with other routings.

    site: every site's time by one algorithm, the least or that of Algorithm 2; proven: all of them are certified optima.
    tied: sites with most links.
    """

    site: tuple[float, ...]
    best: int
    shortest_path: float
    load_balancing: float
    tied: tuple[int, ...]
    proven: bool

    @property
    def apsp(self) -> float:
        return self.site[self.best]

    @property
    def random(self) -> float:
        """Expected time at a random site: the mean over all sites."""
        return float(np.mean(self.site))

    @property
    def connected(self) -> tuple[float, float, float]:
        """Most-connected site: mean, best and worst over its ties."""
        times = [self.site[v] for v in self.tied]
        return float(np.mean(times)), min(times), max(times)


@cache
def topology(name: str) -> Topology:
    return read_topology(name)


def net_of(name: str, rule: str, min_mbps: int, seed: int, transport: str = "store-and-forward") -> Net:
    """The drawn network, all sites sending."""
    found = topology(name)
    there, back = drawn_mbps(found, rule, min_mbps, seed)
    wires = [
        Wire(link.a, link.b, int(ab) * MBPS, int(ba) * MBPS, False)
        for link, ab, ba in zip(found.links, there, back, strict=True)
    ]
    return make_net(len(found.nodes), wires, range(len(found.nodes)), transport)


@cache
def solved(name: str, rule: str, min_mbps: int, seed: int) -> Draw:
    """Solve one draw for every site; kept, because several figures use the same draws.

    Where the least bandwidth is the widest, all draws of all rules are the same network.
    """
    if min_mbps >= WIDEST_MBPS and (rule, seed) != (RULES[0], 0):
        return solved(name, RULES[0], min_mbps, 0)
    net = net_of(name, rule, min_mbps, seed)
    problem = net.problem
    settings = settings_for(problem, 0.0)
    whole = place(net, settings)
    best = whole.sink
    answers = [whole if v == best else place(net, settings, [v]) for v in range(problem.graph.nodes)]
    times = tuple(net.seconds(a.time, 1) for a in answers)
    return _draw(net, times, best, proven=all(a.time == a.bound for a in answers))


def _draw(net: Net, times: tuple[float, ...], best: int, *, proven: bool) -> Draw:
    """The draw with shortest paths and load balancing at the chosen site."""
    problem = net.problem
    degree = np.bincount(problem.graph.head, minlength=problem.graph.nodes)
    return Draw(
        site=times,
        best=best,
        shortest_path=net.seconds(time_of(problem, fewest_hops(problem, best)), 1),
        load_balancing=net.seconds(time_of(problem, even_use(problem, best)), 1),
        tied=tuple(np.flatnonzero(degree == degree.max()).tolist()),
        proven=proven,
    )


@cache
def printed(name: str, rule: str, min_mbps: int, seed: int, transport: str = "store-and-forward") -> Draw:
    """One run of Algorithm 2 on the draw: the time that it finds for every site, and the site that it takes."""
    net = net_of(name, rule, min_mbps, seed, transport)
    found = algorithm_2(net.problem, np.random.default_rng((seed, 77)), limit=None)
    times = tuple(net.seconds(found.times[v], 1) for v in range(net.problem.graph.nodes))
    return _draw(net, times, found.sink, proven=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rivals:
    """Server, ring and tree on one draw: s = size * per_byte + wait (seconds)."""

    server: tuple[float, float]
    ring: tuple[float, float]
    tree: tuple[float, float]

    @property
    def ring_from_bytes(self) -> float:
        """Model size above which the ring is faster than the server with latency counted; inf if never."""
        gain = self.server[0] - self.ring[0]
        return max(0.0, (self.ring[1] - self.server[1]) / gain) if gain > 0 else float("inf")


def rivals(name: str, rule: str, min_mbps: int, seed: int) -> Rivals:
    """The three ways on one draw, latency 5 us/km."""
    net, found = net_of(name, rule, min_mbps, seed), topology(name)
    problem = net.problem
    wait = np.array([found.latency_us()[k] for k in net.link.tolist()]) / 1e6
    answer = place(net, settings_for(problem, 0.0))
    slowest = max(float(wait[list(arcs)].sum()) for arcs in answer.routing if arcs)
    members = np.arange(problem.graph.nodes)
    return Rivals(
        server=(net.seconds(answer.time, 1), 2 * slowest),
        ring=ring_seconds(net, ring(problem, members, wait, 400)),
        tree=tree_seconds(net, aggregation_tree(problem, members, wait)),
    )
