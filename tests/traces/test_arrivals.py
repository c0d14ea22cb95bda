"""Recorded arrivals: a window of the trace in real time, thinned to the number wanted; drawn ones stay the default."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tradewind.model.errors import InputError
from tradewind.model.scenario import Scenario
from tradewind.registry import workloads
from tradewind.traces.arrivals import instead_of_drawn, recorded_slots, window

HOUR_US = 3_600_000_000
SMALL: dict[str, dict[str, Any]] = {
    "mlbroker": {"sites": 3, "slots": 6, "jobs_per_slot": 4.0},
    "dps": {"jobs": 40, "slots": 48, "servers": 4, "worker_types": 3, "server_types": 3},
    "gadget": {"jobs": 40, "slots": 48, "servers": 6},
    "eris": {"jobs": 20, "slots": 24, "sites": 6},
}


@pytest.fixture
def trace(tmp_path: Path) -> str:
    """Four days of jobs that are submitted from 8 to 9 o'clock only."""
    at = [day * 86400 + 8 * 3600 + 9 * i for day in range(4) for i in range(400)]
    path = tmp_path / "jobs.csv"
    path.write_text("submit_s,start_s,end_s,user\n" + "".join(f"{t},{t + 1},{t + 5},u\n" for t in at))
    return f"google:{path}"


def arrivals(scenario: Scenario) -> list[int]:
    return [job.arrive_us for job in scenario.jobs]


def made(name: str, seed: int = 1, **params: Any) -> Scenario:
    return workloads.generate(name, SMALL[name] | params, seed)


def test_a_window_keeps_instants_and_takes_every_job_where_all_are_wanted() -> None:
    instants = np.array([0.0, 1.5, 2.5, 9.0]) * HOUR_US
    found = window(instants, 4, 10, HOUR_US, np.random.default_rng(3))
    turn = 9.0 + 1 / HOUR_US
    begin = np.random.default_rng(3).uniform(0.0, turn * HOUR_US) / HOUR_US
    expected = sorted(int((t - begin) % turn) for t in (0.0, 1.5, 2.5, 9.0))
    # ten hours are a whole turn and almost one hour more; four of the jobs are drawn
    assert len(found) == 4
    assert set(found.tolist()) <= {*expected, 9}
    assert window(instants, 4, 9, HOUR_US, np.random.default_rng(3)).tolist() == expected


def test_many_more_jobs_than_recorded_repeat_each_of_them_equally_often() -> None:
    instants = np.array([0.0, 0.25, 0.5, 2.9]) * HOUR_US
    found = window(instants, 41, 9, HOUR_US, np.random.default_rng(1))
    per_hour = np.bincount(found, minlength=9)
    assert len(found) == 41
    assert found.max() < 9
    # three turns of four jobs: each of the twelve three times, and five of them once more
    assert per_hour.reshape(3, 3).sum(axis=1).min() >= 9
    assert per_hour.reshape(3, 3).sum(axis=1).max() <= 16


def test_thinning_is_uniform_over_the_jobs_of_the_window() -> None:
    instants = np.append(np.repeat([0.0, HOUR_US], [900, 100]), 2.0 * HOUR_US - 1)
    busier = [
        np.bincount(window(instants, 100, 2, HOUR_US, np.random.default_rng(seed)), minlength=2).max()
        for seed in range(40)
    ]
    assert 0.88 < np.mean(busier) / 100 < 0.92


def test_a_window_without_jobs_moves_on_to_the_next_submission() -> None:
    instants = np.array([0.0, 1000.0]) * HOUR_US
    for seed in range(5):
        assert window(instants, 3, 1, HOUR_US, np.random.default_rng(seed)).tolist() == [0, 0, 0]


@pytest.mark.parametrize("name", sorted(SMALL))
def test_recorded_arrivals_follow_the_trace_and_the_origin_says_so(name: str, trace: str) -> None:
    drawn, recorded = made(name), made(name, arrivals=trace)
    assert arrivals(recorded) != arrivals(drawn)
    assert arrivals(recorded) == sorted(arrivals(recorded))
    assert arrivals(recorded) == arrivals(made(name, arrivals=trace))
    assert arrivals(recorded) != arrivals(made(name, 2, arrivals=trace))
    assert drawn.origin["arrivals"] == "drawn"
    assert recorded.origin["arrivals"] == "google:jobs.csv"
    if name != "mlbroker":  # its first slots hold the jobs that began earlier
        assert len(recorded.jobs) == len(drawn.jobs)


def test_a_busy_hour_of_the_trace_is_a_busy_hour_of_the_workload(trace: str) -> None:
    slots = np.array(arrivals(made("dps", arrivals=trace, slots=288, jobs=200))) // 300_000_000
    busy = np.flatnonzero(np.bincount(slots, minlength=288))
    assert len(busy) <= 14  # an hour has twelve slots; two more where the window cuts it
    assert len(slots) == 200


def test_only_the_instants_differ_where_the_number_of_jobs_is_fixed(trace: str) -> None:
    for name in ("gadget", "eris"):
        drawn, recorded = made(name), made(name, arrivals=trace)
        assert [job.work for job in recorded.jobs] == [job.work for job in drawn.jobs]
        assert [job.worker for job in recorded.jobs] == [job.worker for job in drawn.jobs]


@pytest.mark.parametrize("name", sorted(SMALL))
def test_a_whole_study_can_take_recorded_arrivals_at_once(name: str, trace: str) -> None:
    before = arrivals(made(name))
    with instead_of_drawn(trace):
        inside = made(name)
    explicit = made(name, arrivals=trace)
    assert arrivals(inside) == arrivals(explicit)
    assert inside.origin["arrivals"] == "google:jobs.csv"
    assert inside.setup.forecast == explicit.setup.forecast
    assert arrivals(made(name)) == before


@pytest.mark.parametrize("spec", ["google", "google:", "poisson", "philly:x.csv"])
def test_an_unknown_source_is_refused(spec: str) -> None:
    with pytest.raises(InputError, match="drawn or google:FILE"):
        recorded_slots(spec, 1, 1, 1, np.random.default_rng(0))


def test_a_file_that_is_not_there_is_refused() -> None:
    with pytest.raises(InputError, match=r"nowhere\.csv"):
        made("dps", arrivals="google:nowhere.csv")
