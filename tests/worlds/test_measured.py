"""What ranks measured, per job and site: means with their standard errors, beside the prediction."""

from __future__ import annotations

import json
import random
from statistics import fmean, stdev

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.builders import job, link, node, setup
from tradewind.files.run_tables import normal
from tradewind.model.decision import Route, Step
from tradewind.model.estimate import Factors, believed
from tradewind.model.job import Fixed, Job, Rounds
from tradewind.model.tables import TABLES
from tradewind.model.units import LARGEST, US_PER_S
from tradewind.worlds.estimating import measured_of
from tradewind.worlds.fleet import IterationReport, Launch, LaunchStatus, ranks_of
from tradewind.worlds.fleets.processes.reports import _parse
from tradewind.worlds.gang import TALLIED, Attempt, Gang, Tally
from tradewind.worlds.measured import UNKNOWN, Expectation, RankMeasure, rows, standard_error


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


def test_iterations_stand_beside_the_prediction_of_the_plans_in_force_while_they_ran() -> None:
    """Everything takes twice as long as predicted, also the iteration during which the plan changes."""
    made, now_s = attempt(0, 1.0, 0), 100.0
    made.tally.expected.change(now_s, 500_000)
    took = [1.0] * 21 + [0.3 + 0.7 * 3] + [3.0] * 18  # the new plan comes after 0.3 of the 22nd
    for number, seconds in enumerate(took):
        if number == 21:
            made.tally.expected.change(now_s + 0.3, 1_500_000)
        now_s += seconds
        made.tally.add([(1, IterationReport(number, seconds, 10.0, 1.0, 3, 0.0, 0.0))], now_s)
    made.tally.settle()
    ((_, _, iterations, measured_s, _, predicted_s, *_),) = rows([made], lambda _: 500_000.0, 1_000_000)
    assert iterations == 36
    assert measured_s == pytest.approx(fmean(took[4:]))
    assert measured_s / predicted_s == pytest.approx(2.0)


def test_reports_that_come_together_follow_one_another() -> None:
    expected = Expectation()
    expected.change(0.0, 1.0)
    expected.change(10.0, 3.0)
    reports = [(0, 2.0), (1, 1.0), (0, 4.0)]  # rank 0: 8 to 10 and 10 to 14, rank 1: 13 to 14
    assert expected.of_each(14.0, reports) == [pytest.approx(1.0), pytest.approx(3.0), pytest.approx(3.0)]
    assert expected.of_each(20.0, [(0, 12.0)]) == [pytest.approx(12.0 / (2.0 / 1.0 + 10.0 / 3.0))]


def test_ranks_that_have_to_move_keep_the_routes_and_the_prediction_of_their_last_plan_until_they_end() -> (
    None
):
    net = setup([node("a"), node("b"), node("c")], links=(link(0, 1), link(0, 2)), transport="cut-through")
    ps = job(0, work=Rounds(count=50, comm="flows", compute_us=0), model_bytes=500_000)

    def plan(worker: int, bps: int) -> Step:
        route = Route(worker, 0, bps, (worker - 1,))
        return Step(
            from_us=0, until_us=100, nodes=(0, worker), workers=(0, 1), servers=(1, 0), routes=(route,)
        )

    first, faster, elsewhere = plan(1, 4_000_000), plan(1, 8_000_000), plan(2, 1_000_000)
    begun = Attempt(launch=Launch(ps, 0, 0, ranks_of(first)), at_us=0, step=first)
    gang = Gang(ps, [begun])
    report = ((1, IterationReport(1, 0.5, 10.0, 1.0, 3, 0.0)),)
    for step, kept, now_s in (
        (first, first, 1.0),
        (faster, faster, 2.0),
        (elsewhere, faster, 3.0),
        (None, faster, 4.0),
    ):
        wanted = gang.wanted(step)
        assert wanted is not None
        assert wanted.routes == kept.routes
        gang.take(LaunchStatus((None, None), reports=report), now_s, net, step)
    begun.tally.settle()
    (measure,) = (RankMeasure(*raw) for raw in begun.tally.ranks)
    assert measure.iterations == 4
    assert measure.predicted_us == pytest.approx(
        (2 + 2 + 1 + 1) / 4 * US_PER_S
    )  # never that of the plan elsewhere


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
    for at_s, predicted_us in enumerate((declared_us, LARGEST, 1)):
        made.tally.expected.change(float(at_s), predicted_us)
    made.tally.add(reports * 10, 2.5)
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
