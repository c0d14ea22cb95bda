"""Utilities: each shape at points that are easy to compute, and what is refused."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tradewind.model.errors import ScenarioError
from tradewind.model.utility import ARGS, Utility


def utility(shape: Any, *args: float, **more: Any) -> Utility:
    return Utility(of="progress", shape=shape, args=args, **more)


@pytest.mark.parametrize(
    ("made", "x", "value"),
    [
        (utility("sigmoid", 8.0, 1.0, 3.0), 3.0, 4.0),
        (utility("sigmoid", 8.0, -2.0, 3.0), 1e6, 0.0),
        (utility("sigmoid", 8.0, 2.0, 3.0), 1e6, 8.0),
        (utility("log1p", 2.0, 4.0), 4 * (math.e - 1), 2.0),
        (utility("sqrt", 2.0, 4.0), 16.0, 4.0),
        (utility("linear", 5.0, -2.0), 3.0, -1.0),
        (utility("quadratic", 1.0, 2.0, 3.0), 2.0, 17.0),
        (utility("gang", 7.0, 4.0), 4.0, 7.0),
        (utility("gang", 7.0, 4.0), 3.999, 0.0),
        (utility("budget", 7.0, 4.0), 4.0, 7.0),
        (utility("budget", 7.0, 4.0), 4.001, 0.0),
        (utility("piecewise", 0.0, 10.0, 2.0, 6.0, 4.0, 0.0), 1.0, 8.0),
        (utility("piecewise", 0.0, 10.0, 2.0, 6.0, 4.0, 0.0), 3.0, 3.0),
        (utility("piecewise", 0.0, 10.0, 2.0, 6.0, 4.0, 0.0), -5.0, 10.0),
        (utility("piecewise", 0.0, 10.0, 2.0, 6.0, 4.0, 0.0), 9.0, 0.0),
    ],
)
def test_a_shape_has_its_value(made: Utility, x: float, value: float) -> None:
    assert made.value(x) == pytest.approx(value, abs=1e-12)


def test_every_shape_has_a_value_above() -> None:
    assert set(ARGS) == {
        "sigmoid", "log1p", "sqrt", "linear", "quadratic", "gang", "piecewise", "budget",
    }  # fmt: skip


@given(
    st.sampled_from(("sigmoid", "log1p", "sqrt", "linear")),
    st.floats(0.1, 9),
    st.floats(0, 99),
    st.floats(0, 99),
)
def test_increasing_shapes_increase_and_are_zero_at_zero_with_from_zero(
    shape: str, scale: float, a: float, b: float
) -> None:
    args = (3.0, scale, 2.0) if shape == "sigmoid" else (3.0, scale)
    made = utility(shape, *args, from_zero=True)
    low, high = sorted((a, b))
    assert made.value(0.0) == 0.0
    assert made.value(low) <= made.value(high) + 1e-12


@pytest.mark.parametrize(
    ("shape", "args", "part"),
    [
        ("sigmoid", (1.0,), "needs 3"),
        ("linear", (1.0, math.nan), "finite"),
        ("log1p", (1.0, 0.0), "positive"),
        ("sqrt", (1.0, -1.0), "positive"),
        ("piecewise", (0.0, 1.0), "two points"),
        ("piecewise", (0.0, 1.0, 0.0, 2.0), "rising"),
        ("piecewise", (0.0, 1.0, 2.0), "x1, y1"),
        ("cubic", (1.0,), "allowed are sigmoid"),
    ],
)
def test_bad_arguments_are_refused(shape: str, args: tuple[float, ...], part: str) -> None:
    with pytest.raises(ScenarioError, match=part):
        utility(shape, *args)
