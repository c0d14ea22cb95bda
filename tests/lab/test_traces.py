"""Recorded traces through every cluster policy: one table, one run per process, kept between calls."""

from __future__ import annotations

from pathlib import Path

import pytest

from tradewind.lab.traces import BOUND, Measured, every_policy, measured, page, trace_of
from tradewind.model.errors import InputError, LookupFailed
from tradewind.registry import systems

JOBS = "submit_s,start_s,end_s,user\n" + "".join(f"{i},{i},{i + 10 + i % 7},u{i % 3}\n" for i in range(30))

NAMES = (BOUND, "fifo", "srtf")


@pytest.fixture
def google(tmp_path: Path) -> str:
    path = tmp_path / "jobs.csv"
    path.write_text(JOBS)
    return f"google={path},servers=1,limit=12"


def test_every_policy_and_the_bound_are_measured_once_and_kept(tmp_path: Path, google: str) -> None:
    traces, work = [trace_of(google)], tmp_path / "work"
    found = measured(traces, work, NAMES)
    assert [m.policy for m in found] == list(NAMES)
    least = found[0].jct_mean_s
    assert all(m.jct_mean_s >= least > 0 for m in found)
    assert all(m.completed == m.jobs == 12 and m.memory_gb > 0 for m in found)
    stamps = {p: p.stat().st_mtime_ns for p in work.iterdir()}
    assert measured(traces, work, NAMES) == found
    assert {p: p.stat().st_mtime_ns for p in work.iterdir()} == stamps
    text = page(traces, found)
    assert "google=jobs.csv,servers=1,limit=12`" in text
    assert "The first 12 jobs by arrival" in text
    assert text.count("| 12 |") == len(found) - 1


def test_pods_of_openb_go_through_the_same_table(tmp_path: Path) -> None:
    head = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time\n"
    pods = [f"p{i},12000,16384,1,{460 + 20 * i},,LS,Succeeded,{i},{i + 50},{i + 1}\n" for i in range(20)]
    (tmp_path / "pods.csv").write_text(head + "".join(pods))
    traces = [trace_of(f"openb={tmp_path / 'pods.csv'},servers=1")]
    found = measured(traces, tmp_path / "work", NAMES)
    assert all(m.completed == m.jobs == 20 and m.jct_mean_s >= found[0].jct_mean_s > 0 for m in found)
    assert found[1].jct_mean_s > 50, "twenty pods of up to 0.84 GPUs wait for eight"
    assert "openb=pods.csv,servers=1`" in (text := page(traces, found))
    assert "Not run, for want of a file: philly, google." in text


def test_the_ratio_is_that_to_the_bound() -> None:
    def one(policy: str, jct_s: float) -> Measured:
        return Measured(
            trace="philly", policy=policy, jobs=5, left_out=2, completed=5, jct_mean_s=jct_s, cpu_s=1.0, read_s=0.5,
            memory_gb=0.25,
        )  # fmt: skip

    text = page([trace_of("philly=folder/p.csv")], [one(BOUND, 200.0), one("las", 250.0)])
    assert "| bound | 200.0 |  |  | 1.0 | 0.25 |" in text
    assert "| las | 250.0 | 1.250 | 5 | 1.0 | 0.25 |" in text
    assert "All 5 jobs that ran (2 rows without work are left out) on 52 servers" in text
    assert "folder" not in text


def test_every_cluster_policy_has_a_row() -> None:
    assert every_policy() == [BOUND, *sorted(systems()["cluster"].policies)]
    assert len(every_policy()) > 6


def test_unknown_traces_and_settings_are_refused() -> None:
    with pytest.raises(LookupFailed, match="google"):
        trace_of("gogle=x.csv")
    with pytest.raises(InputError, match="NAME=FILE"):
        trace_of("google=x.csv,limit")
