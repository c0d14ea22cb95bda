"""Water-filling of sources over sites: it meets the optimality conditions and agrees with a general solver."""

from typing import Any

import numpy as np
import pytest
from scipy.optimize import Bounds, LinearConstraint, minimize

from tradewind.model.arrays import Floats
from tradewind.systems.mlbroker.kernels.water import WaterFilling, fill_all, start_filling

EPS, C = 0.01, 4.0


def started(seed: int, sources: int, sites: int, known: float, spread: float = 1.0) -> WaterFilling:
    """Sources with a total presence of 1; `known`: part of the sites with a presence in the previous slot."""
    rng = np.random.default_rng(seed)
    unit = spread * rng.random((sources, sites))
    amount = rng.dirichlet(np.ones(sources)) * sources
    v0 = rng.random(sites) * 0.3 * (rng.random(sites) < known)
    found: WaterFilling = start_filling(unit, amount, v0, C, EPS, 1.0 / sources)
    return found


def slopes(water: WaterFilling) -> Floats:
    """USD per worker that presence costs at each site."""
    above = np.log((water.v + EPS) / (water.v0 + EPS)) * C / np.log(1.0 + 1.0 / EPS)
    found: Floats = water.k * np.where(water.v > water.v0, above, 0.0)
    return found


def value(water: WaterFilling, brought: Floats) -> float:
    """The objective by hand, USD."""
    v, v0 = brought.sum(axis=0), water.v0
    phi = (v + EPS) * np.log((v + EPS) / (v0 + EPS)) + v0 - v
    scale = C / np.log(1.0 + 1.0 / EPS)
    return float((water.unit * brought).sum() / water.k + scale * np.where(v > v0, phi, 0.0).sum())


@pytest.mark.parametrize("known", [0.0, 0.2, 1.0])
@pytest.mark.parametrize("shape", [(1, 1), (1, 12), (5, 1), (4, 6), (9, 50)])
def test_all_presence_is_placed_and_optimal_for_new_jobs(shape: tuple[int, int], known: float) -> None:
    """With presence in the previous slot the result may be improvable; the caller checks the gap."""
    for seed in range(20):
        for spread in (0.01, 0.3, 3.0):
            water = started(seed, *shape, known, spread)
            fill_all(water, 1e-10)
            assert water.brought.min() >= 0.0
            assert np.allclose(water.brought.sum(axis=1), water.supply, rtol=1e-9)
            assert np.allclose(water.brought.sum(axis=0), water.v, atol=1e-12)
            usd = water.unit + slopes(water)
            paid = (water.brought * usd).sum()
            least = (water.supply * usd.min(axis=1)).sum()
            assert known > 0.0 or paid <= least * (1 + 1e-9)


@pytest.mark.parametrize("seed", range(6))
def test_a_general_solver_finds_the_same(seed: int) -> None:
    water = started(seed, 3, 4, 0.3)
    fill_all(water, 1e-12)
    ours = value(water, water.brought)
    each = np.kron(np.eye(3), np.ones(4))
    start = np.repeat(water.supply / 4, 4)

    def objective(x: Floats, *_: Any, **__: Any) -> float:
        return value(water, x.reshape(3, 4))

    theirs = minimize(
        objective,
        start,
        bounds=Bounds(0.0, 1.0),
        constraints=LinearConstraint(each, water.supply, water.supply),
        method="SLSQP",
        tol=1e-13,
    )
    assert theirs.success
    assert ours == pytest.approx(theirs.fun, rel=1e-6)
    assert ours <= theirs.fun * (1 + 1e-9)


def test_equal_costs_spread_presence_evenly_despite_cycles() -> None:
    water = start_filling(np.ones((6, 8)), np.full(6, 1.0), np.zeros(8), C, EPS, 1.0 / 6.0)
    fill_all(water, 1e-12)
    assert np.allclose(water.v, 1.0 / 8.0)
