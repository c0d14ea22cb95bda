"""A measured world reports completion and progress; all other rules hold as in a simulation."""

from __future__ import annotations

from typing import Any

import pytest

from tests.builders import SLOT, decision, job, plan, run_at, scenario
from tradewind.audit import Audit
from tradewind.model.decision import Flow
from tradewind.model.job import Customer, Dataset, Fixed, Rounds, Stream
from tradewind.model.scenario import Scenario
from tradewind.model.view import Change, Event

ROUNDS = Rounds(count=5, compute_us=100)
SLOTS = Rounds(count=8, unit="worker-slot")
CHUNKS = Dataset(chunks=((0, 2),), chunk_bytes=10, epochs=1, chunk_epochs_per_worker_slot_milli=2000)


def begun(work: Any, *, measured: bool = True, step: Any = None, **more: Any) -> tuple[Audit, Scenario]:
    """An audit after the first instant of a job that runs on one worker."""
    given = scenario(
        [job(0, work=work, **more)], customers=[Customer(runtime_us=500)] if isinstance(work, Stream) else ()
    )
    audit = Audit(given.setup, given, measured=measured)
    assert audit.take([Event(0, "arrived", 0, 0, given.jobs[0])]) == ()
    assert audit.check(0, decision(plan(0, step or run_at(0)))) == ()
    return audit, given


def rules(audit: Audit, *events: Event) -> list[str]:
    return [violation.rule for violation in audit.take(events)]


@pytest.mark.parametrize("work", [Fixed(runtime_us=250), ROUNDS])
@pytest.mark.parametrize("at", [10, 250, 900])
def test_completion_of_fixed_jobs_and_rounds_is_measured(work: Any, at: int) -> None:
    assert rules(begun(work)[0], Event(at, "finished", 0)) == []
    due = 250 if isinstance(work, Fixed) else 500
    simulated = rules(begun(work, measured=False)[0], Event(at, "finished", 0))
    assert simulated == ([] if at == due else ["work.finish"])


def test_worker_slots_and_chunks_may_end_early_but_never_late() -> None:
    flows = run_at(0, until=SLOT, flows=(Flow(0, 0, 20),))
    for work, due, step in ((SLOTS, 8 * SLOT, None), (CHUNKS, SLOT, flows)):
        assert rules(begun(work, step=step)[0], Event(due - 1, "finished", 0)) == []
        assert rules(begun(work, step=step)[0], Event(due, "finished", 0)) == []
    assert rules(begun(SLOTS)[0], Event(8 * SLOT + 1, "finished", 0)) == ["work.finish"]


@pytest.mark.parametrize(
    ("value", "found"), [(0, []), (5_000_000, []), (5_000_001, ["work.done"]), (-1, ["work.done"])]
)
def test_measured_progress_lies_between_nothing_and_all(value: int, found: list[str]) -> None:
    assert rules(begun(ROUNDS)[0], Event(300, "ended", 0, value)) == found


def test_progress_that_is_counted_by_the_plan_is_still_recounted() -> None:
    audit, _ = begun(SLOTS)
    assert rules(audit, Event(300, "ended", 0, 4_000_000)) == ["work.done"]
    audit, _ = begun(SLOTS)
    assert rules(audit, Event(300, "ended", 0, 3_000_000)) == []


def test_a_measured_world_cannot_cancel_a_plan_without_a_failure() -> None:
    assert rules(begun(ROUNDS)[0], Event(300, "voided", 0, 0)) == ["time.void"]


def test_timers_of_a_measured_world_fire_only_when_set() -> None:
    audit, _ = begun(ROUNDS)
    assert rules(audit, Event(70, "timer")) == ["time.timer"]


def test_capacity_holds_in_a_measured_world() -> None:
    audit, _ = begun(ROUNDS, workers_max=9)
    assert [v.rule for v in audit.check(0, decision(plan(0, run_at(0, (0,), (9,)))))] == ["capacity.node"]


def test_a_job_that_was_given_up_counts_with_what_it_had_done() -> None:
    audit, _ = begun(ROUNDS)
    assert rules(audit, Event(300, "ended", 0, 2_000_000)) == []
    report = audit.close()
    assert report.violations == ()
    assert report.metrics["jobs_unfinished"] == 1.0


# ---------------------------------------------------------------------- changes without a script
DOWN = Change(30, "node_down", 1, 0, 0)
SCRIPTED = Change(50, "capacity", 0, 0, 3000)


def scripted(*, measured: bool = True) -> Audit:
    """An audit of a scenario with one change, at 50 us."""
    given = scenario([job(0)], changes=[SCRIPTED])
    audit = Audit(given.setup, given, measured=measured)
    assert audit.take([Event(0, "arrived", 0, 0, given.jobs[0])]) == ()
    return audit


def changed(number: int, change: Change) -> Event:
    return Event(change.at_us, "changed", -1, number, change)


def test_a_measured_world_may_lose_nodes_and_find_them_again_without_a_script() -> None:
    audit = scripted()
    assert rules(audit, changed(1, DOWN)) == []
    assert [v.rule for v in audit.check(30, decision(plan(0, run_at(30, (1,)))))] == ["places.up"]
    assert rules(audit, changed(0, SCRIPTED)) == []
    assert rules(audit, changed(2, Change(60, "node_up", 1, 0, 0))) == []
    assert audit.check(60, decision(plan(0, run_at(60, (1,))))) == ()


@pytest.mark.parametrize(
    ("number", "change"),
    [
        (0, DOWN),  # under the number of a scripted change
        (2, DOWN),  # not in turn
        (1, DOWN._replace(a=2)),  # no such node
        (1, DOWN._replace(a=-1)),
        (1, DOWN._replace(value=1)),
        (1, Change(30, "link_down", 0, 0, 0)),  # no such link
        (1, Change(30, "node_sideways", 0, 0, 0)),
        (1, Change(30, "capacity", 0, 0, 9000)),  # a fleet does not change limits or prices
        (1, Change(30, "price", 0, 0, 10)),
    ],
)
def test_a_measured_world_reports_nothing_else_without_a_script(number: int, change: Change) -> None:
    assert rules(scripted(), changed(number, change)) == ["time.change"]


def test_unscripted_changes_do_not_excuse_scripted_ones() -> None:
    audit = scripted()
    assert rules(audit, changed(1, DOWN)) == []
    assert rules(audit, Event(70, "finished", 0)) == ["time.change"]  # the one at 50 us was not reported
    audit = scripted()
    assert rules(audit, changed(1, DOWN)) == []
    assert rules(audit, changed(0, SCRIPTED._replace(value=1))) == ["time.change"]
    audit = scripted()
    assert rules(audit, changed(1, DOWN)) == []
    assert rules(audit, changed(1, DOWN)) == ["time.change"]  # told twice
    audit = scripted()
    assert rules(audit, Event(40, "changed", -1, 1, DOWN)) == ["time.change"]  # of another instant


def test_a_simulated_world_follows_its_script() -> None:
    assert rules(scripted(measured=False), changed(1, DOWN)) == ["time.change"]


def test_a_lost_node_cancels_the_plans_on_it_and_only_those() -> None:
    for voided, found in ((True, []), (False, ["places.up"])):
        audit = scripted()
        assert audit.check(0, decision(plan(0, run_at(0, (1,))))) == ()
        events = [changed(1, DOWN), *([Event(30, "voided", 0, 30)] if voided else [])]
        assert rules(audit, *events) == found
