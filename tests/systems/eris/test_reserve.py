"""Floor prices from replayed past days."""

from __future__ import annotations

import pytest

from tradewind.registry import workloads
from tradewind.systems.eris.study.reserve import STEPS, climb, earned, reserve
from tradewind.systems.eris.workload import RESERVE


def test_the_search_climbs_to_the_best_prices_and_leaves_a_price_of_zero_alone() -> None:
    def welfare(prices: tuple[float, ...]) -> float:
        return -((prices[0] - 3.0) ** 2) - (prices[1] - 5.0) ** 2 + prices[2]

    found = climb((1.0, 20.0, 0.0), welfare)
    assert found[:2] == pytest.approx((3.0, 5.0), rel=STEPS[1] - 1)
    assert found[2] == 0.0


def test_floor_prices_of_replayed_days_earn_more_than_none_on_other_days() -> None:
    prices = reserve("testbed", 12)
    assert prices[1] > 0
    assert prices[0] == prices[2] == 0
    others = [workloads.generate("eris", {"size": "testbed"}, seed) for seed in range(101, 125)]
    assert earned(others, prices) > 1.1 * earned(others, (0.0,) * 4)


@pytest.mark.parametrize("size", sorted(RESERVE))
def test_a_named_size_forecasts_its_floor_prices(size: str) -> None:
    forecast = workloads.generate("eris", {"size": size}, 3).setup.forecast
    assert tuple(forecast[f"price_{name}"] for name in ("cpu", "gpu", "gb", "transfer")) == RESERVE[size]
