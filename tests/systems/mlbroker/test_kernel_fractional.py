"""The regularised fractional step and the roundings."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import linprog

from tests.systems.mlbroker.cases import tiny
from tradewind.model.arrays import Floats
from tradewind.systems.mlbroker.kernels.fractional import fractional_step
from tradewind.systems.mlbroker.kernels.pairs import regulariser
from tradewind.systems.mlbroker.kernels.prices import chord_slopes
from tradewind.systems.mlbroker.kernels.rounding import (
    dependent,
    dependent_light,
    greedy,
    independent,
    round_over_jobs,
    round_over_sites,
)
from tradewind.systems.mlbroker.kernels.slot import Slot
from tradewind.systems.mlbroker.workload.draw import DrawSettings
from tradewind.systems.mlbroker.workload.slot import drawn_slot


def linear_value(case: Slot, i: int) -> float:
    """P_ft of one job without deployment as a linear program in q, y, s, g: constraints (8a), (8b), (8f), (8i), (8j)."""
    sites, need = case.shape[1], float(case.needed[i])
    price = chord_slopes(case)
    n = sites * sites
    cost = np.concatenate(
        [
            case.move_usd.ravel(),
            price @ case.worker[i],
            price @ case.server[i],
            case.traffic[i] * case.traffic_usd.ravel(),
        ]
    )
    zero, one = np.zeros((sites, n)), np.ones(sites)
    into, out = np.kron(one, np.eye(sites)), np.kron(np.eye(sites), one)
    eye, none = np.eye(sites), np.zeros((sites, sites))
    less = np.block([[into, -case.chunk[i] * eye, none, zero], [zero, none, need * eye, -into]])
    same = np.block([[out, none, none, zero], [zero, -eye, none, out]])
    total = np.concatenate([np.zeros(n + sites), one, np.zeros(n)])
    answer = linprog(
        cost,
        A_ub=less,
        b_ub=np.zeros(2 * sites),
        A_eq=np.vstack([same, total]),
        b_eq=np.concatenate([case.data[i], np.zeros(sites), [1.0]]),
    )
    assert answer.fun is not None
    return float(answer.fun)


@pytest.mark.parametrize("family", ["paper", "cpu", "narrow"])
def test_without_deployment_the_step_is_the_linear_relaxation(family: str) -> None:
    case = replace(tiny(family, 1), deploy_usd=np.zeros(4))
    step = fractional_step(case, np.zeros(case.data.shape))
    for i in range(4):
        assert step.parts[i].sum() == pytest.approx(linear_value(case, i), rel=1e-7)


def objective(case: Slot, v0: Floats, workers: Floats, server: Floats, parts: Floats, eps: float) -> float:
    """The same objective by hand from y and s; data and traffic as reported."""
    price = chord_slopes(case)
    v = (workers + server) / (case.needed[:, None] + 1.0)
    total = parts[:, 0].sum() + parts[:, 3].sum()
    total += (workers * (case.worker @ price.T)).sum() + (server * (case.server @ price.T)).sum()
    for i in range(case.shape[0]):
        total += sum(regulariser(v[i, r], v0[i, r], case.deploy_usd[i], eps) for r in range(case.shape[1]))
    return float(total)


@pytest.mark.parametrize("family", ["paper", "narrow", "deploy"])
def test_the_gap_is_small_and_the_parts_add_up(family: str) -> None:
    case = drawn_slot(DrawSettings(family=family), 1, 20)
    rng = np.random.default_rng(3)
    v0 = rng.random(case.data.shape) * (rng.random(case.data.shape) < 0.4)
    step = fractional_step(case, v0, eps=0.01, accuracy=1e-7)
    assert step.gap.sum() <= 1e-6 * step.parts.sum()
    assert np.allclose(step.workers.sum(axis=1), case.needed)
    assert np.allclose(step.server.sum(axis=1), 1.0)
    by_hand = objective(case, v0, step.workers, step.server, step.parts, 0.01)
    assert step.parts.sum() == pytest.approx(by_hand, rel=1e-9)


@pytest.mark.parametrize("known", [0.0, 0.15, 0.6])
def test_expensive_deployment_spreads_a_job_widely_and_is_solved_too(known: float) -> None:
    case = drawn_slot(DrawSettings(family="deploy", sites=30), 5, 40)
    rng = np.random.default_rng(4)
    v0 = rng.random(case.data.shape) * (rng.random(case.data.shape) < known)
    step = fractional_step(case, v0, eps=0.01, accuracy=1e-9)
    assert step.gap.sum() <= 1e-8 * step.parts.sum()
    if known == 0.0:
        assert np.median((step.workers > 1e-6).sum(axis=1)) > 8
    assert np.allclose(step.workers.sum(axis=1), case.needed)
    by_hand = objective(case, v0, step.workers, step.server, step.parts, 0.01)
    assert step.parts.sum() == pytest.approx(by_hand, rel=1e-9)


def test_servers_are_elsewhere_where_workers_and_servers_may_not_share_a_site() -> None:
    case = tiny("deploy", 1)
    server_ok = np.zeros_like(case.server_ok)
    server_ok[:, 0] = True
    apart = replace(case, server_ok=server_ok, worker_ok=~server_ok)
    step = fractional_step(apart, np.zeros(case.data.shape))
    assert np.allclose(step.server[:, 0], 1.0)
    assert (step.workers[:, 0] == 0.0).all()
    assert (step.parts[:, 3] > 0.0).all()
    assert step.gap.sum() <= 1e-6 * step.parts.sum()
    assert step.parts.sum() > fractional_step(case, np.zeros(case.data.shape)).parts.sum()


def test_a_server_that_is_much_cheaper_elsewhere_is_used_there() -> None:
    """Pairs of two sites are found although pairs of one site are solved first."""
    case = tiny("deploy", 1)
    heavy = replace(case, server=200.0 * case.server, traffic_usd=1e-3 * case.traffic_usd)
    step = fractional_step(heavy, np.zeros(case.data.shape))
    assert (step.parts[:, 3] > 0.0).any()
    assert step.gap.sum() <= 1e-6 * step.parts.sum()


def test_presence_pulls_a_job_towards_where_it_was() -> None:
    case = replace(tiny("trap", 1), deploy_usd=np.full(4, 50.0))
    free = fractional_step(case, np.zeros(case.data.shape))
    there = int(free.workers[0].argmin())
    v0 = np.zeros(case.data.shape)
    v0[0, there] = 1.0
    held = fractional_step(case, v0)
    assert held.workers[0, there] > free.workers[0, there]


def test_round2_keeps_three_tenths_three_tenths_and_four_tenths_at_one() -> None:
    rng = np.random.default_rng(0)
    for _ in range(200):
        assert round_over_sites(np.array([[0.3, 0.3, 0.4]]), rng).sum() == 1


def test_round2_rounds_up_with_the_fractional_part_as_probability() -> None:
    rng = np.random.default_rng(1)
    y = np.array([[1.3, 0.5, 2.2]])
    mean = np.mean([round_over_sites(y, rng)[0] for _ in range(4000)], axis=0)
    assert np.allclose(mean, y[0], atol=0.04)


def test_round1_keeps_the_demand_of_a_site_but_for_the_last_job() -> None:
    rng = np.random.default_rng(2)
    y, weight = rng.uniform(0, 3, (8, 1)), rng.integers(1, 5, 8).astype(float)
    for _ in range(100):
        rounded = round_over_jobs(y, weight, rng)
        more = float((weight @ (rounded - y))[0])
        assert -1e-6 <= more <= weight.max() + 1e-6


def test_round1_with_no_gpu_demand_at_all_rounds_down() -> None:
    y = np.array([[0.5, 1.5], [2.25, 0.0]])
    assert np.array_equal(round_over_jobs(y, np.zeros(2), np.random.default_rng(0)), np.floor(y))


def test_solver_noise_is_not_rounded_up_to_a_worker() -> None:
    y = np.array([[2.0 + 3e-8, 1e-9, 1.0 - 2e-8]])
    assert np.array_equal(round_over_sites(y, np.random.default_rng(0)), [[2, 0, 1]])


@pytest.mark.parametrize("rounding", [dependent, dependent_light, independent, greedy])
def test_every_rounding_leaves_enough_workers_and_one_server(rounding: object) -> None:
    assert callable(rounding)
    case = drawn_slot(DrawSettings(family="narrow"), 2, 15)
    step = fractional_step(case, np.zeros(case.data.shape))
    workers, server = rounding(case, step.workers, step.server, np.random.default_rng(4))
    assert (workers.sum(axis=1) >= case.needed).all()
    assert ((server >= 0) & (server < 15)).all()
    light, _ = dependent_light(case, step.workers, step.server, np.random.default_rng(4))
    assert np.array_equal(light.sum(axis=1), case.needed)
