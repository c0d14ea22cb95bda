"""Builds a Scenario from a parsed file: names become indices, amounts become integers."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import accumulate
from typing import Any, Final

from tradewind.files.messages import find
from tradewind.files.scenario_changes import build_changes
from tradewind.files.scenario_volumes import build_volumes
from tradewind.files.schemas_prices import PoolFile, TariffFile
from tradewind.files.schemas_scenario import (
    DataFile,
    DatasetWork,
    FixedWork,
    JobFile,
    LinkFile,
    NodeFile,
    PrivateFile,
    ScenarioFile,
    StreamWork,
    UtilityFile,
)
from tradewind.model.errors import ScenarioError
from tradewind.model.job import (
    DECLARED,
    NO_PRIVATE_DATA,
    Customer,
    Data,
    Dataset,
    Demand,
    Fixed,
    Job,
    Rounds,
    Stream,
    Work,
)
from tradewind.model.machine import Machine
from tradewind.model.network import Link
from tradewind.model.node import Node
from tradewind.model.pool import Pool
from tradewind.model.scenario import Scenario
from tradewind.model.setup import Setup
from tradewind.model.tariff import Tariff
from tradewind.model.tenant import SpendCap
from tradewind.model.units import UNLIMITED
from tradewind.model.utility import Utility

EVERY: Final = "*"
MOST_PAIRS: Final = 5_000_000
MOST_SLOTS: Final = 5_000_000


def build(file: ScenarioFile, name: str) -> Scenario:
    """The scenario that a file describes; `name` is used if the file has none."""
    setup = build_setup(file)
    builder = JobBuilder(setup)
    came = accumulate((job.arrive_us for job in file.jobs), max, initial=0)
    jobs = tuple(builder.job(i, job, now) for i, (job, now) in enumerate(zip(file.jobs, came, strict=False)))
    customers = tuple(builder.customer(job, each.id) for job, each in zip(file.jobs, jobs, strict=True))
    return Scenario(
        name=file.name or name,
        setup=setup,
        jobs=jobs,
        customers=customers,
        changes=build_changes(setup, file.changes),
        volumes=build_volumes(setup, jobs, customers, file),
        origin=file.origin,
    )


def build_setup(file: ScenarioFile) -> Setup:
    """Nodes, links and tariffs."""
    resources = _resources(file)
    index = {name: i for i, name in enumerate(resources)}
    nodes: dict[str, int] = {}
    for i, node in enumerate(file.nodes):
        if node.name == EVERY:
            raise ScenarioError(f"nodes[{i}].name is '*', which stands for every site; choose another name")
        if nodes.setdefault(node.name, i) != i:
            raise ScenarioError(f"nodes contains {node.name!r} twice; rename one")
    if file.horizon_us // file.slot_us > MOST_SLOTS:
        raise ScenarioError(
            f"slot_us is {file.slot_us} microseconds, so that the horizon has {file.horizon_us // file.slot_us:,} slots; "
            f"allowed are {MOST_SLOTS:,}. A number without a unit counts microseconds: write for example slot_us: 1 h"
        )
    rent = {
        (nodes[node.name], find(index, name, "resource", f"nodes[{node.name}].rent")): tariff_of(
            tariff, f"nodes[{node.name}].rent.{name}"
        )
        for node in file.nodes
        for name, tariff in node.rent.items()
    }
    egress = _egress(file, nodes)
    return Setup(
        resources=resources,
        nodes=tuple(_node(node, index, nodes) for node in file.nodes),
        links=tuple(_link(link, nodes) for link in file.links),
        rent=rent,
        egress=egress,
        pools=tuple(_pool(pool, index, nodes, egress) for pool in file.pools),
        transfer_bytes_per_slot=file.transfer_bytes_per_slot,
        slot_us=file.slot_us,
        horizon_us=file.horizon_us,
        window_slots=file.window_slots,
        transport=file.transport,
        objective=file.objective,
        forecast=file.forecast,
        spend_caps={
            tenant: SpendCap(slot_usd=cap.slot_usd, total_usd=cap.total_usd)
            for tenant, cap in file.spend_caps.items()
        },
    )


def _resources(file: ScenarioFile) -> tuple[str, ...]:
    if file.resources is not None:
        if len(set(file.resources)) != len(file.resources):
            raise ScenarioError("resources contains a name twice; drop one")
        return tuple(file.resources)
    found = dict.fromkeys(name for node in file.nodes for name in (*node.capacity, *node.rent))
    if not found:
        raise ScenarioError("resources is missing and no node has any; add for example resources: [gpu]")
    return tuple(found)


def _node(file: NodeFile, resources: Mapping[str, int], nodes: Mapping[str, int]) -> Node:
    capacity = [UNLIMITED] * len(resources)
    for name, milli in file.capacity.items():
        capacity[find(resources, name, "resource", f"nodes[{file.name}].capacity")] = milli
    parent = -1 if file.parent is None else find(nodes, file.parent, "node", f"nodes[{file.name}].parent")
    try:
        machine = None if file.machine is None else Machine(**file.machine.model_dump())
    except ScenarioError as error:
        raise ScenarioError(str(error), where=f"nodes[{file.name}]") from None
    return Node(
        name=file.name,
        kind=file.kind,
        parent=parent,
        capacity_milli=tuple(capacity),
        machine=machine,
        interruptions_per_hour=file.interruptions_per_hour,
    )


def _pool(
    file: PoolFile,
    resources: Mapping[str, int],
    nodes: Mapping[str, int],
    egress: Mapping[tuple[int, int], Tariff],
) -> Pool:
    where = f"pools[{file.name}]"
    pairs: dict[tuple[int, int], None] = {}
    for line in file.egress:
        src, dst = (
            None if end == EVERY else find(nodes, end, "node", f"{where}.egress")
            for end in (line.src, line.dst)
        )
        if src is not None and dst is not None:
            pairs[src, dst] = None
        else:
            pairs |= {(a, b): None for a, b in sorted(egress) if src in (None, a) and dst in (None, b)}
    return Pool(
        name=file.name,
        rent=tuple(
            (
                find(nodes, name, "node", f"{where}.rent"),
                find(resources, resource, "resource", f"{where}.rent"),
            )
            for resource, names in file.rent.items()
            for name in names
        ),
        egress=tuple(pairs),
        period_us=file.period_us,
        tariff=tariff_of(file.tariff, f"{where}.tariff"),
        free_usd=file.free_usd,
        carried_usd=file.carried_usd,
    )


def _link(file: LinkFile, nodes: Mapping[str, int]) -> Link:
    where = f"links[{file.a}-{file.b}]"
    a, b = (find(nodes, end, "node", where) for end in (file.a, file.b))
    both = (file.ab_bps, file.ba_bps)
    if file.bps is not None and both == (None, None):
        ab, ba = file.bps, file.bps
    elif file.bps is None and file.ab_bps is not None and file.ba_bps is not None:
        ab, ba = file.ab_bps, file.ba_bps
    else:
        raise ScenarioError(f"{where}: give bps for both directions, or ab_bps and ba_bps, but not both")
    if a == b:
        raise ScenarioError(f"{where} connects a node to itself; drop it")
    if file.shared and ab != ba:
        raise ScenarioError(
            f"{where} is shared but has different bandwidths, {ab} and {ba} bit/s; give bps for both directions"
        )
    return Link(
        a=a,
        b=b,
        ab_bps=ab,
        ba_bps=ba,
        shared=file.shared,
        latency_us=file.latency_us,
        usd_per_gb=file.usd_per_gb,
    )


def tariff_of(file: float | TariffFile, where: str) -> Tariff:
    try:
        if isinstance(file, TariffFile):
            return Tariff(starts=tuple(file.starts), usd=tuple(file.usd), rule=file.rule)
        return Tariff(usd=(file,))
    except ScenarioError as error:
        raise ScenarioError(str(error), where=where) from None


def _egress(file: ScenarioFile, nodes: Mapping[str, int]) -> dict[tuple[int, int], Tariff]:
    """Entries with fewer `*` win; two entries with equally many may not price the same pair."""
    sites = [nodes[node.name] for node in file.nodes if node.parent is None and node.kind == "site"]
    result: dict[tuple[int, int], Tariff] = {}
    rank: dict[tuple[int, int], int] = {}
    for line in file.egress:
        where = f"egress[{line.src}->{line.dst}]"
        tariff = tariff_of(line.tariff, where)
        stars = (line.src == EVERY) + (line.dst == EVERY)
        ends = [sites if end == EVERY else [find(nodes, end, "node", where)] for end in (line.src, line.dst)]
        if len(ends[0]) * len(ends[1]) > MOST_PAIRS:
            raise ScenarioError(
                f"{where} covers more than {MOST_PAIRS:,} pairs of sites; list the pairs in use instead"
            )
        for src in ends[0]:
            for dst in ends[1]:
                pair = (src, dst)
                if src == dst and stars:
                    continue
                before = rank.get(pair, 3)
                if before == stars:
                    names = f"{file.nodes[src].name}->{file.nodes[dst].name}"
                    raise ScenarioError(f"{where} prices {names} again, as another entry does; keep one")
                if stars < before:
                    result[pair], rank[pair] = tariff, stars
    return result


class JobBuilder:
    """Builds jobs and customers from job objects; equal demands are shared."""

    def __init__(self, setup: Setup) -> None:
        self.setup = setup
        self.demands: dict[tuple[tuple[str, int], ...], Demand] = {}

    def job(self, index: int, file: JobFile, now_us: int = 0) -> Job:
        """The public part of a job. A bid for an instant before now_us arrives now, with bid_from_us in the past."""
        worth = file.utility
        is_bid = isinstance(file.work, DatasetWork) and worth is not None and worth.of == "delay_slots"
        arrive_us, bid_from_us = file.arrive_us, file.bid_from_us
        if is_bid and arrive_us < now_us:
            arrive_us, bid_from_us = now_us, arrive_us if bid_from_us is None else bid_from_us
        name = file.id if file.id is not None else f"job-{index}"
        low, high = self._workers(file, name)
        return Job(
            index=index,
            id=name,
            arrive_us=arrive_us,
            work=self._work(file.work, name),
            worker=self._demand(file.worker, name, "worker"),
            tenant=file.tenant,
            architecture=file.architecture,
            server=self._demand(file.server, name, "server"),
            workers_min=low,
            workers_max=high,
            servers=file.servers,
            utility=_utility(file.utility, name, "utility"),
            bid_from_us=bid_from_us,
            nodes=self._places(file.nodes, name, "nodes"),
            data_nodes=self._places(file.data_nodes, name, "data_nodes"),
            model_bytes=file.model_bytes,
            traffic_bytes_per_worker_slot=file.traffic_bytes_per_worker_slot,
            worker_bps=file.worker_bps,
            server_bps=file.server_bps,
            ring_bps=file.ring_bps,
            reduce_bps=file.reduce_bps,
            deploy_usd=file.deploy_usd,
            restart_us=file.restart_us,
            hold=file.hold,
            caps=self._demand(file.caps, name, "caps"),
            site_bytes=self._pairs(file.site_bytes, f"jobs[{name}].site_bytes"),
            gpus=tuple(file.gpus),
            gpu_speeds=tuple(file.gpu_speeds.items()),
            parts=self._pairs(file.parts, f"jobs[{name}].parts"),
            copies=self._copies(file.copies, f"jobs[{name}].copies"),
            warmup_us=file.warmup_us,
            checkpoint_us=file.checkpoint_us,
            sync_every=file.sync_every,
            spend_cap_usd=file.spend_cap_usd,
            restarts=file.restarts,
            command=tuple(file.command),
            env=tuple(sorted(file.env.items())),
            seed=file.seed,
            data=_data(file.data, name),
        )

    def customer(self, file: JobFile, name: str) -> Customer:
        """The private part of a job."""
        private: PrivateFile = file.private or PrivateFile()
        stays = file.work.stay_us if isinstance(file.work, StreamWork) else None
        if stays is not None and private.runtime_us is not None:
            raise ScenarioError(f"jobs[{name}] has work.stay_us as well as private.runtime_us; keep one")
        if file.private is None and stays is None:
            return NO_PRIVATE_DATA
        return Customer(
            budget_usd=private.budget_usd,
            valuation=_utility(private.valuation, name, "private.valuation"),
            runtime_us=private.runtime_us if stays is None else stays,
            pace_milli=round(private.pace * DECLARED),
        )

    def _workers(self, file: JobFile, name: str) -> tuple[int, int]:
        if file.workers is not None:
            if file.workers_min is not None or file.workers_max is not None:
                raise ScenarioError(
                    f"jobs[{name}] has workers as well as workers_min or workers_max; give one or the other"
                )
            return file.workers, file.workers
        low = file.workers_min if file.workers_min is not None else 1
        return low, file.workers_max if file.workers_max is not None else low

    def _demand(self, amounts: dict[str, int], job: str, field: str) -> Demand:
        if not amounts:
            return ()
        key = tuple(amounts.items())
        known = self.demands.get(key)
        if known is None:
            index = self.setup.resource_index
            pairs = (
                (find(index, name, "resource", f"jobs[{job}].{field}"), milli) for name, milli in key if milli
            )
            known = self.demands[key] = tuple(sorted(pairs))
        return known

    def _places(self, names: list[str] | None, job: str, field: str) -> frozenset[int] | None:
        if names is None:
            return None
        index = self.setup.node_index
        return frozenset(find(index, name, "node", f"jobs[{job}].{field}") for name in names)

    def _pairs(self, counts: dict[str, int], where: str) -> tuple[tuple[int, int], ...]:
        index = self.setup.node_index
        return tuple((find(index, name, "node", where), n) for name, n in counts.items())

    def _copies(self, copies: dict[str, dict[str, int]], where: str) -> tuple[tuple[int, int, int], ...]:
        index = self.setup.node_index
        return tuple(
            (find(index, part, "node", where), site, left_us)
            for part, sites in copies.items()
            for site, left_us in self._pairs(sites, f"{where}.{part:.60}")
        )

    def _work(self, file: Any, job: str) -> Work:
        if isinstance(file, FixedWork):
            return Fixed(runtime_us=file.runtime_us)
        if isinstance(file, StreamWork):
            return Stream(bytes_per_worker_slot=file.bytes_per_worker_slot)
        if isinstance(file, DatasetWork):
            return Dataset(
                chunks=self._pairs(file.chunks, f"jobs[{job}].work.chunks"),
                chunk_bytes=file.chunk_bytes,
                epochs=file.epochs,
                chunk_epochs_per_worker_slot_milli=file.chunk_epochs_per_worker_slot,
            )
        return Rounds(
            count=file.count,
            unit=file.unit,
            compute_us=file.compute_us,
            comm=file.comm,
            rate=file.rate,
            whole_slots=file.whole_slots,
            pinned=self._pairs(file.pinned, f"jobs[{job}].work.pinned"),
        )


def _data(file: DataFile | None, job: str) -> Data | None:
    if file is None:
        return None
    try:
        return Data(source=file.source, record_bytes=file.record_bytes, shard_bytes=file.shard_bytes)
    except ScenarioError as error:
        raise ScenarioError(str(error), where=f"jobs[{job}]") from None


def _utility(file: UtilityFile | None, job: str, field: str) -> Utility | None:
    if file is None:
        return None
    try:
        return Utility(of=file.of, shape=file.shape, args=tuple(file.args), from_zero=file.from_zero)
    except ScenarioError as error:
        raise ScenarioError(str(error), where=f"jobs[{job}].{field}") from None
