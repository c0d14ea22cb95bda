"""The concave price of pooled demand, its chord, and what the printed big-M relaxation really is."""

import numpy as np
import pytest
from scipy.optimize import linprog

from tests.systems.mlbroker.cases import tiny
from tradewind.systems.mlbroker.kernels.prices import bill, chord, chord_slopes, marginal
from tradewind.systems.mlbroker.kernels.slot import tiers


def two_tiers(a: float, b: float, threshold: float) -> tuple[float, float, float, float]:
    return a, b, threshold, (a - b) * threshold


@pytest.mark.parametrize("h", [0.0, 3.0, 10.0, 17.5])
def test_the_bill_is_equation_2(h: float) -> None:
    a, b, threshold, e = two_tiers(2.0, 1.5, 10.0)
    price = tiers(np.array([[[0.0, threshold]]]), np.array([[[a, b]]]))
    expected = a * h if h <= threshold else b * h + e
    assert bill(np.array([[h]]), price.usd, price.intercept) == pytest.approx(expected)


def test_three_tiers_charge_each_unit_at_its_own_tier() -> None:
    price = tiers(np.array([[[0.0, 10.0, 20.0]]]), np.array([[[3.0, 2.0, 1.0]]]))
    assert bill(np.array([[25.0]]), price.usd, price.intercept) == pytest.approx(30.0 + 20.0 + 5.0)
    now = np.empty((1, 1))
    marginal(np.array([[25.0]]), price.usd, price.intercept, now)
    assert now[0, 0] == 1.0


def test_prices_that_rise_with_volume_are_refused() -> None:
    with pytest.raises(ValueError, match="must not rise"):
        tiers(np.array([[[0.0, 5.0]]]), np.array([[[1.0, 1.1]]]))


@pytest.mark.parametrize("used", [0.5, 4.0, 11.0, 29.0])
def test_the_relaxation_with_each_constraints_own_m_is_the_chord(used: float) -> None:
    """(8c)-(8e) relaxed: min x, x >= a h - M1 u, x >= b h + e - M2 (1 - u), 0 <= u <= 1, at fixed h."""
    a, b, threshold, e = two_tiers(2.0, 1.4, 10.0)
    top = 30.0
    m1, m2 = (a - b) * (top - threshold), e
    answer = linprog(
        [1.0, 0.0],
        A_ub=[[-1.0, -m1], [-1.0, m2]],
        b_ub=[-a * used, m2 - b * used - e],
        bounds=[(0, None), (0, 1)],
    )
    price = tiers(np.array([[[0.0, threshold]]]), np.array([[[a, b]]]))
    slope = chord(price, np.array([top]))[0, 0]
    assert answer.fun == pytest.approx(slope * used, rel=1e-9)


def test_the_chord_meets_the_price_at_both_ends_and_lies_below_between() -> None:
    case = tiny("paper", 1)
    slope = chord_slopes(case)
    most = (case.worker * case.needed[:, None] + case.server).sum(axis=0)
    usd, intercept = case.tiers.usd, case.tiers.intercept
    for share in (0.1, 0.4, 0.9, 1.0):
        h = share * most
        true = (usd * h[None, :, None] + intercept).min(axis=2)
        assert (slope * h <= true + 1e-9).all()
        if share == 1.0:
            assert np.allclose(slope * h, true)


def test_a_resource_nobody_asks_for_has_its_list_price_as_chord() -> None:
    case = tiny("cpu", 2)
    assert np.array_equal(chord_slopes(case)[:, 0], case.tiers.usd[:, 0, 0])
