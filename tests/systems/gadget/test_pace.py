"""Ring time by equation (1) acts on progress, under the audit; and a utility that falls stops its job."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.builders import scenario
from tests.systems.gadget.test_policy import NAMES, ring_job, small, tree
from tradewind.engine.intervals import ints
from tradewind.model.decision import Step
from tradewind.model.errors import ScenarioError
from tradewind.model.job import Job, Rounds
from tradewind.model.progress import rate
from tradewind.model.units import MICRO, OPEN
from tradewind.registry import policies
from tradewind.systems.gadget.shared.pace import pace_of
from tradewind.systems.gadget.study.objectives import LATE, as_printed, peak_of
from tradewind.worlds.simulate import simulate

WHERE = tree(((4,), (2, 2)), link=10**9, trunk=10**9)


def slow(compute_us: int = 20) -> Job:
    """A gang of four: 20 us of computation, and 1000 bits in a ring at 100 Mbit/s."""
    work = Rounds(count=60, unit="worker-round", compute_us=compute_us, comm="ring")
    return replace(ring_job(0, workers=4, least=4, band=10**8, model_bytes=125), work=work)


def test_n_workers_do_n_rounds_in_the_time_of_one_which_depends_on_the_ring() -> None:
    assert rate(WHERE, slow(), Step(0, OPEN, (2,), (1,))) == (MICRO, 20)
    assert rate(WHERE, slow(), Step(0, OPEN, (2,), (4,))) == (4 * MICRO, 20)
    assert rate(WHERE, slow(), Step(0, OPEN, (2, 3), (2, 2))) == (4 * MICRO, 20 + 15)


def test_a_round_of_one_worker_must_take_time() -> None:
    with pytest.raises(ScenarioError, match="compute_us is 0"):
        scenario([slow(0)], where=WHERE)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("racks", "finish_us"), [(((4,),), 300), (((2, 2),), 525)])
def test_a_ring_inside_a_server_finishes_before_one_between_servers(
    name: str, racks: tuple[tuple[int, ...], ...], finish_us: int
) -> None:
    run = simulate(scenario([slow()], where=tree(racks, link=10**9, trunk=10**9)), policies.find(name))
    assert run.violations == ()
    assert run.tables["outcomes"]["finish_us"] == [finish_us]


def test_a_pace_counts_work_in_worker_slots_at_full_speed() -> None:
    pace = pace_of(WHERE, slow())
    assert pace.count == 12  # a worker alone does five rounds in a slot of 100 us
    assert pace.at_full_speed(60 * MICRO) == 12 * MICRO
    assert pace.progress(2.0) == 10.0
    assert pace.progress(99.0) == 60.0
    assert pace.speed.tolist() == pytest.approx([0.0, 1.0, 2 * 20 / 30, 3 * 20 / 34, 4 * 20 / 35])
    assert pace.inside.tolist() == [0.0, 1.0, 2.0, 3.0, 4.0]
    assert pace_of(WHERE, ring_job(0)).even


@pytest.mark.parametrize("name", NAMES)
def test_runs_with_ring_time_pass_the_audit_and_do_less(name: str) -> None:
    plain, slower = (
        simulate(small("tight", "sqrt", ring_time=ring), policies.find(name)) for ring in (False, True)
    )
    assert slower.violations == ()
    assert slower.metrics["utility"] < plain.metrics["utility"]
    assert slower.metrics["epoch_s"] > 0
    assert slower.certificates == ()


def test_schedulers_that_know_utilities_stop_jobs_whose_energy_costs_more_than_their_work_is_worth() -> None:
    given = small("paper", objective="energy")
    peaks = [peak_of(job) for job in given.jobs]
    assert any(
        peak < job.work.count
        for peak, job in zip(peaks, given.jobs, strict=True)
        if isinstance(job.work, Rounds)
    )
    late = {}
    for name in NAMES:
        done = ints(simulate(given, policies.find(name)), "outcomes", "work") / MICRO
        late[name] = float((done - peaks).clip(0).sum() / done.sum())
    assert late["gadget"] <= LATE
    assert late["gadget-paper"] <= LATE
    assert min(late[name] for name in NAMES if name.startswith("ring-")) > 2 * LATE


def test_with_the_printed_utility_of_energy_nothing_is_trained() -> None:
    for name in ("gadget", "gadget-paper"):
        run = simulate(as_printed(small("paper", objective="energy")), policies.find(name))
        assert run.metrics["utility"] == 0.0
