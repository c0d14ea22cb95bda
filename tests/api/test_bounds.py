"""The bound beside a run that turned jobs away: of what it served, said so, and true; from the command line too."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest

import tradewind as tw
from tests.command import tradewind
from tests.systems.mlbroker.test_bad_input import changed, without_data
from tests.systems.mlbroker.test_late import HOUR, one_stream
from tests.systems.mlbroker.test_policy import ALL, made
from tradewind.model.job import Customer
from tradewind.model.scenario import Scenario
from tradewind.model.spec import Spec
from tradewind.model.tenant import SpendCap
from tradewind.model.view import Change
from tradewind.report.bounds import UNKNOWN, Bounds, note, served_of, turned_away
from tradewind.systems.mlbroker.bound.certified import bound
from tradewind.systems.mlbroker.bound.exact import exact
from tradewind.systems.mlbroker.explain.bills import tenant_bills
from tradewind.systems.mlbroker.policy import MLBROKER
from tradewind.worlds.simulate import simulate


def hopeless() -> Scenario:
    """Job 2 may have one worker and needs more: it is refused in its first slot."""
    return changed(made(), 2, workers_max=1)


def broke() -> Scenario:
    """A cap on all that tenant-0 spends: its newest job is served for some slots and then lost."""
    given = made()
    caps = {"tenant-0": SpendCap(total_usd=200.0)}
    return replace(given, setup=replace(given.setup, spend_caps=caps))


def without(scenario: Scenario, job: int, since: int) -> Scenario:
    """The scenario in which a job leaves at the start of a slot; one that it arrives in: it has no data."""
    stay = since * scenario.setup.slot_us - scenario.jobs[job].arrive_us
    if stay == 0:
        return without_data(scenario, {job})
    customers = list(scenario.customers)
    customers[job] = replace(customers[job], runtime_us=stay)
    return replace(scenario, customers=tuple(customers))


@pytest.mark.parametrize("spec", ALL, ids=lambda spec: spec.name)
@pytest.mark.parametrize("given", [hopeless(), broke()], ids=["hopeless", "broke"])
def test_what_was_served_is_bounded_and_the_bound_holds(given: Scenario, spec: Spec) -> None:
    run = Bounds(given).attach(simulate(given, spec))
    served = served_of(run)
    assert run.bound is None
    assert served is not None
    assert served.turned_away == run.metrics["jobs_refused"] > 0
    assert served.jobs == len(given.jobs)
    assert 0.0 < served.value <= run.value * (1 + 1e-9)
    assert tw.check(given, run) == ()


def test_it_is_the_bound_of_the_scenario_in_which_refused_jobs_leave_when_they_are_refused() -> None:
    given = broke()
    run = Bounds(given).attach(simulate(given, MLBROKER))
    served = served_of(run)
    assert served is not None
    fewer = given
    events = run.tables["events"]
    rows = zip(events["kind"], events["job"], events["at_us"], strict=True)
    slot_us = given.setup.slot_us
    lost = [(cast(int, job), cast(int, at) // slot_us) for kind, job, at in rows if kind == "refused"]
    assert any(since * slot_us > given.jobs[job].arrive_us for job, since in lost)
    for job, since in lost:
        fewer = without(fewer, job, since)
    certified = bound(fewer)
    assert certified is not None
    assert served.value == pytest.approx(certified.value, rel=1e-12)
    free = replace(fewer, setup=replace(fewer.setup, spend_caps={}))
    assert served.value <= exact(free, nodes=20_000).bound * (1 + 1e-6)


def test_the_bound_of_what_was_served_is_kept_in_the_run_file(tmp_path: Path) -> None:
    given = hopeless()
    run = tw.run(given, "mlbroker", bound=True)
    tw.save(run, tmp_path / "r.json")
    assert served_of(tw.load_run(tmp_path / "r.json")) == served_of(run) is not None


def test_where_nobody_is_served_there_is_no_bound_and_the_reason_is_said() -> None:
    given = made()
    none = replace(given, jobs=tuple(replace(job, workers_max=1) for job in given.jobs))
    run = Bounds(none).attach(simulate(none, MLBROKER))
    assert (run.bound, served_of(run)) == (None, None)
    assert note(none, run).startswith("no bound for all jobs: 5 of 5 jobs were rejected")


def test_where_no_bound_is_known_that_is_said() -> None:
    given = replace(made(), changes=(Change(0, "node_down", 1, 0, 0),))
    run = Bounds(given).attach(simulate(given, MLBROKER))
    assert turned_away(given, run) == 0
    assert (run.bound, note(given, run)) == (None, UNKNOWN)


@pytest.mark.parametrize("stay", [0.25, 1.5, 1.75])
def test_the_bound_counts_the_part_of_a_slot_that_a_job_stays(stay: float) -> None:
    given = one_stream([(0, 0, 0, 15), (0, 1, 0, 15)])
    part = replace(given, customers=(Customer(runtime_us=int(stay * HOUR)),))
    run, certified = simulate(part, MLBROKER), bound(part)
    assert certified is not None
    assert certified.value == pytest.approx(7.0 + 6.0 * stay)
    assert run.value == pytest.approx(7.0 + 6.0 * stay)


def test_a_stream_that_outlives_the_run_was_served_and_is_bounded_until_the_runs_end() -> None:
    given = one_stream([(0, 0, 0, 15), (0, 1, 0, 15)], stay=9)
    cut = replace(
        given, setup=replace(given.setup, horizon_us=HOUR + HOUR // 2), origin={"workload": "mlbroker"}
    )
    run = Bounds(cut).attach(simulate(cut, MLBROKER))
    assert run.metrics["jobs_unfinished"] == 1
    assert run.bound is not None
    assert run.bound.value == pytest.approx(7.0 + 6.0 * 1.5)
    assert run.bound.ratio == pytest.approx(1.0)


def test_bills_add_up_where_jobs_leave_within_a_slot() -> None:
    given = made(family="narrow", jobs_per_slot=6)
    early = [replace(c, runtime_us=(c.runtime_us or 0) - HOUR) for c in given.customers]
    part = replace(given, customers=tuple(early))
    run = simulate(part, MLBROKER)
    assert sum(each.pooled_usd for each in tenant_bills(part, run)) == pytest.approx(run.value, rel=1e-9)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("bounds")
    tw.dump(hopeless(), folder / "hopeless.json")
    tw.dump(without_data(made(), {3}), folder / "dry.json")
    return folder


def test_run_shows_the_bound_of_what_was_served_and_calls_it_that(files: Path) -> None:
    done = tradewind("run", str(files / "hopeless.json"), "--policy", "mlbroker", "--bound")
    assert done.returncode == 0, done.stderr
    assert "bound of the served jobs (certified)" in done.stdout
    assert "ratio to bound of the served jobs" in done.stdout
    assert "bound (certified)" not in done.stdout
    said = " ".join(done.stdout.split())
    assert "no bound for all jobs: 1 of 5 jobs were rejected" in said
    assert "A bound for all jobs does not hold for a run that serves fewer" in said


def test_the_json_keeps_both_bounds_apart(files: Path) -> None:
    done = tradewind("run", str(files / "hopeless.json"), "--policy", "mlbroker", "--bound", "--json")
    found = json.loads(done.stdout)
    assert found["bound"] is None
    assert set(found["bound_of_served"]) == {"value", "ratio", "jobs", "turned_away"}
    assert 1.0 - 1e-9 <= found["bound_of_served"]["ratio"] < 1.05
    assert found["bound_note"].startswith("no bound for all jobs: 1 of 5 jobs")


def test_compare_marks_ratios_of_runs_that_turned_jobs_away(files: Path) -> None:
    done = tradewind(
        "compare", str(files / "hopeless.json"), "--policies", "mlbroker,selfish", "--bound",
        "-o", str(files / "c.html"),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.count(" * ") >= 2
    said = " ".join(done.stdout.split())
    assert "jobs rejected or not finished: mlbroker 1 of 5, selfish 1 of 5." in said
    assert "* ratio to the bound of the served jobs" in said
    assert "Bound of the served jobs" in (files / "c.html").read_text()


def test_a_stream_that_never_has_data_is_named_and_the_bound_of_all_jobs_holds(files: Path) -> None:
    done = tradewind("run", str(files / "dry.json"), "--policy", "mlbroker", "--bound")
    assert "never trained: job-3: it had no data while it was present" in done.stdout
    assert "bound (certified)" in done.stdout
    assert "no bound" not in done.stdout
