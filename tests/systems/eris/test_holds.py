"""A quote under a false name that is left to expire pays where quotes hold room, and never where they are serial."""

from __future__ import annotations

import pytest

from tradewind.systems.eris.study.holds import Pair, try_pair

NO_FLOOR = {"floor": "none"}


def pairs(**more: bool) -> list[Pair]:
    return [try_pair(seed, NO_FLOOR, **more) for seed in range(25)]


@pytest.mark.parametrize("slow", [False, True], ids=["rivals answer at once", "rivals think too"])
def test_a_false_quote_neither_pays_nor_hurts_where_quotes_are_serial(slow: bool) -> None:
    found = pairs(serial=True, slow=slow)
    assert sum(pair.held for pair in found) > 20
    assert max(pair.gain for pair in found) <= 1e-9
    assert not any(pair.rival_lost for pair in found)


def test_the_experiment_finds_the_gain_where_nobody_waits() -> None:
    found = pairs(serial=False)
    assert sum(pair.gain > 1.0 for pair in found) >= 3
    assert sum(pair.rival_lost for pair in found) >= 10
