"""Paths: hop distances, cheapest paths by hops, simple paths."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest

from tests.solvers.graphs import graph_of_links
from tests.systems.apsp.cases import random_problem
from tradewind.solvers.paths import (
    FIRST_HOPS,
    UNREACHED,
    cheapest_by_hops,
    cheapest_lifted,
    hops_to_all,
    make_graph,
    simple_paths,
)


def test_hop_distances_equal_networkx() -> None:
    graph = random_problem(3, nodes=12, extra=8).graph
    other = nx.Graph(zip(graph.tail.tolist(), graph.head.tolist(), strict=True))
    hops = hops_to_all(graph)
    for u, row in nx.all_pairs_shortest_path_length(other):
        for v, distance in row.items():
            assert hops[v, u] == distance


def test_an_unreachable_node_is_marked() -> None:
    graph = make_graph(3, [(0, 1, 0)])
    assert hops_to_all(graph)[1].tolist() == [1, 0, UNREACHED]


@pytest.mark.parametrize("seed", range(4))
def test_simple_paths_are_those_of_networkx_shortest_first(seed: int) -> None:
    graph = random_problem(seed, nodes=7, extra=5).graph
    other = nx.Graph(zip(graph.tail.tolist(), graph.head.tolist(), strict=True))
    found = simple_paths(graph, 0, 6)
    walked = {tuple([0] + [int(graph.head[a]) for a in arcs]) for arcs in found}
    assert walked == {tuple(p) for p in nx.all_simple_paths(other, 0, 6)}
    assert [len(p) for p in found] == sorted(len(p) for p in found)
    assert simple_paths(graph, 0, 6, limit=3) == found[:3]


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("transport", ["store-and-forward", "cut-through", "chunks:3"])
def test_cheapest_by_hops_equals_enumeration_with_room(seed: int, transport: str) -> None:
    problem = random_problem(seed, nodes=6, extra=4, transport=transport)
    graph, rng = problem.graph, np.random.default_rng(seed)
    price = rng.integers(0, 6, graph.arcs).astype(np.float64)
    room = rng.integers(0, 7, graph.arcs).astype(np.int64)
    data = rng.integers(0, 3, graph.nodes).astype(np.int64)
    cost, length, arcs = cheapest_by_hops(graph.tail, graph.head, room, price, 0, data, problem.weight)
    for u in range(1, graph.nodes):
        if data[u] == 0:
            assert cost[u] == 0
            continue
        best = min(
            (
                problem.weight[len(p)] * price[list(p)].sum()
                for p in simple_paths(graph, u, 0)
                if (room[list(p)] >= data[u] * problem.weight[len(p)]).all()
            ),
            default=np.inf,
        )
        assert cost[u] == best
        if np.isfinite(best):
            path = arcs[u, : length[u]]
            assert problem.weight[length[u]] * price[path].sum() == best


@pytest.mark.parametrize("nodes", [FIRST_HOPS, FIRST_HOPS + 1, 5 * FIRST_HOPS + 3])
def test_paths_longer_than_there_is_room_for_at_first_are_found(nodes: int) -> None:
    graph = graph_of_links(nodes, [(u, u + 1) for u in range(nodes - 1)])
    weight = np.arange(nodes)
    room, price = np.full(graph.arcs, UNREACHED), np.ones(graph.arcs)
    cost, length, arcs = cheapest_by_hops(graph.tail, graph.head, room, price, 0, np.ones(nodes, int), weight)
    assert length.tolist() == list(range(nodes))
    assert cost.tolist() == [h * h for h in range(nodes)]
    for u in (nodes // 2, nodes - 1):
        assert graph.tail[arcs[u, :u]].tolist() == list(range(u, 0, -1))


def test_two_arcs_between_the_same_nodes_are_refused() -> None:
    with pytest.raises(ValueError, match="merge them first"):
        make_graph(2, [(0, 1, 0), (0, 1, 1)])


def test_a_shared_link_is_one_resource() -> None:
    assert graph_of_links(3, [(0, 1), (1, 2)], shared=True).resources == 2
    assert graph_of_links(3, [(0, 1), (1, 2)]).resources == 4


@pytest.mark.parametrize("seed", range(6))
def test_where_arcs_count_with_a_least_load_the_cheapest_path_is_that_of_the_full_list(seed: int) -> None:
    problem = random_problem(seed, nodes=6, extra=5, transport="chunks:4")
    graph, rng = problem.graph, np.random.default_rng(seed)
    room, price = rng.integers(3, 18, graph.arcs), rng.integers(0, 9, graph.arcs).astype(np.float64)
    lift = np.where(rng.random(graph.arcs) < 0.5, room, 0)
    data = np.array([1, 1, 0, 2, 1, 2], dtype=np.int64)
    cost, length, arcs = cheapest_lifted(graph.tail, graph.head, room, price, lift, 0, data, problem.weight)
    for u in range(1, 6):
        best = np.inf
        for path in simple_paths(graph, u, 0) if data[u] else []:
            load = data[u] * problem.weight[len(path)]
            if (room[list(path)] >= load).all():
                best = min(best, float((price[list(path)] * np.maximum(load, lift[list(path)])).sum()))
        assert cost[u] == (best if data[u] else 0.0)
        if 0 < best < np.inf and data[u]:
            found = arcs[u, : length[u]].tolist()
            load = data[u] * problem.weight[len(found)]
            assert float((price[found] * np.maximum(load, lift[found])).sum()) == best
