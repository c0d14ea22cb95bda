"""Other ways to exchange the same data on the same network, with latency: several paths, a tree, a ring."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from tradewind.model.units import US_PER_S
from tradewind.systems.apsp.kernels.alternatives import aggregation_tree, ring, ring_seconds, tree_seconds
from tradewind.systems.apsp.kernels.bound import relaxed_level
from tradewind.systems.apsp.kernels.columns import PathPool
from tradewind.systems.apsp.plan.solve import WanPlan

MBPS = 1_000_000
RING_MOVES = 600


def alternatives(found: WanPlan) -> list[dict[str, Any]]:
    """Splittable routing, an aggregation tree and a ring.

    A tree and a ring add up what sites send, so they are left out where amounts differ.
    """
    members = [u for u, _ in found.network.pinned]
    if len(members) < 2:
        return []
    several = _splittable(found)
    if len({found.network.job.bytes_of(u) for u in members}) > 1:
        return [several]
    return [several, *_tree_and_ring(found, members)]


def _splittable(found: WanPlan) -> dict[str, Any]:
    _, time, _ = relaxed_level(found.net.problem, found.chosen.sink, PathPool())
    longest = max(found.wait_us(arcs) for arcs in found.chosen.routing if arcs) / US_PER_S
    server = found.topology.nodes[found.chosen.sink]
    return {
        "way": "splittable",
        "epoch_s": found.net.seconds(Fraction(time)) + 2 * longest,
        "detail": f"flows to {server} may use several paths; latency of the longest path above",
    }


def _tree_and_ring(found: WanPlan, sites: list[int]) -> list[dict[str, Any]]:
    net, names = found.net, found.topology.nodes
    links = found.scenario.setup.links
    wait = np.array([links[k].latency_us for k in net.link.tolist()]) / US_PER_S
    members = np.array(sites, dtype=np.int64)
    tree = aggregation_tree(net.problem, members, wait)
    tour = ring(net.problem, members, wait, RING_MOVES)
    narrowest = f"{tree.narrowest * net.unit_bps / MBPS:g} Mbit/s"
    return [
        {
            "way": "aggregation tree",
            "epoch_s": sum(tree_seconds(net, tree)),
            "detail": f"root {names[tree.root]}, pipelined, sums on the way; narrowest link {narrowest}",
        },
        {
            "way": "ring",
            "epoch_s": sum(ring_seconds(net, tour)),
            "detail": " > ".join(names[v] for v in tour.order),
        },
    ]
