"""The scenario families of the cross-table.

A family is the generator of a system, or one of them adapted to the policies of another system: the jobs of DPS in a queue,
the jobs of a cluster as rings, mlBroker's sites with finite capacity.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from tradewind.lab.study import Effort
from tradewind.model.job import Customer, Fixed, Rounds
from tradewind.model.scenario import Scenario
from tradewind.model.units import MILLI
from tradewind.registry import workloads
from tradewind.systems.gadget.workload.trace import GADGET_TRACE, as_rings

Make = Callable[[Effort, int], Scenario]
"""(effort, seed) -> scenario."""


def _cluster(effort: Effort, seed: int, **more: Any) -> Scenario:
    size = effort.pick({"jobs": 400, "servers": 8}, {"jobs": 4000, "servers": 20})
    return workloads.generate("cluster", {**size, **more}, seed)


def cluster(effort: Effort, seed: int) -> Scenario:
    """Jobs of a GPU cluster with public runtimes; objective: mean completion time."""
    return _cluster(effort, seed)


def cluster_private(effort: Effort, seed: int) -> Scenario:
    """The same jobs with runtimes that no policy knows."""
    return _cluster(effort, seed, runtime="private")


def _racks(effort: Effort, seed: int) -> Scenario:
    size = effort.pick({"jobs": 150}, {"jobs": 2000})
    return _cluster(effort, seed, racks=2, slot_s=300.0, **size)


def cluster_rings(effort: Effort, seed: int) -> Scenario:
    """The jobs of a cluster as rings of all their GPUs, on the same servers with links between them."""
    given = {name: param.default for name, param in GADGET_TRACE.params.items()}
    return as_rings(_racks(effort, seed), given)


def _dps(effort: Effort, seed: int, kind: str, **more: Any) -> Scenario:
    size = effort.pick({"jobs": 800, "slots": 800}, {"jobs": 10_000, "slots": 10_000})
    return workloads.generate("dps", {**size, "market": kind, **more}, seed)


def dps(effort: Effort, seed: int) -> Scenario:
    """DPS's balanced market; objective: profit."""
    return _dps(effort, seed, "balanced")


def dps_saturated(effort: Effort, seed: int) -> Scenario:
    """DPS's saturated market; objective: profit."""
    return _dps(effort, seed, "saturated")


def dps_queue(effort: Effort, seed: int) -> Scenario:
    """Jobs of DPS that fit the servers, queued without prices; objective: mean completion time."""
    given = _dps(replace(effort, quick=True), seed, "saturated", servers=12)
    hosts = [given.setup.nodes[h].capacity_milli for h in given.setup.hosts]
    total = [sum(column) for column in zip(*hosts, strict=True)]
    fitting = [
        job
        for job in given.jobs
        if all(milli * job.workers_max <= total[r] // 2 for r, milli in job.worker)
        and all(milli * job.servers <= total[r] // 2 for r, milli in job.server)
    ][: effort.pick(150, 1000)]
    jobs = tuple(replace(job, index=i) for i, job in enumerate(fitting))
    setup = replace(given.setup, objective="jct_mean_s", horizon_us=given.setup.horizon_us * 20)
    return Scenario(
        name=f"{given.name}-queue",
        setup=setup,
        jobs=jobs,
        origin={"workload": "dps as a queue", "seed": seed},
    )


def dps_queue_fixed(effort: Effort, seed: int) -> Scenario:
    """The jobs of dps_queue as fixed jobs with the shortest possible runtime: no communication."""
    given = dps_queue(effort, seed)
    jobs = []
    for job in given.jobs:
        assert isinstance(job.work, Rounds)
        slots = -(-job.work.count * job.work.compute_us // given.setup.slot_us)
        fixed = Fixed(runtime_us=max(1, slots * given.setup.slot_us))
        jobs.append(
            replace(
                job, work=fixed, servers=0, server=(), model_bytes=0, worker_bps=0, server_bps=0, hold="until"
            )
        )
    return replace(given, jobs=tuple(jobs), customers=tuple(Customer() for _ in jobs))


def _eris(effort: Effort, seed: int, size: str, jobs: int) -> Scenario:
    return workloads.generate("eris", {"size": size, **effort.pick({"jobs": jobs}, {})}, seed)


def eris_testbed(effort: Effort, seed: int) -> Scenario:
    """Eris's testbed; objective: social welfare."""
    return _eris(effort, seed, "testbed", 10)


def eris_contended(effort: Effort, seed: int) -> Scenario:
    """Eris's bids under scarce resources; objective: social welfare."""
    return _eris(effort, seed, "contended", 150)


def _gadget(effort: Effort, seed: int, **more: Any) -> Scenario:
    size = effort.pick({"servers": 15, "slots": 25, "jobs": 60}, {"servers": 50, "slots": 200, "jobs": 1500})
    return workloads.generate("gadget", {**size, **more}, seed)


def gadget(effort: Effort, seed: int) -> Scenario:
    """GADGET's published workload with concave utility."""
    return _gadget(effort, seed, utility="sqrt")


def gadget_tight(effort: Effort, seed: int) -> Scenario:
    """GADGET's rings with scarce links and jobs that run all workers or none."""
    return _gadget(effort, seed, family="tight", utility="gang")


def _mlbroker(effort: Effort, seed: int, family: str) -> Scenario:
    size = effort.pick(
        {"sites": 6, "slots": 8, "jobs_per_slot": 8.0}, {"sites": 15, "slots": 50, "jobs_per_slot": 20.0}
    )
    return workloads.generate("mlbroker", {**size, "family": family}, seed)


def mlbroker(effort: Effort, seed: int) -> Scenario:
    """mlBroker's published workload; objective: cost."""
    return _mlbroker(effort, seed, "paper")


def mlbroker_narrow(effort: Effort, seed: int) -> Scenario:
    """mlBroker's narrow family, in which placement decides about discounts; objective: cost."""
    return _mlbroker(effort, seed, "narrow")


SITE_SHARE = 0.3
"""Capacity of each site as a share of the peak demand of all jobs."""


def mlbroker_finite(effort: Effort, seed: int) -> Scenario:
    """mlBroker's narrow family on sites with finite capacity: no site can host all jobs."""
    given = mlbroker_narrow(effort, seed)
    need = _peak(given)
    nodes = tuple(
        replace(node, capacity_milli=tuple(min(c, n) for c, n in zip(node.capacity_milli, need, strict=True)))
        for node in given.setup.nodes
    )
    return replace(
        given,
        setup=replace(given.setup, nodes=nodes),
        origin={"workload": "mlbroker on finite sites", "seed": seed},
    )


def _peak(given: Scenario) -> list[int]:
    """SITE_SHARE of the peak demand of any slot, per resource, with one server per job."""
    rows, found = given.volumes, [0] * len(given.setup.resources)
    for slot in range(given.setup.slots):
        demand = [0] * len(found)
        here = rows.slot == slot
        for job in given.jobs:
            size = int(rows.bytes[here & (rows.job == job.index)].sum())
            if size:
                rate: Any = job.work
                workers = -(-size // rate.bytes_per_worker_slot) + len(given.setup.hosts)
                for r, milli in job.worker:
                    demand[r] += milli * workers
                for r, milli in job.server:
                    demand[r] += milli * job.servers
        found = [max(a, b) for a, b in zip(found, demand, strict=True)]
    return [int(SITE_SHARE * n) // MILLI * MILLI for n in found]


def apsp_b4(effort: Effort, seed: int) -> Scenario:
    """ResNet50 on APSP's B4 network; objective: epoch time."""
    return workloads.generate("apsp", {"topology": "b4"}, seed)


def apsp_internet2(effort: Effort, seed: int) -> Scenario:
    """ResNet50 on APSP's Internet2 network; objective: epoch time."""
    return workloads.generate("apsp", {"topology": "internet2"}, seed)


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """A column of the table: its scenarios, and, if these have no bound, other scenarios whose bound holds for them."""

    name: str
    make: Make
    bound_from: Make | None = None


FAMILIES = (
    Family(name="mlbroker", make=mlbroker),
    Family(name="mlbroker narrow", make=mlbroker_narrow),
    Family(name="mlbroker finite", make=mlbroker_finite, bound_from=mlbroker_narrow),
    Family(name="dps", make=dps),
    Family(name="dps saturated", make=dps_saturated),
    Family(name="dps queue", make=dps_queue, bound_from=dps_queue_fixed),
    Family(name="apsp b4", make=apsp_b4),
    Family(name="apsp internet2", make=apsp_internet2),
    Family(name="eris testbed", make=eris_testbed),
    Family(name="eris contended", make=eris_contended),
    Family(name="gadget", make=gadget),
    Family(name="gadget tight", make=gadget_tight),
    Family(name="cluster", make=cluster),
    Family(name="cluster private", make=cluster_private),
    Family(name="cluster rings", make=cluster_rings, bound_from=_racks),
)
