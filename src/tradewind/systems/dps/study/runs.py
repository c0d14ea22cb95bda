"""DPS's market in compiled loops: one function per seller, with the same random numbers each time.

Tests compare these loops with the audited one (the same profit to nine digits).
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import NamedTuple

import numpy as np

from tradewind.model.arrays import Floats
from tradewind.systems.dps.kernels.arms import (
    UCB,
    UNIFORM,
    WINDOW,
    BanditSettings,
    free_share,
    grid_step,
    new_arms,
    price_grids,
    simulate_arms,
)
from tradewind.systems.dps.kernels.bound import fluid_bound
from tradewind.systems.dps.kernels.demand import Prior
from tradewind.systems.dps.kernels.fixed import (
    QUICK,
    FixedPrices,
    Search,
    best_fixed_prices,
    fixed_payments,
    printed_prices,
    simulate_payments,
)
from tradewind.systems.dps.kernels.learner_sales import simulate_learner
from tradewind.systems.dps.kernels.occupancy import Cluster, Stream
from tradewind.systems.dps.kernels.place import BEST_FIT, RANDOM, WORST_FIT
from tradewind.systems.dps.kernels.sales import ACCEPTED, Outcome, Sales, new_sales
from tradewind.systems.dps.kernels.state import LearnerState, Market, Settings, Tuning, new_learner
from tradewind.systems.dps.workload.draw import KINDS, MarketDraw, MarketKind, MarketSize, draw_market

STRONG = Search(WORST_FIT)
MODES = {"dps-paper": UCB, "dps-simple": UCB, "top": WINDOW, "random": UNIFORM, "dps-rs": UCB}


class Sold(NamedTuple):
    """The outcome of a market, and what each job paid (N,); 0 where it did not buy."""

    outcome: Outcome
    paid: Floats


class Knobs(NamedTuple):
    """The paper's constants; a negative value selects the printed formula. delta_m: of servers, 0 for the same as delta."""

    theta: float = 0.11
    delta: float = 0.2
    delta_m: float = 0.0


EXTRA = {
    "poor": MarketKind(location=0.3, noise=0.25),
    "poor-light": MarketKind(load=0.3, workers_median=8.0, location=0.3, noise=0.25),
    "rich": MarketKind(location=2.0, noise=0.4),
}
"""Markets beside the nine, where the paper's headline ratios are searched: budgets far below and above the price range."""


@cache
def drawn(market: str, seed: int, jobs: int = 10_000, slots: int = 10_000) -> MarketDraw:
    """A market of the generator."""
    return draw_market({**KINDS, **EXTRA}[market], seed, MarketSize(jobs=jobs, slots=slots))


@cache
def uncertain(market: str, seed: int, sigma: float) -> MarketDraw:
    """The market with runtimes that turn out other than (1) says, by a lognormal factor; budgets stay."""
    given = drawn(market, seed)
    factor = np.exp(sigma * np.random.default_rng((seed, 77)).standard_normal(len(given.k)) - sigma**2 / 2)
    spread, together = (
        np.maximum(1, np.rint(t * factor)).astype(np.int64) for t in (given.spread, given.together)
    )
    return replace(given, spread=spread, together=together)


def arrays(market: MarketDraw) -> tuple[Stream, Cluster]:
    """A market as arrays for the kernels."""
    stream = Stream(market.arrive, market.k, market.m, market.d_k, market.d_m, market.spread, market.together)
    return stream, Cluster(np.ascontiguousarray(market.idle_k.T), np.ascontiguousarray(market.idle_m.T))


def _sales(market: MarketDraw, rule: int, seed: int = 0) -> Sales:
    stream, cluster = arrays(market)
    return new_sales(stream, cluster, market.budget, rule, seed)


def sell(market: MarketDraw, policy: str, seed: int, knobs: Knobs | None = None) -> Sold:
    """One online seller in one market."""
    if policy == "dps":
        return learn(market, seed)[0]
    _, cluster = arrays(market)
    knobs = Knobs() if knobs is None else knobs
    items = np.concatenate([cluster.idle_k.sum(axis=1), cluster.idle_m.sum(axis=1)]).astype(float)
    expected = np.concatenate([market.expected_k, market.expected_m])
    theta = 0.0 if policy in ("dps-simple", "top", "random") else knobs.theta
    share = free_share(market.slots, items, expected) if theta < 0 else np.full(len(items), theta)
    both = np.repeat([knobs.delta, knobs.delta_m or knobs.delta], [len(cluster.idle_k), len(cluster.idle_m)])
    delta = grid_step(market.slots, items, expected) if knobs.delta < 0 else both
    settings = BanditSettings(
        expected, items, np.asarray(share * expected), float(market.slots), MODES[policy]
    )
    arms = new_arms(price_grids(delta), seed)
    placement = RANDOM if policy == "dps-rs" else WORST_FIT
    return _sold(simulate_arms(_sales(market, placement, seed), arms, settings))


def learn(market: MarketDraw, seed: int, told: MarketDraw | None = None) -> tuple[Sold, LearnerState]:
    """Our learner in one market: what it sold, and its final state. `told` has the runtimes that it expects."""
    _, cluster = arrays(market)
    caps = cluster.idle_k.sum(axis=1).astype(float), cluster.idle_m.sum(axis=1).astype(float)
    public = Market(*caps, float(market.slots), float(market.expected_k.sum()))
    settings = Settings(Tuning(), public, Prior())
    learner = new_learner(settings, seed)
    expected = None if told is None else arrays(told)[0]
    return _sold(simulate_learner(_sales(market, BEST_FIT), learner, settings, expected)), learner


def sell_fixed(market: MarketDraw, prices: FixedPrices, rule: int = WORST_FIT) -> Sold:
    """Fixed prices in one market."""
    sales = _sales(market, rule)
    return _sold(simulate_payments(sales, fixed_payments(sales.stream, prices)))


def sell_printed(market: MarketDraw) -> Sold:
    """bfp-printed in one market."""
    stream, cluster = arrays(market)
    return sell_fixed(market, printed_prices(stream, cluster, market.budget, market.slots))


def better_printed(market: MarketDraw) -> FixedPrices:
    """The prices of bfp-printed, improved by a short search: flat starts sell nothing where budgets are small."""
    stream, cluster = arrays(market)
    begin = printed_prices(stream, cluster, market.budget, market.slots)
    return best_fixed_prices(stream, cluster, market.budget, QUICK, begin)


@cache
def best_fixed(
    market: str, seed: int, search: Search, jobs: int = 10_000, slots: int = 10_000
) -> FixedPrices:
    """The best fixed prices in hindsight; a search with the runtime starts from the prices found without it."""
    data = drawn(market, seed, jobs, slots)
    stream, cluster = arrays(data)
    if not search.with_runtime:
        return best_fixed_prices(stream, cluster, data.budget, search)
    plain = best_fixed(market, seed, search._replace(with_runtime=False), jobs, slots)
    return best_fixed_prices(stream, cluster, data.budget, search._replace(kicks=min(search.kicks, 1)), plain)


@cache
def sold(market: str, seed: int, policy: str, knobs: Knobs | None = None, jobs: int = 10_000) -> Sold:
    """One online seller in a market of the generator; cached, because figures share runs."""
    if policy == "dps":
        return learned(market, seed, jobs)[0]
    return sell(drawn(market, seed, jobs), policy, seed, knobs)


@cache
def learned(market: str, seed: int, jobs: int = 10_000) -> tuple[Sold, LearnerState]:
    """Our learner in a market of the generator."""
    return learn(drawn(market, seed, jobs), seed)


@cache
def bound_of(market: str, seed: int) -> float:
    """The non-peeking bound of a market of the generator."""
    return non_peeking(drawn(market, seed))


def non_peeking(market: MarketDraw) -> float:
    """The bound that knows the distribution of the budgets, but no budget."""
    stream, cluster = arrays(market)
    return fluid_bound(stream, cluster, market.slots, (market.log_value, market.noise)).value


def profit_until(market: MarketDraw, sold: Sold, slots: Floats) -> Floats:
    """Profit earned by jobs that arrived before each slot."""
    earned = np.concatenate([[0.0], np.cumsum(sold.paid)])
    return np.asarray(earned[np.searchsorted(market.arrive, slots, side="left")])


def _sold(outcome: Outcome) -> Sold:
    return Sold(outcome, np.where(outcome.answer == ACCEPTED, outcome.payment, 0.0))
