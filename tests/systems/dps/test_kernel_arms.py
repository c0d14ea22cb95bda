"""The paper's arms: grid, free stage, rewards, and what they cost."""

import numpy as np
import pytest

from tests.systems.dps.test_kernel_fixed import SMALL, arrays
from tradewind.systems.dps.kernels.arms import (
    MEMORY,
    UCB,
    UNIFORM,
    WINDOW,
    BanditSettings,
    count_arrival,
    free_share,
    grid_step,
    new_arms,
    observe_answer,
    offer,
    price_grid,
    price_grids,
    simulate_arms,
)
from tradewind.systems.dps.kernels.place import WORST_FIT
from tradewind.systems.dps.kernels.sales import ACCEPTED, Outcome, new_sales
from tradewind.systems.dps.workload.draw import KINDS, MarketDraw, draw_market


def run(market: MarketDraw, theta: float | str, mode: int = UCB) -> Outcome:
    stream, cluster = arrays(market)
    items = np.concatenate([cluster.idle_k.sum(axis=1), cluster.idle_m.sum(axis=1)]).astype(float)
    expected = np.concatenate([market.expected_k, market.expected_m])
    share = (
        free_share(market.slots, items, expected) if isinstance(theta, str) else np.full(len(items), theta)
    )
    settings = BanditSettings(expected, items, share * expected, float(market.slots), mode)
    arms = new_arms(price_grids(np.full(len(items), 0.2)), 3)
    return simulate_arms(new_sales(stream, cluster, market.budget, WORST_FIT, 1), arms, settings)


def test_the_grid_starts_at_delta_and_ends_below_one() -> None:
    grid = price_grid(0.2)
    assert np.allclose(grid[:3], [0.2, 0.24, 0.288])
    assert grid[-1] <= 1.0 < grid[-1] * 1.2
    assert len(grid) == 9
    with pytest.raises(ValueError, match="delta"):
        price_grid(1.0)


def test_theta_as_printed_is_far_above_one_and_gives_everything_away() -> None:
    market = draw_market(KINDS["balanced"], 1)
    items = np.concatenate([market.idle_k.sum(axis=0), market.idle_m.sum(axis=0)]).astype(float)
    expected = np.concatenate([market.expected_k, market.expected_m])
    theta = free_share(market.slots, items, expected)
    assert 60.0 < theta.min() < theta.max() < 700.0
    assert len(price_grid(float(grid_step(market.slots, items, expected).mean()))) > 150
    out = run(market, "formula")
    assert out.profit == 0.0
    assert (out.payment == 0.0).all()


def test_a_theta_of_eleven_percent_ends_the_free_stage_where_the_paper_draws_it() -> None:
    market = draw_market(KINDS["balanced"], 1)
    out = run(market, 0.11)
    free = market.arrive[(out.payment == 0.0) & (out.answer == ACCEPTED)]
    assert 1000 < np.quantile(free, 0.99) < 1300


def test_the_free_stage_only_costs_money() -> None:
    markets = [draw_market(KINDS["balanced"], seed) for seed in (1, 2)]
    assert sum(run(m, 0.0).profit for m in markets) > 1.05 * sum(run(m, 0.11).profit for m in markets)


def test_a_price_that_never_sells_is_dropped() -> None:
    settings = BanditSettings(np.full(2, 500.0), np.full(2, 1e9), np.zeros(2), 1000.0, UCB)
    arms = new_arms(price_grids(np.full(2, 0.2)), 1)
    for _ in range(400):
        assert not count_arrival(arms, settings, 0, 1)
        p_a, p_b = offer(arms, settings, 0, 1)
        observe_answer(arms, settings, p_a + p_b <= 0.9, 10, 10)
    assert arms.used[0, -1] < 100
    p_a, p_b = offer(arms, settings, 0, 1)
    assert 0.2 <= p_a <= 1.0
    assert arms.used[0].sum() == 400


def test_the_window_forgets_all_but_the_last_offers() -> None:
    settings = BanditSettings(np.full(2, 500.0), np.full(2, 1e9), np.zeros(2), 1000.0, WINDOW)
    arms = new_arms(price_grids(np.full(2, 0.2)), 1)
    for turn in range(MEMORY + 150):
        offer(arms, settings, 0, 1)
        observe_answer(arms, settings, turn % 2 == 0, 3, 1)
    assert arms.used[0].sum() == MEMORY
    assert arms.sold[0].sum() == 3 * MEMORY / 2
    assert (arms.used >= 0).all()


def test_random_prices_cover_the_unit_interval() -> None:
    market = draw_market(KINDS["light"], 1, SMALL)
    out = run(market, 0.0, UNIFORM)
    ratio = out.payment / (market.d_k + market.d_m)
    assert ratio.min() < 0.2
    assert 0.8 < ratio.max() <= 1.0
    assert out.profit > 0.0
