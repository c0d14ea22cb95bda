"""The measured study: the measured plan is the simulated one, and judges on made-up rows."""

from __future__ import annotations

import importlib.util
from itertools import pairwise

import pytest

from tradewind.lab.live import sites as live_sites
from tradewind.lab.live import workers as live_workers
from tradewind.lab.study import Effort, Row
from tradewind.lab.testbed.networks import network
from tradewind.model.errors import InputError
from tradewind.report.figures.theme import LIGHT, style, svg
from tradewind.worlds.testbed import network as testbed
from tradewind.worlds.testbed.wan import GOODPUT

QUICK = Effort(quick=True, seeds=3)


def curve(schedule: str, job: str, shift: float) -> list[Row]:
    same: Row = {"job": job, "schedule": schedule, "workers": 2.0}
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
    assert drawn.count("changed every slot") == len(live_workers.JOBS)


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
