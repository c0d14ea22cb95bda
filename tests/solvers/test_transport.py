"""Transport by shortest augmenting paths against a linear program."""

import numpy as np
import pytest
from scipy.optimize import linprog

from tradewind.model.arrays import Floats
from tradewind.solvers.transport import transport


def by_linear_program(cost: Floats, supply: Floats, capacity: Floats) -> float:
    sources, sinks = cost.shape
    rows = np.kron(np.eye(sources), np.ones(sinks))
    columns = np.kron(np.ones(sources), np.eye(sinks))
    finite = np.isfinite(cost).ravel()
    answer = linprog(
        np.where(finite, cost.ravel(), 0.0),
        A_ub=columns,
        b_ub=capacity,
        A_eq=rows,
        b_eq=supply,
        bounds=[(0, None if ok else 0) for ok in finite],
    )
    return float(answer.fun) if answer.fun is not None else float("inf")


@pytest.mark.parametrize("seed", range(60))
def test_the_shipment_costs_what_the_linear_program_says(seed: int) -> None:
    rng = np.random.default_rng(seed)
    sources, sinks = rng.integers(1, 9), rng.integers(1, 12)
    cost = rng.uniform(0, 1, (sources, sinks))
    if seed % 2:
        cost[rng.random((sources, sinks)) < 0.2] = np.inf
    supply = rng.uniform(0, 5, sources)
    capacity = rng.dirichlet(np.ones(sinks)) * supply.sum() * rng.uniform(0.95, 1.6)
    flow, bill = transport(cost, supply, capacity)
    expected = by_linear_program(cost, supply, capacity)
    if np.isinf(expected):
        assert np.isinf(bill)
        return
    assert bill == pytest.approx(expected, rel=1e-9)
    assert np.allclose(flow.sum(axis=1), supply)
    assert (flow.sum(axis=0) <= capacity + 1e-9).all()
    assert float((flow[flow > 0] * cost[flow > 0]).sum()) == pytest.approx(expected, rel=1e-9)


def test_ties_and_integer_amounts_do_not_cycle() -> None:
    cost = np.ones((4, 4))
    flow, bill = transport(cost, np.full(4, 3.0), np.full(4, 3.0))
    assert bill == pytest.approx(12.0)
    assert np.allclose(flow.sum(axis=0), 3.0)


def test_nothing_to_ship_costs_nothing() -> None:
    flow, bill = transport(np.ones((2, 3)), np.zeros(2), np.zeros(3))
    assert bill == 0.0
    assert not flow.any()
