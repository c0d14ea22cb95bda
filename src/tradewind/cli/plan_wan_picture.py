"""Draws the network of a plan: the width of a link is its load, a star marks the server."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np

from tradewind.model.arrays import Floats
from tradewind.report.figures.theme import LIGHT, Theme, canvas, save, style
from tradewind.systems.apsp.kernels.problem import loads_of
from tradewind.systems.apsp.plan.solve import WanPlan
from tradewind.systems.apsp.workload.topology import Topology

WIDTH, HEIGHT = 960.0, 560.0
NAMED = 45
"""Networks of up to this many sites are drawn with names."""


def picture(stem: Path, plan: WanPlan, title: str, theme: Theme = LIGHT) -> tuple[Path, Path]:
    """Write stem.svg and stem.png and return both paths."""
    with style():
        return save(_draw(plan, title, theme), stem.with_suffix(""), title)


def _places(topology: Topology) -> Floats:
    """x, y (n, 2) within [0, 1]: longitude and latitude where all are known, else a spring layout."""
    if topology.position and all(p is not None for p in topology.position):
        xy = np.array([(p[1], p[0]) for p in topology.position if p is not None])
    else:
        graph: nx.Graph[int] = nx.Graph()
        graph.add_nodes_from(range(len(topology.nodes)))
        graph.add_edges_from((link.a, link.b) for link in topology.links)
        layout = nx.spring_layout(graph, seed=7)
        xy = np.array([layout[v] for v in range(len(topology.nodes))])
    low, high = xy.min(axis=0), xy.max(axis=0)
    found: Floats = (xy - low) / np.maximum(high - low, 1e-9)
    return found


def _draw(plan: WanPlan, title: str, theme: Theme) -> Any:
    topology, net = plan.topology, plan.net
    figure = canvas(WIDTH, HEIGHT)
    figure.set_facecolor(theme.panel)
    axes = figure.add_axes((0.04, 0.06, 0.92, 0.82))
    axes.set_axis_off()
    xy = _places(topology)
    load = loads_of(net.problem, plan.chosen.routing) / net.problem.capacity
    busiest = float(load.max()) or 1.0
    share = np.zeros(len(topology.links))
    for a in range(net.problem.graph.arcs):
        k = int(net.link[a])
        share[k] = max(share[k], float(load[net.problem.graph.resource[a]]) / busiest)
    for k, link in enumerate(topology.links):
        ends = xy[[link.a, link.b]]
        axes.plot(ends[:, 0], ends[:, 1], color=theme.grid, linewidth=0.8, zorder=1)
        if share[k] > 0:
            wide = 1.0 + 5.0 * share[k]
            axes.plot(ends[:, 0], ends[:, 1], color=theme.heat, linewidth=wide, alpha=0.6, zorder=2)
    sends = net.problem.data > 0
    axes.scatter(xy[:, 0], xy[:, 1], s=np.where(sends, 60, 18), color=theme.series[0], zorder=3)
    x, y = xy[plan.chosen.sink]
    axes.scatter([x], [y], s=260, marker="*", color=theme.series[1], edgecolors=theme.ink, zorder=4)
    if len(topology.nodes) <= NAMED:
        for v, name in enumerate(topology.nodes):
            axes.annotate(
                name, xy[v], xytext=(5, 5), textcoords="offset points", color=theme.ink, fontsize=9, zorder=5
            )
    figure.text(0.03, 0.94, title, color=theme.ink, fontsize=13, weight="bold")
    note = "Star: parameter server. Width of a link: its load divided by its bandwidth; the widest is the bottleneck."
    figure.text(0.03, 0.90, note, color=theme.muted, fontsize=10)
    return figure
