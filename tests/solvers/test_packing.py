"""Packing items into nested bins: nothing overflows, and what can be placed is placed."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from tradewind.model.arrays import Bools, Ints
from tradewind.solvers.packing import pack


def draw(seed: int) -> tuple[Ints, Ints]:
    """Room (N, 2) of two outer bins and up to four inner ones, and the chains of the inner ones."""
    rng = np.random.default_rng(seed)
    inner = int(rng.integers(1, 5))
    room = rng.integers(0, 9, (inner + 2, 2)).astype(np.int64)
    room[:2] += 3
    chain = np.array([[2 + h, h % 2] if h % 3 else [2 + h, -1] for h in range(inner)], np.int64)
    return room, chain


def used(room: Ints, chain: Ints, out: Ints, big: Ints, small: Ints) -> Ints:
    """What items take in every bin (N, R)."""
    total = np.zeros_like(room)
    for h in range(len(chain)):
        for at in chain[h][chain[h] >= 0]:
            total[at] += out[0, h] * big + out[1, h] * small
    return total


def can_be_placed(
    room: Ints, chain: Ints, allowed: Bools, big: Ints, small: Ints, want: tuple[int, int]
) -> bool:
    """All ways of splitting the items over the bins, tried one by one."""
    counts = [range(want[0] + 1) if ok else range(1) for ok in allowed]
    smalls = [range(want[1] + 1) if ok else range(1) for ok in allowed]
    for some in itertools.product(*counts):
        if sum(some) != want[0]:
            continue
        for others in itertools.product(*smalls):
            out = np.array([some, others], np.int64)
            if sum(others) == want[1] and (used(room, chain, out, big, small) <= room).all():
                return True
    return False


@pytest.mark.parametrize("seed", range(60))
def test_equal_items_are_placed_exactly_when_some_way_exists(seed: int) -> None:
    room, chain = draw(seed)
    rng = np.random.default_rng(1000 + seed)
    big, small = rng.integers(0, 4, 2), np.zeros(2, np.int64)
    big[0] = max(1, big[0])
    allowed = rng.random(len(chain)) < 0.8
    count = int(rng.integers(1, 6))
    before, out = room.copy(), np.zeros((2, len(chain)), np.int64)
    placed = pack(room, chain, allowed, big, small, count, 0, out)
    assert placed == can_be_placed(before, chain, allowed, big, small, (count, 0))
    assert out[0].sum() == (count if placed else 0)
    assert not out[:, ~allowed].any()
    assert (before - room == used(before, chain, out, big, small)).all()
    assert (room >= 0).all()


@pytest.mark.parametrize("seed", range(60))
def test_items_of_two_sizes_never_overflow_and_are_never_lost(seed: int) -> None:
    room, chain = draw(seed)
    rng = np.random.default_rng(2000 + seed)
    big, small = rng.integers(1, 4, 2), rng.integers(1, 3, 2)
    allowed = np.ones(len(chain), np.bool_)
    want = (int(rng.integers(1, 4)), int(rng.integers(1, 3)))
    before, out = room.copy(), np.zeros((2, len(chain)), np.int64)
    placed = pack(room, chain, allowed, big, small, *want, out)
    assert tuple(out.sum(axis=1)) == (want if placed else (0, 0))
    assert (before - room == used(before, chain, out, big, small)).all()
    assert (room >= 0).all()
    if placed:
        assert can_be_placed(before, chain, allowed, big, small, want)


def test_one_bin_is_preferred_and_the_tightest_of_those() -> None:
    room = np.array([[8], [5], [4], [6]], np.int64)
    chain = np.arange(4, dtype=np.int64).reshape(4, 1)
    out = np.zeros((2, 4), np.int64)
    one, none = np.ones(1, np.int64), np.zeros(1, np.int64)
    assert pack(room, chain, np.ones(4, np.bool_), one, none, 5, 0, out)
    assert out[0].tolist() == [0, 5, 0, 0]
    assert pack(room, chain, np.ones(4, np.bool_), one, none, 13, 0, out)
    assert out[0].tolist() == [8, 0, 0, 5]
