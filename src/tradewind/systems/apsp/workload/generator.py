"""The APSP paper's workload: one training job whose workers sit at every site of a WAN, bandwidth drawn by distance.

The seed draws the bandwidths (`workload.draw`). Workers of a site add their gradients up first, so each
site sends the model once (the paper's hierarchy). With ``vary`` bandwidth follows the hour: every hour each link gets its
drawn bandwidth times a factor that falls in the busy evening of its place and wanders at random.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from tradewind.model.arrays import Floats, Ints
from tradewind.model.errors import InputError, LookupFailed
from tradewind.model.job import Job, Rounds
from tradewind.model.network import Link
from tradewind.model.scenario import Scenario
from tradewind.model.setup import Setup
from tradewind.model.node import Node
from tradewind.model.spec import Param
from tradewind.model.units import UNLIMITED, US_PER_HOUR, US_PER_S
from tradewind.model.view import Change
from tradewind.model.workload import Workload
from tradewind.systems.apsp.workload.draw import MODEL_BYTES, RULES, WIDEST_MBPS, draw_mbps, rule_mbps
from tradewind.systems.apsp.workload.sizes import read_sizes
from tradewind.systems.apsp.workload.topologies import Topology, read_topology

MBPS = 1_000_000
ALL_RULES = (*RULES, "file", "power-exact", "linear-exact", "inverse-exact")
SWING = 0.5
"""With vary = 1 the evening takes half of the bandwidth at its worst."""
WANDER = 0.9
"""Correlation of an hour's random factor with the hour before."""


def drawn_mbps(topology: Topology, rule: str, min_mbps: int, seed: int) -> tuple[Ints, Ints]:
    """Whole Mbit/s a to b (L,) and b to a (L,): the rule's draw, or the file's own with rule "file"."""
    if rule not in ALL_RULES:
        raise LookupFailed("bandwidth rule", rule, ALL_RULES)
    if not 0 < min_mbps <= WIDEST_MBPS:
        raise InputError(f"found {min_mbps}; allowed is 1 to {WIDEST_MBPS} Mbit/s", where="min_mbps")
    if rule == "file":
        return stated_mbps(topology)
    if rule.endswith("-exact"):
        both = np.rint(rule_mbps(topology.km(), rule.removesuffix("-exact"))).astype(np.int64)
        return both, both
    rng = np.random.default_rng(np.random.SeedSequence(entropy=seed, spawn_key=(5,)))
    km = np.ones(len(topology.links)) if rule == "uniform" else topology.km()
    both = draw_mbps(km, rule, min_mbps, rng)
    return both, both


def stated_mbps(topology: Topology) -> tuple[Ints, Ints]:
    """The bandwidths that the file itself gives, whole Mbit/s (at least 1)."""
    for link in topology.links:
        if link.ab_mbps is None or link.ba_mbps is None:
            ends = f"{topology.nodes[link.a]} - {topology.nodes[link.b]}"
            raise InputError(
                f"the link {ends} has no bandwidth in the file; use rule=power, linear or inverse",
                where=topology.name,
            )
    return (
        np.array([max(1, round(link.ab_mbps or 0)) for link in topology.links], dtype=np.int64),
        np.array([max(1, round(link.ba_mbps or 0)) for link in topology.links], dtype=np.int64),
    )


def generate(params: Mapping[str, Any], seed: int) -> Scenario:
    """The scenario for these parameters and this seed."""
    topology = read_topology(params["topology"])
    there, back = drawn_mbps(topology, params["rule"], params["min_mbps"], seed)
    sites = _worker_sites(topology, params["workers"])
    sizes = read_sizes(params["data"], topology, sites)
    hours = max(1, int(np.ceil(params["hours"])))
    wait = topology.latency_us() if params["latency"] else [0] * len(topology.links)
    setup = Setup(
        resources=("gpu",),
        nodes=tuple(Node(name=name, capacity_milli=(UNLIMITED,)) for name in topology.nodes),
        links=tuple(
            Link(
                a=link.a,
                b=link.b,
                ab_bps=int(ab) * MBPS,
                ba_bps=int(ab if params["shared"] else ba) * MBPS,
                shared=params["shared"],
                latency_us=wait[k],
                usd_per_gb=(link.ab_usd_per_gb + link.ba_usd_per_gb) / 2,
            )
            for k, (link, ab, ba) in enumerate(zip(topology.links, there, back, strict=True))
        ),
        slot_us=US_PER_HOUR,
        horizon_us=hours * US_PER_HOUR,
        transport=params["transport"],
        objective="epoch_s",
    )
    job = Job(
        index=0,
        id=f"{params['model']}-on-{topology.name}",
        arrive_us=0,
        work=Rounds(
            count=params["epochs"],
            compute_us=round(params["compute_s"] * US_PER_S),
            comm="flows",
            pinned=tuple((site, 1) for site in sites),
        ),
        worker=((0, 1000),),
        workers_min=len(sites),
        workers_max=len(sites),
        architecture="ps",
        servers=1,
        model_bytes=MODEL_BYTES[params["model"]],
        restart_us=round(params["move_s"] * US_PER_S),
        site_bytes=tuple(sorted(sizes.items())),
    )
    changes = _changes(topology, there, back, hours, params, seed) if params["vary"] > 0 else ()
    return Scenario(
        name=f"apsp-{topology.name}-{params['rule']}-{params['model']}",
        setup=setup,
        jobs=(job,),
        changes=changes,
        origin={"workload": "apsp", "seed": seed, **params},
    )


def _worker_sites(topology: Topology, names: str) -> list[int]:
    """The sites named, separated by commas; all where none is named."""
    if not names.strip():
        return list(range(len(topology.nodes)))
    return sorted({topology.index(name.strip()) for name in names.split(",")})


def _changes(
    topology: Topology, there: Ints, back: Ints, hours: int, params: Mapping[str, Any], seed: int
) -> tuple[Change, ...]:
    """Bandwidth of every link at every hour: evening dip by longitude, and a slow random walk."""
    rng = np.random.default_rng(np.random.SeedSequence(entropy=seed, spawn_key=(6,)))
    vary, count = params["vary"], len(topology.links)
    east = np.array([0.0 if p is None else p[1] for p in topology.position] or [0.0] * len(topology.nodes))
    a, b = topology.ends()
    walk: Floats = np.zeros(count)
    rows = []
    for hour in range(hours):
        walk = WANDER * walk + np.sqrt(1 - WANDER**2) * rng.normal(0.0, 0.5, count)
        clock = (hour + (east[a] + east[b]) / 30.0) % 24
        busy = SWING * np.clip(np.cos((clock - 20.0) / 24 * 2 * np.pi), 0.0, 1.0)
        factor = (1 - vary * busy) * np.exp(vary * walk)
        for k in range(count):
            for direction, base in ((0, there[k]), (1, back[k])):
                if direction == 1 and params["shared"]:
                    continue
                mbps = int(np.clip(round(float(base * factor[k])), 1, WIDEST_MBPS))
                which = 2 if params["shared"] else direction
                rows.append(Change(hour * US_PER_HOUR, "bandwidth", k, which, mbps * MBPS))
    return tuple(rows)


APSP = Workload(
    name="apsp",
    summary="Geo-distributed training over a WAN: workers at every site, bandwidth by distance, one server to place",
    generate=generate,
    params={
        "topology": Param(default="b4", doc="b4, internet2, or a .graphml, .gml, .json or .csv file"),
        "rule": Param(
            default="power",
            doc="how bandwidth falls with distance; file: as the file says; …-exact: without the random factor",
            choices=ALL_RULES,
        ),
        "model": Param(
            default="resnet50", doc="whose parameters are exchanged (Table II)", choices=tuple(MODEL_BYTES)
        ),
        "min_mbps": Param(
            default=500, doc="least bandwidth of a link in Mbit/s (Figures 5-6 raise it to 5000)"
        ),
        "workers": Param(default="", doc="worker sites, separated by commas; empty: all"),
        "data": Param(
            default="",
            doc="what a site exchanges where not the model: SITE=MB,… or a .csv (site, mb) or .json file",
        ),
        "transport": Param(
            default="store-and-forward", doc="store-and-forward (the paper), cut-through or chunks:K"
        ),
        "shared": Param(default=False, doc="both directions of a link share its bandwidth"),
        "latency": Param(default=False, doc="count propagation delay, 5 us/km (the paper leaves it out)"),
        "epochs": Param(default=100, doc="rounds of the job", least=1, most=10**12),
        "compute_s": Param(default=0.0, doc="computation of a round in seconds", least=0, most=1e7),
        "move_s": Param(default=0.0, doc="seconds lost when the server moves", least=0, most=1e7),
        "hours": Param(default=24.0, doc="length of the run", least=1, most=100_000),
        "vary": Param(
            default=0.0,
            doc="0: constant bandwidth, up to 1: evenings and chance change it every hour",
            least=0,
            most=1,
        ),
    },
)
