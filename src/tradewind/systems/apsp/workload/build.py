"""Scenarios with one training job on a WAN: `generate` and `plan-wan` both build theirs here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tradewind.model.job import Job, Rounds
from tradewind.model.network import Link
from tradewind.model.node import Node
from tradewind.model.scenario import Scenario
from tradewind.model.setup import Setup
from tradewind.model.units import UNLIMITED, US_PER_HOUR, US_PER_S
from tradewind.systems.apsp.workload.bandwidth import drawn_mbps
from tradewind.systems.apsp.workload.sizes import read_sizes
from tradewind.systems.apsp.workload.topology import Topology

MBPS = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class WanCase:
    """What a scenario is built from.

    topology  sites and links, with latencies and prices
    rule, min_mbps, seed  the links' bandwidths (`bandwidth.drawn_mbps`)
    workers   worker sites, separated by commas; empty means all
    model     name of the model; model_bytes is its size
    data      bytes of sites that exchange another amount (`sizes.read_sizes`)
    shared    both directions of a link share its bandwidth
    latency   count the links' latencies
    """

    topology: Topology
    rule: str
    min_mbps: int
    seed: int
    workers: str
    model: str
    model_bytes: int
    data: str
    transport: str
    shared: bool
    latency: bool
    epochs: int = 1
    compute_s: float = 0.0
    move_s: float = 0.0
    hours: int = 1


def build_scenario(case: WanCase, origin: Mapping[str, object]) -> Scenario:
    """The scenario of a case: constant bandwidths, one job with a worker at each of its sites."""
    return Scenario(
        name=f"apsp-{case.topology.name}-{case.rule}-{case.model}",
        setup=_setup(case),
        jobs=(_job(case),),
        origin={**origin, **_positions(case.topology)},
    )


def _positions(topology: Topology) -> dict[str, object]:
    """Where the nodes are, for maps: name -> [latitude, longitude]; empty where one is unknown."""
    known = [
        (name, list(p)) for name, p in zip(topology.nodes, topology.position, strict=False) if p is not None
    ]
    return {"positions": dict(known)} if len(known) == len(topology.nodes) else {}


def _setup(case: WanCase) -> Setup:
    topology = case.topology
    there, back = drawn_mbps(topology, case.rule, case.min_mbps, case.seed)
    wait = topology.latency_us() if case.latency else [0] * len(topology.links)
    return Setup(
        resources=("gpu",),
        nodes=tuple(Node(name=name, capacity_milli=(UNLIMITED,)) for name in topology.nodes),
        links=tuple(
            Link(
                a=link.a,
                b=link.b,
                ab_bps=int(ab) * MBPS,
                ba_bps=int(ab if case.shared else ba) * MBPS,
                shared=case.shared,
                latency_us=wait[k],
                usd_per_gb=(link.ab_usd_per_gb + link.ba_usd_per_gb) / 2,
            )
            for k, (link, ab, ba) in enumerate(zip(topology.links, there, back, strict=True))
        ),
        slot_us=US_PER_HOUR,
        horizon_us=case.hours * US_PER_HOUR,
        transport=case.transport,
        objective="epoch_s",
    )


def _job(case: WanCase) -> Job:
    sites = _worker_sites(case.topology, case.workers)
    sizes = read_sizes(case.data, case.topology, sites)
    return Job(
        index=0,
        id=f"{case.model}-on-{case.topology.name}",
        arrive_us=0,
        work=Rounds(
            count=case.epochs,
            compute_us=round(case.compute_s * US_PER_S),
            comm="flows",
            pinned=tuple((site, 1) for site in sites),
        ),
        worker=((0, 1000),),
        workers_min=len(sites),
        workers_max=len(sites),
        architecture="ps",
        servers=1,
        model_bytes=case.model_bytes,
        restart_us=round(case.move_s * US_PER_S),
        site_bytes=tuple(sorted(sizes.items())),
    )


def _worker_sites(topology: Topology, names: str) -> list[int]:
    """The sites named, separated by commas; all where none is named."""
    named = {topology.index(name.strip()) for name in names.split(",") if name.strip()}
    return sorted(named) or list(range(len(topology.nodes)))
