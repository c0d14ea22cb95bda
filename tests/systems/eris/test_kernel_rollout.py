"""Claims about the order of service of `eris-preemptive`: it looks ahead, and only if that pays."""

from __future__ import annotations

import numpy as np
import pytest

from tradewind.model.errors import InputError
from tradewind.registry import policies, workloads
from tradewind.systems.eris.kernels.column import Pooled
from tradewind.systems.eris.kernels.rollout import Bids, Futures, Queue, best_order, futures, ranked, table
from tradewind.worlds.simulate import simulate

NOBODY = Futures(np.zeros((1, 0), np.int64), np.zeros((1, 0), np.int64))
WHOLE = np.array([10.0, 100.0])


def bids(*jobs: tuple[int, list[float]]) -> Bids:
    """Bids with these worker-slots and worths by delay, on 10 units of one resource."""
    use, server = np.array([1.0, 0.0]), np.zeros(1)
    return table(
        [
            Pooled(use=use, server=server, beside=1, widest=10, units=n, start=0, worth=np.array(worth))
            for n, worth in jobs
        ]
    )


def all_new(count: int, units: list[int]) -> Queue:
    return Queue(np.arange(count), np.array(units), np.zeros(count, np.int64))


def test_a_job_that_can_wait_lets_one_go_first_that_is_worth_less_and_cannot() -> None:
    found = bids((10, [10.0, 9.9, 9.8]), (10, [9.0, 0.0, 0.0]))
    queue = all_new(2, [10, 10])
    assert ranked(found, queue, WHOLE, -1).tolist() == [0, 1]
    assert best_order(found, queue, NOBODY, 2, WHOLE).tolist() == [1, 0]


def test_the_default_order_stays_if_all_jobs_fit() -> None:
    found = bids((4, [1.0, 0.9]), (4, [2.0, 0.1]))
    assert best_order(found, all_new(2, [4, 4]), NOBODY, 1, WHOLE).tolist() == [1, 0]


def test_expected_arrivals_decide_which_job_goes_first() -> None:
    # The first loses least by one slot of waiting, but all by two. So it waits, unless a better bid takes the next slot.
    found = bids((10, [10.0, 9.5, 0.0]), (10, [9.9, 9.0, 8.6]), (10, [50.0, 0.0, 0.0]))
    queue = Queue(np.array([0, 1]), np.array([10, 10]), np.zeros(2, np.int64))
    comes = Futures(np.array([[2]]), np.array([[0]]))
    assert best_order(found, queue, NOBODY, 2, WHOLE).tolist() == [1, 0]
    assert best_order(found, queue, comes, 3, WHOLE).tolist() == [0, 1]


def test_futures_have_as_many_bids_as_came_so_far_in_order() -> None:
    drawn = futures(np.random.default_rng(3), 400, 5, 1.5, 7)
    came = drawn.after >= 0
    assert abs(came.sum() / 400 - 7.5) < 0.4
    assert set(drawn.bid[came].tolist()) == set(range(7))
    for after in drawn.after:
        slots = after[after >= 0]
        assert (np.diff(slots) >= 0).all()
        assert slots.max(initial=0) < 5


def test_trying_orders_out_earns_more_where_two_resources_are_scarce() -> None:
    gains = []
    for seed in range(501, 505):
        scenario = workloads.generate(
            "eris", {"size": "crowded", "jobs": 120, "slots": 60, "forecast": False}, seed
        )
        tried = simulate(scenario, policies.find("eris-preemptive")).value
        gains.append(tried / simulate(scenario, policies.find("eris-preemptive"), {"samples": 0}).value - 1)
    assert np.mean(gains) > 0.003, gains


def test_a_negative_number_of_futures_is_refused() -> None:
    scenario = workloads.generate("eris", {"size": "testbed"}, 501)
    with pytest.raises(InputError, match="samples"):
        simulate(scenario, policies.find("eris-preemptive"), {"samples": -1})
