"""What the paper says of DPS, against our numbers: what holds, what does not, and our own targets on unseen seeds."""

from __future__ import annotations

import numpy as np
import pytest

from tradewind.systems.dps.kernels.fixed import LIGHT, simulate_payments
from tradewind.systems.dps.kernels.place import BEST_FIT, WORST_FIT
from tradewind.systems.dps.kernels.sales import ACCEPTED, REFUSED_CAPACITY, new_sales
from tradewind.systems.dps.study.ours import REQUIRED
from tradewind.systems.dps.study.runs import (
    Knobs,
    arrays,
    best_fixed,
    drawn,
    non_peeking,
    profit_until,
    sell,
    sell_fixed,
)
from tradewind.systems.dps.workload.draw import KINDS

SEEDS = (1, 2)
ONE = (1,)
SEARCH = LIGHT._replace(levels=(0.45,))


def profit(market: str, policy: str, seed: int, knobs: Knobs | None = None) -> float:
    return sell(drawn(market, seed), policy, seed, knobs).outcome.profit


def reference(market: str, seed: int) -> float:
    return sell_fixed(drawn(market, seed), best_fixed(market, seed, SEARCH)).outcome.profit


def test_the_printed_theta_earns_exactly_nothing() -> None:
    assert profit("balanced", "dps-paper", 1, Knobs(theta=-1.0)) == 0.0


def test_the_printed_delta_is_worse_than_a_coarse_grid() -> None:
    fine = sum(profit("balanced", "dps-paper", s, Knobs(delta=-1.0)) for s in SEEDS)
    assert fine < sum(profit("balanced", "dps-paper", s) for s in SEEDS)


def test_the_free_stage_is_pure_loss() -> None:
    """The paper says that DPS earns 115% of DPS-simple; it earns less."""
    for market in ("balanced", "saturated"):
        ratio = np.mean([profit(market, "dps-paper", s) / profit(market, "dps-simple", s) for s in SEEDS])
        assert 0.75 < ratio < 0.97


def test_the_papers_algorithm_does_not_beat_the_best_fixed_prices() -> None:
    for market in ("light", "balanced", "saturated"):
        ratio = np.mean([profit(market, "dps-paper", s) / reference(market, s) for s in ONE])
        assert 0.6 < ratio < 0.85


def test_random_placement_costs_a_few_percent_and_runs_longer() -> None:
    runtime = {}
    for name in ("dps-paper", "dps-rs"):
        out = [sell(drawn("balanced", s), name, s).outcome for s in SEEDS]
        runtime[name] = np.mean([o.runtime[o.answer == ACCEPTED].mean() for o in out])
    assert runtime["dps-paper"] < 0.95 * runtime["dps-rs"]


def test_packing_tightly_earns_more_than_the_papers_placement_at_the_same_prices() -> None:
    gain = []
    for name in ("balanced", "saturated"):
        for seed in SEEDS:
            market = drawn(name, seed)
            stream, cluster = arrays(market)
            payment = 0.35 * (market.d_k + market.d_m).astype(np.float64)
            pa, ours = (
                simulate_payments(new_sales(stream, cluster, market.budget, rule), payment).profit
                for rule in (WORST_FIT, BEST_FIT)
            )
            gain.append(ours / pa)
    assert 1.003 < np.mean(gain) < 1.04


@pytest.mark.parametrize("market", list(KINDS))
def test_our_learner_reaches_its_target_and_stays_below_the_bound(market: str) -> None:
    """The targets are means of five seeds, measured by the full study; one seed differs from its mean by up to 0.03."""
    ours = profit(market, "dps", 1)
    assert ours / reference(market, 1) > REQUIRED[market] - 0.03
    assert ours < 1.02 * non_peeking(drawn(market, 1))


def test_our_learner_beats_the_papers_and_its_relatives() -> None:
    markets = ("balanced", "saturated", "tight")
    total = {p: sum(profit(m, p, 1) for m in markets) for p in ("dps", "dps-simple", "top", "random")}
    assert total["dps"] > 1.25 * total["dps-simple"]
    assert total["dps"] > 1.15 * total["top"]
    assert total["dps"] > 1.5 * total["random"]


def test_runtime_follows_equation_one_from_the_placement() -> None:
    market = drawn("balanced", 1)
    out = sell(market, "dps", 1).outcome
    yes = out.answer == ACCEPTED
    bandwidth = np.minimum(market.bps_k[market.k], market.bps_m[market.m] / market.d_k)
    seconds = market.epochs * (market.epoch_us / 1e6 + 2 * 8 * market.gradient_bytes / bandwidth)
    apart = np.ceil(seconds / 300)
    close = np.ceil(market.epochs * market.epoch_us / 1e6 / 300)
    assert (np.abs(market.spread - apart) <= 1).all()
    assert (np.abs(market.together - close) <= 1).all()
    assert ((out.runtime[yes] == market.spread[yes]) | (out.runtime[yes] == market.together[yes])).all()
    stream, cluster = arrays(market)
    never = ~(
        (cluster.idle_k[stream.k] >= stream.d_k[:, None]) & (cluster.idle_m[stream.m] >= stream.d_m[:, None])
    ).any(axis=1)
    assert (out.runtime[yes & never] == market.spread[yes & never]).all()


def test_refused_for_capacity_is_counted_apart_and_earns_nothing() -> None:
    market = drawn("saturated", 1)
    sold = sell(market, "dps", 1)
    assert (sold.outcome.answer == REFUSED_CAPACITY).sum() > 100
    assert sold.paid[sold.outcome.answer != ACCEPTED].sum() == 0.0
    assert profit_until(market, sold, np.array([0.0, 1e9]))[1] == pytest.approx(sold.outcome.profit)
