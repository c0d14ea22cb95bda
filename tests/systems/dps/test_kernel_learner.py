"""The learner: moments, noise, capacity prices, and that it cannot see budgets or the future."""

import numpy as np
import pytest

from tests.systems.dps.clairvoyant import clairvoyant_bound
from tests.systems.dps.test_kernel_fixed import SMALL, arrays
from tradewind.systems.dps.kernels.bound import fluid_bound
from tradewind.systems.dps.kernels.demand import (
    Buyer,
    Prior,
    absorb,
    accept_chance,
    best_offer,
    locate,
    prior_moments,
    tilt,
    variance,
)
from tradewind.systems.dps.kernels.dual import CELLS, fill_response, respond
from tradewind.systems.dps.kernels.learner_sales import simulate_learner
from tradewind.systems.dps.kernels.noise import fit_noise, one_group, tally, two_groups
from tradewind.systems.dps.kernels.place import BEST_FIT
from tradewind.systems.dps.kernels.sales import ACCEPTED, REFUSED_CAPACITY, Outcome, new_sales
from tradewind.systems.dps.kernels.state import LearnerState, Market, Settings, Tuning, new_learner
from tradewind.systems.dps.workload.draw import KINDS, MarketDraw, draw_market

TWO = two_groups(0.6, 1.0, 0.2, 0.15)


def posterior(gap: float, spread: float, noise: np.ndarray, yes: bool) -> tuple[float, float]:
    """Mean and variance of f after an answer, by brute force on a fine grid."""
    f = np.linspace(-8, 8, 20001) * np.sqrt(spread)
    weight = np.exp(-0.5 * f**2 / spread)
    chance = np.array([accept_chance(gap - each, 0.0, noise) for each in f])
    weight *= chance if yes else 1.0 - chance
    mean = (weight * f).sum() / weight.sum()
    return mean, (weight * (f - mean) ** 2).sum() / weight.sum()


@pytest.mark.parametrize("noise", [one_group(0.4), TWO], ids=["one group", "two groups"])
@pytest.mark.parametrize("yes", [True, False])
def test_an_answer_moves_the_moments_as_the_exact_posterior_does(noise: np.ndarray, yes: bool) -> None:
    for gap, spread in ((0.3, 0.2), (-0.5, 0.05), (1.0, 0.5)):
        _, d1, d2 = tilt(gap, spread, noise, yes)
        mean, var = posterior(gap, spread, noise, yes)
        assert np.isclose(spread * d1, mean, atol=1e-6)
        assert np.isclose(spread + spread**2 * d2, var, atol=1e-6)


def test_the_gradient_is_that_of_the_location() -> None:
    mean, cov = prior_moments(Prior(pair=0.3), 3, 2)
    mean += np.random.default_rng(0).normal(0, 0.3, len(mean))
    buyer, where, weight = Buyer(1, 1, 7.0, 3.0, 0.4, -0.2, 0.7), np.empty(6, dtype=np.int64), np.empty(6)
    base = locate(mean, buyer, 3, 2, where, weight)
    for at, slope in zip(where.copy(), weight.copy(), strict=True):
        moved = mean.copy()
        moved[at] += 1e-6
        spare = (np.empty(6, dtype=np.int64), np.empty(6))
        assert np.isclose((locate(moved, buyer, 3, 2, *spare) - base) / 1e-6, slope, atol=1e-4)
    row = np.zeros(len(mean))
    row[where] = weight
    assert np.isclose(variance(cov, where, weight), row @ cov @ row)
    before = float(row @ cov @ row)
    absorb(mean, cov, len(mean), where, weight, 0.0, -0.5 / before)
    assert np.isclose(row @ cov @ row, 0.5 * before)
    assert np.allclose(cov, cov.T)


def test_the_best_offer_is_the_best_of_a_fine_grid_even_with_two_peaks() -> None:
    for noise in (one_group(0.4), TWO):
        for cost in (0.0, 0.5, 1.5):
            x = np.linspace(-2.2, 2.2, 8001)
            value = (np.exp(x) - cost) * np.array([accept_chance(each, 0.0, noise) for each in x])
            gap, chance = best_offer(0.0, 0.0, cost, 50.0, noise)
            assert (np.exp(gap) - cost) * chance >= value.max() - 1e-3
            response = np.zeros(CELLS)
            fill_response(noise, response)
            near, sold = respond(0.0, cost, 50.0, noise, response)
            assert (np.exp(near) - cost) * sold >= value.max() - 6e-3
    assert best_offer(0.0, 0.0, 0.0, -1.0, one_group(0.4))[0] <= -1.0


def test_one_group_of_buyers_is_told_from_two() -> None:
    rng = np.random.default_rng(5)
    gap = rng.uniform(-1.2, 1.2, 4000)
    for noise, groups in ((one_group(0.4), 1), (TWO, 2)):
        which = rng.random(4000) < noise[0, 0]
        low, high = (rng.normal(noise[g, 1], noise[g, 2], 4000) for g in (0, 1))
        answers = gap <= np.where(which, low, high)
        found, _, rival = fit_noise(one_group(0.5), *tally(gap, np.zeros(4000), answers), 4.0)
        assert (found[1, 0] > 0.0) == (groups == 2)
        assert rival < 0.5
        shares = [accept_chance(x, 0.0, found) - accept_chance(x, 0.0, noise) for x in np.linspace(-1, 1, 21)]
        assert max(map(abs, shares)) < 0.05


def learn(
    market: MarketDraw, *, budget: np.ndarray | None = None, d_k: np.ndarray | None = None
) -> tuple[Outcome, LearnerState]:
    """The learner in a market, possibly with other budgets or demands."""
    stream, cluster = arrays(market)
    stream = stream if d_k is None else stream._replace(d_k=d_k)
    public = Market(
        cluster.idle_k.sum(axis=1).astype(float),
        cluster.idle_m.sum(axis=1).astype(float),
        float(market.slots),
        float(len(market.arrive)),
    )
    settings = Settings(Tuning(), public, Prior())
    learner = new_learner(settings, 1)
    sales = new_sales(stream, cluster, market.budget if budget is None else budget, BEST_FIT)
    return simulate_learner(sales, learner, settings), learner


def test_budgets_that_give_the_same_answers_give_the_same_prices() -> None:
    market = draw_market(KINDS["balanced"], 4, SMALL)
    out, _ = learn(market)
    other = np.where(out.answer == ACCEPTED, out.payment * 1.7 + 1.0, out.payment * 0.2)
    other[out.answer == REFUSED_CAPACITY] = 1e6
    again, _ = learn(market, budget=other)
    assert (out.payment == again.payment).all()
    assert (out.answer == again.answer).all()


def test_what_comes_later_changes_nothing_before() -> None:
    market = draw_market(KINDS["drift"], 4, SMALL)
    asked = learn(market)[0].payment
    cut = 300
    budget = market.budget.copy()
    budget[cut:] *= 10.0
    d_k = market.d_k.copy()
    d_k[cut:] = 1
    again = learn(market, budget=budget, d_k=d_k)[0].payment
    assert (asked[:cut] == again[:cut]).all()
    assert (asked[cut:] != again[cut:]).any()


def test_the_learner_earns_between_a_blind_price_and_the_bounds() -> None:
    market = draw_market(KINDS["saturated"], 4, SMALL)
    stream, cluster = arrays(market)
    out, _ = learn(market)
    assert (out.payment <= market.d_k + market.d_m + 1e-9).all()
    assert (out.payment >= 0.0).all()
    fluid = fluid_bound(stream, cluster, market.slots, (market.log_value, market.noise)).value
    clairvoyant = clairvoyant_bound(stream, cluster, market.slots, market.budget)
    assert 0.3 * fluid < out.profit < fluid < clairvoyant
    assert clairvoyant <= market.budget.sum()


def test_capacity_prices_are_low_where_nothing_is_scarce() -> None:
    calm = draw_market(KINDS["light"], 4, SMALL)
    busy = draw_market(KINDS["saturated"], 4, SMALL)
    price = {}
    for name, market in (("calm", calm), ("busy", busy)):
        price[name] = float(np.median(learn(market)[1].price))
    assert price["calm"] < 0.05 * price["busy"]
