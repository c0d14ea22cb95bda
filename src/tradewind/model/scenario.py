"""Scenario = setup + script: all problem data, including the future. Policies may not import this module."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from tradewind.model.errors import ScenarioError
from tradewind.model.estimate import check_pace
from tradewind.model.job import (
    MOST_RANKS,
    NO_PRIVATE_DATA,
    Customer,
    Dataset,
    Demand,
    Fixed,
    Job,
    Rounds,
    Stream,
)
from tradewind.model.job_checks import check_gpus, check_node, check_once, check_parts, counts, positive
from tradewind.model.job_columns import JobColumns, columns_of
from tradewind.model.setup import Setup
from tradewind.model.tenant import EVERY_TENANT
from tradewind.model.units import LARGEST, MILLI, UNLIMITED, time_text
from tradewind.model.view import Change

CHANGE_KINDS = ("capacity", "bandwidth", "price", "egress", "node_down", "node_up", "link_down", "link_up")


def _frozen(values: Sequence[int] | NDArray[np.int64]) -> NDArray[np.int64]:
    array = np.array(values, dtype=np.int64)
    array.setflags(write=False)
    return array


@dataclass(frozen=True, kw_only=True, eq=False)
class Volumes:
    """Data of stream jobs: rows (job, slot, node, bytes), sorted by slot, then job, then node."""

    job: NDArray[np.int64] = field(default_factory=lambda: _frozen([]))
    slot: NDArray[np.int64] = field(default_factory=lambda: _frozen([]))
    node: NDArray[np.int64] = field(default_factory=lambda: _frozen([]))
    bytes: NDArray[np.int64] = field(default_factory=lambda: _frozen([]))

    def __post_init__(self) -> None:
        lengths = {len(self.job), len(self.slot), len(self.node), len(self.bytes)}
        if len(lengths) != 1:
            raise ScenarioError("volumes: the columns job, slot, node, bytes have different lengths")
        order = np.lexsort((self.node, self.job, self.slot))
        for name in ("job", "slot", "node", "bytes"):
            object.__setattr__(self, name, _frozen(np.asarray(getattr(self, name), dtype=np.int64)[order]))

    def __len__(self) -> int:
        return len(self.job)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Volumes):
            return NotImplemented
        names = ("job", "slot", "node", "bytes")
        return all(np.array_equal(getattr(self, name), getattr(other, name)) for name in names)


@dataclass(frozen=True, kw_only=True)
class Script:
    """What will happen: jobs in order of arrival, their customers, changes in order of time, volumes."""

    jobs: Sequence[Job]
    customers: Sequence[Customer] = ()
    changes: tuple[Change, ...] = ()
    volumes: Volumes = field(default_factory=Volumes)


@dataclass(frozen=True, kw_only=True)
class Scenario(Script):
    """A setup and a script.

    origin  how it was made (workload, parameters, seed), for people; not part of the hash
    """

    name: str
    setup: Setup
    origin: Mapping[str, object] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if isinstance(self.jobs, JobColumns):
            object.__setattr__(self, "customers", self.jobs.customers)
        elif not self.customers:
            object.__setattr__(self, "customers", (NO_PRIVATE_DATA,) * len(self.jobs))
        if len(self.customers) != len(self.jobs):
            raise ScenarioError(
                f"there are {len(self.jobs)} jobs and {len(self.customers)} customers; each job needs one customer"
            )
        pairs = zip(self.jobs[0:1], self.customers[0:1], strict=True)  # sound columns differ in nothing else
        if not isinstance(self.jobs, JobColumns) or not self.jobs.are_sound(self.setup.horizon_us):
            _check_order(self)
            pairs = zip(self.jobs, self.customers, strict=True)
        for job, customer in pairs:
            check_job(self.setup, job, customer)
        _check_changes(self)
        _check_volumes(self)
        _check_caps(self)

    @cached_property
    def columns(self) -> JobColumns | None:
        """The jobs as columns; None where they are not all plain (`columns_of` says why)."""
        found = columns_of(self.jobs, self.customers)
        return None if isinstance(found, str) else found


def _check_caps(scenario: Scenario) -> None:
    """Caps name existing tenants."""
    caps = scenario.setup.spend_caps
    tenants = {job.tenant for job in scenario.jobs} if caps else set()
    for tenant in caps if scenario.jobs else ():  # without jobs, tenants are still to come
        if tenant != EVERY_TENANT and tenant not in tenants:
            known = ", ".join(sorted(repr(each) for each in tenants)[:8]) or "none"
            raise ScenarioError(
                f"spend_caps[{tenant}] names a tenant without jobs; tenants are {known}. Correct the name or remove the cap."
            )


def _check_order(scenario: Scenario) -> None:
    ids = [job.id for job in scenario.jobs]
    if len(set(ids)) != len(ids):
        twice = next(i for i, n in Counter(ids).items() if n > 1)
        raise ScenarioError(f"jobs has the id {twice!r} twice; ids must differ. Rename one.")
    before = 0
    for i, job in enumerate(scenario.jobs):
        if job.index != i:
            raise ScenarioError(f"jobs[{job.id}].index is {job.index}; it must be its position, {i}")
        if not before <= job.arrive_us < scenario.setup.horizon_us:
            raise ScenarioError(
                f"jobs[{job.id}].arrive_us is {time_text(job.arrive_us)}; jobs are listed by arrival "
                f"(the one before: {time_text(before)}) and arrive before the horizon, "
                f"{time_text(scenario.setup.horizon_us)}. Sort the jobs or move the horizon."
            )
        before = job.arrive_us
        if job.bid_from_us is not None and not (
            -LARGEST <= job.bid_from_us < job.arrive_us and job.utility is not None
        ):
            raise ScenarioError(
                f"jobs[{job.id}].bid_from_us is {job.bid_from_us}; it is for bids (utility) whose delay starts "
                f"before the arrival, {job.arrive_us}. Leave it out."
            )


def _check_demand(setup: Setup, job: Job, name: str, demand: Demand) -> None:
    before = -1
    for resource, milli in demand:
        if resource <= before:
            raise ScenarioError(
                f"jobs[{job.id}].{name} names resource {resource} after {before}; indices must increase. Sort them."
            )
        before = resource
        if not 0 <= resource < len(setup.resources):
            raise ScenarioError(
                f"jobs[{job.id}].{name} names resource {resource}; there are {len(setup.resources)}"
            )
        if not 0 < milli <= LARGEST:
            raise ScenarioError(
                f"jobs[{job.id}].{name}.{setup.resources[resource]} is {milli / 1000:g}; "
                "it must be positive. Leave out resources that are not needed."
            )


def check_job(setup: Setup, job: Job, customer: Customer) -> None:
    """Raise ScenarioError if a job contradicts itself or the setup."""
    where = f"jobs[{job.id}]"
    if not job.id:
        raise ScenarioError(f"jobs[{job.index}].id is empty; give every job an id")
    _check_demand(setup, job, "worker", job.worker)
    if job.server:
        _check_demand(setup, job, "server", job.server)
    if job.caps:
        _check_demand(setup, job, "caps", job.caps)
    if not job.worker:
        raise ScenarioError(f"{where}.worker is empty; a worker needs at least one resource")
    for name, places in (("nodes", job.nodes), ("data_nodes", job.data_nodes)):
        if places is not None:
            if not places:
                raise ScenarioError(
                    f"{where}.{name} is empty and allows no node; leave it out to allow all nodes, or name some"
                )
            for node in places:
                check_node(setup, f"{where}.{name}", node)
    for name in (
        "arrive_us", "model_bytes", "traffic_bytes_per_worker_slot", "worker_bps", "server_bps", "ring_bps",
        "reduce_bps", "restart_us", "warmup_us", "checkpoint_us", "sync_every",
    ):  # fmt: skip
        value = getattr(job, name)
        if not 0 <= value <= LARGEST:
            raise ScenarioError(f"{where}.{name} is {value}; it must lie between 0 and {LARGEST}")
    if not 0 <= job.deploy_usd < float("inf"):
        raise ScenarioError(f"{where}.deploy_usd is {job.deploy_usd}; it must be finite and not negative")
    for name, usd in (("budget_usd", customer.budget_usd), ("spend_cap_usd", job.spend_cap_usd)):
        if usd is not None and not 0 <= usd < float("inf"):
            raise ScenarioError(f"{where}.{name} is {usd}; it must be finite and not negative")
    check_once(f"{where}.site_bytes", job.site_bytes)
    sites = {node for node, _ in job.work.pinned} if isinstance(job.work, Rounds) else set()
    for node, size in job.site_bytes:
        check_node(setup, f"{where}.site_bytes", node)
        name = setup.nodes[node].name
        if node not in sites:
            raise ScenarioError(
                f"{where}.site_bytes names {name!r}, where no worker is pinned; pin one there or remove the entry"
            )
        positive(f"{where}.site_bytes[{name}]", bytes=size)
    if job.site_bytes and not job.model_bytes and len(job.site_bytes) < len(sites):
        raise ScenarioError(
            f"{where}.model_bytes is 0; give model_bytes, or name every worker site in site_bytes"
        )
    _check_work(setup, job, customer)
    if job.gpus or job.gpu_speeds or (isinstance(job.work, Rounds) and job.work.comm == "machines"):
        check_gpus(job)
    elif job.parts or job.warmup_us or job.checkpoint_us or job.sync_every or job.spend_cap_usd is not None:
        raise ScenarioError(
            f"{where} has parts, warmup_us, checkpoint_us, sync_every or spend_cap_usd; they are for work of comm 'machines'"
        )
    elif job.restarts is not None and not isinstance(job.work, Fixed):
        raise ScenarioError(
            f"{where}.restarts is for fixed work and for work of comm 'machines'; leave it out"
        )
    if job.restarts is not None and not 0 <= job.restarts <= LARGEST:
        raise ScenarioError(f"{where}.restarts is {job.restarts}; it must be 0 or more, or left out")
    for name, worth in (("utility", job.utility), ("valuation", customer.valuation)):
        if worth is not None and worth.of == "served" and not (job.may_skip_slots and job.kind == "stream"):
            raise ScenarioError(
                f"{where}.{name} is of 'served', which is for streams with such a bid (utility); use delay_slots or progress"
            )
    check_parts(setup, job)


def _check_work(setup: Setup, job: Job, customer: Customer) -> None:
    where, work = f"jobs[{job.id}].work", job.work
    check_pace(job, customer.pace_milli)
    match work:
        case Fixed():
            runtime = work.runtime_us if work.runtime_us is not None else customer.runtime_us
            if runtime is None:
                raise ScenarioError(
                    f"{where} has no runtime; give work.runtime_us (public) or private.runtime_us"
                )
            positive(where, runtime_us=runtime)
        case Stream():
            positive(where, bytes_per_worker_slot=work.bytes_per_worker_slot)
            if customer.runtime_us is None:
                raise ScenarioError(f"{where}: a stream needs work.stay_us, the time until it leaves")
            positive(where, runtime_us=customer.runtime_us)
        case Dataset():
            check_once(f"{where}.chunks", work.chunks)
            positive(
                where, chunk_bytes=work.chunk_bytes,
                chunk_epochs_per_worker_slot=work.chunk_epochs_per_worker_slot_milli,
            )  # fmt: skip
            counts(where, epochs=work.epochs)
            for node, chunks in work.chunks:
                check_node(setup, f"{where}.chunks", node)
                counts(f"{where}.chunks[{setup.nodes[node].name}]", chunks=chunks)
        case Rounds():
            _check_rounds(setup, job, work)


def _check_rounds(setup: Setup, job: Job, work: Rounds) -> None:
    where = f"jobs[{job.id}].work"
    positive(where, count=work.count)
    if not 0 <= work.compute_us <= LARGEST:
        raise ScenarioError(f"{where}.compute_us is {work.compute_us}; it must not be negative")
    if not 0 < work.rate < float("inf"):
        raise ScenarioError(f"{where}.rate is {work.rate}; it must be positive and finite")
    if work.unit == "worker-round" and work.compute_us == 0:
        raise ScenarioError(f"{where}.compute_us is 0; a round of one worker takes no time without it")
    if work.unit == "round" and work.compute_us == 0 and (work.comm == "none" or job.model_bytes == 0):
        raise ScenarioError(
            f"{where}: a round takes no time; give compute_us, or communication with model_bytes"
        )
    if work.comm == "colocated" and job.model_bytes and not (job.worker_bps and job.server_bps):
        raise ScenarioError(f"{where}: comm 'colocated' needs worker_bps and server_bps of the job")
    if work.comm == "ring" and job.workers_max > 1 and not job.ring_bps:
        raise ScenarioError(
            f"jobs[{job.id}].ring_bps is 0; comm 'ring' needs the bandwidth reserved on each hop"
        )
    check_once(f"{where}.pinned", work.pinned)
    for node, workers in work.pinned:
        check_node(setup, f"{where}.pinned", node)
        positive(f"{where}.pinned[{setup.nodes[node].name}]", MOST_RANKS, workers=workers)
    if work.comm == "flows":
        if not work.pinned:
            raise ScenarioError(f"{where}.pinned is empty; comm 'flows' needs the sites of the workers")
        seen = setup.reachable_from(work.pinned[0][0])
        for node, _ in work.pinned:
            if node not in seen:
                raise ScenarioError(
                    f"{where}.pinned: {setup.nodes[node].name!r} cannot be reached from "
                    f"{setup.nodes[work.pinned[0][0]].name!r}; the network is disconnected. Add a link."
                )
    pinned = sum(workers for _, workers in work.pinned)
    if work.pinned and not job.workers_min <= pinned <= job.workers_max:
        raise ScenarioError(
            f"{where}.pinned places {pinned} workers; workers_min and workers_max allow {job.workers_min} to "
            f"{job.workers_max}. Change one of them."
        )
    if job.site_bytes and work.comm != "flows":
        raise ScenarioError(f"jobs[{job.id}].site_bytes is for comm 'flows' only; found {work.comm!r}")
    if work.comm == "flows" and not job.servers:
        raise ScenarioError(f"jobs[{job.id}].servers is 0; comm 'flows' needs a parameter server, use 1")


def _check_changes(scenario: Scenario) -> None:
    setup, before = scenario.setup, 0
    sizes = {"node": len(setup.nodes), "link": len(setup.links), "resource": len(setup.resources)}
    kinds: dict[str, tuple[str, str]] = {
        "capacity": ("node", "resource"), "bandwidth": ("link", "direction"), "price": ("node", "resource"),
        "egress": ("node", "node"), "node_down": ("node", ""), "node_up": ("node", ""),
        "link_down": ("link", ""), "link_up": ("link", ""),
    }  # fmt: skip
    for row, change in enumerate(scenario.changes):
        where = f"changes[{row}]"
        if change.kind not in kinds:
            raise ScenarioError(f"{where}.kind is {change.kind!r}; allowed are {', '.join(CHANGE_KINDS)}")
        if not before <= change.at_us:
            raise ScenarioError(
                f"{where}.at_us is {change.at_us}; changes are listed by time (the one before: {before})"
            )
        before = change.at_us
        for name, index in zip(kinds[change.kind], (change.a, change.b), strict=True):
            limit = {"direction": 3, "": 1}.get(name) or sizes[name]
            if not 0 <= index < limit:
                raise ScenarioError(
                    f"{where}: {name or 'b'} is {index}; it must lie between 0 and {limit - 1}"
                )
        if change.value < 0 or (change.value > LARGEST and change.value != UNLIMITED):
            raise ScenarioError(f"{where}.value is {change.value}; it must lie between 0 and {LARGEST}")
        if not 0 < change.of <= LARGEST or (change.of != MILLI and change.kind not in ("price", "egress")):
            raise ScenarioError(
                f"{where}.of is {change.of}; it must lie between 1 and {LARGEST}, and is for prices"
            )
        if change.kind == "capacity" and change.a not in setup.host_set and not _is_limited(setup, change.a):
            raise ScenarioError(
                f"{where}: nodes[{setup.nodes[change.a].name}] contains other nodes and has no capacity of its own to "
                "change; give it a capacity in nodes"
            )
        if change.value and change.kind.endswith(("_down", "_up")):
            raise ScenarioError(f"{where}.value is {change.value}; {change.kind} has no value, use 0")
        if change.kind in ("price", "egress") and change.at_us % setup.slot_us:
            raise ScenarioError(
                f"{where}.at_us is {change.at_us}; prices change at the start of a slot, a multiple of {setup.slot_us} us"
            )


def _is_limited(setup: Setup, node: int) -> bool:
    return min(setup.nodes[node].capacity_milli) < UNLIMITED


def _check_volumes(scenario: Scenario) -> None:
    volumes, setup = scenario.volumes, scenario.setup
    if not len(volumes):
        return
    limits = (
        ("job", len(scenario.jobs)),
        ("slot", setup.slots),
        ("node", len(setup.nodes)),
        ("bytes", LARGEST),
    )
    for name, limit in limits:
        column: NDArray[np.int64] = getattr(volumes, name)
        bad = np.flatnonzero((column < 0) | (column >= limit))
        if len(bad):
            whose = "" if name == "job" else f" for jobs[{scenario.jobs[volumes.job[bad[0]]].id}]"
            raise ScenarioError(
                f"volumes.{name} has {column[bad[0]]}{whose}; it must lie between 0 and {limit - 1}"
            )
    keys = np.stack([volumes.slot, volumes.job, volumes.node])
    same = np.flatnonzero((keys[:, 1:] == keys[:, :-1]).all(axis=0))
    if len(same):
        row = int(same[0])
        raise ScenarioError(
            f"volumes has job {scenario.jobs[volumes.job[row]].id}, slot {volumes.slot[row]}, node "
            f"{setup.nodes[volumes.node[row]].name} twice; merge the rows"
        )
    for j in np.unique(volumes.job):
        if not isinstance(scenario.jobs[j].work, Stream):
            raise ScenarioError(
                f"volumes names jobs[{scenario.jobs[j].id}], which is not a stream job; remove those rows"
            )
