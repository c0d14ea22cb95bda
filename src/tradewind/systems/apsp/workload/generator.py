"""The APSP paper's workload: one training job with workers at every site of a WAN, bandwidth drawn by distance.

The seed draws the bandwidths (`workload.draw`). Workers of a site add up their gradients first, so each
site sends the model once (the paper's hierarchy). With ``vary`` each link's bandwidth changes every hour: it is the drawn
one times a factor that dips in the local evening and follows a random walk.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from tradewind.model.arrays import Floats
from tradewind.model.scenario import Scenario
from tradewind.model.setup import Setup
from tradewind.model.spec import Param
from tradewind.model.units import US_PER_HOUR
from tradewind.model.view import Change
from tradewind.model.workload import Workload
from tradewind.systems.apsp.workload.bandwidth import ALL_RULES
from tradewind.systems.apsp.workload.build import MBPS, WanCase, build_scenario
from tradewind.systems.apsp.workload.draw import MODEL_BYTES, WIDEST_MBPS
from tradewind.systems.apsp.workload.topologies import read_topology
from tradewind.systems.apsp.workload.topology import Topology

BOTH = 2
"""Direction of a bandwidth change that holds both ways."""
SWING = 0.5
"""Largest share of bandwidth that the evening takes with vary = 1."""
PERSISTENCE = 0.9
"""Correlation of an hour's random factor with that of the hour before."""


def generate(params: Mapping[str, Any], seed: int) -> Scenario:
    """The scenario for these parameters and this seed."""
    topology = read_topology(params["topology"])
    taken = (
        "rule",
        "min_mbps",
        "workers",
        "model",
        "data",
        "transport",
        "shared",
        "latency",
        "epochs",
        "compute_s",
    )
    case = WanCase(
        topology=topology,
        seed=seed,
        model_bytes=MODEL_BYTES[params["model"]],
        move_s=params["move_s"],
        hours=max(1, int(np.ceil(params["hours"]))),
        **{name: params[name] for name in taken},
    )
    scenario = build_scenario(case, {"workload": "apsp", "seed": seed, **params})
    if params["vary"] <= 0:
        return scenario
    return replace(scenario, changes=_changes(topology, scenario.setup, params["vary"], seed))


def _changes(topology: Topology, setup: Setup, vary: float, seed: int) -> tuple[Change, ...]:
    """Bandwidth of every link at every hour: evening dip by longitude, and a slow random walk."""
    rng = np.random.default_rng(np.random.SeedSequence(entropy=seed, spawn_key=(6,)))
    count = len(topology.links)
    east = np.array([0.0 if p is None else p[1] for p in topology.position] or [0.0] * len(topology.nodes))
    a, b = topology.ends()
    walk: Floats = np.zeros(count)
    rows = []
    for hour in range(setup.slots):
        walk = PERSISTENCE * walk + np.sqrt(1 - PERSISTENCE**2) * rng.normal(0.0, 0.5, count)
        clock = (hour + (east[a] + east[b]) / 30.0) % 24
        busy = SWING * np.clip(np.cos((clock - 20.0) / 24 * 2 * np.pi), 0.0, 1.0)
        factor = (1 - vary * busy) * np.exp(vary * walk)
        for k, link in enumerate(setup.links):
            both_ways = ((BOTH, link.ab_bps),) if link.shared else ((0, link.ab_bps), (1, link.ba_bps))
            for direction, bps in both_ways:
                mbps = int(np.clip(round(float(bps // MBPS * factor[k])), 1, WIDEST_MBPS))
                rows.append(Change(hour * US_PER_HOUR, "bandwidth", k, direction, mbps * MBPS))
    return tuple(rows)


APSP = Workload(
    name="apsp",
    summary="Geo-distributed training over a WAN: workers at every site, bandwidth by distance, one server to place",
    generate=generate,
    params={
        "topology": Param(default="b4", doc="b4, internet2, or a .graphml, .gml, .json or .csv file"),
        "rule": Param(
            default="power",
            doc="how bandwidth falls with distance; file: the file's own; …-exact: without the random factor",
            choices=ALL_RULES,
        ),
        "model": Param(
            default="resnet50",
            doc="model whose parameters are exchanged (Table II)",
            choices=tuple(MODEL_BYTES),
        ),
        "min_mbps": Param(
            default=500, doc="least bandwidth of a link in Mbit/s (Figures 5-6 raise it to 5000)"
        ),
        "workers": Param(default="", doc="worker sites, separated by commas; empty means all"),
        "data": Param(
            default="",
            doc="amounts of sites that do not exchange the model's size: SITE=MB,… or a .csv (site, mb) or .json file",
        ),
        "transport": Param(
            default="store-and-forward", doc="store-and-forward (the paper), cut-through or chunks:K"
        ),
        "shared": Param(default=False, doc="both directions of a link share its bandwidth"),
        "latency": Param(default=False, doc="count propagation delay, 5 us/km (the paper ignores it)"),
        "epochs": Param(default=100, doc="rounds of the job", least=1, most=10**12),
        "compute_s": Param(default=0.0, doc="computation of a round in seconds", least=0, most=1e7),
        "move_s": Param(default=0.0, doc="seconds lost when the server moves", least=0, most=1e7),
        "hours": Param(default=24.0, doc="length of the run", least=1, most=100_000),
        "vary": Param(
            default=0.0,
            doc="0: constant bandwidth; up to 1: evenings and chance change it every hour",
            least=0,
            most=1,
        ),
    },
)
