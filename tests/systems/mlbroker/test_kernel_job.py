"""One job at linear prices: the search and the proof against HiGHS."""

from dataclasses import replace

import numpy as np
import pytest

from tests.systems.mlbroker.cases import tiny
from tradewind.systems.mlbroker.kernels.costs import cost_parts
from tradewind.systems.mlbroker.kernels.job import floors, solve
from tradewind.systems.mlbroker.kernels.milp import solve_exactly
from tradewind.systems.mlbroker.kernels.pool import add_responses, empty_pool, own_cost, priced_job, terms
from tradewind.systems.mlbroker.kernels.slot import JobArrays, Slot, slot_without_limits, tiers
from tradewind.systems.mlbroker.kernels.tree import cheapest, prove


def alone(case: Slot, i: int) -> Slot:
    """Job i with every tier at list price: linear."""
    one = case.only(np.array([i]))
    return replace(one, tiers=tiers(one.tiers.start[..., :1], one.tiers.usd[..., :1]))


@pytest.mark.parametrize("family", ["paper", "cpu", "narrow", "trap", "deploy"])
@pytest.mark.parametrize("seed", range(3))
def test_the_proof_finds_what_highs_finds(family: str, seed: int) -> None:
    case = tiny(family, seed)
    for i in range(case.shape[0]):
        one = alone(case, i)
        job = priced_job(terms(one, 1.0), 0, np.ascontiguousarray(one.tiers.usd[:, :, 0]))
        lower, cost, server, workers = prove(job, 3, 20_000)
        exact = solve_exactly([one])
        assert exact.optimal
        assert cost == pytest.approx(exact.cost, rel=1e-6)
        assert lower == pytest.approx(cost, rel=1e-8)
        assert sum(cost_parts(one, workers[None], np.array([server]))) == pytest.approx(cost, rel=1e-9)
        assert floors(job).min() <= cost * (1 + 1e-12)
        assert solve(job, 3)[0] >= lower * (1 - 1e-12)


@pytest.mark.parametrize(
    ("family", "seed", "i", "sites", "above"),
    [("cpu", 166, 2, 5, 0.00294), ("narrow", 279, 2, 4, 0.00025), ("narrow", 375, 2, 3, 0.00697)],
)
def test_plans_on_few_sites_are_optimal_where_the_search_alone_is_known_to_miss(
    family: str, seed: int, i: int, sites: int, above: float
) -> None:
    one = alone(tiny(family, seed, sites=sites), i)
    job = priced_job(terms(one, 1.0), 0, np.ascontiguousarray(one.tiers.usd[:, :, 0]))
    best = solve_exactly([one], gap=1e-9).cost
    lower, cost, _, _ = prove(job, 3, 20_000)
    assert lower == pytest.approx(best, rel=1e-8)
    assert cost == pytest.approx(best, rel=1e-8)
    assert 1e-6 < solve(job, 3)[0] / best - 1 <= above + 1e-5
    found, server, workers = cheapest(job, 3)
    assert found == pytest.approx(best, rel=1e-8)
    assert sum(cost_parts(one, workers[None], np.array([server]))) == pytest.approx(best, rel=1e-8)
    pool = empty_pool(1, 4)  # and this is what the policy's pool is given
    add_responses(
        terms(one, 1.0), pool, np.ascontiguousarray(one.tiers.usd[:, :, 0]), 3, np.zeros(1, np.int64)
    )
    own = pool.own[0, 0]
    assert own == pytest.approx(own_cost(terms(one, 1.0), 0, server, workers), rel=1e-9)


@pytest.mark.parametrize("sites", [2, 3, 5])
@pytest.mark.parametrize("family", ["cpu", "narrow"])
def test_the_search_is_within_one_percent_of_the_proof_on_random_jobs(family: str, sites: int) -> None:
    for seed in (0, 1, 2, 3, 4, 5, 6, 8, 9, 11, 12, 13):  # draw four jobs in both families
        case = tiny(family, seed, sites=sites)
        for i in range(case.shape[0]):
            one = alone(case, i)
            job = priced_job(terms(one, 1.0), 0, np.ascontiguousarray(one.tiers.usd[:, :, 0]))
            lower, cost, _, _ = prove(job, 3, 20_000)
            assert lower == pytest.approx(cost, rel=1e-8)
            assert cost * (1 - 1e-9) <= solve(job, 3)[0] <= 1.01 * cost
            assert cheapest(job, 3)[0] == pytest.approx(cost, rel=1e-9)


def crafted(worker_usd: tuple[float, ...], traffic: float, data: tuple[float, ...]) -> Slot:
    """One job, two sites, one resource; a GB costs 1 USD to move, a worker takes 10 GB."""
    job = JobArrays(
        worker=np.array([[1.0]]),
        server=np.array([[0.0]]),
        chunk=np.array([10.0]),
        traffic=np.array([traffic]),
        deploy_usd=np.array([0.0]),
        data=np.array([data]),
    )
    price = tiers(np.zeros((2, 1, 1)), np.array(worker_usd).reshape(2, 1, 1))
    return slot_without_limits(job, np.array([[0.0, 1.0], [1.0, 0.0]]), price)


def test_every_remote_worker_pays_its_traffic() -> None:
    case = crafted((1.0, 1.0), traffic=3.0, data=(15.0, 20.0))
    # Two workers at each site, the server at the first: the two remote ones exchange 3 GB each.
    assert cost_parts(case, np.array([[2, 2]]), np.array([0])) == (0.0, 4.0, 0.0, 6.0)
    # So does a surplus worker.
    assert cost_parts(case, np.array([[2, 3]]), np.array([0]))[3] == 9.0


def test_expensive_traffic_gathers_the_job_at_one_site() -> None:
    spread = crafted((1.0, 1.0), traffic=0.1, data=(20.0, 20.0))
    gathered = crafted((1.0, 1.0), traffic=100.0, data=(20.0, 20.0))
    for case, sites in ((spread, 2), (gathered, 1)):
        job = priced_job(terms(case, 1.0), 0, np.ascontiguousarray(case.tiers.usd[:, :, 0]))
        _, _, workers = solve(job, 2)
        assert (workers > 0).sum() == sites


def test_a_job_without_data_keeps_its_server_and_no_workers() -> None:
    case = crafted((5.0, 1.0), traffic=1.0, data=(0.0, 0.0))
    case = replace(case, server=np.array([[1.0]]))
    lower, cost, server, workers = prove(
        priced_job(terms(case, 1.0), 0, np.ascontiguousarray(case.tiers.usd[:, :, 0])), 2, 10
    )
    assert (lower, cost, server, workers.sum()) == (1.0, 1.0, 1, 0)


def test_the_last_bits_of_floating_point_need_no_extra_worker() -> None:
    case = crafted((1.0, 1.0), traffic=0.0, data=(0.1, 0.2))
    assert replace(case, chunk=np.array([0.1])).needed[0] == 3
    whole = replace(case, data=np.array([[5e12, 1.0]]), chunk=np.array([5e11]))
    assert whole.needed[0] == 11  # one byte over ten full workers is real
