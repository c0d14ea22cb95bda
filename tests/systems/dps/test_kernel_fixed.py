"""Fixed prices: occupancy of the cluster, and the search for the best prices in hindsight."""

from dataclasses import replace

import numpy as np

from tradewind.systems.dps.kernels.fixed import (
    Search,
    best_fixed_prices,
    fixed_payments,
    simulate_payments,
)
from tradewind.systems.dps.kernels.occupancy import Cluster, Stream
from tradewind.systems.dps.kernels.place import BEST_FIT, RANDOM, WORST_FIT
from tradewind.systems.dps.kernels.sales import ACCEPTED, REFUSED_CAPACITY, REFUSED_PRICE, Outcome, new_sales
from tradewind.systems.dps.workload.draw import (
    KINDS,
    MarketDraw,
    MarketSize,
    draw_market,
)

SMALL = MarketSize(slots=800, jobs=600, servers=6, worker_types=2, server_types=2)


def arrays(market: MarketDraw) -> tuple[Stream, Cluster]:
    stream = Stream(market.arrive, market.k, market.m, market.d_k, market.d_m, market.spread, market.together)
    return stream, Cluster(np.ascontiguousarray(market.idle_k.T), np.ascontiguousarray(market.idle_m.T))


def tiny(arrive: list[int], runtime: int = 3, d_k: int = 2) -> tuple[Stream, Cluster]:
    n = len(arrive)
    zero, tau = np.zeros(n, dtype=np.int64), np.full(n, runtime)
    stream = Stream(
        np.array(arrive, dtype=np.int64), zero, zero, np.full(n, d_k), np.ones(n, dtype=np.int64), tau, tau
    )
    return stream, Cluster(np.array([[2, 1]]), np.array([[1, 1]]))


def sell(
    market: tuple[Stream, Cluster], payment: np.ndarray, budget: np.ndarray, rule: int, seed: int = 0
) -> Outcome:
    return simulate_payments(new_sales(*market, budget, rule, seed), payment)


def test_resources_are_free_again_strictly_after_arrival_plus_runtime() -> None:
    out = sell(tiny([0, 3, 4]), np.ones(3), np.full(3, 5.0), WORST_FIT)
    assert out.answer.tolist() == [ACCEPTED, REFUSED_CAPACITY, ACCEPTED]
    assert out.profit == 2.0


def test_no_room_differs_from_too_expensive() -> None:
    out = sell(tiny([0, 0, 9]), np.array([1.0, 1.0, 7.0]), np.full(3, 5.0), BEST_FIT)
    assert out.answer.tolist() == [ACCEPTED, REFUSED_CAPACITY, REFUSED_PRICE]


def test_a_bundle_larger_than_the_cluster_is_refused_and_an_empty_market_earns_nothing() -> None:
    large = tiny([0], d_k=9)
    assert sell(large, np.ones(1), np.full(1, 5.0), BEST_FIT).answer[0] == REFUSED_CAPACITY
    assert sell(tiny([]), np.ones(0), np.ones(0), BEST_FIT).profit == 0.0


def test_never_more_is_in_use_than_there_is_by_a_slow_count() -> None:
    market = draw_market(KINDS["saturated"], 3, SMALL)
    stream, cluster = arrays(market)
    payment = np.asarray(0.2 * (market.d_k + market.d_m), dtype=np.float64)
    for rule in (WORST_FIT, BEST_FIT, RANDOM):
        out = sell((stream, cluster), payment, market.budget, rule, seed=5)
        yes = out.answer == ACCEPTED
        for i in np.flatnonzero(yes | (out.answer == REFUSED_CAPACITY)):
            before = yes & (np.arange(len(yes)) < i) & (market.arrive + out.runtime >= market.arrive[i])
            use_k = market.d_k[before & (market.k == market.k[i])].sum()
            use_m = market.d_m[before & (market.m == market.m[i])].sum()
            room = (
                use_k + market.d_k[i] <= cluster.idle_k[market.k[i]].sum()
                and use_m + market.d_m[i] <= cluster.idle_m[market.m[i]].sum()
            )
            assert room == bool(yes[i])
        known = np.where(out.runtime == market.together, market.together, market.spread)
        assert (out.runtime[yes] == known[yes]).all()


def test_best_prices_reach_what_a_fine_grid_reaches_with_one_type() -> None:
    size = replace(SMALL, worker_types=1, server_types=1)
    market = draw_market(KINDS["balanced"], 1, size)
    stream, cluster = arrays(market)
    found = best_fixed_prices(stream, cluster, market.budget, Search(WORST_FIT, kicks=2))
    grid = max(
        sell((stream, cluster), float(a) * market.d_k + b * market.d_m, market.budget, WORST_FIT).profit
        for a in np.linspace(0.05, 1.0, 20)
        for b in np.linspace(0.05, 1.0, 20)
    )
    assert found.profit >= 0.995 * grid


def test_the_search_reports_the_profit_that_its_prices_earn() -> None:
    market = draw_market(KINDS["sat-runtime"], 2, SMALL)
    stream, cluster = arrays(market)
    plain = best_fixed_prices(stream, cluster, market.budget, Search(BEST_FIT, levels=(0.4,), kicks=1))
    with_tau = best_fixed_prices(
        stream, cluster, market.budget, Search(BEST_FIT, with_runtime=True, levels=(0.4,), kicks=1)
    )
    for found in (plain, with_tau):
        out = sell((stream, cluster), fixed_payments(stream, found), market.budget, BEST_FIT)
        assert np.isclose(out.profit, found.profit, rtol=1e-12)
    assert plain.power == 0.0
    assert with_tau.power > 0.0
    assert with_tau.profit > plain.profit


def test_the_generator_offers_the_load_it_names_and_draws_the_same_twice() -> None:
    for name, kind in KINDS.items():
        market = draw_market(kind, 1)
        offered = (market.d_k * market.spread).sum() / (market.idle_k.sum() * market.slots)
        assert abs(offered - kind.load) < 0.01 * kind.load, name
        assert (market.together <= market.spread).all()
        assert market.spread.max() <= 2500
        again = draw_market(kind, 1)
        assert (again.budget == market.budget).all()


def test_sixty_percent_of_bimodal_customers_pay_less_than_the_location() -> None:
    market = draw_market(KINDS["bimodal"], 1, SMALL)
    ratio = np.log(market.budget) - market.log_value
    assert abs((ratio < 0).mean() - 0.6) < 0.06
