"""Claims about Eris's oracle: exact or certified, and every offer is feasible."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.effort import tries
from tests.systems.eris.cases import faults, small
from tradewind.systems.eris.kernels.milp import Bidder, solve
from tradewind.systems.eris.kernels.minplus import minplus
from tradewind.systems.eris.kernels.oracle import flat_menu, menu
from tradewind.systems.eris.kernels.slot import SlotSites, cost_curve
from tradewind.systems.eris.kernels.task import Market, TrainingTask


@pytest.mark.parametrize(
    ("seeds", "enough", "fractional", "mean", "least"),
    [
        (tries(320, 1280), tries(75, 300), False, 0.999, 0.99),
        (tries(125, 500), tries(10, 40), True, 0.99, 0.0),
    ],
)
def test_the_oracle_comes_close_to_the_exact_optimum_and_its_certificate_holds(
    seeds: int, enough: int, fractional: bool, mean: float, least: float
) -> None:
    ratios = []
    for seed in range(10_000, 10_000 + seeds):  # the search was improved on the seeds from 0 on
        task, market, worth = small(seed, fractional=fractional)
        found = menu(task, market, worth)
        if found.bound == 0.0 and seed % 4:
            continue  # the certificate says that nothing can pay; every fourth is verified
        exact = max(0.0, solve(market, [Bidder(task=task, start=0, worth=worth)]).value)
        assert found.payoff <= exact + 1e-5, seed
        assert exact <= found.bound + 1e-5, seed
        for offer in found.offers:
            assert not faults(task, market, offer), seed
        if exact > 1e-6:
            ratios.append(found.payoff / exact)
    assert len(ratios) >= enough
    assert np.mean(ratios) >= mean
    assert min(ratios) >= least


def test_reporting_another_worth_never_finds_a_better_offer() -> None:
    changed = 0
    for seed in range(400):
        task, market, worth = small(seed)
        honest = menu(task, market, worth).payoff
        for factor, tilt in ((0.5, 0.0), (3.0, 0.0), (1.0, 0.7), (10.0, 1.5)):
            lie = menu(task, market, worth * factor * np.exp(-tilt * np.arange(len(worth))))
            gains = [float(worth[offer.slots[-1]]) - offer.usd for offer in lie.offers]
            assert max(gains, default=0.0) <= honest + 1e-9, seed
            changed += max(gains, default=0.0) < honest - 1e-9
    assert changed > 0


def test_a_later_offer_is_always_cheaper() -> None:
    for seed in range(150):
        task, market, worth = small(seed)
        costs = [offer.usd for offer in menu(task, market, worth * 10).offers]
        assert costs == sorted(costs, reverse=True)


def _idle(sites: int, slots: int, **changes: Any) -> tuple[TrainingTask, Market]:
    data = np.zeros(sites, dtype=np.int64)
    data[0] = 6
    task = TrainingTask(
        worker=np.array([1000, 1000]), server=np.array([1000, 0]), data=data, rate=3000, need=1000,
        chunk_bytes=2_000_000, traffic_bytes=100_000_000,
    )  # fmt: skip
    market = Market(
        usd=np.full((slots, sites, 2), 1e-3), byte_usd=np.full(slots, 1e-9),
        free=np.full((slots, sites, 2), 4000), room=np.full(slots, 20_000_000_000),
    )  # fmt: skip
    return task._replace(**changes), market


def test_of_slots_at_one_price_the_earlier_are_filled_first() -> None:
    for cents in range(1, 40):  # sums of such prices are rounded up or down
        task, market = _idle(4, 5, data=np.array([9, 9, 9, 10]), rate=1000)
        prices = np.full((5, 4, 2), cents * 1e-5)
        market = market._replace(usd=prices, free=np.full((5, 4, 2), [8000, 2000]))
        (offer,) = flat_menu(task, market, np.full(5, 1e6), 0.0).offers
        assert offer.workers.sum(axis=1).tolist() == [8, 8, 8, 8, 5], cents


def test_the_step_from_slot_to_slot_is_the_plain_minimum_and_takes_least_of_equal_sums() -> None:
    for seed in range(300):
        rng = np.random.default_rng(seed)
        limit = int(rng.integers(1, 40))
        before, cost = rng.integers(0, 6, (2, limit + 1)) * rng.choice([0.1, 1.0])  # many sums are equal
        before[int(rng.integers(1, limit + 2)) :] = np.inf
        cost[rng.random(limit + 1) < rng.choice([0.0, 0.3, 0.9])] = np.inf
        out, choice = np.empty(limit + 1), np.empty(limit + 1, np.int64)
        minplus(before, cost, out, choice)
        for n in range(limit + 1):
            sums = [before[n], *(before[n - d] + cost[d] for d in range(1, n + 1))]
            assert out[n] == pytest.approx(min(sums), rel=1e-9), (seed, n)
            assert choice[n] == next(d for d, usd in enumerate(sums) if usd <= min(sums) * (1 + 1e-9)), (
                seed,
                n,
            )


def test_a_slots_curve_is_the_cheapest_split_over_all_sites_of_the_server() -> None:
    """Against a plain search over the server's site and the workers beside it."""
    for seed in range(300):
        rng = np.random.default_rng(seed)
        sites, limit = int(rng.integers(1, 8)), int(rng.integers(1, 20))
        worker_usd, server_usd = rng.integers(0, 4, (2, sites)) * 0.7
        most = rng.integers(0, 5, sites)
        with_server = np.where(rng.random(sites) < 0.3, -1, np.minimum(most, rng.integers(0, 5, sites)))
        traffic_usd = float(rng.choice([0.0, 0.3, 2.0]))
        remote = np.maximum(int(rng.integers(0, 25)) - int(rng.integers(0, 3)) * np.arange(limit + 1), -1)
        order = np.argsort(worker_usd, kind="mergesort")
        cost, site = cost_curve(
            SlotSites(worker_usd, server_usd, most, with_server, order, traffic_usd), remote, limit
        )
        assert cost[0] == 0.0
        for n in range(1, limit + 1):
            ways = np.full(sites, np.inf)
            for p in np.flatnonzero(with_server >= 0):
                others = np.sort(np.repeat(np.delete(worker_usd, p), np.delete(most, p))) + traffic_usd
                for k in range(max(0, n - with_server[p]), min(n, len(others), remote[n]) + 1):
                    ways[p] = min(ways[p], server_usd[p] + (n - k) * worker_usd[p] + others[:k].sum())
            assert cost[n] == pytest.approx(ways.min(), rel=1e-9), (seed, n)
            first = int(np.argmax(ways <= ways.min() * (1 + 1e-9))) if np.isfinite(ways.min()) else -1
            assert site[n] == first, (seed, n)


@pytest.mark.parametrize("fractional", [False, True])
def test_flat_payments_never_fall_when_bandwidth_or_room_is_taken_away(fractional: bool) -> None:
    """Why waiting does not pay: each payment is an exact minimum over options that only become fewer."""
    dearer = 0
    for seed in range(600):
        task, market, _ = small(seed, fractional=fractional)
        rng, worth = np.random.default_rng((seed, 1)), np.full(len(market.room), 1e9)
        less = market._replace(
            room=(market.room * rng.uniform(0, 1, len(market.room))).astype(np.int64),
            free=np.maximum(market.free - 1000 * rng.integers(0, 2, market.free.shape), 0),
        )
        before, after = (flat_menu(task, each, worth, 1.0) for each in (market, less))
        assert (after.bound_usd >= before.bound_usd * (1 - 1e-9)).all(), seed
        dearer += bool((after.bound_usd > before.bound_usd).any())
        for offer in after.offers:
            wrong = faults(task, less, offer)  # except for the cost, which includes moves there
            assert all(fault.startswith("costs") for fault in wrong), (seed, wrong)
    assert dearer > 30


def test_27_chunks_on_27_sites_move_at_least_18_where_9_workers_train_them() -> None:
    task, market = _idle(27, 3, data=np.ones(27, dtype=np.int64))
    offer = menu(task, market, np.full(3, 1e6)).offers[0]
    assert not faults(task, market, offer)
    assert offer.workers.sum() == 9
    moved = sum(n for rows in offer.flows for source, target, n in rows if source != target)
    assert moved >= 18


@pytest.mark.parametrize("moves", [0, 5, 17])
def test_27_chunks_on_27_sites_are_trained_where_they_lie_if_fewer_than_18_can_be_moved(moves: int) -> None:
    task, market = _idle(27, 1, data=np.ones(27, dtype=np.int64), traffic_bytes=0)
    market = market._replace(room=np.full(1, moves * task.chunk_bytes))
    [offer] = menu(task, market, np.array([1e6])).offers
    assert not faults(task, market, offer)
    assert 27 - moves <= offer.workers.sum() <= 27


def test_bandwidth_just_under_the_traffic_keeps_all_workers_beside_the_server() -> None:
    task, market = _idle(3, 4)
    market = market._replace(room=np.full(4, 99_999_999))
    for offer in menu(task, market, np.full(4, 1e6)).offers:
        assert not faults(task, market, offer)
        for server, workers in zip(offer.servers, offer.workers, strict=True):
            assert workers.sum() == workers[server]


def test_a_full_site_is_left_alone_and_a_full_network_offers_nothing() -> None:
    task, market = _idle(3, 4)
    market.free[:, 0] = 0
    offer = menu(task, market, np.full(4, 1e6)).offers[0]
    assert offer.workers[:, 0].sum() == 0
    assert not faults(task, market, offer)
    assert menu(task, market._replace(free=np.zeros_like(market.free)), np.full(4, 1e6)).offers == ()


def test_the_server_avoids_the_site_with_most_workers_where_its_cpu_is_dear() -> None:
    task, market = _idle(2, 1, data=np.array([2, 1]), rate=1000, traffic_bytes=1_000_000)
    market.usd[:, 0, 0], market.usd[:, 0, 1], market.usd[:, 1, 1] = 0.05, 0.0, 0.5
    offer = menu(task, market, np.array([1e6])).offers[0]
    assert offer.workers[0].argmax() == 0
    assert offer.servers == (1,)


@pytest.mark.parametrize(("rate", "workers"), [(1900, 4), (500, 12), (1000, 6)])
def test_fractional_rates_round_workers_up_per_site(rate: int, workers: int) -> None:
    task, market = _idle(1, 8, rate=rate)
    offer = menu(task, market, np.full(8, 1e6)).offers[-1]
    assert not faults(task, market, offer)
    assert offer.workers.sum() == workers
