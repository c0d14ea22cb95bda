"""What ranks measured, per job and site: means with their standard errors, beside the prediction."""

from __future__ import annotations

import json
import random
from statistics import fmean, stdev

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.builders import job, node, setup
from tradewind.files.run_tables import normal
from tradewind.model.decision import Step
from tradewind.model.estimate import Factors, believed
from tradewind.model.job import Fixed, Job, Rounds
from tradewind.model.tables import TABLES
from tradewind.model.units import LARGEST, US_PER_S
from tradewind.worlds.estimating import measured_of
from tradewind.worlds.fleet import IterationReport, Launch, ranks_of
from tradewind.worlds.fleets.processes.reports import _parse
from tradewind.worlds.gang import TALLIED, Attempt, Gang, Tally
from tradewind.worlds.measured import UNKNOWN, rows, standard_error


def test_the_standard_error_is_that_of_the_mean_for_independent_values() -> None:
    rng = random.Random(1)
    means, errors = [], []
    for _ in range(300):
        values = [rng.gauss(1.0, 0.2) for _ in range(100)]
        means.append(fmean(values))
        errors.append(standard_error(values))
    assert fmean(errors) == pytest.approx(stdev(means), rel=0.15)


def test_the_standard_error_of_values_that_follow_one_another_is_not_too_small() -> None:
    rng = random.Random(2)
    means, errors, naive = [], [], []
    for _ in range(200):
        values, x = [], 0.0
        for _ in range(400):
            x = 0.8 * x + rng.gauss(0.0, 1.0)
            values.append(x)
        means.append(fmean(values))
        errors.append(standard_error(values))
        naive.append(stdev(values) / len(values) ** 0.5)
    true = stdev(means)
    assert fmean(naive) < 0.5 * true
    assert fmean(errors) > 0.7 * true


def test_with_few_values_there_is_no_standard_error() -> None:
    assert [standard_error([1.0] * n) for n in (1, 2, 3)] == [UNKNOWN] * 3
    assert standard_error([1.0] * 4) == 0.0


def attempt(number: int, seconds: float, count: int, accuracy: float = UNKNOWN) -> Attempt:
    """Two workers at node 0, one at node 1, which waits a third of the time; iterations of `seconds` ± 10%."""
    step = Step(from_us=0, until_us=100, nodes=(0, 1), workers=(2, 1))
    made = Attempt(
        launch=Launch(job=job(0, work=Rounds(count=50)), number=number, slot=0, ranks=ranks_of(step)),
        at_us=0,
        step=step,
    )
    for k in range(count):
        took = seconds * (1.1 if k // 2 % 2 else 0.9)
        made.tally.add(
            [
                (rank, IterationReport(k, took, 10.0, 1.0, 3, 0.0, took / 3, (), accuracy, accuracy / 2))
                for rank in (0, 2)
            ]
        )
    made.tally.settle()
    return made


def test_a_row_per_job_and_node_joins_attempts_by_their_iterations() -> None:
    attempts = [attempt(0, 1.0, 40), attempt(1, 2.0, 20, accuracy=0.8)]
    found = rows(attempts, lambda each: 0.5 if each.launch.number == 0 else 1.0)
    assert [row[:2] for row in found] == [(0, 0), (0, 1)]
    for _, _, iterations, measured_s, error_s, predicted_s, waited_s, accuracy, site_accuracy in found:
        assert iterations == 36 + 18  # without the first tenth
        assert measured_s == pytest.approx((36 * 1.0 + 18 * 2.0) / 54, rel=0.02)
        assert measured_s / predicted_s == pytest.approx(2.0, rel=0.02)  # twice as slow as declared
        assert 0.0 < error_s < 0.05
        assert waited_s == pytest.approx(measured_s / 3)
        assert (accuracy, site_accuracy) == (0.8, 0.4)


def test_iterations_after_a_new_plan_stand_beside_its_prediction() -> None:
    made = attempt(0, 1.0, 0)
    for k in range(40):
        took, planned_us = (1.0, 500_000) if k < 22 else (2.0, 1_000_000)
        made.tally.add([(1, IterationReport(k, took, 10.0, 1.0, 3, 0.0, 0.0))], planned_us)
    made.tally.settle()
    ((_, _, iterations, measured_s, _, predicted_s, *_),) = rows([made], lambda _: 500_000.0, 1_000_000)
    assert iterations == 36  # 18 of each plan
    assert (measured_s, predicted_s) == (1.5, 0.75)


def test_attempts_without_prediction_or_reports_have_no_row() -> None:
    assert rows([attempt(0, 1.0, 10)], lambda _: 0.0) == []
    assert rows([attempt(0, 1.0, 0)], lambda _: 1.0) == []


def test_what_ranks_measured_survives_the_journal() -> None:
    before = attempt(0, 1.0, 10)
    after = attempt(0, 1.0, 0)
    after.tally = Tally(**json.loads(json.dumps({name: getattr(before.tally, name) for name in TALLIED})))
    assert rows([after], lambda _: 1.0) == rows([before], lambda _: 1.0) != []


@pytest.mark.parametrize(
    ("said", "kept"), [(0.5, 0.5), (1.5, UNKNOWN), (-3, UNKNOWN), (float("nan"), UNKNOWN)]
)
def test_an_accuracy_outside_0_to_1_counts_as_not_reported(said: float, kept: float) -> None:
    line = {"iteration": 1, "seconds": 1, "loss": 1, "accuracy": said, "site_accuracy": 0.25}
    found = _parse(json.dumps(line).encode())
    assert found is not None
    assert (found.accuracy, found.site_accuracy) == (kept, 0.25)


NUMBERS = st.floats(allow_nan=True, allow_infinity=True) | st.integers(-(10**30), 10**30)
REPORTED = (
    "iteration",
    "seconds",
    "communication_seconds",
    "samples",
    "bytes_sent",
    "loss",
    "workers",
    "accuracy",
)


@settings(deadline=None, max_examples=300)
@given(
    st.lists(st.dictionaries(st.sampled_from(REPORTED), NUMBERS), min_size=1, max_size=3),
    st.integers(1, LARGEST),
    st.sampled_from((1e-6, 1.0, 1e6, 1e12)),
)
def test_whatever_ranks_report_gives_numbers_and_spoils_no_estimate_of_other_jobs(
    said: list[dict[str, float]], declared_us: int, pace: float
) -> None:
    """Reports are repeated, so that they count; the event `measured` follows from them, and estimates from that."""
    lines = [json.dumps({"iteration": 1} | each).encode() for each in said]
    reports = [(0, found) for line in lines if (found := _parse(line)) is not None]
    liar, honest = job(0, work=Rounds(count=50, compute_us=declared_us)), job(1, tenant="other")
    step = Step(from_us=0, until_us=100, nodes=(0,), workers=(1,))
    made = Attempt(launch=Launch(job=liar, number=0, slot=0, ranks=ranks_of(step)), at_us=0, step=step)
    made.tally.add(reports * 10)
    measured = measured_of(setup([node("a")]), Gang(liar, [made]), pace * US_PER_S, US_PER_S)
    columns = dict(
        zip(TABLES["estimates"], zip(*((0, 0, *row) for row in measured), strict=True), strict=False)
    )
    if not measured:
        return
    normal("estimates", columns)  # which a file can hold
    assert all(row.seconds > 0 < row.declared_s for row in measured)
    factors = Factors()
    factors.take(liar, 0, 0, measured)
    for each in (liar, honest):
        known = factors.of(each)
        assert 0 < known.factor < float("inf")
        assert 0 <= known.error < float("inf")
        for declared in (each, _long(each)):
            assert 0 < _time_us(believed(declared, known.factor)) <= LARGEST
    factors.take(liar, 1, 0, measured)
    factors.forget(0)
    assert 0 < factors.of(honest).factor < float("inf")


def _long(known: Job) -> Job:
    return job(known.index, work=Fixed(runtime_us=LARGEST), tenant=known.tenant)


def _time_us(known: Job) -> int:
    work = known.work
    return work.compute_us or 1 if isinstance(work, Rounds) else getattr(work, "runtime_us", 0)
