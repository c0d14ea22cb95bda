"""Quality and time of placements from B4 to 754 nodes, against targets and a simple program with networkx and scipy.

B4 and Internet2 ship with the project. The larger networks are read from TRADEWIND_TOPOLOGIES (a folder with JSON files)
or ../shared/data/topologies; rows of missing files are empty. Every bound is re-checked by the audit's own checker.
Times are CPU seconds.
"""

from __future__ import annotations

import os
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from time import process_time
from typing import Any

import networkx as nx
import numpy as np
from scipy.optimize import linprog

from tradewind.audit.placement import recheck
from tradewind.systems.apsp.kernels.network import Net, place, settings_for
from tradewind.systems.apsp.kernels.paper import algorithm_2
from tradewind.systems.apsp.kernels.solve import Placement, SolveSettings
from tradewind.systems.apsp.shared.placement import Chosen, JobNetwork, full_bps, job_network, wires_of
from tradewind.systems.apsp.workload.build import WanCase, build_scenario
from tradewind.systems.apsp.workload.topologies import read_topology

RULES = ("power", "linear", "inverse")
SMALL_DRAWS = 100
PAPER_DRAWS = 10
LARGE = (
    # network, bandwidths, gap asked for, target ratio, target seconds, goal seconds
    ("germany50", "file", Fraction(29, 1000), 1.03, 10.0, None),
    ("germany50", "power-exact", Fraction(10, 1000), 1.012, 60.0, None),
    ("germany50", "file", Fraction(10, 1000), 1.012, 60.0, None),
    ("GtsCe", "file", Fraction(24, 1000), 1.025, 5.0, None),
    ("GtsCe", "file", Fraction(95, 10000), 1.01, 60.0, None),
    ("UsCarrier", "file", Fraction(24, 1000), 1.025, 5.0, None),
    ("UsCarrier", "file", Fraction(95, 10000), 1.01, 60.0, None),
    ("Cogentco", "file", Fraction(24, 1000), 1.025, 5.0, None),
    ("Cogentco", "file", Fraction(95, 10000), 1.01, 60.0, None),
    ("Kdl", "file", Fraction(48, 10000), 1.005, 60.0, 10.0),
)
Row = dict[str, Any]


def network(name: str, rule: str, seed: int, transport: str = "store-and-forward") -> JobNetwork:
    """A job of one byte with workers at every site, and the network its certificate is checked against."""
    case = WanCase(
        topology=read_topology(name), rule=rule, min_mbps=500, seed=seed, workers="", model="byte", model_bytes=1,
        data="", transport=transport, shared=False, latency=False,
    )  # fmt: skip
    scenario = build_scenario(case, {})
    return job_network(scenario.setup, scenario.jobs[0], wires_of(scenario.setup, full_bps(scenario.setup)))


def checked(network: JobNetwork, answer: Placement) -> bool:
    """Does the audit agree with the bound?"""
    certificate = network.certificate(Chosen(answer.sink, answer.routing, answer.bounds))
    assert certificate is not None
    return recheck(network.setup, certificate.data, certificate.value) == ""


def small() -> list[Row]:
    """B4 and Internet2: certified optimum on every draw, time, and time by the paper's algorithm's."""
    found: list[Row] = []
    for name in ("b4", "internet2"):
        first = network(name, "power", 0).net
        place(first, settings_for(first.problem, 0.0))
        algorithm_2(first.problem, np.random.default_rng(0), limit=None)
        proven, ours, same, paper = 0, [], [], []
        for rule in RULES:
            for seed in range(SMALL_DRAWS):
                drawn = network(name, rule, seed)
                net = drawn.net
                begin = process_time()
                answer = place(net, settings_for(net.problem, 0.0))
                ours.append(process_time() - begin)
                proven += answer.time == answer.bound and checked(drawn, answer)
                if seed < PAPER_DRAWS:
                    same.append(ours[-1])
                    begin = process_time()
                    algorithm_2(net.problem, np.random.default_rng(seed), limit=None)
                    paper.append(process_time() - begin)
        count = SMALL_DRAWS * len(RULES)
        found += [
            {"name": f"{name}: draws solved to a checked optimum", "measured": proven, "target": count, "better": "higher"},
            {"name": f"{name}: mean time", "measured": float(np.mean(ours)), "spread": float(np.max(ours)), "unit": "s",
             "target": 0.2, "better": "lower", "note": "spread is the slowest draw"},
            {"name": f"{name}: draws within 0.2 s", "measured": sum(t <= 0.2 for t in ours), "target": count,
             "better": "higher"},
            {"name": f"{name}: time / apsp-paper", "measured": sum(same) / sum(paper), "target": 0.2, "better": "lower"},
        ]  # fmt: skip
    return found


def large() -> list[Row]:
    """Ratio to a checked bound, and time."""
    folder = Path(os.environ.get("TRADEWIND_TOPOLOGIES", "../shared/data/topologies"))
    found: list[Row] = []
    for name, rule, gap, ratio, seconds, goal in LARGE:
        path = folder / f"{name}.json"
        if not path.exists():
            found.append({"name": f"{name} to {ratio}", "measured": None, "note": "topology file not found"})
            continue
        drawn = network(str(path), rule, 0)
        named = name if rule == "file" else f"{name} ({rule})"
        begin = process_time()
        answer = place(drawn.net, SolveSettings(gap=gap))
        took = process_time() - begin
        note = "bound checked" if checked(drawn, answer) else "BOUND DOES NOT CHECK"
        row = {
            "name": f"{named} to {ratio}: ratio",
            "measured": answer.ratio,
            "target": ratio,
            "better": "lower",
        }
        found.append({**row, "note": note})
        row = {"name": f"{named} to {ratio}: time", "measured": took, "unit": "s", "target": seconds}
        found.append({**row, "better": "lower", "goal": goal})
    path = folder / "Kdl.json"
    if path.exists():
        drawn = network(str(path), "file", 0, "cut-through")
        place(drawn.net, SolveSettings())
        begin = process_time()
        answer = place(drawn.net, SolveSettings())
        took = process_time() - begin
        exact = answer.time == answer.bound and checked(drawn, answer)
        note = "exact, bound checked" if exact else "NOT EXACT"
        row = {
            "name": "Kdl cut-through: time",
            "measured": took,
            "unit": "s",
            "target": 1.0,
            "better": "lower",
        }
        found.append({**row, "note": note})
    return found


def by_hand(net: Net, paths: int) -> float:
    """A simple program: k shortest paths by networkx and one scipy LP per site; the least LP value."""
    g = net.problem.graph
    graph: nx.DiGraph[int] = nx.DiGraph()
    graph.add_edges_from(zip(g.tail.tolist(), g.head.tolist(), strict=True))
    arc = {(u, v): k for k, (u, v) in enumerate(zip(g.tail.tolist(), g.head.tolist(), strict=True))}
    best = np.inf
    for sink in range(g.nodes):
        columns: list[tuple[int, list[int]]] = []
        for u in range(g.nodes):
            if u != sink:
                for k, nodes in enumerate(nx.shortest_simple_paths(graph, u, sink)):
                    if k == paths:
                        break
                    columns.append((u, [arc[e] for e in pairwise(nodes)]))
        loads = np.zeros((net.problem.capacity.size, len(columns) + 1))
        one = np.zeros((g.nodes, len(columns) + 1))
        for j, (u, arcs) in enumerate(columns):
            one[u, j] = 1.0
            for a in arcs:
                loads[g.resource[a], j] = len(arcs)
        for r, b in enumerate(net.problem.capacity.tolist()):
            loads[r, len(columns)] = -float(b)
        want = np.ones(g.nodes)
        want[sink] = 0.0
        cost = np.zeros(len(columns) + 1)
        cost[-1] = 1.0
        lp = linprog(cost, A_ub=loads, b_ub=np.zeros(loads.shape[0]), A_eq=one, b_eq=want)
        best = min(best, np.inf if lp.fun is None else float(lp.fun))
    return best


def instead() -> list[Row]:
    """Our whole placement against only the LPs of a simple program, on B4."""
    net = network("b4", "power", 1).net
    exact = settings_for(net.problem, 0.0)
    place(net, exact)
    begin = process_time()
    answer = place(net, exact)
    ours = process_time() - begin
    begin = process_time()
    lower = by_hand(net, 16)
    theirs = process_time() - begin
    note = f"by hand {theirs:.2f} s for LPs without rounding; our time / their LP value {float(answer.time) / lower:.3f}"
    return [
        {
            "name": "b4: time / networkx + linprog",
            "measured": ours / theirs,
            "target": 0.2,
            "better": "lower",
            "note": note,
        }
    ]


def rows() -> list[Row]:
    """All rows."""
    return [*small(), *instead(), *large()]
