"""Splitting the pooled bill: properties that any fair rule must have."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tradewind.systems.mlbroker.kernels.share import (
    capped,
    proportional,
    shapley,
    shapley_rent,
    split_excess,
    total_charge,
)
from tradewind.systems.mlbroker.kernels.slot import tiers

PRICE = tiers(np.array([[[0.0, 10.0, 30.0]]]), np.array([[[2.0, 1.5, 1.0]]]))


def rent(amount: float) -> float:
    return float((PRICE.usd * amount + PRICE.intercept).min())


amounts = st.lists(st.floats(0.1, 40.0), min_size=2, max_size=6)


@given(amounts, st.floats(0.0, 1.0))
@settings(max_examples=60, deadline=None)
def test_shares_add_up_and_nobody_pays_more_than_alone(used: list[float], margin: float) -> None:
    usage = np.array(used)[:, None, None]
    alone = np.array([rent(a) for a in used])
    cost = rent(sum(used))
    for share in (
        proportional(alone, cost, margin),
        shapley(np.zeros(len(used)), usage, PRICE, alone, margin),
    ):
        assert share.sum() == pytest.approx(total_charge(alone, cost, margin))
        assert (share <= alone * (1 + 1e-9)).all()
        assert (share >= 0).all()


def test_excess_cost_is_paid_by_groups_whose_plans_exceed_their_cost_alone() -> None:
    share = split_excess(np.array([10.0, 20.0]), np.array([10.0, 50.0]), 45.0)
    assert share.tolist() == [10.0, 35.0]


def test_equal_tenants_pay_the_same() -> None:
    share = shapley_rent(np.full((4, 1, 1), 8.0), PRICE)
    assert np.allclose(share, rent(32.0) / 4)


def test_sampled_shapley_is_near_the_exact_one_for_two_tenants() -> None:
    share = shapley_rent(np.array([[[6.0]], [[20.0]]]), PRICE)
    exact = 0.5 * (rent(6.0) + rent(26.0) - rent(20.0))
    assert share[0] == pytest.approx(exact)  # an order and its reverse are all orders of two


def test_a_group_that_uses_nothing_pays_nothing() -> None:
    assert shapley_rent(np.array([[[0.0]], [[20.0]]]), PRICE)[0] == 0.0


def test_caps_move_the_excess_to_those_with_room() -> None:
    share = capped(np.array([5.0, 5.0]), np.array([3.0, 10.0]), 10.0)
    assert share.tolist() == [3.0, 7.0]


def test_a_margin_outside_its_range_is_refused() -> None:
    with pytest.raises(ValueError, match="between 0"):
        total_charge(np.array([1.0]), 0.5, 1.5)
