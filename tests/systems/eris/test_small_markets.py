"""Claims about small extreme markets: a floor does not lose to none, and order of service counts what can be completed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.effort import tries
from tradewind.registry import policies, workloads
from tradewind.systems.eris.bound import exact, pooled_bound
from tradewind.systems.eris.kernels.column import Pooled
from tradewind.systems.eris.kernels.rollout import Queue, ranked, table
from tradewind.systems.eris.shared.replay import best_floor, replay
from tradewind.systems.eris.study.lies import LEARNED, MANY, try_lie
from tradewind.systems.eris.study.small import Played, settings, shares, small_market
from tradewind.worlds.simulate import simulate

TIGHT = {
    "size": "testbed", "sites": 1, "jobs": 3, "slots": 4, "last_arrival": 1, "cpu": 4.0, "gpu": 2.0, "ram_gb": 40.0,
    "chunks_per_worker": 40.0, "bandwidth_gb": 1.0,
}  # fmt: skip
"""One site with room for a server and one or two workers."""
RIVALS: Played = (("eris-preemptive", {}), ("tiresias", {}))


# ---------------------------------------------------------------------- floors


def test_a_floor_does_not_turn_away_the_only_job_that_fits() -> None:
    scenario = workloads.generate(
        "eris",
        {
            "size": "testbed", "sites": 2, "jobs": 5, "slots": 3, "last_arrival": 0, "cpu": 6.0, "gpu": 1.0,
            "ram_gb": 40.0, "chunks_per_worker": 8.0, "bandwidth_gb": 1.0, "scale_slots": 1.0,
        },
        31025,
    )  # fmt: skip
    assert simulate(scenario, policies.find("eris")).value == pytest.approx(844.25, abs=0.01)


@pytest.mark.parametrize("number", [2, 172, 280, 286, 307, 346, 358, 380])
def test_a_forecast_floor_is_not_worse_than_none_on_other_days_beyond_noise(number: int) -> None:
    floor = np.array(list(small_market(number).setup.forecast.values()))
    gains = []
    for seed in range(60):
        day = workloads.generate("eris", {**settings(number), "forecast": False}, seed)
        gains.append(replay(day.setup, day.jobs, floor) - replay(day.setup, day.jobs, np.zeros(4)))
    assert np.mean(gains) >= -2.0 * np.std(gains) / len(gains) ** 0.5


def test_where_a_floor_lost_on_the_day_itself_it_gains_on_others() -> None:
    """That single markets earn less with their floor is noise: on days by which nobody chose it, it earns more."""
    lost, gains = 0, []
    for number in (280, 307, *range(40)):
        market = small_market(number)
        floor, none = np.array(list(market.setup.forecast.values())), np.zeros(4)
        if replay(market.setup, market.jobs, floor) >= replay(market.setup, market.jobs, none) - 1e-9:
            continue
        lost += 1
        for seed in range(500, 530):
            day = workloads.generate("eris", {**settings(number), "forecast": False}, seed)
            plain = replay(day.setup, day.jobs, none)
            gains.append((replay(day.setup, day.jobs, floor) - plain) / max(plain, 1.0))
    assert lost > 2
    assert np.mean(gains) > 2.0 * np.std(gains) / len(gains) ** 0.5


def test_eris_earns_more_than_first_come_first_served_in_the_mean_of_small_extreme_markets() -> None:
    names: Played = (("eris", {}), ("fcfs", {}))
    found = np.array([row for n in range(16) if (row := shares(small_market(n), names)) is not None])
    assert found[:, 0].mean() > found[:, 1].mean() + 0.02


def test_a_replay_earns_what_the_policy_earns() -> None:
    earned = set()
    for number in range(8):
        scenario = small_market(number, forecast=False)
        for text in ("0,0,0,0", "0,20,0,5", "3,60,1,0"):
            floor = np.array([float(part) for part in text.split(",")])
            run = simulate(scenario, policies.find("eris"), {"floor": text})
            assert replay(scenario.setup, scenario.jobs, floor) == pytest.approx(run.value, rel=1e-9)
            earned.add(run.value)
    assert len(earned) > 6


@pytest.mark.parametrize(("sites", "scarce"), [(4, True), (40, False)])
def test_a_floor_is_forecast_where_resources_are_scarce(sites: int, scarce: bool) -> None:
    scenario = workloads.generate("eris", {"size": "testbed", "jobs": 8, "slots": 20, "sites": sites}, 1)
    assert (scenario.setup.forecast["price_gpu"] > 0) is scarce


def test_a_floor_that_sells_nothing_on_past_days_is_not_taken() -> None:
    days = [workloads.generate("eris", {**settings(2), "forecast": False}, seed) for seed in range(4)]
    prices = np.array([0.0, 1e6, 0.0, 0.0])
    assert not best_floor(days[0].setup, [day.jobs for day in days], prices).any()
    assert best_floor(days[0].setup, [day.jobs for day in days], np.zeros(4)).tolist() == [0.0] * 4


@pytest.mark.parametrize("kind", ["utility", "late"])
def test_a_lie_does_not_pay_where_the_floor_is_learned(kind: str) -> None:
    tried = [try_lie(seed, kind, LEARNED, **MANY) for seed in range(tries(10, 30))]
    assert max(each.gain for each in tried) <= 1e-6
    assert min(each.gain for each in tried) < -1.0


# ---------------------------------------------------------------------- order of service


def pooled(**changes: Any) -> Pooled:
    """A bid of four worker-slots over ten units of one resource and little bandwidth."""
    plain = Pooled(
        use=np.array([1.0, 0.1]),
        server=np.zeros(1),
        beside=10,
        widest=10,
        units=4,
        start=0,
        worth=np.array([10.0, 5.0, 1.0]),
    )
    return plain._replace(**changes)


def order_of(*jobs: Pooled) -> list[int]:
    count = len(jobs)
    queue = Queue(np.arange(count), np.array([job.units for job in jobs]), np.zeros(count, np.int64))
    found: list[int] = ranked(table(jobs), queue, np.array([10.0, 0.05]), -1).tolist()
    return found


def test_workers_beside_their_server_need_no_bandwidth_in_the_order_of_service() -> None:
    quiet = pooled(use=np.array([1.0, 0.0]), worth=np.array([3.0, 2.9, 2.8]))
    assert order_of(quiet, pooled()) == [1, 0]
    assert order_of(quiet, pooled(beside=1)) == [0, 1]


def test_a_job_that_cannot_be_completed_any_more_is_served_last() -> None:
    assert order_of(pooled(worth=np.array([90.0, 80.0, 70.0]), widest=1), pooled()) == [1, 0]


@pytest.mark.parametrize(
    ("number", "why"),
    [
        (21, "bandwidth is less than the traffic of a worker"),
        (181, "the same on three sites"),
        (195, "the same, and jobs are short"),
        (218, "the same, and jobs are long"),
        (314, "the same, and chunks are many"),
        (171, "alone a job takes so long that it is worth a hundredth of its initial worth"),
        (374, "the same on one site"),
        (382, "the dearest job cannot be completed before the horizon"),
    ],
)
def test_preemptive_service_is_not_behind_tiresias(number: int, why: str) -> None:
    found = shares(small_market(number, forecast=False), RIVALS)
    assert found is not None
    assert found[0] >= 0.999 * found[1], why


def test_preemptive_service_is_ahead_of_tiresias_in_the_mean_where_bandwidth_is_tiny() -> None:
    narrow = [n for n in range(160) if settings(n)["bandwidth_gb"] == 0.05]
    rows = [row for n in narrow if (row := shares(small_market(n, forecast=False), RIVALS)) is not None]
    found = np.array(rows)
    assert len(found) >= 20
    assert found[:, 0].mean() > found[:, 1].mean()
    assert found.max() <= 1 + 1e-9


# ---------------------------------------------------------------------- the bound


def test_a_server_takes_its_part_of_a_site_in_the_bound() -> None:
    part = []
    for seed in range(12):
        scenario = workloads.generate("eris", {**TIGHT, "forecast": False}, seed)
        best, top = exact(scenario), pooled_bound(scenario).bound
        assert best.optimal
        assert best.value <= top * (1 + 1e-9)
        part.append(best.value / top)
    assert np.mean(part) > 0.95
