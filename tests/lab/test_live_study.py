"""The measured study: the measured plan is the simulated one, and judges on made-up rows."""

from __future__ import annotations

import importlib.util
import math
from itertools import pairwise
from types import SimpleNamespace
from typing import cast

import pytest

from tradewind.lab.live import brokerage as live_brokerage
from tradewind.lab.live import estimates as live_estimates
from tradewind.lab.live import reservation as live_reservation
from tradewind.lab.live import rings as live_rings
from tradewind.lab.live import sites as live_sites
from tradewind.lab.live import trainers as live_trainers
from tradewind.lab.live import transport as live_transport
from tradewind.lab.live import workers as live_workers
from tradewind.lab.live.sharing import Exchanger, Flow, fair_rates, shared_s
from tradewind.lab.study import Effort, Row
from tradewind.lab.testbed.networks import network
from tradewind.model.errors import InputError, TradewindError
from tradewind.model.result import Run
from tradewind.registry import policies
from tradewind.report.figures.theme import LIGHT, style, svg
from tradewind.worlds.simulate import simulate
from tradewind.worlds.testbed import network as testbed
from tradewind.worlds.testbed.wan import GOODPUT, Wan, WanLink

QUICK = Effort(quick=True, seeds=3)
TRIES = 5


def curve(schedule: str, job: str, shift: float) -> list[Row]:
    same: Row = {"job": job, "schedule": schedule, "workers": 2.0, "sent_mb": 1.0}
    return [
        {**same, "iteration": 10.0 * k, "loss": 2.0 / k, "accuracy": 0.1 * k + shift} for k in range(1, 6)
    ]


def curves(shift: float) -> list[Row]:
    jobs = list(live_workers.JOBS)
    rows = [r for job in jobs for r in curve(live_workers.FIXED, job, 0.0)]
    return rows + [
        r for job in jobs for r in curve(live_workers.CHANGING, job, shift if job == jobs[1] else 0.0)
    ]


def test_fixed_and_changing_workers_are_drawn_on_the_same_axes() -> None:
    with style():
        drawn = svg(live_workers.paint(curves(0.0), LIGHT, 760), "workers", "made up")
    assert drawn.count("as eris decides") == len(live_workers.JOBS)


def test_the_trained_schedule_is_one_of_eris_and_changes_workers_and_server() -> None:
    slots = live_workers.decided()
    assert slots == live_workers.decided()
    assert len({len(ranks) for ranks in slots}) > 2
    assert len({ranks[0] for ranks in slots}) > 1
    assert max(len(ranks) for ranks in slots) - 1 <= live_workers.BATCH


@pytest.mark.skipif(bool(testbed.unavailable()), reason="no network namespaces here")
def test_the_schedule_of_eris_trains_on_the_testbed_as_well_as_two_workers() -> None:
    pytest.importorskip("torch")
    found = live_workers.rows(QUICK)
    judged = live_workers.judge(found, "")
    print(judged)
    assert judged.holds
    slots = live_workers.decided()
    for job in {str(r["job"]) for r in found}:
        mine = [r for r in found if r["job"] == job and r["schedule"] == live_workers.CHANGING]
        assert [r["workers"] for r in mine[::5]] == [len(ranks) - 1 for ranks in slots]
        for row, ranks in zip(mine[::5], slots, strict=True):  # a transfer per other site, both ways
            remote, sent = len(set(ranks)) - 1, float(row["sent_mb"])
            assert sent > 2 * 10 * 0.06 * remote if remote else sent < 0.01


def lines(off: float) -> list[Row]:
    """Rounds of all ways of sharing that are off by so much; planned by phases, they take longer than planned."""
    found: list[Row] = []
    for sharing in live_reservation.WAYS:
        planned = 0.5 if sharing in live_reservation.MEET else 1.0
        found.append(
            {
                "network": "mesh, 4 sites", "draw": 0, "job": 0, "sharing": sharing, "server": "a", "rounds": 3,
                "planned_s": planned, "predicted_s": 1.0, "low_s": 1.0, "high_s": 1.0, "measured_s": 1.0 + off,
                "fastest_s": 0.9, "slowest_s": 1.2, "difference_percent": 100 * off,
            }
        )  # fmt: skip
    return found


def test_fair_rates_fill_the_scarcest_link_first() -> None:
    rates = {(0, 1): 10.0, (1, 2): 30.0}
    assert fair_rates([Flow((0, 1, 2)), Flow((0, 1)), Flow((1, 2))], rates) == [5.0, 5.0, 25.0]


def test_flows_with_reserved_rates_get_them_at_most_and_share_what_is_short_in_proportion() -> None:
    rates = {(0, 1): 10.0, (1, 2): 30.0}
    assert fair_rates([Flow((0, 1), 4.0), Flow((0, 1, 2), 6.0), Flow((1, 2), 20.0)], rates) == [
        4.0,
        6.0,
        20.0,
    ]
    assert fair_rates([Flow((0, 1), 10.0), Flow((0, 1, 2), 5.0), Flow((1, 2), 90.0)], rates) == pytest.approx(
        [10 - 30 * 5 / 95, 30 * 5 / 95, 30 * 90 / 95]
    )


def test_alone_a_job_takes_as_long_as_planned_and_two_that_share_one_direction_twice_as_long() -> None:
    wan = Wan(name="line", sites=("a", "b"), links=(WanLink(0, 1, 8_000_000, 8_000_000),))
    job = Exchanger([Flow((0, 1))], round(500_000 * GOODPUT))
    assert shared_s(wan, [job]) == [pytest.approx((1.0, 1.0, 1.0), rel=1e-5)]
    other = Exchanger([Flow((1, 0))], round(500_000 * GOODPUT))
    full = Exchanger([Flow((0, 1), 8e6)], round(500_000 * GOODPUT))
    against = Exchanger([Flow((1, 0), 8e6)], round(500_000 * GOODPUT))
    for pair in ([job, job], [job, other], [full, against]):  # a push meets a pull, or another push
        for low, middle, high in shared_s(wan, pair):
            assert 1.0 - 1e-5 <= low <= middle <= high <= 2.0 + 1e-5
            assert high > low  # it depends on when they began
    half = Exchanger([Flow((0, 1), 4e6)], round(500_000 * GOODPUT))
    assert (
        shared_s(wan, [half, half]) == [pytest.approx((2.0, 2.0, 2.0), rel=1e-5)] * 2
    )  # both may have it always


def test_while_a_job_pauses_between_rounds_others_have_the_links_alone() -> None:
    wan = Wan(name="line", sites=("a", "b"), links=(WanLink(0, 1, 8_000_000, 8_000_000),))
    busy = Exchanger([Flow((0, 1))], round(500_000 * GOODPUT))
    rare = busy._replace(pause_s=100.0)
    ((_, middle, _),) = shared_s(wan, [rare])
    assert middle == pytest.approx(1.0, rel=1e-5)  # a pause is no part of a round
    meets, alone = shared_s(wan, [busy, busy])[0], shared_s(wan, [busy, rare])[0]
    assert meets[1] > 1.2
    assert alone[1] == pytest.approx(1.0, rel=1e-5)


def test_a_time_within_the_predicted_range_is_right() -> None:
    assert [live_reservation.outside(s, 1.0, 2.0) for s in (1.0, 1.5, 2.0)] == [0.0] * 3
    assert live_reservation.outside(0.9, 1.0, 2.0) == pytest.approx(-0.1)
    assert live_reservation.outside(2.2, 1.0, 2.0) == pytest.approx(0.1)


def blocks(off: float) -> list[Row]:
    """A block per transport; the last is off the formula by so much."""
    return [
        {
            "transport": transport, "links": 3, "latency_ms": 0.0, "predicted_s": 1.0, "fastest_s": 1.0,
            "measured_s": 1.0 + (off if transport == live_transport.TRANSPORTS[-1] else 0.0),
        }
        for transport in live_transport.TRANSPORTS
    ]  # fmt: skip


@pytest.mark.skipif(bool(testbed.unavailable()), reason="no network namespaces here")
def test_relays_take_as_long_as_the_formula_of_their_transport_says() -> None:
    sizes, short, best = (800_000, live_transport.SHORT_BYTES), 0.0318, dict[object, float]()
    for _ in range(TRIES):  # a busy machine only makes blocks longer
        found = live_transport.rows(QUICK)
        keys = [(r["transport"], r["latency_ms"], r["bytes"]) for r in found]
        assert keys == [
            *((transport, 0.0, 800_000) for transport in live_transport.TRANSPORTS),
            *((transport, 10.0, size) for transport in live_transport.TRANSPORTS for size in sizes),
        ]
        for key, row in zip(keys, found, strict=True):
            print(row)
            predicted, fastest = float(row["predicted_s"]), float(row["fastest_s"])
            assert fastest > 0.9 * predicted
            if not row["latency_ms"]:  # with latency, TCP must first learn how much a path holds
                best[key] = min(best.get(key, math.inf), fastest / (1.1 * predicted))
            elif row["bytes"] == live_transport.SHORT_BYTES:
                assert 0.03 < predicted < short
                best[key] = min(best.get(key, math.inf), fastest / (2 * short))
        if max(best.values()) < 1:
            break
    assert max(best.values()) < 1


def rings(ours: float) -> list[Row]:
    """A planned ring that takes so long, and two in random order."""
    times = [(live_rings.PLANNED, ours), (live_rings.RANDOM, 0.7), (live_rings.RANDOM, 0.5)]
    return [
        {"ring": ring, "order": "a > b", "hops_on_a_link": 1, "predicted_s": 0.5, "measured_s": seconds}
        for ring, seconds in times
    ]


def brokers(policy: str, column: str, value: float) -> list[Row]:
    """A run per policy, all alike but for one column of one policy."""
    return [
        {
            "seed": 0, "policy": name, **dict.fromkeys(("cost", "rent", "hours", "waiting", "discount"), 2.0),
            "missed": 0.0, **({column: value} if name == policy else {}),
        }
        for name in live_brokerage.POLICIES
    ]  # fmt: skip


def estimated(policy: str, share: float) -> list[Row]:
    """A policy that gets 0.8 of what it would with true times by declarations, and so much by estimates."""
    shares = dict(zip(live_estimates.WAYS, (0.8, share, 1.0), strict=True))
    return [
        {"policy": policy, "seed": 0, "times": way, "objective": "utility", "value": value, "of_truth": value}
        for way, value in shares.items()
    ]


@pytest.mark.skipif(bool(testbed.unavailable()), reason="no network namespaces here")
def test_the_policies_of_the_real_experiment_run_on_real_processes() -> None:
    found = live_brokerage.rows(QUICK)
    assert [row["policy"] for row in found] == list(live_brokerage.POLICIES)
    for row in found:
        print(row)
        assert 0 < float(row["hours"]) < 3 * float(row["planned hours"])
        assert 0 < float(row["waiting"]) < float(row["hours"])
        parts = [float(row[part]) for part in ("rent", "transfer", "deploy", "traffic")]
        assert sum(parts) == pytest.approx(float(row["cost"]))
    by_name = {str(row["policy"]): row for row in found}
    assert by_name["central"]["traffic"] == by_name["local"]["transfer"] == 0.0
    assert float(by_name["local"]["traffic"]) > 0


def test_hours_of_data_that_was_missed_count_like_those_of_the_rest() -> None:
    columns = {"bytes": [300, 100, 400], "processed_us": [5, -1, 9]}
    run = SimpleNamespace(tables={"shards": columns})
    assert live_brokerage.trained_share(cast(Run, run)) == 700 / 800
    columns["processed_us"] = [-1, -1, -1]
    with pytest.raises(TradewindError, match="too busy"):
        live_brokerage.trained_share(cast(Run, run))


def test_the_experiment_is_a_part_of_the_simulated_one_with_programs() -> None:
    scenario = live_brokerage.experiment(0, 2, 2, 5.0)
    assert [job.command[-1] for job in scenario.jobs] == ["tradewind.lab.live.instance"] * len(scenario.jobs)
    assert set(scenario.volumes.slot.tolist()) <= {0, 1}
    run = simulate(scenario, policies.find("mlbroker"))
    assert run.metrics["cost_rent_usd"] > 0


@pytest.mark.parametrize("policy", ["srtf", "gadget"])
def test_wrong_declarations_cost_less_with_estimates(policy: str) -> None:
    found = live_estimates.compared(policy, 1, quick=True)
    assert set(found) == set(live_estimates.WAYS)
    better = max if policy == "gadget" else min
    assert better(found["declared"], found["measured"]) == found["measured"]


@pytest.mark.skipif(bool(testbed.unavailable()), reason="no network namespaces here")
def test_the_ring_of_a_plan_is_twice_as_fast_as_random_orders_that_cross_the_core_twice() -> None:
    found = live_rings.rows(QUICK)
    print(found)
    assert live_rings.judge(found, "gadget").holds
    assert [row["hops_on_a_link"] for row in found] == [1, 2, 2, 2]


@pytest.mark.skipif(bool(testbed.unavailable()), reason="no network namespaces here")
def test_reserved_rates_give_the_planned_times_to_several_jobs_at_once() -> None:
    best = dict[object, float]()
    for _ in range(TRIES):  # a busy machine is only slower
        found = live_reservation.measured(network("mesh", scale=0.01, sites=4), 0, 1.5)
        assert len(found) >= 11  # both ways, not all jobs may fit at once
        for row in found:
            print(row)
            low, high, fastest = (float(row[name]) for name in ("low_s", "high_s", "fastest_s"))
            assert (low < high) == (row["sharing"] in live_reservation.MEET)
            if row["sharing"] not in live_reservation.MEET:
                assert fastest > 0.9 * low
            key = row["sharing"], row["job"]
            best[key] = min(best.get(key, math.inf), fastest / high)
        if max(best.values()) < 1.1:
            break
    assert max(best.values()) < 1.1
    together = [r for r in found if r["sharing"] == live_reservation.TOGETHER]
    # what one job pushes meets what another pulls: the plan counts them apart
    assert max(float(r["high_s"]) / float(r["planned_s"]) for r in together) > 1.1


def trained(off: float) -> list[Row]:
    """Two jobs, one of which takes so much longer than predicted."""
    return [
        {
            "network": "mesh, 4 sites", "draw": 0, "job": job, "site": "a", "iterations": 18, "predicted_s": 1.5,
            "measured_s": 1.5 * (1 + job * off), "error_s": 0.01,
        }
        for job in (0, 1)
    ]  # fmt: skip


@pytest.mark.skipif(bool(testbed.unavailable()), reason="no network namespaces here")
def test_trainers_under_the_live_loop_take_the_time_that_their_plans_predict() -> None:
    pytest.importorskip("torch")
    best = dict[object, float]()
    for _ in range(TRIES):  # a busy machine only makes iterations longer
        found = live_trainers.measured(network("mesh", scale=0.01, sites=4), 0, 5)
        assert {row["job"] for row in found} == {0, 1, 2}
        for row in found:
            print(row)
            part = float(row["measured_s"]) / float(row["predicted_s"])
            assert part > 0.9
            key = row["job"], row["site"]
            best[key] = min(best.get(key, math.inf), part)
        if max(best.values()) < 1.5:
            break
    assert max(best.values()) < 1.5


@pytest.mark.parametrize("policy", live_sites.POLICIES)
def test_the_plan_on_the_testbed_is_the_one_that_a_policy_chose_in_simulation(policy: str) -> None:
    wan = network("b4", scale=live_sites.SCALE)
    plan = live_sites._chosen(wan, policy, 1)
    assert sorted(plan.sites) == list(range(12))
    assert {path[-1] for path in plan.paths} == {plan.sites[0]}
    wires = wan.rates()
    assert all(hop in wires for path in plan.paths for hop in pairwise(path))
    best = live_sites._chosen(wan, "apsp", 0).predicted_s(wan, 10**6)
    assert plan.predicted_s(wan, 10**6) >= best * (1 - 1e-9)
    busiest = max(sum(hop in pairwise(p) for p in plan.paths) / bps for hop, bps in wires.items())
    assert plan.predicted_s(wan, 10**6) * GOODPUT == pytest.approx(16e6 * busiest)


def test_without_pytorch_or_root_the_figures_say_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(InputError, match="make install EXTRAS=train"):
        live_workers.rows(QUICK)
    monkeypatch.setattr(testbed, "unavailable", lambda: "run it with sudo")
    with pytest.raises(InputError, match="sudo"):
        live_sites.rows(QUICK)
