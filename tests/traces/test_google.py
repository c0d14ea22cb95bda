"""Google's cluster data of 2011 is read from a table of jobs and from the original events alike."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest

from tradewind.model.errors import InputError
from tradewind.model.job import Fixed
from tradewind.model.scenario import Scenario
from tradewind.registry import workloads
from tradewind.traces.google import submitted_us

JOBS = (
    "submit_s,start_s,end_s,outcome,user,class,tasks,cpu_request\n"
    "604.5,605.5,675.25,finish,81,1,1,0.0625\n"
    "602.0,603.0,,,509,1,,\n"  # never ended
    "603.5,610.0,610.0,fail,7,0,,\n"  # no duration
    "600.5,700.0,1000.0,kill,81,3,500,0.5\n"
)
AFTER = 2**63 - 1
FIRST = (
    "0,,5,0,old,2,n,l\n"  # there before the trace
    "0,,5,1,old,2,n,l\n"
    "600500000,,11,0,u81,3,n,l\n"
    "602000000,,12,0,u509,1,n,l\n"
    "603000000,,12,1,u509,1,n,l\n"
    "604500000,,13,0,u81,1,n,l\n"
    "605500000,,13,1,u81,1,n,l\n"
    "675250000,,13,4,u81,1,n,l\n"
)
SECOND = (
    "700000000,,11,1,u81,3,n,l\n"
    "800000000,,11,2,u81,3,n,l\n"  # evicted, submitted again and killed at last
    "810000000,,11,0,u81,3,n,l\n"
    "820000000,,11,8,u81,3,n,l\n"
    "1000000000,,11,5,u81,3,n,l\n"
    f"{AFTER},,12,4,u509,1,n,l\n"
    "900000000,,5,4,old,2,n,l\n"
)


def read(path: Path) -> Scenario:
    return workloads.generate("trace", {"file": str(path), "format": "google", "servers": 2})


def jobs(made: Scenario) -> list[tuple[int, int]]:
    """(arrival, runtime) of every job in milliseconds."""
    found = []
    for job in made.jobs:
        assert isinstance(job.work, Fixed)
        assert job.work.runtime_us is not None
        assert job.workers_max == 1
        found.append((job.arrive_us // 1000, job.work.runtime_us // 1000))
    return found


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "jobs.csv.gz"
    path.write_bytes(gzip.compress(JOBS.encode()))
    return path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    parts = tmp_path / "job_events"
    parts.mkdir()
    (parts / "part-00000-of-00500.csv.gz").write_bytes(gzip.compress(FIRST.encode()))
    (parts / "part-00001-of-00500.csv.gz").write_bytes(gzip.compress(SECOND.encode()))
    return parts


def test_a_table_of_jobs_is_read_and_what_never_ended_is_counted(table: Path) -> None:
    made = read(table)
    assert jobs(made) == [(0, 300_000), (4000, 69_750)]
    assert [job.id for job in made.jobs] == ["4", "1"]
    assert [job.tenant for job in made.jobs] == ["81", "81"]
    assert made.origin["rows_left_out"] == {"without an end": 1, "without a positive duration": 1}
    assert made.origin["file"] == "jobs.csv.gz"


def test_the_original_events_give_the_same_jobs(folder: Path, table: Path) -> None:
    made = read(folder)
    assert jobs(made) == jobs(read(table))
    assert [job.id for job in made.jobs] == ["11", "13"]
    assert made.origin["rows_left_out"] == {"without an end": 1, "submitted before the trace": 1}


def test_one_part_alone_has_the_jobs_that_it_shows_from_submission_to_end(folder: Path) -> None:
    made = read(folder / "part-00000-of-00500.csv.gz")
    assert [job.id for job in made.jobs] == ["13"]


def test_all_submissions_count_as_arrivals_whether_jobs_ended_or_not(table: Path, folder: Path) -> None:
    assert (submitted_us(table) / 1e6).tolist() == [600.5, 602.0, 603.5, 604.5]
    assert np.array_equal(submitted_us(folder) / 1e6, [600.5, 602.0, 604.5])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1,,5,0,u,1,n\n", "line 1: found 7 values; job_events has 8 columns"),
        ("1,,5,0,u,1,n,l\nsoon,,5,1,u,1,n,l\n", "line 2, column timestamp: found 'soon'"),
        (f"{AFTER + 1},,5,0,u,1,n,l\n", "column timestamp"),
        ("1,,5,9,u,1,n,l\n", "column event type: found '9'; it must be 0 to 8"),
        ("submit_s,start_s\n1,2\n", "'end_s' is missing"),
        ("0,,5,0,u,1,n,l\n", "has no job to run"),
    ],
)
def test_a_bad_file_is_refused_with_its_place(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "jobs.csv"
    path.write_text(text)
    with pytest.raises(InputError, match=message):
        read(path)


def test_a_folder_without_parts_and_a_broken_archive_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="has no file"):
        read(tmp_path)
    path = tmp_path / "jobs.csv.gz"
    path.write_bytes(gzip.compress(JOBS.encode() * 50)[:-30])
    with pytest.raises(InputError, match="whole gzip file"):
        read(path)
