"""Claims about Eris: truthful, individually rational, feasible, and never above the optimum."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.effort import tries
from tradewind.engine.intervals import taken_offers
from tradewind.model.utility import Utility
from tradewind.registry import policies
from tradewind.systems.eris.bound import FEW, bound, exact, pooled_bound
from tradewind.systems.eris.kernels.bound import BoundEffort
from tradewind.systems.eris.policy.posted import unsupported_reason
from tradewind.systems.eris.study.lies import KINDS, NARROW, SOLD, WINDOW, market, payoffs, tiny, try_lie
from tradewind.worlds.simulate import simulate

FLOOR = {"floor": "0,6,0,10"}
MARKETS = ("eris", "fcfs")


@pytest.mark.parametrize("kind", KINDS)
def test_a_lie_never_pays_and_an_honest_buyer_never_loses(kind: str) -> None:
    tried = [try_lie(seed, kind) for seed in range(tries(25, 100))]
    assert max(each.gain for each in tried) <= 1e-6
    assert min(each.least_payoff for each in tried) >= 0.0
    assert min(each.gain for each in tried) < -1.0  # the lies do matter


@pytest.mark.parametrize("kind", KINDS)
def test_a_lie_does_not_pay_where_a_slot_cannot_carry_all_data_of_a_job(kind: str) -> None:
    tried = [try_lie(seed, kind, SOLD, **NARROW) for seed in range(tries(15, 40))]
    assert max(each.gain for each in tried) <= 1e-6
    assert min(each.least_payoff for each in tried) >= 0.0
    assert min(each.gain for each in tried) < -1.0


@pytest.mark.parametrize("kind", KINDS)
def test_a_lie_does_not_pay_with_a_rolling_window(kind: str) -> None:
    tried = [try_lie(seed, kind, SOLD, **WINDOW) for seed in range(tries(15, 40))]
    assert max(each.gain for each in tried) <= 1e-6
    assert min(each.least_payoff for each in tried) >= 0.0
    assert min(each.gain for each in tried) < -1.0


@pytest.mark.parametrize(
    ("kind", "paid"), [("utility", False), ("data", False), ("epochs", False), ("late", True)]
)
def test_with_a_window_shorter_than_the_patience_of_bids_only_waiting_can_pay(kind: str, paid: bool) -> None:
    tried = [try_lie(seed, kind, SOLD, window_slots=2) for seed in range(20)]
    assert (max(each.gain for each in tried) > 1e-6) is paid


def test_the_late_arrivals_that_once_gained_gain_nothing() -> None:
    # Seeds on which a late bidder found a cheaper way while moves were chosen near-exactly.
    assert max(try_lie(seed, "late").gain for seed in (1024, 1120, 1286, 1350)) <= 1e-6


def test_no_payment_exceeds_the_worth_of_completion() -> None:
    for seed in range(15):
        scenario = tiny(seed)
        for name in MARKETS:
            assert all(p > 0 for p in payoffs(scenario, simulate(scenario, policies.find(name))).values())


def test_every_accepted_job_finishes_when_promised() -> None:
    for seed in range(10):
        scenario = tiny(seed, chunks_per_worker=(1.9, 0.5, 8.0)[seed % 3], gpu=4.0)
        run = simulate(scenario, policies.find("eris"), FLOOR)
        taken = np.flatnonzero(taken_offers(run)).tolist()
        promised = {run.tables["offers"]["job"][row]: run.tables["offers"]["finish_us"][row] for row in taken}
        events = run.tables["events"]
        rows = zip(events["kind"], events["job"], events["at_us"], strict=True)
        assert {job: at for kind, job, at in rows if kind == "finished"} == promised


def test_nothing_is_sold_in_a_slot_that_the_horizon_cuts() -> None:
    sold = 0
    for seed in range(8):
        scenario = tiny(seed, slots=6, last_arrival=3, gpu=1.0, scale_slots=20.0)
        setup = replace(scenario.setup, horizon_us=scenario.setup.horizon_us - scenario.setup.slot_us // 3)
        for name in ("eris", "eris-paper", "fcfs"):
            run = simulate(replace(scenario, setup=setup), policies.find(name))
            assert max(map(int, run.tables["offers"]["finish_us"]), default=0) <= setup.horizon_us
            assert run.metrics["jobs_completed"] == list(map(str, run.tables["events"]["kind"])).count(
                "accepted"
            )
            sold += int(run.metrics["jobs_completed"])
    assert sold > 20


@pytest.mark.parametrize("scale", [2.0**-40, 1.0, 2.0**40])
def test_whether_a_bid_rises_does_not_depend_on_its_scale(scale: float) -> None:
    scenario = tiny(1)
    shapes = {
        "rises": (0.0, 1.0, 5.0, 2.0),
        # a line that ends at 0.2999999999999998 and continues at 0.3
        "stays": (0.0, 2.9, 1.0, 0.3, 9.0, 0.3),
    }
    why = {}
    for name, points in shapes.items():
        reported = tuple(x * (scale if n % 2 else 1.0) for n, x in enumerate(points))
        bid = Utility(of="delay_slots", shape="piecewise", args=reported)
        why[name] = unsupported_reason(scenario.setup, replace(scenario.jobs[0], utility=bid))
    assert why == {"rises": "has a utility that rises with the delay", "stays": ""}


def test_bound_is_above_the_optimum_and_the_optimum_above_every_policy() -> None:
    for seed in range(4):
        scenario = tiny(seed, sites=2, jobs=3, slots=4, last_arrival=1, chunks_per_worker=40.0, gpu=1.0)
        best, limit = exact(scenario), bound(scenario)
        assert best.optimal
        assert limit is not None
        assert limit.value >= best.value - 1e-6
        for name in (*MARKETS, "eris-preemptive"):
            assert simulate(scenario, policies.find(name)).value <= best.value + 1e-6


def test_bound_is_close_to_the_optimum_of_random_tiny_markets_and_never_below() -> None:
    tight, loose = [], []
    for seed in range(12):
        scenario = tiny(
            seed,
            sites=2,
            jobs=4,
            slots=5,
            last_arrival=1,
            chunks_per_worker=(40.0, 25.5, 60.0)[seed % 3],
            gpu=1.0,
            bandwidth_gb=(0.1, 0.3, 1.0, 20.0)[seed % 4],
        )
        best = exact(scenario)
        assert best.optimal
        tight.append(best.value / pooled_bound(scenario).bound)
        loose.append(best.value / pooled_bound(scenario, BoundEffort(rounds=60)).bound)
    assert max(tight) <= 1 + 1e-9
    assert np.mean(tight) >= 0.99
    assert np.mean(loose) < 0.98  # what the cuts are for


def test_fewer_rounds_leave_a_weaker_bound_that_is_still_valid() -> None:
    weaker = 0
    for seed in range(6):
        scenario = tiny(seed, sites=2, jobs=12, gpu=1.0)
        whole = pooled_bound(scenario)
        assert whole.bound >= whole.master * (
            1 - 1e-9
        )  # the value of the restricted LP is a lower bound on it
        for effort in (BoundEffort(rounds=1), FEW):
            few = pooled_bound(scenario, effort).bound
            assert few >= whole.bound
            weaker += few > whole.bound * 1.001
        assert simulate(scenario, policies.find("eris-preemptive")).value <= whole.bound
    assert weaker > 0


def test_gamma_of_one_without_floor_is_first_come_first_served() -> None:
    for seed in range(5):
        scenario = tiny(seed)
        same = simulate(scenario, policies.find("eris"), {"gamma": 1.0, "floor": "none"})
        assert same.tables["offers"] == simulate(scenario, policies.find("fcfs")).tables["offers"]


@pytest.mark.parametrize("name", ["eris", "fcfs", "eris-preemptive"])
def test_fifty_random_markets_keep_every_rule(name: str) -> None:
    done = [simulate(market(seed), policies.find(name)).metrics["jobs_completed"] for seed in range(50)]
    assert sum(done) > 50
