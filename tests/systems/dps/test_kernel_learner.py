"""The learner: moments, noise, capacity prices, and that it neither peeks nor forgets."""

import numpy as np
import pytest

from tests.systems.dps.test_kernel_fixed import SMALL, arrays
from tradewind.systems.dps.kernels.bound import clairvoyant_bound, fluid_bound
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
from tradewind.systems.dps.kernels.fixed import ACCEPTED, REFUSED_CAPACITY
from tradewind.systems.dps.kernels.law import fit_law, one_group, tally, two_groups
from tradewind.systems.dps.kernels.place import BEST_FIT
from tradewind.systems.dps.kernels.run import simulate_learner
from tradewind.systems.dps.kernels.state import Market, Mind, Tuning, new_mind
from tradewind.systems.dps.workload.draw import KINDS, MarketDraw, draw_market

TWO = two_groups(0.6, 1.0, 0.2, 0.15)


def posterior(gap: float, spread: float, law: np.ndarray, yes: bool) -> tuple[float, float]:
    """Mean and variance of f after an answer, by brute force on a fine grid."""
    f = np.linspace(-8, 8, 20001) * np.sqrt(spread)
    weight = np.exp(-0.5 * f**2 / spread)
    chance = np.array([accept_chance(gap - each, 0.0, law) for each in f])
    weight *= chance if yes else 1.0 - chance
    mean = (weight * f).sum() / weight.sum()
    return mean, (weight * (f - mean) ** 2).sum() / weight.sum()


@pytest.mark.parametrize("law", [one_group(0.4), TWO], ids=["one group", "two groups"])
@pytest.mark.parametrize("yes", [True, False])
def test_an_answer_moves_the_moments_as_the_exact_posterior_does(law: np.ndarray, yes: bool) -> None:
    for gap, spread in ((0.3, 0.2), (-0.5, 0.05), (1.0, 0.5)):
        _, d1, d2 = tilt(gap, spread, law, yes)
        mean, var = posterior(gap, spread, law, yes)
        assert np.isclose(spread * d1, mean, atol=1e-6)
        assert np.isclose(spread + spread**2 * d2, var, atol=1e-6)


def test_the_gradient_is_that_of_the_location() -> None:
    mean, cov = prior_moments(Prior(pair=0.3), 3, 2)
    mean += np.random.default_rng(0).normal(0, 0.3, len(mean))
    buyer, where, weight = Buyer(1, 1, 7.0, 3.0, 0.4, -0.2), np.empty(6, dtype=np.int64), np.empty(6)
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
    for law in (one_group(0.4), TWO):
        for cost in (0.0, 0.5, 1.5):
            x = np.linspace(-2.2, 2.2, 8001)
            value = (np.exp(x) - cost) * np.array([accept_chance(each, 0.0, law) for each in x])
            gap, chance = best_offer(0.0, 0.0, cost, 50.0, law)
            assert (np.exp(gap) - cost) * chance >= value.max() - 1e-3
            response = np.zeros(CELLS)
            fill_response(law, response)
            near, sold = respond(0.0, cost, 50.0, law, response)
            assert (np.exp(near) - cost) * sold >= value.max() - 6e-3
    assert best_offer(0.0, 0.0, 0.0, -1.0, one_group(0.4))[0] <= -1.0


def test_one_group_of_buyers_is_told_from_two() -> None:
    rng = np.random.default_rng(5)
    gap = rng.uniform(-1.2, 1.2, 4000)
    for law, groups in ((one_group(0.4), 1), (TWO, 2)):
        which = rng.random(4000) < law[0, 0]
        noise = np.where(
            which, rng.normal(law[0, 1], law[0, 2], 4000), rng.normal(law[1, 1], law[1, 2], 4000)
        )
        found, _, rival = fit_law(one_group(0.5), *tally(gap, np.zeros(4000), gap <= noise), 4.0)
        assert (found[1, 0] > 0.0) == (groups == 2)
        assert rival < 0.5
        shares = [accept_chance(x, 0.0, found) - accept_chance(x, 0.0, law) for x in np.linspace(-1, 1, 21)]
        assert max(map(abs, shares)) < 0.05


def start(market: MarketDraw, seed: int = 1) -> tuple[Mind, tuple[Tuning, Market, Prior, int]]:
    _, cluster = arrays(market)
    public = Market(
        cluster.idle_k.sum(axis=1).astype(float),
        cluster.idle_m.sum(axis=1).astype(float),
        float(market.slots),
        float(len(market.arrive)),
    )
    settings = (Tuning(), public, Prior(), BEST_FIT)
    return new_mind(public, settings[0], settings[2], seed), settings


def test_budgets_that_give_the_same_answers_give_the_same_prices() -> None:
    market = draw_market(KINDS["balanced"], 4, SMALL)
    stream, cluster = arrays(market)
    mind, settings = start(market)
    out, asked = simulate_learner(stream, cluster, market.budget, mind, settings)
    other = np.where(out.answer == ACCEPTED, asked * 1.7 + 1.0, asked * 0.2)
    other[out.answer == REFUSED_CAPACITY] = 1e6
    again, _ = start(market)
    out2, asked2 = simulate_learner(stream, cluster, other, again, settings)
    assert (asked == asked2).all()
    assert (out.answer == out2.answer).all()


def test_what_comes_later_changes_nothing_before() -> None:
    market = draw_market(KINDS["drift"], 4, SMALL)
    stream, cluster = arrays(market)
    mind, settings = start(market)
    _, asked = simulate_learner(stream, cluster, market.budget, mind, settings)
    cut = 300
    budget = market.budget.copy()
    budget[cut:] *= 10.0
    d_k = market.d_k.copy()
    d_k[cut:] = 1
    again, _ = start(market)
    _, asked2 = simulate_learner(stream._replace(d_k=d_k), cluster, budget, again, settings)
    assert (asked[:cut] == asked2[:cut]).all()
    assert (asked[cut:] != asked2[cut:]).any()


def test_the_learner_earns_between_a_blind_price_and_the_bounds() -> None:
    market = draw_market(KINDS["saturated"], 4, SMALL)
    stream, cluster = arrays(market)
    mind, settings = start(market)
    out, asked = simulate_learner(stream, cluster, market.budget, mind, settings)
    assert (asked <= market.d_k + market.d_m + 1e-9).all()
    assert (asked >= 0.0).all()
    fluid = fluid_bound(stream, cluster, market.slots, (market.log_value, market.law)).value
    seer = clairvoyant_bound(stream, cluster, market.slots, market.budget)
    assert 0.3 * fluid < out.profit < fluid < seer
    assert seer <= market.budget.sum()


def test_capacity_prices_are_low_where_nothing_is_scarce() -> None:
    calm = draw_market(KINDS["light"], 4, SMALL)
    busy = draw_market(KINDS["saturated"], 4, SMALL)
    price = {}
    for name, market in (("calm", calm), ("busy", busy)):
        mind, settings = start(market)
        simulate_learner(*arrays(market), market.budget, mind, settings)
        price[name] = float(np.median(mind.price))
    assert price["calm"] < 0.05 * price["busy"]
