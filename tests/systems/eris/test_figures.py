"""Claims of the Eris paper about welfare, and how they compare with the bound and elastic rivals."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from tradewind.api import compare
from tradewind.registry import policies, workloads
from tradewind.systems.eris.bound import bound, exact
from tradewind.systems.eris.study.lies import tiny
from tradewind.systems.eris.study.runs import ELASTIC, FIXED, PAPER, outcome
from tradewind.worlds.simulate import simulate

MINE = (PAPER, "eris-printed", *FIXED, *ELASTIC)


def test_no_rival_and_no_printed_mechanism_beats_the_optimum() -> None:
    for seed in range(3):
        scenario = tiny(seed, sites=2, jobs=3, slots=4, last_arrival=1, chunks_per_worker=40.0, gpu=1.0)
        best = exact(scenario)
        assert best.optimal
        for name in MINE:
            assert simulate(scenario, policies.find(name)).value <= best.value + 1e-6


@pytest.mark.parametrize("name", MINE)
def test_random_markets_keep_every_rule_and_the_bound(name: str) -> None:
    for seed in range(6):
        rate = (0.5, 1.0, 1.9)[seed % 3]
        gb = (0.02, 0.2, 5.0)[seed // 2]
        scenario = tiny(seed, chunks_per_worker=rate, gpu=4.0, uneven=0.4, bandwidth_gb=gb)
        limit = bound(scenario)
        assert limit is not None
        assert simulate(scenario, policies.find(name)).value <= limit.value + 1e-6


def test_welfare_does_not_fall_as_jobs_are_added() -> None:
    sums = [
        sum(
            outcome(workloads.generate("eris", {"size": "crowded", "jobs": jobs}, seed), "eris").welfare
            for seed in (1, 2)
        )
        for jobs in (100, 200, 300)
    ]
    assert all(b > a for a, b in pairwise(sums))


def test_welfare_of_the_printed_mechanism_falls_as_jobs_are_added() -> None:
    params = {"size": "crowded", "sites": 25, "bandwidth_gb": 10.0, "forecast": False}
    few, many = (
        np.mean(
            [
                outcome(workloads.generate("eris", {**params, "jobs": n}, seed), PAPER).welfare
                for seed in (1, 2, 3)
            ]
        )
        for n in (100, 150)
    )
    assert many < few


def test_the_claimed_lead_depends_on_the_rivals_worker_counts() -> None:
    scenarios = [
        workloads.generate("eris", {"sites": 25, "jobs": 40, "forecast": False}, seed) for seed in (1, 2)
    ]
    paper = sum(outcome(s, PAPER).welfare for s in scenarios)
    for name, elastic in zip(FIXED, ELASTIC, strict=True):
        few = sum(outcome(s, name, {"workers": 8}).welfare for s in scenarios)
        free = sum(outcome(s, elastic).welfare for s in scenarios)
        assert paper > 1.3 * few
        assert paper < 1.02 * free


def test_every_comparison_of_eris_shows_the_bound_and_the_elastic_rivals() -> None:
    assert [p.spec.name for p in policies.with_rivals(["fcfs", ELASTIC[1]])] == [
        "fcfs",
        ELASTIC[1],
        ELASTIC[0],
        ELASTIC[2],
    ]
    assert [p.asked for p in policies.with_rivals(["fcfs", ELASTIC[1]])] == [True, True, False, False]
    assert [p.spec.name for p in policies.with_rivals(["fifo", "las"])] == ["fifo", "las"]
    shown = compare(tiny(1), ["eris"])
    assert [run.policy for run in shown.runs] == ["eris", *ELASTIC]
    assert all(run.bound is not None for run in shown.runs)
