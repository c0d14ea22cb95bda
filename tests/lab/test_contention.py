"""Rings that contend for links: with reservations the speeds are those of the audited run, without they fill the links."""

from __future__ import annotations

import numpy as np
import pytest

from tradewind.engine.intervals import ints
from tradewind.lab import contention
from tradewind.registry import policies, workloads
from tradewind.worlds.simulate import simulate

SIZE = {"servers": 8, "slots": 8, "jobs": 24, "family": "tight", "utility": "sqrt", "ring_time": True}


def test_max_min_fills_the_narrowest_direction_first() -> None:
    legs = np.array([[1.0, 0.0], [1.0, 1.0], [0.0, 0.0]])
    rate = contention.max_min(np.array([10.0, 3.0]), legs, np.ones(3))
    assert rate.tolist() == [7.0, 3.0, np.inf], (
        "the second is held by the second link, the first takes the rest"
    )


def test_a_ring_that_crosses_a_link_twice_loads_it_twice() -> None:
    rate = contention.max_min(np.array([9.0]), np.array([[2.0], [1.0]]), np.ones(2))
    assert rate.tolist() == [3.0, 3.0]


def test_idle_bandwidth_comes_on_top_of_what_is_reserved() -> None:
    legs, asked = np.array([[1.0, 0.0], [1.0, 1.0]]), np.array([4.0, 2.0])
    assert contention.top_up(np.array([10.0, 3.0]), legs, asked).tolist() == [7.0, 3.0]


@pytest.mark.parametrize("policy", ["gadget", "ring-las"])
def test_with_reservations_every_job_gets_what_the_audited_run_says(policy: str) -> None:
    given = workloads.generate("gadget", SIZE, 1)
    run = simulate(given, policies.find(policy), seed=1)
    done, below = contention.done_of(given, run, contention.reserve)
    assert done == pytest.approx(ints(run, "outcomes", "work") / 1e6, abs=2e-3)
    assert below == 0
    assert contention.worth(given, done) == pytest.approx(run.metrics["utility"], rel=1e-6)
    more, _ = contention.done_of(given, run, contention.top_up)
    assert (more >= done - 1e-9).all()


def test_rings_that_ignore_the_links_overload_them_and_become_slower() -> None:
    given = workloads.generate("gadget", SIZE, 1)
    blind = simulate(contention.without_links(given), policies.find("gadget"), seed=1)
    planned, _ = contention.done_of(given, blind, contention.reserve)
    shared, below = contention.done_of(given, blind, contention.max_min)
    assert below > 0
    assert shared.sum() < planned.sum()
