"""A whole slot: order of bounds, exact optimum and search; invariances; limits."""

from dataclasses import replace

import numpy as np
import pytest

from tests.systems.mlbroker.cases import permuted_sites, tiny
from tradewind.systems.mlbroker.kernels.bound import lower_bound
from tradewind.systems.mlbroker.kernels.costs import cost_parts
from tradewind.systems.mlbroker.kernels.limits import conflicts, decide, usage_of
from tradewind.systems.mlbroker.kernels.milp import solve_exactly
from tradewind.systems.mlbroker.kernels.rivals import central, cheapest_rent, local, selfish
from tradewind.systems.mlbroker.kernels.search import search
from tradewind.systems.mlbroker.kernels.slot import tiers
from tradewind.systems.mlbroker.workload.draw import FAMILIES, DrawSettings
from tradewind.systems.mlbroker.workload.slot import drawn_slot


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize(("seed", "tier_count"), [(0, 2), (1, 2), (2, 3)])
def test_chord_bound_column_bound_optimum_and_search_are_in_order(
    family: str, seed: int, tier_count: int
) -> None:
    case = tiny(family, seed, tier_count=tier_count)
    bound = lower_bound(case)
    exact = solve_exactly([case])
    answer = search(case)
    assert exact.optimal
    assert bound.chord <= bound.lower * (1 + 1e-9)
    assert bound.lower <= exact.cost * (1 + 1e-6)
    assert exact.cost <= answer.cost * (1 + 1e-6)
    assert answer.cost <= exact.cost * 1.02
    assert sum(cost_parts(case, answer.workers, answer.server)) == pytest.approx(answer.cost, rel=1e-9)
    assert sum(cost_parts(case, exact.workers[0], exact.servers[0])) == pytest.approx(exact.cost, rel=1e-6)


@pytest.mark.parametrize("family", FAMILIES)
def test_twenty_jobs_are_within_two_percent_of_the_bound(family: str) -> None:
    case = drawn_slot(DrawSettings(family=family), 1, 20)
    assert search(case).cost <= 1.02 * lower_bound(case).lower


@pytest.mark.parametrize("seed", range(3))
def test_a_slot_never_costs_more_than_selfish_or_central(seed: int) -> None:
    case = drawn_slot(DrawSettings(family="narrow"), seed, 20)
    cost = search(case).cost
    assert cost <= sum(cost_parts(case, *selfish(case))) * (1 + 1e-9)
    assert cost <= sum(cost_parts(case, *central(case))) * (1 + 1e-9)


def test_pooling_saves_five_percent_where_prices_are_close() -> None:
    ratios = []
    for seed in range(4):
        case = drawn_slot(DrawSettings(family="narrow"), seed, 24)
        ratios.append(search(case).cost / sum(cost_parts(case, *selfish(case))))
    assert np.mean(ratios) <= 0.95


def test_prices_times_a_hundred_change_no_decision() -> None:
    case = tiny("narrow", 3)
    scaled = replace(
        case,
        tiers=tiers(case.tiers.start, 100.0 * case.tiers.usd),
        move_usd=100.0 * case.move_usd,
        traffic_usd=100.0 * case.traffic_usd,
        deploy_usd=100.0 * case.deploy_usd,
    )
    a, b = search(case), search(scaled)
    assert np.array_equal(a.workers, b.workers)
    assert np.array_equal(a.server, b.server)
    assert b.cost == pytest.approx(100.0 * a.cost, rel=1e-9)


def test_the_order_of_sites_and_jobs_changes_no_cost() -> None:
    rng = np.random.default_rng(5)
    for family in ("paper", "trap"):
        case = tiny(family, 4, jobs=5, sites=5)
        cost = search(case).cost
        assert search(permuted_sites(case, rng.permutation(5))).cost == pytest.approx(cost, rel=1e-6)
        assert search(case.only(rng.permutation(5))).cost == pytest.approx(cost, rel=1e-6)


def test_thresholds_out_of_reach_leave_the_selfish_plan() -> None:
    case = tiny("narrow", 5)
    never = replace(case, tiers=tiers(case.tiers.start * 1e6, case.tiers.usd))
    assert search(never).cost == pytest.approx(sum(cost_parts(never, *selfish(never))), rel=1e-9)


def test_forbidden_sites_stay_empty_and_cost_is_still_optimal() -> None:
    case = tiny("narrow", 6)
    cheap = int(search(case).workers.sum(axis=0).argmax())
    ok = np.ones_like(case.worker_ok)
    ok[:, cheap] = False
    barred = replace(case, worker_ok=ok, server_ok=ok)
    answer = search(barred)
    assert answer.workers[:, cheap].sum() == 0
    assert (answer.server != cheap).all()
    assert answer.cost == pytest.approx(solve_exactly([barred]).cost, rel=5e-3)


def test_the_largest_number_of_workers_is_kept() -> None:
    case = tiny("cpu", 1)
    capped = replace(case, most_workers=case.needed)
    answer = search(capped)
    assert np.array_equal(answer.workers.sum(axis=1), case.needed)


@pytest.mark.parametrize("seed", range(3))
def test_capacity_is_kept_and_the_decision_stays_near_the_optimum(seed: int) -> None:
    case = tiny("narrow", seed)
    free = search(case)
    used = usage_of(case, free.workers, free.server)
    short = replace(case, capacity=np.maximum(0.6 * used, used.sum(axis=0) * 0.45))
    answer, left_out = decide(short)
    assert (usage_of(short, answer.workers, answer.server) <= short.capacity + 1e-9).all()
    assert len(left_out) == 0
    exact = solve_exactly([short])
    assert exact.cost * (1 - 1e-6) <= answer.cost <= 1.05 * exact.cost


def test_a_conflict_names_the_limits() -> None:
    case = tiny("cpu", 0)
    none_ok = np.zeros_like(case.worker_ok)
    assert "no site is allowed for them" in conflicts(replace(case, worker_ok=none_ok))[0].limits
    assert (
        "no site is allowed for its parameter server" in conflicts(replace(case, server_ok=none_ok))[0].limits
    )
    few = conflicts(replace(case, most_workers=np.ones(4, dtype=np.int64)))
    assert f"needs {case.needed[few[0].job]} workers, but at most 1" in few[0].limits
    assert "capacity" in conflicts(replace(case, capacity=np.full(case.capacity.shape, 3.0)))[0].limits
    assert conflicts(case) == []


def test_local_moves_no_data_and_oasis_pays_the_least_rent_per_job() -> None:
    case = drawn_slot(DrawSettings(family="paper"), 2, 10)
    moved, _, _, _ = cost_parts(case, *local(case, np.random.default_rng(0)))
    assert moved == 0.0
    price = case.tiers.usd[:, :, 0]
    workers, server = cheapest_rent(case, price)
    worker_usd = case.worker @ price.T
    assert np.array_equal(workers.argmax(axis=1), worker_usd.argmin(axis=1))
    assert np.array_equal(server, (case.server @ price.T).argmin(axis=1))


def test_the_exact_program_charges_a_return_twice() -> None:
    """One job, three slots, data alternating between two sites; staying at both would cost more than deploying again."""
    case = tiny("cpu", 2, jobs=1, sites=2)
    first = replace(
        case,
        data=np.array([[100.0, 0.0]]),
        move_usd=case.move_usd * 1e3,
        traffic_usd=case.traffic_usd * 1e3,
        deploy_usd=np.array([1.0]),
    )
    second = replace(first, data=np.array([[0.0, 100.0]]))
    proof = solve_exactly([first, second, first], [np.array([-1]), np.array([0]), np.array([0])])
    alone = [solve_exactly([s]).cost for s in (first, second, first)]
    assert proof.cost == pytest.approx(sum(alone), rel=1e-6)
