"""Streams whose slots may be left out, and fixed jobs that may not be interrupted."""

from __future__ import annotations

from typing import Any

import pytest

from tests.builders import decision, job, plan, play, run_at, scenario, setup
from tradewind import api
from tradewind.files.scenario_file import dump, load
from tradewind.model.decision import Decision, Flow, Step
from tradewind.model.errors import Refused, ScenarioError
from tradewind.model.job import Customer, Dataset, Fixed, Stream
from tradewind.model.scenario import Scenario
from tradewind.model.utility import Utility
from tradewind.model.view import Change

STREAM = Stream(bytes_per_worker_slot=10**9)
WORTH = Utility(of="served", shape="piecewise", args=(0.0, -3.0, 1.0, 5.0, 2.0, 8.0))
GIGA = 10**9


def streaming(*, runtime_us: int = 400, changes: tuple[Change, ...] = (), **more: Any) -> Scenario:
    """2 GB in slot 1, 1 GB in slots 2 and 3; 3 USD lost where a slot is left out."""
    rows = [(0, 1, 0, 2 * GIGA), (0, 2, 0, GIGA), (0, 3, 0, GIGA)]
    one = job(0, work=STREAM, workers_max=2, **({"utility": WORTH} | more))
    return scenario([one], customers=[Customer(runtime_us=runtime_us)], volumes=rows, changes=changes)


def served(slot: int, gb: int) -> Step:
    return Step(slot * 100, slot * 100 + 100, (0,), (gb,), flows=(Flow(0, 0, gb * GIGA),))


def value(given: Scenario, script: dict[int, Step]) -> float:
    run = play(given, {at: decision(plan(0, step)) for at, step in script.items()})
    assert not api.check(given, run)
    return run.metrics["value_usd"]


def test_a_stream_is_worth_the_sum_over_its_slots_and_a_slot_left_out_costs_the_value_at_zero() -> None:
    assert value(streaming(), {100: served(1, 2), 200: served(2, 1), 300: served(3, 1)}) == 8 + 5 + 5
    assert value(streaming(), {100: served(1, 2), 300: served(3, 1)}) == 8 - 3 + 5
    assert value(streaming(), {}) == -9


def test_a_slot_whose_node_fails_counts_as_left_out() -> None:
    given = streaming(changes=(Change(150, "node_down", 0, 0, 0), Change(180, "node_up", 0, 0, 0)))
    assert value(given, {100: served(1, 2), 200: served(2, 1), 300: served(3, 1)}) == -3 + 5 + 5


def test_a_stream_that_leaves_within_a_slot_ends_the_slot() -> None:
    assert value(streaming(runtime_us=350), {100: served(1, 2), 200: served(2, 1), 300: served(3, 1)}) == 18


def test_a_plan_may_be_taken_back_but_a_slot_is_never_served_in_part() -> None:
    given = streaming()
    half = Step(100, 200, (0,), (2,), flows=(Flow(0, 0, GIGA),))
    with pytest.raises(Refused, match="unprocessed"):
        play(given, {100: decision(plan(0, half))})
    first = Decision(plans=(plan(0, served(1, 2)),), wake_us=150)
    taken_back = {100: first, 150: decision(plan(0))}
    assert play(given, taken_back).metrics["value_usd"] == -9


def test_without_such_a_bid_every_slot_must_be_served() -> None:
    with pytest.raises(Refused, match="not processed"):
        play(streaming(utility=None), {100: decision(plan(0, served(1, 2)))})


def test_only_streams_have_a_worth_of_what_is_served() -> None:
    with pytest.raises(ScenarioError, match="for streams"):
        scenario([job(0, utility=WORTH)])
    with pytest.raises(ScenarioError, match="for streams"):
        scenario([job(0, work=STREAM)], customers=[Customer(runtime_us=400, valuation=WORTH)])


GANG = Fixed(runtime_us=250)


@pytest.mark.parametrize(
    ("second", "rule"),
    [
        (run_at(300), "plan.restarts"),
        (run_at(200, (1,)), "plan.moves"),
        (run_at(200, (0,), (2,)), "plan.moves"),
    ],
)
def test_a_fixed_job_without_restarts_neither_pauses_nor_moves(second: Step, rule: str) -> None:
    given = scenario([job(0, work=GANG, restarts=0, workers_max=2)])
    script = {0: decision(plan(0, run_at(0, until=200))), second.from_us: decision(plan(0, second))}
    with pytest.raises(Refused) as error:
        play(given, script)
    assert error.value.violations[0].rule == rule
    again = {0: script[0], 200: decision(plan(0, run_at(200)))}
    assert play(given, again).metrics["jobs_completed"] == 1


def test_after_a_failure_it_may_start_anywhere() -> None:
    given = scenario([job(0, work=GANG, restarts=0)], changes=[Change(150, "node_down", 0, 0, 0)])
    script = {0: decision(plan(0, run_at(0))), 200: decision(plan(0, run_at(200, (1,))))}
    assert play(given, script).metrics["jobs_completed"] == 1


def test_restarts_are_for_fixed_work_and_machines() -> None:
    work = Dataset(chunks=((0, 1),), chunk_bytes=1, epochs=1, chunk_epochs_per_worker_slot_milli=1000)
    with pytest.raises(ScenarioError, match="fixed work"):
        scenario([job(0, work=work, restarts=0)])


def test_files_keep_both(tmp_path: object) -> None:
    given = scenario(
        [streaming().jobs[0], job(1, work=GANG, restarts=0)],
        customers=[Customer(runtime_us=400), Customer()],
        where=setup(objective="welfare_usd"),
    )
    path = f"{tmp_path}/s.yaml"
    dump(given, path)
    assert load(path).jobs == given.jobs
