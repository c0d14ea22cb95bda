"""Which server site is best with real traffic: policies and a ring on B4, scaled down, on a testbed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from statistics import mean

import numpy as np

from tradewind.lab.study import Effort, Row
from tradewind.lab.testbed.networks import as_net, network, walk
from tradewind.model.errors import InputError
from tradewind.model.params import resolve_params
from tradewind.registry import policies
from tradewind.systems.apsp.kernels.alternatives import ring
from tradewind.systems.apsp.workload.generator import APSP as WORKLOAD
from tradewind.worlds.simulate import simulate
from tradewind.worlds.testbed import network as testbed
from tradewind.worlds.testbed.state import own_name
from tradewind.worlds.testbed.traffic import (
    Exchange,
    Measured,
    carrier,
    measure,
    routed_exchange,
    traffic_server,
)
from tradewind.worlds.testbed.wan import Path, Wan

SCALE = 0.01
MODEL_BYTES = 500_000
POLICIES = ("apsp", "apsp-paper", "most-connected", "random-ps")
SEEDED = ("apsp-paper", "most-connected", "random-ps")
"""Policies whose choice depends on the seed."""
RING = "ring"
RING_MOVES = 600
SETTINGS: dict[str, str | int] = {
    "topology": "b4",
    "rule": "power-exact",
    "transport": "cut-through",
    "epochs": 1,
}


def _column(tables: Mapping[str, Mapping[str, Sequence[object]]], table: str, name: str) -> list[int]:
    return [int(str(value)) for value in tables[table][name]]


def _chosen(wan: Wan, policy: str, seed: int) -> Exchange:
    """Server site and paths that a policy chooses in a simulated run on the full-size network."""
    scenario = WORKLOAD.generate(resolve_params("apsp", WORKLOAD.params, SETTINGS), 0)
    tables = simulate(scenario, policies.find(policy), {}, seed=seed).tables
    column = partial(_column, tables)
    server = next(n for n, s in zip(column("places", "node"), column("places", "servers"), strict=True) if s)
    links: dict[int, list[int]] = {}
    for path, link in zip(column("paths", "path"), column("paths", "link"), strict=True):
        links.setdefault(path, []).append(link)
    up: list[Path] = []
    for source, path in zip(column("routes", "src"), column("routes", "path"), strict=True):
        at = [source]
        for k in links[path]:
            line = wan.links[k]
            at.append(line.b if line.a == at[-1] else line.a)
        up.append(tuple(at))
    return routed_exchange(server, up, wan.sites[server])


def _ring(wan: Wan) -> Exchange:
    """A good ring, found by local search, with its paths."""
    net = as_net(wan)
    members = np.arange(len(wan.sites))
    found = ring(net.problem, members, np.zeros(net.problem.graph.arcs), RING_MOVES)
    hops = tuple(walk(net, site, arcs) for site, arcs in zip(found.order, found.paths, strict=True))
    return Exchange(kind="ring", label="all sites in turn", sites=found.order, paths=hops)


def rows(effort: Effort) -> list[Row]:
    """Measured and predicted seconds of a round per policy and seed; each distinct plan is measured once."""
    if reason := testbed.unavailable():
        raise InputError(f"this figure needs a testbed, which cannot be created here: {reason}")
    wan = network("b4", scale=SCALE)
    draws = effort.pick(1, min(max(effort.seeds, 6), 12))
    plans = [(p, s, _chosen(wan, p, s)) for p in POLICIES for s in range(draws if p in SEEDED else 1)]
    plans.append((RING, 0, _ring(wan)))
    how, name = carrier(), own_name("study")
    size, rounds = effort.pick((MODEL_BYTES // 2, 1), (MODEL_BYTES, 3))
    results: dict[Exchange, Measured] = {}
    try:
        bed = testbed.up(wan, name)
        with traffic_server(how) as fork_server:
            for _, _, plan in plans:
                if plan not in results:
                    results[plan] = measure(bed, fork_server, how, plan, model_bytes=size, rounds=rounds)
    finally:
        testbed.down(name)
    return [
        {
            "policy": policy,
            "draw": seed,
            "server": plan.label,
            "predicted_s": results[plan].predicted_s,
            "measured_s": results[plan].seconds,
        }
        for policy, seed, plan in plans
    ]


def summary(found: Sequence[Row]) -> list[Row]:
    """Mean, minimum and maximum over the seeds of each policy."""
    table: list[Row] = []
    for policy in (*POLICIES, RING):
        mine = [r for r in found if r["policy"] == policy]
        measured = [float(r["measured_s"]) for r in mine]
        table.append(
            {
                "policy": policy,
                "measured_s": mean(measured),
                "low": min(measured),
                "high": max(measured),
                "predicted_s": mean(float(r["predicted_s"]) for r in mine),
                "worst_percent": max(
                    100 * abs(float(r["measured_s"]) / float(r["predicted_s"]) - 1) for r in mine
                ),
                "draws": len(mine),
                "servers": ", ".join(sorted({str(r["server"]) for r in mine})),
            }
        )
    return table


def figure_rows(effort: Effort) -> list[Row]:
    """Rows of the figure: one per policy, and the ring."""
    return summary(rows(effort))


def summary_text(table: Sequence[Row]) -> str:
    """Measured and predicted times."""
    seconds = {str(r["policy"]): float(r["measured_s"]) for r in table}
    predicted = {str(r["policy"]): float(r["predicted_s"]) for r in table}
    times = ", ".join(f"{p} {seconds[p]:.2f} s ({predicted[p]:.2f})" for p in seconds)
    worst = max(float(r["worst_percent"]) for r in table)
    best = all(seconds["apsp"] <= seconds[p] * 1.05 for p in POLICIES)
    return (
        f"a round, measured (predicted): {times}. No plan deviates more than {worst:.1f}% "
        f"from its prediction. apsp is {'the fastest server, within 5%' if best else 'NOT the fastest server'}; "
        f"a ring takes {seconds[RING] / seconds['apsp']:.2f} times as long as apsp."
    )
