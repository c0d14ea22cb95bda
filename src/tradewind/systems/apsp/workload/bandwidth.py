"""Bandwidths of a topology's links: the file's own, a rule by distance, or a random draw around a rule."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tradewind.model.arrays import Ints
from tradewind.model.errors import InputError, LookupFailed
from tradewind.systems.apsp.workload.draw import RULES, WIDEST_MBPS, draw_mbps, rule_mbps
from tradewind.systems.apsp.workload.topology import Topology

ALL_RULES = (*RULES, "file", "power-exact", "linear-exact", "inverse-exact")
AUTO = "auto"


class LinkMbps(NamedTuple):
    """Whole Mbit/s of every link, from a to b and from b to a, (L,) each."""

    there: Ints
    back: Ints


def resolve_rule(topology: Topology, rule: str) -> str:
    """Replace "auto": the file's bandwidths where every link has one, else power-exact."""
    if rule != AUTO:
        return rule
    return "file" if all(link.ab_mbps is not None for link in topology.links) else "power-exact"


def drawn_mbps(topology: Topology, rule: str, min_mbps: int, seed: int) -> LinkMbps:
    """Bandwidths by a rule of ALL_RULES; the seed matters where the rule draws."""
    if rule not in ALL_RULES:
        raise LookupFailed("bandwidth rule", rule, ALL_RULES)
    if not 0 < min_mbps <= WIDEST_MBPS:
        raise InputError(f"found {min_mbps}; allowed is 1 to {WIDEST_MBPS} Mbit/s", where="min_mbps")
    if rule == "file":
        return _stated_mbps(topology)
    if rule.endswith("-exact"):
        both = np.rint(rule_mbps(topology.km(), rule.removesuffix("-exact"))).astype(np.int64)
        return LinkMbps(both, both)
    rng = np.random.default_rng(np.random.SeedSequence(entropy=seed, spawn_key=(5,)))
    km = np.ones(len(topology.links)) if rule == "uniform" else topology.km()
    both = draw_mbps(km, rule, min_mbps, rng)
    return LinkMbps(both, both)


def _stated_mbps(topology: Topology) -> LinkMbps:
    """The bandwidths that the file gives, at least 1 Mbit/s."""
    for link in topology.links:
        if link.ab_mbps is None or link.ba_mbps is None:
            ends = f"{topology.nodes[link.a]} - {topology.nodes[link.b]}"
            raise InputError(
                f"the link {ends} has no bandwidth in the file; use rule=power, linear or inverse",
                where=topology.name,
            )
    return LinkMbps(
        np.array([max(1, round(link.ab_mbps or 0)) for link in topology.links], dtype=np.int64),
        np.array([max(1, round(link.ba_mbps or 0)) for link in topology.links], dtype=np.int64),
    )
