"""Converts a Scenario to the plain values of a file; defaults are left out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any, Final

from tradewind.files.scalars import natural
from tradewind.files.scenario_build import EVERY, MOST_PAIRS
from tradewind.files.scenario_changes import write_changes
from tradewind.files.schemas_scenario import VERSION
from tradewind.model.job import DECLARED, Customer, Dataset, Demand, Fixed, Job, Rounds, Stream
from tradewind.model.network import Link
from tradewind.model.node import Node
from tradewind.model.pool import Pool
from tradewind.model.scenario import Scenario
from tradewind.model.setup import Setup
from tradewind.model.tariff import Tariff
from tradewind.model.units import UNLIMITED
from tradewind.model.utility import Utility

_WHOLE: Final = (
    "servers", "model_bytes", "traffic_bytes_per_worker_slot", "worker_bps", "server_bps", "ring_bps", "reduce_bps",
    "restart_us", "warmup_us", "checkpoint_us", "sync_every",
)  # fmt: skip


def plain_values(value: Any) -> Any:
    """Convert tuples, arrays and numpy scalars to lists and plain numbers; nan becomes null."""
    if isinstance(value, Mapping):
        return {str(key): plain_values(value[key]) for key in value}
    if isinstance(value, str | bool | None):
        return value
    if isinstance(value, int | float):
        return value if value == value else None
    if hasattr(value, "tolist"):
        return plain_values(value.tolist())
    if isinstance(value, set | frozenset):
        return [plain_values(each) for each in sorted(value)]
    if isinstance(value, list | tuple):
        return [plain_values(each) for each in value]
    return str(value)


def document(scenario: Scenario) -> dict[str, Any]:
    """The scenario as a document, with jobs, changes and volumes inline."""
    setup = scenario.setup
    result: dict[str, Any] = {
        "tradewind_scenario": VERSION,
        "name": scenario.name,
        "objective": setup.objective,
        "slot_us": int(setup.slot_us),
        "horizon_us": int(setup.horizon_us),
        "resources": list(setup.resources),
    }
    if setup.window_slots is not None:
        result["window_slots"] = int(setup.window_slots)
    if setup.transfer_bytes_per_slot is not None:
        result["transfer_bytes_per_slot"] = int(setup.transfer_bytes_per_slot)
    if setup.transport != "store-and-forward":
        result["transport"] = setup.transport
    if setup.forecast:
        result["forecast"] = {key: float(value) for key, value in setup.forecast.items()}
    if setup.spend_caps:
        result["spend_caps"] = {
            tenant: {
                name: float(usd)
                for name, usd in (("slot_usd", cap.slot_usd), ("total_usd", cap.total_usd))
                if usd is not None
            }
            for tenant, cap in setup.spend_caps.items()
        }
    if scenario.origin:
        result["origin"] = plain_values(scenario.origin)
    result["nodes"] = _nodes(setup)
    if setup.links:
        result["links"] = [_link(setup, link) for link in setup.links]
    if setup.egress:
        result["egress"] = _egress(setup)
    if setup.pools:
        result["pools"] = [_pool(setup, pool) for pool in setup.pools]
    if scenario.changes:
        result["changes"] = write_changes(setup, scenario.changes)
    result["jobs"] = [
        _job(setup, job, customer) for job, customer in zip(scenario.jobs, scenario.customers, strict=True)
    ]
    if len(scenario.volumes):
        result["volumes"] = _volumes(scenario)
    return result


def _nodes(setup: Setup) -> list[dict[str, Any]]:
    rents: list[dict[str, Any]] = [{} for _ in setup.nodes]
    for (node, resource), tariff in sorted(setup.rent.items(), key=lambda item: item[0]):
        rents[node][setup.resources[resource]] = _tariff(tariff)
    return [_node(setup, node, rent) for node, rent in zip(setup.nodes, rents, strict=True)]


def _node(setup: Setup, node: Node, rent: dict[str, Any]) -> dict[str, Any]:
    row: dict[str, Any] = {"name": node.name}
    if node.kind != "site":
        row["kind"] = node.kind
    if node.parent >= 0:
        row["parent"] = setup.nodes[node.parent].name
    capacity = {
        name: natural(milli)
        for name, milli in zip(setup.resources, node.capacity_milli, strict=True)
        if milli < UNLIMITED
    }
    row |= ({"capacity": capacity} if capacity else {}) | ({"rent": rent} if rent else {})
    if node.machine is not None:
        row["machine"] = {
            name: getattr(node.machine, name) for name in ("gpu", "gpus", "bus_bps", "network_bps")
        }
    if node.interruptions_per_hour:
        row["interruptions_per_hour"] = float(node.interruptions_per_hour)
    return row


def _pool(setup: Setup, pool: Pool) -> dict[str, Any]:
    names = [node.name for node in setup.nodes]
    row: dict[str, Any] = {"name": pool.name}
    rent: dict[str, list[str]] = {}
    for node, resource in pool.rent:
        rent.setdefault(setup.resources[resource], []).append(names[node])
    if rent:
        row["rent"] = rent
    if pool.egress:
        row["egress"] = [{"src": names[a], "dst": names[b]} for a, b in pool.egress]
    row |= {"period_us": int(pool.period_us), "tariff": _tariff(pool.tariff)}
    return row | {n: float(getattr(pool, n)) for n in ("free_usd", "carried_usd") if getattr(pool, n)}


def _link(setup: Setup, link: Link) -> dict[str, Any]:
    row: dict[str, Any] = {"a": setup.nodes[link.a].name, "b": setup.nodes[link.b].name}
    if link.ab_bps == link.ba_bps:
        row["bps"] = int(link.ab_bps)
    else:
        row |= {"ab_bps": int(link.ab_bps), "ba_bps": int(link.ba_bps)}
    if link.shared:
        row["shared"] = True
    if link.latency_us:
        row["latency_us"] = int(link.latency_us)
    if link.usd_per_gb:
        row["usd_per_gb"] = float(link.usd_per_gb)
    return row


def _tariff(tariff: Tariff) -> float | dict[str, Any]:
    if len(tariff.usd) == 1 and tariff.rule == "graduated":
        return float(tariff.usd[0])
    row: dict[str, Any] = {"starts": [float(s) for s in tariff.starts], "usd": [float(p) for p in tariff.usd]}
    return row | ({"rule": tariff.rule} if tariff.rule != "graduated" else {})


def _egress(setup: Setup) -> list[dict[str, Any]]:
    """One entry with * if every ordered pair of sites has a price, then the pairs with another price."""
    names = [node.name for node in setup.nodes]
    sites = [i for i, node in enumerate(setup.nodes) if node.parent < 0 and node.kind == "site"]
    full = 1 < len(sites) * (len(sites) - 1) <= min(len(setup.egress), MOST_PAIRS // 2)
    every = [(a, b) for a in sites for b in sites if a != b] if full else []
    lines: list[dict[str, Any]] = []
    common: Tariff | None = None
    if every and all(pair in setup.egress for pair in every):
        common = Counter(setup.egress[pair] for pair in every).most_common(1)[0][0]
        lines.append({"src": EVERY, "dst": EVERY, "tariff": _tariff(common)})
    covered = set(every) if common is not None else set()
    for pair, tariff in sorted(setup.egress.items(), key=lambda item: item[0]):
        if tariff != common or pair not in covered:
            lines.append({"src": names[pair[0]], "dst": names[pair[1]], "tariff": _tariff(tariff)})
    return lines


def _amounts(setup: Setup, demand: Demand) -> dict[str, int | float]:
    return {setup.resources[resource]: natural(milli) for resource, milli in demand}


def _job(setup: Setup, job: Job, customer: Customer) -> dict[str, Any]:
    row: dict[str, Any] = {"id": job.id, "arrive_us": int(job.arrive_us)}
    if job.tenant:
        row["tenant"] = job.tenant
    row["work"] = _work(setup, job, customer.runtime_us)
    row["worker"] = _amounts(setup, job.worker)
    if job.workers_min != 1 or job.workers_max != 1:
        if job.workers_min == job.workers_max:
            row["workers"] = int(job.workers_min)
        else:
            row |= {"workers_min": int(job.workers_min), "workers_max": int(job.workers_max)}
    if job.architecture != "ring":
        row["architecture"] = job.architecture
    for name in ("server", "caps"):
        if getattr(job, name):
            row[name] = _amounts(setup, getattr(job, name))
    for name in _WHOLE:
        value = getattr(job, name)
        if value:
            row[name] = int(value)
    if job.site_bytes:
        row["site_bytes"] = {setup.nodes[node].name: int(size) for node, size in job.site_bytes}
    if job.gpus:
        row["gpus"] = list(job.gpus)
        row["gpu_speeds"] = {name: natural(milli) for name, milli in job.gpu_speeds}
    if job.parts:
        row["parts"] = {setup.nodes[node].name: int(size) for node, size in job.parts}
    for part, site, left_us in job.copies:
        row.setdefault("copies", {}).setdefault(setup.nodes[part].name, {})[setup.nodes[site].name] = int(
            left_us
        )
    if job.restarts is not None:
        row["restarts"] = int(job.restarts)
    if job.spend_cap_usd is not None:
        row["spend_cap_usd"] = float(job.spend_cap_usd)
    if job.utility is not None:
        row["utility"] = _utility(job.utility)
    if job.bid_from_us is not None:
        row["bid_from_us"] = int(job.bid_from_us)
    for name, places in (("nodes", job.nodes), ("data_nodes", job.data_nodes)):
        if places is not None:
            row[name] = [setup.nodes[i].name for i in sorted(places)]
    if job.deploy_usd:
        row["deploy_usd"] = float(job.deploy_usd)
    if job.hold != "until":
        row["hold"] = job.hold
    if job.command:
        row["command"] = list(job.command)
    if job.env:
        row["env"] = dict(job.env)
    if job.seed:
        row["seed"] = int(job.seed)
    if job.data is not None:
        row["data"] = asdict(job.data)
    private = _private(replace(customer, runtime_us=None) if job.kind == "stream" else customer)
    return row | ({"private": private} if private else {})


def _work(setup: Setup, job: Job, stays_us: int | None) -> dict[str, Any]:
    work = job.work
    row: dict[str, Any] = {"kind": job.kind}
    match work:
        case Fixed():
            return row | ({"runtime_us": int(work.runtime_us)} if work.runtime_us is not None else {})
        case Stream():
            row["bytes_per_worker_slot"] = int(work.bytes_per_worker_slot)
            return row | ({"stay_us": int(stays_us)} if stays_us is not None else {})
        case Dataset():
            return row | {
                "chunks": {setup.nodes[node].name: int(n) for node, n in work.chunks},
                "chunk_bytes": int(work.chunk_bytes),
                "epochs": int(work.epochs),
                "chunk_epochs_per_worker_slot": natural(work.chunk_epochs_per_worker_slot_milli),
            }
        case Rounds():
            row |= {
                "count": int(work.count),
                "unit": work.unit,
                "compute_us": int(work.compute_us),
                "comm": work.comm,
            }
            if work.rate != 1.0:
                row["rate"] = float(work.rate)
            if work.whole_slots:
                row["whole_slots"] = True
            if work.pinned:
                row["pinned"] = {setup.nodes[node].name: int(n) for node, n in work.pinned}
    return row


def _utility(utility: Utility) -> dict[str, Any]:
    row: dict[str, Any] = {"of": utility.of, "shape": utility.shape, "args": [float(a) for a in utility.args]}
    return row | ({"from_zero": True} if utility.from_zero else {})


def _private(customer: Customer) -> dict[str, Any]:
    row: dict[str, Any] = {}
    if customer.budget_usd is not None:
        row["budget_usd"] = float(customer.budget_usd)
    if customer.valuation is not None:
        row["valuation"] = _utility(customer.valuation)
    if customer.runtime_us is not None:
        row["runtime_us"] = int(customer.runtime_us)
    if customer.pace_milli != DECLARED:
        row["pace"] = customer.pace_milli / DECLARED
    return row


def _volumes(scenario: Scenario) -> dict[str, list[Any]]:
    volumes, setup = scenario.volumes, scenario.setup
    return {
        "job": [scenario.jobs[j].id for j in volumes.job],
        "slot": volumes.slot.tolist(),
        "node": [setup.nodes[n].name for n in volumes.node],
        "bytes": volumes.bytes.tolist(),
    }
