"""A measured world reports completion and progress; all other rules hold as in a simulation."""

from __future__ import annotations

from typing import Any

import pytest

from tests.builders import SLOT, decision, job, plan, run_at, scenario
from tradewind.audit import Audit
from tradewind.model.decision import Flow
from tradewind.model.job import Customer, Dataset, Fixed, Rounds, Stream
from tradewind.model.scenario import Scenario
from tradewind.model.view import Event

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
