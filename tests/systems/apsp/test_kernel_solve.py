"""Placement at array level: brute force, certificates, scaling, relabelling, and the corrected draw."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from tests.solvers.graphs import graph_of_links
from tests.systems.apsp.cases import brute_force, checker, proof_data, random_problem, shipped, wrong
from tradewind.model.arrays import Floats
from tradewind.systems.apsp.kernels import bound as kernel_bound
from tradewind.systems.apsp.kernels.bound import decide, refutes
from tradewind.systems.apsp.kernels.columns import PathPool
from tradewind.systems.apsp.kernels.cut import enough, solve_cut_through
from tradewind.systems.apsp.kernels.fill import fill
from tradewind.systems.apsp.kernels.paper import algorithm_2, listed_paths, problem_4
from tradewind.systems.apsp.kernels.problem import Gather, Routing, hop_weight, loads_of, room_below, time_of
from tradewind.systems.apsp.kernels.proof import Leaf, SinkBound, Split
from tradewind.systems.apsp.kernels.search import SearchEffort, draw_one_path_per_flow, repair
from tradewind.systems.apsp.kernels.solve import SolveSettings, solve
from tradewind.systems.apsp.workload.draw import draw_mbps
from tradewind.systems.apsp.workload.topologies import read_topology


def rounded_as_printed(problem: Gather, pool: PathPool, x: Floats, rng: np.random.Generator) -> Routing:
    """Lines 6-14 of Algorithm 2 as printed: a Bernoulli trial per path until one succeeds, so a flow may get none."""
    routing: list[tuple[int, ...]] = [()] * problem.graph.nodes
    for k, f in enumerate(pool.flow):
        if not routing[f] and rng.random() < x[k]:
            routing[f] = pool.arcs[k]
    return tuple(routing)


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("transport", ["store-and-forward", "chunks:3"])
def test_the_answer_is_the_brute_force_optimum_on_five_nodes(seed: int, transport: str) -> None:
    problem = random_problem(seed, transport=transport, shared=seed % 3 == 0)
    answer = solve(problem, SolveSettings())
    times = {v: brute_force(problem, v) for v in range(problem.graph.nodes)}
    assert answer.time == min(times.values()) == answer.bound
    assert time_of(problem, answer.routing) == answer.time
    for sink, bound in answer.bounds.items():
        assert bound.level <= times[sink]
        assert wrong(problem, bound) == ""


@pytest.mark.parametrize("seed", range(4))
def test_unequal_data_is_solved_exactly_too(seed: int) -> None:
    problem = random_problem(seed, nodes=5, extra=2)
    problem = replace(problem, data=np.array([3, 1, 0, 2, 5], dtype=np.int64))
    answer = solve(problem, SolveSettings())
    assert answer.time == min(brute_force(problem, v) for v in range(5)) == answer.bound


@pytest.mark.parametrize("name", ["b4", "internet2"])
@pytest.mark.parametrize("rule", ["power", "linear", "inverse", "uniform"])
def test_shipped_networks_are_solved_to_certified_optimality(name: str, rule: str) -> None:
    for seed in range(4):
        problem = shipped(name, seed, rule)
        answer = solve(problem, SolveSettings())
        assert answer.time == answer.bound
        assert all(wrong(problem, bound) == "" for bound in answer.bounds.values())
        assert set(answer.bounds) == set(range(problem.graph.nodes))


def test_prices_that_refute_a_site_are_kept_for_its_neighbours_and_hold_there() -> None:
    problem = random_problem(1, nodes=60, extra=12)
    placement = solve(problem, SolveSettings(gap=Fraction(1, 100)))
    proofs = {id(bound.proof) for bound in placement.bounds.values()}
    assert len(placement.bounds) == 60
    assert len(proofs) < 54
    for sink, bound in placement.bounds.items():
        assert isinstance(bound.proof, Leaf)
        price = np.zeros(problem.capacity.size)
        for resource, value in bound.proof.price:
            price[resource] = value
        assert refutes(problem, sink, bound.level, price)


def test_a_bound_that_claims_too_much_is_caught() -> None:
    problem = shipped("internet2", 0)
    answer = solve(problem, SolveSettings())
    bound = answer.bounds[answer.sink]
    assert "needed" in wrong(problem, SinkBound(bound.sink, bound.level * Fraction(11, 10), bound.proof))
    flat = Leaf(tuple((r, 1) for r in range(problem.capacity.size)))
    assert "needed" in wrong(problem, SinkBound(bound.sink, bound.level, flat))
    negative = {"price": [[0, -1]]}
    assert "whole numbers" in checker(problem).wrong(bound.sink, bound.level, negative)


def test_a_branch_that_forgets_an_arc_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel_bound, "MOST_LISTED", 0)
    for seed in range(40):
        problem = shipped("b4", seed)
        answer = solve(problem, SolveSettings())
        assert answer.time == answer.bound
        trees = [b for b in answer.bounds.values() if isinstance(b.proof, Split)]
        if trees:
            data = proof_data(problem, trees[0].proof)
            assert checker(problem).wrong(trees[0].sink, trees[0].level, data) == ""
            second = data["second"]
            assert isinstance(second, list)
            data["second"] = second[1:]
            assert "does not cover" in checker(problem).wrong(trees[0].sink, trees[0].level, data)
            return
    pytest.fail("no draw needed a branch")


def test_doubling_the_data_doubles_the_time_and_doubling_bandwidth_halves_it() -> None:
    problem = shipped("b4", 5)
    base = solve(problem, SolveSettings()).time
    assert solve(replace(problem, data=problem.data * 2), SolveSettings()).time == 2 * base
    assert solve(replace(problem, capacity=problem.capacity * 2), SolveSettings()).time == base / 2


def test_relabelling_the_nodes_changes_nothing() -> None:
    topology = read_topology("b4")
    mbps = draw_mbps(topology.km(), "power", 500, np.random.default_rng(8))
    times = []
    for seed in (None, 1, 2):
        name = np.arange(12) if seed is None else np.random.default_rng(seed).permutation(12)
        links = [(int(name[k.a]), int(name[k.b])) for k in topology.links]
        problem = Gather(
            graph=graph_of_links(12, links),
            capacity=np.repeat(mbps, 2),
            data=np.ones(12, dtype=np.int64),
            weight=np.arange(12),
        )
        times.append(solve(problem, SolveSettings()).time)
    assert times[0] == times[1] == times[2]


def test_the_same_input_gives_the_same_routing_twice() -> None:
    problem = shipped("b4", 3, "inverse")
    assert solve(problem, SolveSettings()).routing == solve(problem, SolveSettings()).routing


@pytest.mark.parametrize("seed", range(8))
def test_cut_through_by_max_flow_is_the_brute_force_optimum(seed: int) -> None:
    problem = random_problem(seed, transport="cut-through", shared=seed % 2 == 0)
    answer = solve_cut_through(problem)
    assert answer.time == min(brute_force(problem, v) for v in range(5)) == answer.bound
    assert time_of(problem, answer.routing) == answer.time
    assert all(wrong(problem, bound) == "" for bound in answer.bounds.values())


@pytest.mark.parametrize("seed", range(3))
def test_cut_through_by_max_flow_equals_branch_and_price(seed: int) -> None:
    problem = shipped("b4", seed, transport="cut-through")
    assert solve_cut_through(problem).time == solve(problem, SolveSettings()).time


def test_a_star_of_one_hop_takes_the_same_time_in_both_transports_and_a_line_does_not() -> None:
    star = graph_of_links(4, [(0, 1), (0, 2), (0, 3)])
    line = graph_of_links(4, [(0, 1), (1, 2), (2, 3)])
    times = {}
    for shape, graph in (("star", star), ("line", line)):
        for transport in ("store-and-forward", "cut-through"):
            problem = Gather(
                graph=graph,
                capacity=np.full(6, 7, dtype=np.int64),
                data=np.ones(4, dtype=np.int64),
                weight=hop_weight(4, transport)[0],
            )
            times[shape, transport] = solve(problem, SolveSettings()).time
    assert times["star", "store-and-forward"] == times["star", "cut-through"] == Fraction(1, 7)
    assert times["line", "store-and-forward"] == Fraction(3, 7)
    assert times["line", "cut-through"] == Fraction(2, 7)


def test_enough_is_the_least_level_that_lets_the_demand_through() -> None:
    sizes = np.array([3, 5, 7], dtype=np.int64)
    for demand in range(1, 30):
        level = enough(sizes, demand)
        below = level - Fraction(1, 10_000)
        assert sum(level.numerator * int(b) // level.denominator for b in sizes) >= demand
        assert sum(below.numerator * int(b) // below.denominator for b in sizes) < demand


def test_two_equal_paths_are_drawn_half_of_the_time_each_and_never_none() -> None:
    first = np.array([0, 2], dtype=np.int64)
    picks = draw_one_path_per_flow(first, np.array([0.5, 1.0]), 10_000, 3)
    assert set(picks[:, 0].tolist()) == {0, 1}
    assert abs(float((picks == 0).mean()) - 0.5) < 0.02


def test_the_printed_rounding_loses_flows_and_then_looks_better_than_the_optimum() -> None:
    problem = shipped("b4", 1)
    answer = solve(problem, SolveSettings())
    rng = np.random.default_rng(0)
    pool = listed_paths(problem, answer.sink, None)
    _, x = problem_4(problem, pool)
    lost = better = 0
    for _ in range(300):
        routing = rounded_as_printed(problem, pool, x, rng)
        if any(not routing[u] for u in range(12) if u != answer.sink):
            lost += 1
            better += time_of(problem, routing) < answer.time
    assert lost > 60
    assert better > 0


def test_the_papers_algorithm_never_beats_the_bound_and_routes_every_flow() -> None:
    for seed in range(5):
        problem = shipped("internet2", seed)
        answer = solve(problem, SolveSettings())
        paper = algorithm_2(problem, np.random.default_rng(seed), limit=None)
        assert paper.time >= answer.bound
        assert all(paper.routing[u] for u in range(9) if u != paper.sink)


def test_filling_keeps_the_slowest_time_and_never_overbooks() -> None:
    problem = shipped("b4", 4)
    answer = solve(problem, SolveSettings())
    speed = fill(problem, answer.routing)
    flows = speed > 0
    assert 1 / speed[flows].min() == pytest.approx(float(answer.time), rel=1e-9)
    load = np.zeros(problem.capacity.size)
    for u, arcs in enumerate(answer.routing):
        if arcs:
            load[problem.graph.resource[list(arcs)]] += problem.weight[len(arcs)] * speed[u]
    assert (load <= problem.capacity * (1 + 1e-9)).all()
    assert (1 / speed[flows]).mean() < float(answer.time)


def test_repair_never_returns_a_worse_overflow_than_it_was_given() -> None:
    problem = shipped("b4", 6)
    answer = solve(problem, SolveSettings())
    room = room_below(problem, answer.time)
    from tradewind.solvers.paths import hops_to_all

    hops = hops_to_all(problem.graph)[answer.sink]
    left, routing = repair(problem, answer.sink, hops, room, answer.routing, SearchEffort(moves=300), 1)
    assert left > 0  # nothing is faster than the optimum
    over = np.maximum(loads_of(problem, routing) - room, 0)
    start = np.maximum(loads_of(problem, answer.routing) - room, 0)
    scale = problem.capacity.mean() / problem.capacity
    assert (over * scale).sum() <= (start * scale).sum() + 1e-9


def test_branch_and_price_finds_the_optimum_when_the_room_allows_it() -> None:
    problem = random_problem(2)
    optimum = brute_force(problem, 0)
    fits = decide(problem, 0, room_below(problem, optimum * Fraction(100_001, 100_000)), PathPool(), 500)
    none = decide(problem, 0, room_below(problem, optimum), PathPool(), 500)
    assert fits.routing is not None
    assert time_of(problem, fits.routing) == optimum
    assert none.proof is not None


def test_a_link_that_cannot_hold_two_flows_counts_as_full_with_one() -> None:
    # 1 and 2 reach the sink over one link each, 3 over either of them: 8 + 8 + 9 chunks on two links
    graph = graph_of_links(4, [(0, 1), (0, 2), (1, 3), (2, 3)])
    for width, fits in ((13, False), (16, False), (17, True)):
        problem = Gather(
            graph=graph,
            capacity=np.repeat(np.array([width, width, 40, 40], dtype=np.int64), 2),
            data=np.ones(4, dtype=np.int64),
            weight=hop_weight(4, "chunks:8")[0],
        )
        verdict = decide(problem, 0, problem.capacity, PathPool(), 50)
        assert (verdict.routing is not None) == fits
        if (
            width == 13
        ):  # 25 chunks fit into 26 by halves, so that prices alone show it only by counting full links
            assert isinstance(verdict.proof, Leaf)
            level = Fraction(14, 13)
            assert wrong(problem, SinkBound(0, level, verdict.proof)) == ""
            assert "needed" in wrong(problem, SinkBound(0, level * 2, verdict.proof))


def test_bad_problems_are_refused_with_a_reason() -> None:
    good = random_problem(0)
    with pytest.raises(ValueError, match="must be positive"):
        replace(good, capacity=np.zeros_like(good.capacity))
    with pytest.raises(ValueError, match="at least 2 nodes"):
        replace(good, graph=replace(good.graph, nodes=1))
    with pytest.raises(ValueError, match="transport"):
        hop_weight(4, "teleport")
