"""Jobs that choose server or ring over one WAN: audited runs take the time that was computed, and none beats the bound."""

from __future__ import annotations

from itertools import permutations, product

import numpy as np
import pytest

from tradewind.api import check
from tradewind.lab import joint
from tradewind.lab.study import Effort
from tradewind.lab.wan_choice import (
    RING,
    SERVER,
    Member,
    Wan,
    one_by_one,
    priced,
    seconds,
    together,
    total,
    wan_of,
)
from tradewind.worlds.planned import planned
from tradewind.worlds.simulate import simulate

SQUARE = wan_of(4, [(0, 1, 8e6, 8e6), (1, 2, 8e6, 8e6), (2, 3, 4e6, 2e6), (3, 0, 8e6, 8e6)])
"""A circle of four sites, one of whose links is narrow."""


def random_wan(seed: int) -> tuple[Wan, list[Member]]:
    rng = np.random.default_rng(seed)
    ends = [(k, (k + 1) % 6) for k in range(6)] + [(0, 3), (1, 4)]
    bps = rng.integers(1, 9, (len(ends), 2)) * 10**6
    wan = wan_of(6, [(a, b, float(x), float(y)) for (a, b), (x, y) in zip(ends, bps.tolist(), strict=True)])
    members = [
        Member(tuple(sorted(rng.choice(6, int(rng.integers(2, 6)), replace=False).tolist())), 10**6)
        for _ in range(3)
    ]
    return wan, members


def test_a_ring_goes_around_the_widest_tree_and_avoids_the_narrow_link() -> None:
    pool = priced(SQUARE, [Member((0, 1, 2, 3), 1000)], [RING])
    best = min(pool.choices, key=lambda c: seconds(SQUARE, c.bits))
    assert seconds(SQUARE, best.bits) == pytest.approx(16_000 * 3 / 4 / 8e6)
    assert 0.7 < pool.bound / seconds(SQUARE, best.bits) <= 1, "the bound splits a job over several rings"


def test_a_server_is_pulled_from_over_the_paths_that_push() -> None:
    pool = priced(SQUARE, [Member((2, 3), 1000)], [SERVER])
    best = min(pool.choices, key=lambda c: seconds(SQUARE, c.bits))
    assert seconds(SQUARE, best.bits) >= pool.bound
    direct = [c for c in pool.choices if {len(p) for p in c.paths} == {0, 1}]
    assert all(seconds(SQUARE, c.bits) == pytest.approx(16_000 / 2e6) for c in direct), (
        "the slower direction counts"
    )


@pytest.mark.parametrize("seed", range(6))
def test_no_choice_is_below_the_bound_and_the_joint_one_is_the_best_of_all(seed: int) -> None:
    wan, members = random_wan(seed)
    pool = priced(wan, members, (SERVER, RING))
    found = together(wan, pool.choices, len(members))
    least = seconds(wan, total(found))
    assert [c.job for c in found] == [0, 1, 2]
    options = [[c for c in pool.choices if c.job == job] for job in range(3)]
    every = [seconds(wan, total(each)) for each in product(*options)]
    assert least == pytest.approx(min(every), rel=1e-5)
    assert pool.bound <= min(every) * (1 + 1e-9)
    for others in (True, False):
        taken = one_by_one(wan, pool.choices, 3, others=others)
        assert seconds(wan, total(taken)) >= least * (1 - 1e-5)


def test_the_cheapest_ring_is_the_cheapest_of_all_orders() -> None:
    from tradewind.lab.wan_choice import _tour

    cost = np.random.default_rng(3).uniform(1, 9, (6, 6))
    paid, order = _tour(cost, (0, 1, 2, 3, 4, 5))
    rings = [(0, *rest) for rest in permutations(range(1, 6))]
    costs = [sum(cost[u, v] for u, v in zip(r, r[1:] + r[:1], strict=True)) for r in rings]
    assert paid == pytest.approx(min(costs))
    assert sum(cost[u, v] for u, v in zip(order, order[1:] + order[:1], strict=True)) == pytest.approx(paid)


@pytest.mark.parametrize("seed", range(3))
def test_every_way_passes_the_audit_and_takes_the_computed_time(seed: int) -> None:
    wan, members = random_wan(seed)
    found, bound = joint.chosen(wan, members)
    assert set(found) == set(joint.WAYS)
    for choices in found.values():
        scenario, plan = joint.scenario_of(wan, members, choices)
        run = simulate(scenario, planned("joint", plan))
        assert check(scenario, run) == ()
        took = run.metrics["makespan_s"] / joint.ROUNDS
        assert took == pytest.approx(seconds(wan, total(choices)), rel=1e-4)
        assert took >= bound * (1 - 1e-9)


def test_rows_compare_every_way_with_the_joint_one() -> None:
    rows = joint.one_seed(Effort(quick=True, seeds=1), 1)
    assert {r["way"] for r in rows} == set(joint.WAYS)
    assert all(float(r["over joint"]) >= 1 - 1e-4 for r in rows)
    assert all(float(r["of bound"]) >= 1 - 1e-6 for r in rows)
