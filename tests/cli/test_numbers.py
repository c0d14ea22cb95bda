"""Numbers of a column of a table."""

from __future__ import annotations

import math

import pytest

from tradewind.cli.plan import hours
from tradewind.cli.show import same_decimals
from tradewind.model.units import dollars
from tradewind.planner.plan import beside


@pytest.mark.parametrize(
    ("values", "shown"),
    [
        ([582.4, 652, 596.2], ["582.40", "652.00", "596.20"]),
        ([30, 4000], ["30", "4,000"]),
        ([0.2859, 0.008], ["0.2859", "0.0080"]),
        ([0.00012, 0], ["0.0001200", "0.0000000"]),
        ([5.25, math.nan], ["5.250", "–"]),
        ([], []),
    ],
)
def test_a_column_has_one_number_of_decimals(values: list[float], shown: list[str]) -> None:
    assert same_decimals(values) == shown


@pytest.mark.parametrize(
    ("means", "halves", "shown"),
    [
        ([4496.93], [33067.9], ["4,497", "33,068"]),
        ([5359.4, 201.7], [1188.9, 2.34], ["5,359.4", "201.7", "1,188.9", "2.3"]),
        ([30, 30], [0, 0], ["30", "30", "0", "0"]),
        ([1.00041, 1.2], [0.0003, math.nan], ["1.000", "1.200", "0.000", ""]),
        ([4496.93], [math.nan], ["4,496.93", ""]),
    ],
)
def test_a_mean_has_no_more_decimals_than_its_interval_needs(
    means: list[float], halves: list[float], shown: list[str]
) -> None:
    assert same_decimals(means, halves) == shown


def test_less_than_an_hour_is_minutes_and_less_than_two_minutes_seconds() -> None:
    assert [hours(value) for value in (0.0, 0.01, 0.16, 0.99, 1.0)] == [
        "0.0 h",
        "36 s",
        "10 min",
        "59 min",
        "1.0 h",
    ]


@pytest.mark.parametrize(
    ("usd", "shown"),
    [(0.0, "0.00"), (6.4e-9, "0.00"), (0.012284, "0.01228"), (0.5, "0.50"), (1.0, "1.00"), (12345.678, "12,345.68"),
     (-0.25, "-0.25"), (-0.0, "0.00"), (1e6, "1,000,000.00")],
)  # fmt: skip
def test_money_is_never_a_power_of_ten(usd: float, shown: str) -> None:
    assert dollars(usd) == shown


def test_a_day_has_twenty_four_hours() -> None:
    assert [hours(value) for value in (47.96, 48.0, 71.96, 509.3)] == [
        "48.0 h",
        "2 d 0 h",
        "3 d 0 h",
        "21 d 5 h",
    ]


def test_the_same_bill_is_not_negative() -> None:
    assert beside("alone", 99.999, 100.0) == "alone: 100.00 USD, +0.0%"
