"""Placement: what is placed adds up, and each rule does what it says."""

import numpy as np
import pytest

from tradewind.systems.dps.kernels.place import BEST_FIT, RANDOM, WORST_FIT, next_uniform, place, scratch

RULES = [WORST_FIT, BEST_FIT, RANDOM]


def taken(rule: int, x: list[int], z: list[int], d_k: int, d_m: int) -> tuple[list[int], list[int], bool]:
    room = scratch(len(x), 1)
    count, together = place(rule, np.array(x), np.array(z), d_k, d_m, room)
    first, second = [0] * len(x), [0] * len(x)
    for i in range(count):
        first[room.bins[i]] += int(room.take_k[i])
        second[room.bins[i]] += int(room.take_m[i])
    return first, second, together


@pytest.mark.parametrize("rule", RULES)
def test_every_item_is_placed_and_no_bin_gives_more_than_it_has(rule: int) -> None:
    rng = np.random.default_rng(rule)
    for _ in range(300):
        x, z = rng.integers(0, 9, 6), rng.integers(0, 5, 6)
        if x.sum() == 0 or z.sum() == 0:
            continue
        d_k, d_m = int(rng.integers(1, x.sum() + 1)), int(rng.integers(1, z.sum() + 1))
        first, second, together = taken(rule, x.tolist(), z.tolist(), d_k, d_m)
        assert sum(first) == d_k
        assert sum(second) == d_m
        assert all(a <= b for a, b in zip(first, x, strict=True))
        assert all(a <= b for a, b in zip(second, z, strict=True))
        used = sum(a + b > 0 for a, b in zip(first, second, strict=True))
        assert together == (used == 1)
        possible = bool(((x >= d_k) & (z >= d_m)).any())
        if rule != RANDOM:
            assert together == possible


def test_the_papers_rule_takes_the_emptiest_server_and_the_first_of_equals() -> None:
    assert taken(WORST_FIT, [5, 9, 9], [4, 1, 3], 4, 1) == ([0, 0, 4], [0, 0, 1], True)
    assert taken(WORST_FIT, [9, 9], [3, 3], 4, 1) == ([4, 0], [1, 0], True)


def test_the_papers_spread_walks_servers_by_idle_workers_for_both_kinds() -> None:
    first, second, together = taken(WORST_FIT, [2, 6, 4], [5, 1, 1], 9, 3)
    assert (first, second, together) == ([0, 6, 3], [1, 1, 1], False)


def test_best_fit_takes_the_server_that_is_left_with_the_least() -> None:
    assert taken(BEST_FIT, [9, 5, 6], [9, 4, 2], 4, 1) == ([0, 0, 4], [0, 0, 1], True)


def test_best_fit_spreads_over_the_scraps_and_saves_the_large_hole() -> None:
    first, _, together = taken(BEST_FIT, [2, 20, 3], [1, 0, 1], 5, 1)
    assert not together
    assert first == [2, 0, 3]


def test_a_saved_random_state_continues_identically() -> None:
    state = np.array([7], dtype=np.uint64)
    [next_uniform(state) for _ in range(10)]
    again = state.copy()
    assert [next_uniform(state) for _ in range(5)] == [next_uniform(again) for _ in range(5)]
    assert all(0.0 <= next_uniform(state) < 1.0 for _ in range(1000))
