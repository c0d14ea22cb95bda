"""Maximum flow equals networkx, conserves flow, and its cut has its value."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest

from tradewind.solvers.maxflow import max_flow


@pytest.mark.parametrize("seed", range(10))
def test_value_flow_and_cut_agree_with_networkx(seed: int) -> None:
    rng = np.random.default_rng(seed)
    nodes, arcs = 12, 40
    tail = rng.integers(0, nodes, arcs)
    head = (tail + rng.integers(1, nodes, arcs)) % nodes
    capacity = rng.integers(0, 9, arcs)
    graph: nx.DiGraph[int] = nx.DiGraph()
    graph.add_nodes_from(range(nodes))
    for u, v, c in zip(tail.tolist(), head.tolist(), capacity.tolist(), strict=True):
        before = graph.get_edge_data(u, v, {"capacity": 0})["capacity"]
        graph.add_edge(u, v, capacity=before + c)
    value, flow, side = max_flow(nodes, tail, head, capacity, 0, nodes - 1)
    assert value == nx.maximum_flow_value(graph, 0, nodes - 1)
    assert ((flow >= 0) & (flow <= capacity)).all()
    net = np.bincount(tail, flow, nodes) - np.bincount(head, flow, nodes)
    assert net[0] == value
    assert net[-1] == -value
    assert (net[1:-1] == 0).all()
    inside = side == 1
    assert capacity[inside[tail] & ~inside[head]].sum() == value
