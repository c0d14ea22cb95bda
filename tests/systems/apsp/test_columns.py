"""Column generation: equal to the LP over all listed paths, and its Lagrangian bound below it."""

from __future__ import annotations

import numpy as np
import pytest

from tests.systems.apsp.cases import brute_force, random_problem
from tradewind.systems.apsp.kernels.bound import wide_room
from tradewind.systems.apsp.kernels.columns import PathPool, StopRule, lagrangian, relax
from tradewind.systems.apsp.kernels.paper import listed_paths, problem_4
from tradewind.systems.apsp.kernels.problem import time_of
from tradewind.systems.apsp.kernels.restricted import best_of_pool


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("transport", ["store-and-forward", "cut-through", "chunks:2"])
def test_column_generation_equals_the_enumerated_lp(seed: int, transport: str) -> None:
    problem = random_problem(seed, nodes=7, extra=5, transport=transport, shared=seed % 2 == 1)
    room, factor = wide_room(problem)
    found = relax(problem, 2, room, PathPool(), StopRule())
    listed, _ = problem_4(problem, listed_paths(problem, 2, None))
    assert found.optimal
    assert found.value * factor == pytest.approx(listed, rel=1e-6)
    assert found.bound <= found.value * (1 + 1e-9)
    assert found.bound == pytest.approx(found.value, rel=1e-5)


@pytest.mark.parametrize("seed", range(5))
def test_any_prices_give_a_bound_below_the_lp(seed: int) -> None:
    problem = random_problem(seed, nodes=7, extra=4)
    room, _ = wide_room(problem)
    value = relax(problem, 0, room, PathPool(), StopRule()).value
    rng = np.random.default_rng(seed)
    for _ in range(20):
        price = rng.integers(0, 50, problem.capacity.size).astype(np.float64)
        if price.any():
            assert lagrangian(problem, 0, room, price).bound <= value * (1 + 1e-9)


@pytest.mark.parametrize("seed", range(4))
def test_the_restricted_milp_over_all_paths_is_the_optimum(seed: int) -> None:
    problem = random_problem(seed, nodes=5, extra=2)
    room, _ = wide_room(problem)
    optimum = brute_force(problem, 1)
    routing = best_of_pool(problem, room, listed_paths(problem, 1, None), float(optimum), 10_000)
    assert routing is not None
    assert time_of(problem, routing) == optimum


def test_a_banned_arc_is_not_used() -> None:
    problem = random_problem(1, nodes=6, extra=5)
    room, _ = wide_room(problem)
    start, end = int(problem.graph.start[3]), int(problem.graph.start[4])
    bans = {3: frozenset(range(start, end - 1))}
    pool = PathPool()
    found = relax(problem, 0, room, pool, StopRule(), bans)
    used = {pool.arcs[k][0] for k, _ in found.share if pool.flow[k] == 3}
    assert used <= {end - 1}
