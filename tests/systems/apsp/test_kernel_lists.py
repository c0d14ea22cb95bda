"""Lists of paths: complete, decided like brute force, and every proof over them holds up in the audit or is caught."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from tests.systems.apsp.cases import brute_force, checker, proof_data, random_problem, shipped
from tradewind.solvers.paths import simple_paths
from tradewind.systems.apsp.kernels.columns import NO_BANS, Bans, PathPool, StopRule, lagrangian, relax
from tradewind.systems.apsp.kernels.lists import Lists, list_paths
from tradewind.systems.apsp.kernels.problem import Gather, loads_of, room_below
from tradewind.systems.apsp.kernels.proof import Branch, Listed, Pruned
from tradewind.systems.apsp.kernels.solve import SolveSettings, solve
from tradewind.systems.apsp.kernels.tree import ListTree

MANY = 100_000


def lists_of(problem: Gather, sink: int, room: Any, bans: Bans = NO_BANS) -> tuple[Any, Lists]:
    """LP prices and the paths that they leave."""
    price = relax(problem, sink, room, PathPool(), StopRule(), bans).price
    priced = lagrangian(problem, sink, room, price, bans)
    lists = list_paths(problem, sink, room, price, priced, bans, MANY)
    assert lists is not None
    return price, lists


def paths_in(lists: Lists) -> set[tuple[int, ...]]:
    return {
        tuple(lists.arcs[lists.columns.start[c] : lists.columns.start[c + 1]].tolist())
        for c in range(lists.size)
    }


@pytest.mark.parametrize("transport", ["store-and-forward", "chunks:3"])
def test_the_lists_are_all_paths_close_enough_to_the_cheapest(transport: str) -> None:
    compared = 0
    for seed in range(8):
        problem = random_problem(seed, nodes=6, extra=4, transport=transport, shared=seed % 2 == 0)
        problem = replace(problem, data=np.array([2, 1, 1, 0, 3, 1], dtype=np.int64))
        sink = seed % 3
        room = room_below(problem, brute_force(problem, sink) * Fraction(5, 4))
        bans = {4: frozenset({int(problem.graph.start[5]) - 1})} if seed > 3 else NO_BANS
        if lagrangian(problem, sink, room, np.ones(room.size), bans).bound == np.inf:
            continue  # the ban cuts node 4 off
        compared += 1
        price, lists = lists_of(problem, sink, room, bans)
        g, want = problem.graph, set()
        cost: dict[int, dict[tuple[int, ...], float]] = {}
        for u in np.flatnonzero(problem.data).tolist():
            for arcs in simple_paths(g, u, sink) if u != sink else []:
                load = problem.data[u] * problem.weight[len(arcs)]
                used = g.resource[list(arcs)]
                if (room[used] >= load).all() and not bans.get(u, frozenset()) & set(arcs):
                    cost.setdefault(u, {})[arcs] = float(load * price[used].sum())
        slack = float((room * price).sum()) - sum(min(c.values()) for c in cost.values())
        for by_path in cost.values():
            want |= {arcs for arcs, c in by_path.items() if c <= min(by_path.values()) + slack}
        assert paths_in(lists) == want
    assert compared > 5


def test_lists_that_would_be_too_long_are_not_made() -> None:
    problem = random_problem(1, nodes=6, extra=4)
    room = room_below(problem, brute_force(problem, 0) * 2)
    price, lists = lists_of(problem, 0, room)
    priced = lagrangian(problem, 0, room, price)
    assert list_paths(problem, 0, room, price, priced, NO_BANS, lists.size) is not None
    assert list_paths(problem, 0, room, price, priced, NO_BANS, lists.size - 1) is None


@pytest.mark.parametrize("tries", [False, True])
def test_a_tree_over_lists_decides_like_brute_force(tries: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if tries:
        monkeypatch.setattr("tradewind.systems.apsp.kernels.tree.QUICK", 0)
    for seed in range(12):
        problem = random_problem(seed, shared=seed % 3 == 0)
        best = brute_force(problem, 0)
        for factor, fits in ((Fraction(1), False), (Fraction(101, 100), True)):
            room = room_below(problem, best * factor)
            if lagrangian(problem, 0, room, np.ones(room.size)).bound == np.inf:
                continue
            routing, proof = ListTree(problem, room, lists_of(problem, 0, room)[1], 500).decide()
            assert (routing is not None, proof is not None) == (fits, not fits)
            if routing is not None:
                assert (loads_of(problem, routing) <= room).all()


def branchy(kind: str) -> tuple[Gather, int, Fraction, dict[str, Any]]:
    """A proof over lists that branches on the number of flows or on one flow, with its problem, sink and level."""
    for seed in range(60):
        problem = shipped("b4", seed, "uniform")
        for bound in solve(problem, SolveSettings()).bounds.values():
            if isinstance(bound.proof, Listed) and kind in kinds(bound.proof.below):
                return problem, bound.sink, bound.level, proof_data(problem, bound.proof)
    pytest.fail(f"no proof branches on a {kind}")


def kinds(node: Pruned) -> set[str]:
    if not isinstance(node.branch, Branch):
        return set()
    kind = "flow" if node.branch.most is None else "most"
    return {kind} | kinds(node.branch.first) | kinds(node.branch.second)


def nodes_of(data: dict[str, Any]) -> list[dict[str, Any]]:
    below = [node for side in ("first", "second") if side in data for node in nodes_of(data[side])]
    return [data, *below]


@pytest.mark.parametrize("kind", ["flow", "most"])
def test_a_proof_over_lists_holds_and_is_caught_when_tampered_with(kind: str) -> None:
    problem, sink, level, proof = branchy(kind)
    check = checker(problem)
    assert check.wrong(sink, level, proof) == ""
    assert "a path for every flow" in check.wrong(sink, level * 4, proof)

    cut = deepcopy(proof)
    node = next(n for n in nodes_of(cut) if kind in n.get("branch", {}))
    for branch, what in (
        ({"resource": 999, "flow": 1}, "does not exist"),
        ({"resource": 0, "flow": sink}, "sends nothing"),
        (None, "a path for every flow"),
    ):
        node["branch"] = branch
        if branch is None:
            del node["branch"]
        assert what in check.wrong(sink, level, cut)


def test_prices_that_prove_nothing_or_are_not_allowed_are_caught() -> None:
    problem, sink, level, proof = branchy("most")
    check = checker(problem)
    for drops, what in (
        ([[[], [[0, 5]]]], "no branch has limited it"),
        ([[[[0, -5]], []]], "must not be negative"),
        ([[[[0, 0.5]], []]], "whole numbers"),
        ([[[[999, 1]], []]], "existing resources"),
        ([[[[0, 1]], []]], "a path for every flow"),
    ):
        assert what in check.wrong(sink, level, {"list": proof["list"], "drops": drops})
    assert "whole numbers" in check.wrong(sink, level, {**proof, "list": [[0, -1]]})
    with pytest.raises(ValueError, match="too large"):
        check.wrong(sink, level, {"list": proof["list"], "drops": [[[[0, 1 << 60]], []]]})
