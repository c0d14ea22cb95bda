"""Tariffs: graduated ones are continuous, monotone and concave; retroactive ones jump; bad tiers are refused."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tradewind.model.errors import ScenarioError
from tradewind.model.tariff import Tariff

amounts = st.floats(0, 1000)


@st.composite
def graduated(draw: st.DrawFn) -> Tariff:
    tiers = draw(st.integers(1, 5))
    starts = sorted(draw(st.sets(st.floats(0.001, 900), min_size=tiers - 1, max_size=tiers - 1)))
    usd = sorted(draw(st.lists(st.floats(0, 100), min_size=tiers, max_size=tiers)), reverse=True)
    return Tariff(starts=(0.0, *starts), usd=tuple(usd))


def by_tiers(tariff: Tariff, amount: float) -> float:
    """Each unit at its own tier's price."""
    ends = (*tariff.starts[1:], math.inf)
    return math.fsum(
        usd * max(0.0, min(amount, end) - start)
        for start, end, usd in zip(tariff.starts, ends, tariff.usd, strict=True)
    )


@given(graduated(), amounts)
def test_a_graduated_cost_is_the_sum_over_its_tiers(tariff: Tariff, amount: float) -> None:
    assert tariff.cost(amount) == pytest.approx(by_tiers(tariff, amount), rel=1e-12, abs=1e-9)


@given(graduated(), amounts, amounts)
def test_a_graduated_cost_never_falls_and_its_slope_is_at_most_the_first_price(
    tariff: Tariff, a: float, b: float
) -> None:
    low, high = sorted((a, b))
    rise = tariff.cost(high) - tariff.cost(low)
    assert -1e-9 <= rise <= tariff.usd[0] * (high - low) + 1e-9


@given(graduated(), amounts, amounts, st.floats(0, 1))
def test_a_graduated_cost_is_concave(tariff: Tariff, a: float, b: float, share: float) -> None:
    assert tariff.is_concave
    mixed = tariff.cost(share * a + (1 - share) * b)
    assert mixed >= share * tariff.cost(a) + (1 - share) * tariff.cost(b) - 1e-6


@given(graduated())
def test_a_graduated_cost_does_not_jump_where_a_tier_begins(tariff: Tariff) -> None:
    for start in tariff.starts[1:]:
        before = tariff.cost(math.nextafter(start, 0))
        assert tariff.cost(start) == pytest.approx(before, rel=1e-9, abs=1e-9)


def test_a_retroactive_tariff_jumps_down_where_a_tier_begins_and_says_that_it_is_not_concave() -> None:
    tariff = Tariff(starts=(0.0, 10.0), usd=(2.0, 1.0), rule="retroactive")
    assert tariff.cost(9.999) == pytest.approx(19.998)
    assert tariff.cost(10.0) == 10.0
    assert not tariff.is_concave
    assert Tariff(usd=(2.0,), rule="retroactive").is_concave


@given(graduated(), amounts)
def test_an_amount_on_a_start_reaches_that_tier(tariff: Tariff, amount: float) -> None:
    tier = tariff.tier(amount)
    assert tariff.starts[tier] <= amount
    assert tier + 1 == len(tariff.starts) or amount < tariff.starts[tier + 1]
    assert [tariff.tier(start) for start in tariff.starts] == list(range(len(tariff.starts)))


def test_tiers_that_go_up_are_refused_with_where_found_allowed_and_what_to_do() -> None:
    with pytest.raises(ScenarioError) as caught:
        Tariff(starts=(0.0, 5.0), usd=(3.06, 3.4))
    text = str(caught.value)
    for part in ("tier 2", "3.4", "at most tier 1's 3.06", "Swap the tiers or remove one"):
        assert part in text


@pytest.mark.parametrize(
    ("starts", "usd", "part"),
    [
        ((0.0,), (), "prices"),
        ((0.0, 1.0), (1.0,), "each tier needs both"),
        ((1.0,), (1.0,), "must start at 0"),
        ((0.0, 5.0, 5.0), (3.0, 2.0, 1.0), "must start after"),
        ((0.0, 5.0, 4.0), (3.0, 2.0, 1.0), "must start after"),
        ((0.0,), (-1.0,), "not negative"),
        ((0.0,), (math.nan,), "finite"),
        ((0.0, math.nan), (2.0, 1.0), "finite"),
        ((0.0, math.inf), (2.0, 1.0), "finite"),
        ((math.nan,), (1.0,), "must start at 0"),
    ],
)
def test_bad_tiers_are_refused(starts: tuple[float, ...], usd: tuple[float, ...], part: str) -> None:
    with pytest.raises(ScenarioError, match=part):
        Tariff(starts=starts, usd=usd)


def test_an_unknown_rule_is_refused() -> None:
    with pytest.raises(ScenarioError, match="graduated"):
        Tariff(usd=(1.0,), rule="linear")  # type: ignore[arg-type] # a user's mistake, on purpose
