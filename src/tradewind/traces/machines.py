"""A cluster of identical servers, and scenarios of fixed jobs on it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from tradewind.model.arrays import Ints
from tradewind.model.columns import Words
from tradewind.model.errors import InputError
from tradewind.model.job import Customer, Demand, Fixed, Job
from tradewind.model.job_columns import JobColumns
from tradewind.model.node import Node
from tradewind.model.scenario import Scenario
from tradewind.model.setup import Setup
from tradewind.model.spec import Param
from tradewind.model.units import LARGEST, MILLI, UNLIMITED, US_PER_S

GPUS_PER_SERVER = Param(default=8, doc="GPUs of each server")
RACKS = Param(default=0, doc="number of racks; 0 means none")
RUNTIME = Param(default="public", doc="whether policies know runtimes", choices=("public", "private"))
SLOT_S = Param(default=3600.0, doc="length of a slot in seconds")


@dataclass(frozen=True, slots=True, kw_only=True)
class Machines:
    """Identical servers in the racks of a site.

    racks   number of racks; 0 puts the servers directly into the site
    extra   further resources: name -> units per server; 0 means unlimited
    """

    servers: int
    gpus: int
    racks: int = 0
    extra: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, value, least in (
            ("servers", self.servers, 1),
            ("gpus_per_server", self.gpus, 1),
            ("racks", self.racks, 0),
        ):
            if not least <= value <= 1_000_000:
                raise InputError(f"found {value}; it must be from {least} to 1000000", where=name)
        for name, units in self.extra.items():
            if not 0 <= units <= 1e9:
                raise InputError(f"found {units}; it must be 0 (unlimited) or more", where=name)

    @property
    def resources(self) -> tuple[str, ...]:
        """Names of the resources; gpu comes first."""
        return ("gpu", *self.extra)

    def nodes(self) -> tuple[Node, ...]:
        """The site, its racks and its servers, in this order; only servers have limits."""
        open_ended = (UNLIMITED,) * len(self.resources)
        capacity = (
            self.gpus * MILLI,
            *(round(u * MILLI) if u else UNLIMITED for u in self.extra.values()),
        )
        racks = min(self.racks, self.servers)
        digits = len(str(self.servers - 1))
        nodes = [Node(name="cluster", kind="site", capacity_milli=open_ended)]
        nodes += [
            Node(name=f"rack-{r}", kind="rack", parent=0, capacity_milli=open_ended) for r in range(racks)
        ]
        for s in range(self.servers):
            parent = 1 + s * racks // self.servers if racks else 0
            nodes.append(
                Node(name=f"server-{s:0{digits}d}", kind="server", parent=parent, capacity_milli=capacity)
            )
        return tuple(nodes)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """Fixed jobs as columns of equal length, in order of arrival.

    workers      workers of each job, all needed at once
    demand       what one worker of each job needs; a single entry holds for all jobs
    """

    ids: Sequence[str]
    arrive_us: Ints
    runtime_us: Ints
    workers: Ints
    tenants: Sequence[str]
    demand: list[Demand]


def horizon_us(rows: Rows, machines: Machines, slot_us: int) -> int:
    """A time by which every job that fits can have finished, with a margin.

    While a job that fits into the empty cluster of C GPUs waits, fewer GPUs are free than the largest job needs, so
    waiting ends at most work / (C - largest + 1) after the last arrival; the margin doubles that time. Running all jobs
    one by one is a second limit, and the only one where jobs need more than GPUs.
    """
    gpus = rows.workers * _gpus_of(rows)
    total = machines.servers * machines.gpus * float(MILLI)
    fits = gpus <= total
    if not fits.any():
        return int(rows.arrive_us[-1]) + slot_us
    runtime = rows.runtime_us[fits].astype(float)
    busy = total - float(gpus[fits].max()) + 1.0
    crowd = 2.0 * (float((runtime * gpus[fits]).sum()) / busy + float(runtime.max()))
    after = float(runtime.sum()) if len(rows.demand) > 1 else min(crowd, float(runtime.sum()))
    slots = -(-(int(rows.arrive_us[-1]) + int(after) + 1) // slot_us) + 1
    return min(slots * slot_us, LARGEST)


def _gpus_of(rows: Rows) -> Ints:
    """GPUs of one worker in thousandths, per job or one for all."""
    return np.array([dict(demand).get(0, 0) for demand in rows.demand], np.int64)


def _jobs(rows: Rows, public: bool) -> tuple[Sequence[Job], Sequence[Customer]]:
    """The jobs with their customers; as columns where all workers need the same."""
    if len(rows.demand) == 1:
        columns = JobColumns(
            ids=rows.ids,
            arrive_us=rows.arrive_us,
            runtime_us=rows.runtime_us,
            workers=rows.workers,
            tenants=Words.of(rows.tenants),
            demand=rows.demand[0],
            public=public,
        )
        return columns, columns.customers
    facts = (rows.ids, rows.arrive_us.tolist(), rows.runtime_us.tolist(), rows.workers.tolist(), rows.tenants)
    unknown = Fixed()
    jobs = tuple(
        Job(
            index=i,
            id=id,
            arrive_us=arrive,
            work=Fixed(runtime_us=runtime) if public else unknown,
            worker=demand,
            tenant=tenant,
            workers_min=workers,
            workers_max=workers,
        )
        for i, (id, arrive, runtime, workers, tenant, demand) in enumerate(
            zip(*facts, rows.demand, strict=True)
        )
    )
    return jobs, () if public else tuple(Customer(runtime_us=runtime) for runtime in facts[2])


def scenario_of(
    name: str, rows: Rows, machines: Machines, *, slot_s: float, public: bool, origin: Mapping[str, object]
) -> Scenario:
    """Fixed jobs on identical servers; the objective is the mean completion time."""
    if not 0 < slot_s <= 1e9:
        raise InputError(
            f"found {slot_s}; it must be a positive number of seconds, at most 1e9", where="slot_s"
        )
    slot_us = max(1, round(slot_s * US_PER_S))
    jobs, customers = _jobs(rows, public)
    return Scenario(
        name=name,
        setup=Setup(
            resources=machines.resources,
            nodes=machines.nodes(),
            slot_us=slot_us,
            horizon_us=horizon_us(rows, machines, slot_us),
            objective="jct_mean_s",
        ),
        jobs=jobs,
        customers=customers,
        origin=origin,
    )
