"""Every rule on decisions: a violation is named exactly, and nothing of the decision is applied."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from tests.audit.planted import PLANTED, Planted
from tests.builders import Stage, job, plan, run_at, scenario


def state(stage: Stage) -> Any:
    """Everything that the audit keeps."""
    audit = stage.audit
    records = {
        index: {
            name: copy.deepcopy(getattr(r, name))
            for name in {*vars(type(r)), *vars(r)}
            if name[0] != "_" and name != "rules"
        }
        for index, r in audit._records.items()
    }
    booked = {
        (row, slot): n for row, slots in audit._capacity.booked.items() for slot, n in slots.items() if n
    }  # a row that was filled and emptied again has not changed
    return records, list(audit._capacity.open), booked, audit._timer, dict(audit._awaited), audit._decisions


@pytest.mark.parametrize("planted", PLANTED, ids=lambda p: f"{p.rule} {p.note}".strip())
def test_a_planted_violation_is_named_exactly_and_nothing_of_it_is_applied(planted: Planted) -> None:
    stage = Stage(planted.given, slots=True)
    stage.wait()
    for at, earlier in planted.before.items():
        stage.until(at)
        stage.act(*earlier.plans, verdicts=earlier.verdicts)
    stage.until(planted.at)
    before = state(stage)
    found = stage.audit.check(stage.now, planted.bad)
    assert len(found) == 1, found
    first = found[0]
    assert (first.rule, first.job, first.node, first.slot) == (
        planted.rule, planted.job, planted.node, planted.slot,
    )  # fmt: skip
    assert first.amount == pytest.approx(planted.amount)
    assert first.detail
    assert state(stage) == before
    assert stage.audit.check(stage.now, planted.good) == ()
    assert planted.good.wake_us is not None or state(stage) != before


def test_one_bad_plan_keeps_the_good_ones_of_the_same_decision_out() -> None:
    stage = Stage(scenario([job(0, workers_max=4), job(1, workers_max=9)]))
    stage.wait()
    before = state(stage)
    found = stage.check(plan(0, run_at(0, (0,), (4,))), plan(1, run_at(0, (1,), (5,))))
    assert [(v.rule, v.job, v.node, v.amount) for v in found] == [("capacity.node", "j1", "b", 1.0)]
    assert state(stage) == before
    assert stage.check(plan(0, run_at(0, (0,), (4,))), plan(1, run_at(0, (1,), (4,)))) == ()


def test_all_bad_plans_of_a_decision_are_named() -> None:
    stage = Stage(scenario([job(0), job(1)]))
    stage.wait()
    found = stage.check(plan(0, run_at(0, (7,))), plan(1, run_at(5)))
    assert [(v.rule, v.job) for v in found] == [("form.node", "j0"), ("time.grid", "j1")]


def test_two_jobs_may_swap_places_in_one_decision() -> None:
    stage = Stage(scenario([job(0, workers_max=4), job(1, workers_max=4), job(2, arrive_us=10)]))
    stage.wait()
    stage.act(plan(0, run_at(0, (0,), (4,))), plan(1, run_at(0, (1,), (4,))))
    stage.wait()
    assert stage.check(plan(0, run_at(10, (1,), (4,))))[0].rule == "capacity.node"
    stage.act(plan(0, run_at(10, (1,), (4,))), plan(1, run_at(10, (0,), (4,))))
