"""`tradewind plan-wan`: where the parameter server should stand in a wide area network, which paths, how long, how sure.

The body of the command: a plan as plain data. `cli.plan_wan` prints and draws it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from tradewind.audit.placement import recheck
from tradewind.model.errors import InputError, LookupFailed
from tradewind.model.network import Link
from tradewind.model.setup import Setup
from tradewind.model.node import Node
from tradewind.model.units import UNLIMITED, US_PER_HOUR, US_PER_S, parse_bytes
from tradewind.systems.apsp.front import front, payable
from tradewind.systems.apsp.kernels.alternatives import aggregation_tree, ring
from tradewind.systems.apsp.kernels.bound import degree_levels, relaxed_level
from tradewind.systems.apsp.kernels.columns import Pool
from tradewind.systems.apsp.kernels.network import Net, Wire, bounds_as_data, make_net, place, settings_for
from tradewind.systems.apsp.kernels.problem import Routing, fewest_hops, sinks_that_reach_all, time_of
from tradewind.systems.apsp.kernels.solve import Answer, Settings, quick_levels
from tradewind.systems.apsp.workload.draw import MODEL_BYTES
from tradewind.systems.apsp.workload.generator import drawn_mbps
from tradewind.systems.apsp.workload.sizes import read_sizes
from tradewind.systems.apsp.workload.topologies import Topology, read_topology

MBPS = 1_000_000
RING_MOVES = 600
RUNNERS_UP = 5
LIKELY = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What is asked: a topology, a model (name or size such as "300 MB"), worker sites, how data travels.

    rule: how bandwidth follows distance; "auto" takes the file's own bandwidths where it has them, else power-exact.
    data: what sites exchange where that is not the model's size; usd_per_gb: price of links that have none.
    """

    topology: str
    model: str = "resnet50"
    workers: str = ""
    data: str = ""
    usd_per_gb: float | None = None
    transport: str = "store-and-forward"
    rule: str = "auto"
    min_mbps: int = 500
    shared: bool = False
    gap: float = 0.01
    seed: int = 0


def model_bytes(model: str) -> int:
    """A model of Table II by name, or a size."""
    if model in MODEL_BYTES:
        return MODEL_BYTES[model]
    try:
        return parse_bytes(model)
    except ValueError:
        if any(letter.isdigit() for letter in model[:1]):
            raise InputError(f"model {model!r} is no size; write for example '300 MB'") from None
        raise LookupFailed("model", model, MODEL_BYTES) from None


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """Everything computed for a request."""

    topology: Topology
    setup: Setup
    net: Net
    size: int
    sizes: dict[int, int]
    answer: Answer
    rule: str


def plan(request: Request) -> dict[str, Any]:
    """The plan as plain data (the JSON of the command)."""
    return report(*solve(request), request)


def solve(request: Request) -> tuple[Work, list[Answer]]:
    """The plan, and every site that was solved by itself, the first choice by transfer time among them."""
    topology = _priced(read_topology(request.topology), request.usd_per_gb)
    size = model_bytes(request.model)
    if size <= 0:
        raise InputError(f"model {request.model!r} has no bytes to send")
    stated = all(link.ab_mbps is not None for link in topology.links)
    rule = request.rule if request.rule != "auto" else "file" if stated else "power-exact"
    there, back = drawn_mbps(topology, rule, request.min_mbps, request.seed)
    wait = topology.latency_us()
    setup = Setup(
        resources=("gpu",),
        nodes=tuple(Node(name=name, capacity_milli=(UNLIMITED,)) for name in topology.nodes),
        links=tuple(
            Link(
                a=link.a,
                b=link.b,
                ab_bps=int(ab) * MBPS,
                ba_bps=int(ab if request.shared else ba) * MBPS,
                shared=request.shared,
                latency_us=wait[k],
                usd_per_gb=(link.ab_usd_per_gb + link.ba_usd_per_gb) / 2,
            )
            for k, (link, ab, ba) in enumerate(zip(topology.links, there, back, strict=True))
        ),
        slot_us=US_PER_HOUR,
        horizon_us=US_PER_HOUR,
        transport=request.transport,
        objective="epoch_s",
    )
    names = [name.strip() for name in request.workers.split(",") if name.strip()]
    sources = sorted({topology.index(name) for name in names}) or list(range(len(topology.nodes)))
    sizes = {**dict.fromkeys(sources, size), **read_sizes(request.data, topology, sources)}
    wires = [Wire(link.a, link.b, link.ab_bps, link.ba_bps, link.shared) for link in setup.links]
    try:
        net = make_net(len(topology.nodes), wires, sizes, request.transport)
    except ValueError as error:
        raise InputError(f"{error}; give sizes in whole MB", where="plan-wan") from None
    arcs = net.problem.graph.arcs
    answer = place(net, settings_for(len(topology.nodes), request.gap, 1 + request.seed, arcs))
    work = Work(topology=topology, setup=setup, net=net, size=size, sizes=sizes, answer=answer, rule=rule)
    others = [answer, *_others(work, request)]
    return _with_latency(work, others), others


def _priced(topology: Topology, usd_per_gb: float | None) -> Topology:
    """The topology with a price for links that have none; where no link has one, for all."""
    if usd_per_gb is None:
        return topology
    if not 0 <= usd_per_gb < float("inf"):
        raise InputError(f"found {usd_per_gb}; allowed is 0 or more", where="--default-usd-per-gb")
    bare = not any(link.ab_usd_per_gb + link.ba_usd_per_gb for link in topology.links)
    known = [link.priced and not bare for link in topology.links]
    links = tuple(
        link if told else replace(link, ab_usd_per_gb=usd_per_gb, ba_usd_per_gb=usd_per_gb, priced=True)
        for link, told in zip(topology.links, known, strict=True)
    )
    note = f"{known.count(False)} links without a price count with {usd_per_gb:g} USD/GB, as you said"
    kept = tuple(n for n in topology.notes if "have no price" not in n)
    return replace(topology, links=links, notes=(*kept, note) if False in known else kept)


def _wait_s(work: Work, arcs: Sequence[int]) -> float:
    return sum(work.setup.links[k].latency_us for k in work.net.path_links(arcs)) / US_PER_S


def _usd(work: Work, site: int, arcs: Sequence[int]) -> float | None:
    """Traffic of a site in one epoch, pushed and pulled: both directions of every link on the path; None if unknown."""
    total = 0.0
    for k in work.net.path_links(arcs):
        link = work.topology.links[k]
        if not link.priced:
            return None
        total += (link.ab_usd_per_gb + link.ba_usd_per_gb) * work.sizes[site] / 1e9
    return total


def _epoch_s(work: Work, routing: Routing) -> float:
    """Transfers of the slowest flow, there and back, with latency; flows share what the bottleneck leaves."""
    rates = work.net.rates_bps(routing)
    weight, scale = work.net.problem.weight, work.net.scale
    return max(
        (
            2 * (float(weight[len(arcs)]) / scale * 8 * work.sizes[u] / rates[u] + _wait_s(work, arcs))
            for u, arcs in enumerate(routing)
            if arcs
        ),
        default=0.0,
    )


def report(work: Work, answers: Sequence[Answer], request: Request) -> dict[str, Any]:
    answer, net, names = work.answer, work.net, work.topology.nodes
    rates = net.rates_bps(answer.routing)
    flows = []
    for u, arcs in enumerate(answer.routing):
        if arcs:
            head = net.problem.graph.head
            flows.append(
                {
                    "site": names[u],
                    "path": [names[u], *(names[int(head[a])] for a in arcs)],
                    "hops": len(arcs),
                    "mbps": rates[u] / MBPS,
                    "latency_ms": 1000 * _wait_s(work, arcs),
                    "usd_per_epoch": _usd(work, u, arcs),
                }
            )
    certificate = certificate_of(work)
    bound = net.seconds(answer.bound)
    wrong = recheck(work.setup, certificate, bound)
    if wrong:
        raise InputError(f"the bound does not check: {wrong}", where="plan-wan")
    return {
        "topology": work.topology.name,
        "nodes": len(names),
        "links": len(work.topology.links),
        "notes": list(work.topology.notes),
        "bandwidth": work.rule,
        "transport": request.transport,
        "model_bytes": work.size,
        "site_bytes": {names[u]: n for u, n in work.sizes.items() if n != work.size},
        "server": names[answer.sink],
        "epoch_s": _epoch_s(work, answer.routing),
        "transfer_s": net.seconds(answer.time),
        "bound_s": bound,
        "ratio": answer.ratio,
        "certificate_checked": True,
        "usd_per_epoch": _sum([_usd(work, u, arcs) for u, arcs in enumerate(answer.routing) if arcs]),
        "flows": flows,
        "runners_up": _runners_up(work, answers),
        "alternatives": _alternatives(work),
        **_pareto(work),
        "certificate": certificate,
    }


def _sum(parts: Sequence[float | None]) -> float | None:
    known = [part for part in parts if part is not None]
    return sum(known) if len(known) == len(parts) else None


def certificate_of(work: Work) -> dict[str, Any]:
    """What audit.wan_certificate.recheck needs to check the bound again."""
    return {
        **work.net.sizes_as_data(),
        "unit_bps": work.net.unit_bps,
        "allowed": sorted(work.answer.bounds),
        "bps": [[link.ab_bps, link.ba_bps] for link in work.setup.links],
        "sinks": bounds_as_data(work.net, work.answer.bounds),
    }


def _others(work: Work, request: Request) -> list[Answer]:
    """The next best sites, each solved by itself: those that look best by bound or by shortest paths."""
    problem = work.net.problem
    hops, reach = sinks_that_reach_all(problem)
    levels = degree_levels(problem, hops)
    if problem.graph.nodes <= Settings().presort_size:
        levels = quick_levels(problem, reach, Settings().squeezes)
    others = [v for v in work.answer.bounds if v != work.answer.sink]
    plain = {v: float(time_of(problem, fewest_hops(problem, v))) for v in others}
    likely = sorted(others, key=lambda v: (float(levels[v]), v))[:LIKELY]
    likely += sorted(others, key=lambda v: (plain[v], v))[:LIKELY]
    # runners-up are for comparison: good routings matter, tight bounds do not, except where they are cheap
    usual = settings_for(
        len(work.topology.nodes), max(request.gap, 0.02), 1 + request.seed, problem.graph.arcs
    )
    settings = (
        usual
        if len(work.topology.nodes) <= usual.tree_size
        else replace(usual, long=usual.quick, rounds=0, raise_nodes=0)
    )
    return [place(work.net, settings, [v]) for v in sorted(set(likely))]


def _with_latency(work: Work, others: Sequence[Answer]) -> Work:
    """Take another site where latency decides between (nearly) equal ones; bounds stay those of the transfer."""
    best = min((work.answer, *others), key=lambda a: (_epoch_s(work, a.routing), a.sink))
    if _epoch_s(work, best.routing) >= _epoch_s(work, work.answer.routing):
        return work
    return replace(work, answer=replace(work.answer, sink=best.sink, routing=best.routing, time=best.time))


def _runners_up(work: Work, answers: Sequence[Answer]) -> list[dict[str, Any]]:
    """Sites other than the one chosen, best first."""
    rows: list[tuple[float, dict[str, Any]]] = []
    for own in answers:
        if own.sink != work.answer.sink:
            seconds = _epoch_s(work, own.routing)
            rows.append(
                (
                    seconds,
                    {
                        "server": work.topology.nodes[own.sink],
                        "epoch_s": seconds,
                        "transfer_s": work.net.seconds(own.time),
                        "bound_s": work.net.seconds(own.bound),
                    },
                )
            )
    return [row for _, row in sorted(rows, key=lambda item: (item[0], item[1]["server"]))][:RUNNERS_UP]


def _alternatives(work: Work) -> list[dict[str, Any]]:
    """Splittable routing, an aggregation tree and a ring on the same network, with latency.

    A tree and a ring add up what sites send, so they need equal amounts.
    """
    net, problem, graph = work.net, work.net.problem, work.net.problem.graph
    if len(work.sizes) < 2:
        return []
    wait = np.array([work.setup.links[k].latency_us for k in net.link.tolist()]) / US_PER_S
    names = work.topology.nodes
    _, time, _ = relaxed_level(problem, work.answer.sink, Pool())
    split = net.seconds(Fraction(time))
    longest = max(float(wait[list(arcs)].sum()) for arcs in work.answer.routing if arcs)
    several: dict[str, Any] = {
        "way": "splittable",
        "epoch_s": split + 2 * longest,
        "detail": f"flows to {names[work.answer.sink]} may use several paths; latency of the longest path above",
    }
    if len(set(work.sizes.values())) > 1:
        return [several]
    n, size = len(work.sizes), next(iter(work.sizes.values()))
    members = np.array(list(work.sizes), dtype=np.int64)
    tree = aggregation_tree(graph, problem.capacity, members, wait)
    loop = ring(graph, problem.capacity, members, problem.weight, wait, RING_MOVES)
    return [
        several,
        {
            "way": "aggregation tree",
            "epoch_s": 16 * size / (tree.narrowest * net.unit_bps) + 2 * tree.depth_latency,
            "detail": f"root {names[tree.root]}, pipelined, sums on the way; narrowest link "
            f"{tree.narrowest * net.unit_bps / MBPS:g} Mbit/s",
        },
        {
            "way": "ring",
            "epoch_s": net.seconds(loop.slowest) * (n - 1) / n + 2 * (n - 1) * loop.latency,
            "detail": " > ".join(names[v] for v in loop.order),
        },
    ]


def _pareto(work: Work) -> dict[str, Any]:
    """Time against the cost of traffic, where links have prices: the points, and whom they leave out."""
    prices = [link.ab_usd_per_gb + link.ba_usd_per_gb for link in work.topology.links]
    if not any(prices) or len(work.sizes) < 2:
        return {"pareto": [], "pareto_without": []}
    known = [p if link.priced else np.inf for p, link in zip(prices, work.topology.links, strict=True)]
    usd = np.array([known[k] for k in work.net.link.tolist()]) * work.net.unit_bytes / 1e9
    problem, out = payable(work.net.problem, usd)
    rows = front(problem, usd, work.answer)
    points = [
        {
            "server": work.topology.nodes[point.sink],
            "usd_per_epoch": point.usd,
            "transfer_s": work.net.seconds(time_of(problem, point.routing)),
            "epoch_s": _epoch_s(work, point.routing),
        }
        for point in rows
    ]
    return {"pareto": points, "pareto_without": [work.topology.nodes[v] for v in out]}
