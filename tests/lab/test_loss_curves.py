"""Curves learned from losses: reports find the curve, and a scheduler without knowledge does not see the true one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tradewind.lab import loss_curves
from tradewind.lab.loss_curves import HALVES, Curves, Reports, curve, removed, scenario_of, spec_of
from tradewind.lab.study import Effort
from tradewind.model.job import Rounds
from tradewind.model.units import MICRO
from tradewind.worlds.simulate import simulate

QUICK = Effort(quick=True, seeds=1)
GIVEN, CURVES = scenario_of(QUICK, 1, 3)


def test_reports_find_the_curve_of_a_job() -> None:
    job = GIVEN.jobs[0]
    assert isinstance(job.work, Rounds)
    reports = Reports(CURVES, 1)
    prior = reports.chances(job, 0)
    assert prior == pytest.approx(np.full(len(HALVES), 1 / len(HALVES)))
    true = int(np.argmin(np.abs(HALVES - CURVES.half[0])))
    for step in range(1, job.work.count + 1):
        chance = reports.chances(job, step * MICRO)
    near = slice(max(0, true - 3), true + 4)
    assert chance[near].sum() > 0.9
    assert reports.chances(job, job.work.count * MICRO) == pytest.approx(chance), "a report counts once"


def test_a_believed_curve_is_the_jobs_own_where_its_value_is_certain() -> None:
    job, height = GIVEN.jobs[3], float(CURVES.height[3])
    own = curve(job, height, removed(loss_curves.POINTS, float(CURVES.half[3])))
    assert own == job.utility
    assert own.value(loss_curves.iterations(job)) == pytest.approx(height / (1 + CURVES.half[3]))


@pytest.mark.parametrize("way", [loss_curves.TYPICAL, loss_curves.EVEN])
def test_without_knowledge_decisions_do_not_depend_on_the_true_curves(way: str) -> None:
    swapped = CURVES.half[::-1].copy()
    jobs = tuple(
        replace(job, utility=curve(job, float(h), removed(loss_curves.POINTS, float(half))))
        for job, h, half in zip(GIVEN.jobs, CURVES.height, swapped, strict=True)
    )
    other = replace(GIVEN, jobs=jobs)
    params = {"rounds": 0}
    runs = [
        simulate(GIVEN, spec_of(way, CURVES, 1), params, seed=1),
        simulate(other, spec_of(way, Curves(CURVES.height, swapped), 1), params, seed=1),
    ]
    assert runs[0].tables["places"] == runs[1].tables["places"]
    assert runs[0].value != runs[1].value


def test_learned_curves_earn_more_than_no_diminishing_returns_and_less_than_the_bound() -> None:
    table = {(r["case"], r["way"]): r for r in loss_curves.rows_of(QUICK, 2)}
    for case in loss_curves.CASES:
        even, learned, known = (
            float(table[case, way]["of bound"])
            for way in (loss_curves.EVEN, loss_curves.LEARNED, loss_curves.KNOWN)
        )
        assert even < learned <= known * 1.005 <= 1.006, case
