"""Graphs for tests."""

from __future__ import annotations

from collections.abc import Iterable

from tradewind.solvers.paths import Graph, make_graph


def graph_of_links(nodes: int, links: Iterable[tuple[int, int]], *, shared: bool = False) -> Graph:
    """Both directions of every link: resources 2k and 2k + 1 for link k, or k alone when shared."""
    arcs: list[tuple[int, int, int]] = []
    for k, (u, v) in enumerate(links):
        arcs.append((u, v, k if shared else 2 * k))
        arcs.append((v, u, k if shared else 2 * k + 1))
    return make_graph(nodes, arcs)
