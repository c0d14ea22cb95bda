"""A recorded trace as ring jobs: every job is a ring of its GPUs, on equal servers in racks with links.

A job of w GPUs that ran for t seconds becomes a gang of w workers for ceil(t / slot) slots; the recorded runtime is taken
as the time on a ring. Every hop reserves `ring_gbps`. The objective is the mean completion time.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from tradewind.model.errors import InputError
from tradewind.model.job import Fixed, Job, Rounds
from tradewind.model.network import Link
from tradewind.model.node import Node
from tradewind.model.scenario import Scenario
from tradewind.model.spec import Param
from tradewind.model.units import UNLIMITED
from tradewind.model.workload import Workload
from tradewind.traces.machines import SLOT_S
from tradewind.traces.workload import TRACE
from tradewind.traces.workload import generate as read

GBPS = 1_000_000_000


def generate(params: Mapping[str, Any], seed: int) -> Scenario:
    """The scenario of a trace file, with its jobs as rings."""
    if params["racks"] < 1:
        raise InputError(f"found {params['racks']}; allowed is 1 or more", where="gadget-trace.racks")
    own = {name: param.default for name, param in TRACE.params.items()}
    given = read(
        own | {name: value for name, value in params.items() if name in own} | {"runtime": "public"}, seed
    )
    rings = as_rings(given, params)
    return replace(
        rings, origin={**given.origin, "workload": "gadget-trace", **params, "file": given.origin["file"]}
    )


def as_rings(given: Scenario, params: Mapping[str, Any]) -> Scenario:
    """Turn fixed jobs with public runtimes on servers in racks into ring jobs on the same servers with links."""
    setup = given.setup
    nodes, links = _network(setup.nodes, params)
    jobs = tuple(_ring(job, setup.slot_us, round(params["ring_gbps"] * GBPS)) for job in given.jobs)
    longer = setup.horizon_us + len(jobs) * setup.slot_us  # every job may need part of a slot more
    return Scenario(
        name=f"{given.name}-rings",
        setup=replace(setup, nodes=nodes, links=links, horizon_us=longer),
        jobs=jobs,
    )


def _network(nodes: tuple[Node, ...], params: Mapping[str, Any]) -> tuple[tuple[Node, ...], tuple[Link, ...]]:
    """Add a ToR switch for every rack and a core above them; servers keep their numbers."""
    none = (UNLIMITED,) * len(nodes[0].capacity_milli)
    racks = [i for i, node in enumerate(nodes) if node.kind == "rack"]
    tor = {rack: len(nodes) + 1 + g for g, rack in enumerate(racks)}
    made = [*nodes, Node(name="core", kind="switch", capacity_milli=none)]
    made += [Node(name=f"tor-{g}", kind="switch", capacity_milli=none) for g in range(len(racks))]
    trunk, leaf = round(params["rack_gbps"] * GBPS), round(params["server_gbps"] * GBPS)
    links = [Link(a=tor[rack], b=len(nodes), ab_bps=trunk, ba_bps=trunk) for rack in racks]
    links += [
        Link(a=i, b=tor[node.parent], ab_bps=leaf, ba_bps=leaf)
        for i, node in enumerate(nodes)
        if node.kind == "server"
    ]
    return tuple(made), tuple(links)


def _ring(job: Job, slot_us: int, bps: int) -> Job:
    assert isinstance(job.work, Fixed)
    assert job.work.runtime_us is not None
    count = -(-job.work.runtime_us // slot_us) * job.workers_max
    return replace(job, work=Rounds(count=count, unit="worker-slot", comm="ring"), ring_bps=bps)


GADGET_TRACE = Workload(
    name="gadget-trace",
    summary="A recorded trace (Philly, Tiresias, plain CSV) as ring jobs on servers in racks with links",
    generate=generate,
    params={
        **{name: TRACE.params[name] for name in ("file", "format", "servers", "gpus_per_server", "limit")},
        "racks": Param(default=4, doc="number of racks; the servers are divided among them"),
        "slot_s": replace(SLOT_S, default=300.0),
        "ring_gbps": Param(
            default=1.0, doc="bandwidth in Gbit/s that every hop of a ring reserves", least=1e-6, most=1e6
        ),
        "server_gbps": Param(
            default=25.0, doc="bandwidth in Gbit/s of a server's link", least=1e-6, most=1e6
        ),
        "rack_gbps": Param(
            default=100.0, doc="bandwidth in Gbit/s of a rack's link to the core", least=1e-6, most=1e6
        ),
    },
)
