"""Trees and rings on the same network."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations, permutations

import numpy as np
import pytest

from tests.systems.apsp.cases import random_problem
from tradewind.systems.apsp.kernels.alternatives import aggregation_tree, ring


@pytest.mark.parametrize("seed", range(6))
def test_no_spanning_tree_has_a_wider_narrowest_link(seed: int) -> None:
    problem = random_problem(seed, nodes=5, extra=3)
    graph, latency = problem.graph, np.zeros(problem.graph.arcs)
    tree = aggregation_tree(problem, np.arange(5), latency)
    links = [a for a in range(graph.arcs) if graph.tail[a] < graph.head[a]]
    best = 0
    for pick in combinations(links, 4):
        near = {frozenset((int(graph.tail[a]), int(graph.head[a]))) for a in pick}
        seen, queue = {0}, [0]
        while queue:
            u = queue.pop()
            for pair in near:
                if u in pair:
                    v = next(iter(pair - {u}))
                    if v not in seen:
                        seen.add(v)
                        queue.append(v)
        if len(seen) == 5:
            best = max(best, min(int(problem.capacity[graph.resource[a]]) for a in pick))
    assert tree.narrowest == best
    assert len(tree.arcs) == 4


@pytest.mark.parametrize("seed", range(6))
def test_the_tour_of_the_widest_tree_is_an_optimal_cut_through_ring(seed: int) -> None:
    problem = random_problem(seed, nodes=6, extra=4, transport="cut-through")
    found = ring(problem, np.arange(6), np.zeros(problem.graph.arcs), 0)
    tree = aggregation_tree(problem, np.arange(6), np.zeros(problem.graph.arcs))
    assert sorted(found.order) == list(range(6))
    assert found.slowest.numerator * tree.narrowest == found.slowest.denominator


def test_a_ring_of_three_on_a_triangle_uses_every_link_once() -> None:
    problem = random_problem(0, nodes=3, extra=1)
    flat = replace(problem, capacity=np.full(problem.capacity.size, 10, dtype=np.int64))
    found = ring(flat, np.arange(3), np.ones(problem.graph.arcs), 50)
    assert found.slowest * 10 == 1
    assert found.latency == 1.0
    assert tuple(found.order) in set(permutations(range(3)))


def test_members_may_be_a_part_of_the_nodes() -> None:
    problem = random_problem(4, nodes=8, extra=3)
    members = np.array([1, 4, 6])
    found = ring(problem, members, np.zeros(problem.graph.arcs), 100)
    assert sorted(found.order) == [1, 4, 6]
    tree = aggregation_tree(problem, members, np.zeros(problem.graph.arcs))
    assert {1, 4, 6} - {tree.root} <= {child for child, _ in tree.arcs}
