"""A plan as plain data: the JSON of `tradewind plan-wan`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tradewind.audit.placement import recheck
from tradewind.model.errors import InputError
from tradewind.model.units import US_PER_S
from tradewind.systems.apsp.kernels.problem import time_of
from tradewind.systems.apsp.plan.alternatives import alternatives
from tradewind.systems.apsp.plan.front import pareto
from tradewind.systems.apsp.plan.request import PlanRequest
from tradewind.systems.apsp.plan.solve import WanPlan, solve
from tradewind.systems.apsp.workload.bandwidth import resolve_rule

MBPS = 1_000_000
RUNNERS_UP = 5


def plan(request: PlanRequest) -> dict[str, Any]:
    """Solve a request and report the plan."""
    return report(solve(request), request)


def report(found: WanPlan, request: PlanRequest) -> dict[str, Any]:
    """The plan as plain data; its bound is checked by the audit first."""
    chosen, net, job, names = found.chosen, found.net, found.network.job, found.topology.nodes
    certificate, bound = _checked_bound(found)
    time = time_of(net.problem, chosen.routing)
    level = min(b.level for b in (chosen.bounds or {}).values())
    flows = _flows(found)
    sizes = {u: job.bytes_of(u) for u, _ in found.network.pinned}
    return {
        "topology": found.topology.name,
        "nodes": len(names),
        "links": len(found.topology.links),
        "notes": [*found.topology.notes, *_latency_note(found)],
        "bandwidth": resolve_rule(found.topology, request.rule),
        "transport": request.transport,
        "model_bytes": job.model_bytes,
        "site_bytes": {names[u]: n for u, n in sizes.items() if n != job.model_bytes},
        "server": names[chosen.sink],
        "epoch_s": found.epoch_s(chosen),
        "transfer_s": net.epoch_us(time) / US_PER_S,
        "bound_s": bound,
        "ratio": float(time / level) if level else 1.0,
        "certificate_checked": True,
        "usd_per_epoch": _sum([flow["usd_per_epoch"] for flow in flows]),
        "flows": flows,
        "runners_up": _runners_up(found),
        "alternatives": alternatives(found),
        **pareto(found),
        "certificate": certificate,
    }


def _checked_bound(found: WanPlan) -> tuple[dict[str, Any], float]:
    """The certificate's data and its bound in seconds, checked by the audit."""
    certificate = found.network.certificate(found.chosen)
    if certificate is None:
        raise InputError(
            "the network is too large for an exact bound; give sizes in whole MB", where="plan-wan"
        )
    data = {key: value for key, value in certificate.data.items() if key != "job"}
    wrong = recheck(found.scenario.setup, data, certificate.value)
    if wrong:
        raise InputError(f"the bound does not check: {wrong}", where="plan-wan")
    return data, certificate.value


def _latency_note(found: WanPlan) -> list[str]:
    """Where the `apsp` policy, which compares transfers without latency, would put the server instead."""
    if found.by_transfer is None:
        return []
    site = found.topology.nodes[found.by_transfer.sink]
    seconds = found.epoch_s(found.by_transfer)
    return [
        f"latency decides for this site; by transfer time alone the apsp policy takes {site} ({seconds:.4g} s)"
    ]


def _flows(found: WanPlan) -> list[dict[str, Any]]:
    """Path, bandwidth, latency and price of every worker site that sends."""
    names, head = found.topology.nodes, found.net.problem.graph.head
    rates = found.net.rates_bps(found.chosen.routing)
    return [
        {
            "site": names[u],
            "path": [names[u], *(names[int(head[a])] for a in arcs)],
            "hops": len(arcs),
            "mbps": rates[u] / MBPS,
            "latency_ms": 1000 * (found.wait_us(arcs) / US_PER_S),
            "usd_per_epoch": _usd(found, u, arcs),
        }
        for u, arcs in enumerate(found.chosen.routing)
        if arcs
    ]


def _usd(found: WanPlan, site: int, arcs: Sequence[int]) -> float | None:
    """Traffic of a site in one epoch, pushed and pulled: both directions of every link on the path; None if unknown."""
    total = 0.0
    for k in found.net.path_links(arcs):
        link = found.topology.links[k]
        if not link.priced:
            return None
        total += (link.ab_usd_per_gb + link.ba_usd_per_gb) * found.network.job.bytes_of(site) / 1e9
    return total


def _sum(parts: Sequence[float | None]) -> float | None:
    known = [part for part in parts if part is not None]
    return sum(known) if len(known) == len(parts) else None


def _runners_up(found: WanPlan) -> list[dict[str, Any]]:
    """The other sites, best first."""
    rows = []
    for other in found.others:
        bounds = other.bounds or {}
        rows.append(
            {
                "server": found.topology.nodes[other.sink],
                "epoch_s": found.epoch_s(other),
                "transfer_s": found.net.epoch_us(time_of(found.net.problem, other.routing)) / US_PER_S,
                "bound_s": found.net.epoch_us(min(bound.level for bound in bounds.values())) / US_PER_S,
            }
        )
    return sorted(rows, key=lambda row: (row["epoch_s"], row["server"]))[:RUNNERS_UP]
