"""Traces become scenarios: what is read, what is skipped and counted, and which errors are raised."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tests.command import tradewind
from tradewind.model.errors import InputError, LookupFailed
from tradewind.model.job import Fixed
from tradewind.model.scenario import Scenario
from tradewind.model.units import US_PER_S
from tradewind.registry import workloads
from tradewind.systems.cluster.workload import arrivals_s
from tradewind.traces import packed

Write = Callable[[str], str]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def to_file(text: str) -> str:
        path = tmp_path / "jobs.csv"
        path.write_text(text, encoding="utf-8")
        return str(path)

    return to_file


def trace(file: str, format: str = "csv", **more: object) -> Scenario:
    return workloads.generate("trace", {"file": file, "format": format, "servers": 2, **more})


@pytest.mark.parametrize("text", ["id,arrive_s,duration_s,gpus\n", 'id,arrive_s,duration_s,gpus\n"'])
def test_a_small_file_that_unpacks_to_very_much_is_refused(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packed, "FREE_BYTES", 1 << 16)
    path = tmp_path / "jobs.csv.gz"
    path.write_bytes(gzip.compress(text.encode() + b"0" * 20_000_000))
    assert path.stat().st_size < 30_000
    with pytest.raises(InputError, match="unpacks to more than 100 times its size"):
        trace(str(path))
    whole = "id,arrive_s,duration_s,gpus\n" + "".join(f"j{i},{i},60,1\n" for i in range(2000))
    path.write_bytes(gzip.compress(whole.encode()))
    assert len(trace(str(path)).jobs) == 2000


def seconds(scenario: Scenario) -> list[tuple[str, float, float, int]]:
    """(id, arrival, runtime, workers) of every job."""
    rows = []
    for job in scenario.jobs:
        assert isinstance(job.work, Fixed)
        assert job.work.runtime_us is not None
        rows.append((job.id, job.arrive_us / US_PER_S, job.work.runtime_us / US_PER_S, job.workers_max))
    return rows


def test_the_plain_format_is_read_as_documented(write: Write) -> None:
    made = trace(write("id,arrive_s,duration_s,gpus,tenant\na,0,10,1,x\nb,2.5,7.25,4,y\n"))
    assert seconds(made) == [("a", 0.0, 10.0, 1), ("b", 2.5, 7.25, 4)]
    assert [job.tenant for job in made.jobs] == ["x", "y"]
    assert made.jobs[1].worker == ((0, 1000),)
    assert made.jobs[1].workers_min == 4
    assert made.setup.objective == "jct_mean_s"


def test_unsorted_rows_are_sorted_and_rows_of_one_instant_keep_their_order(write: Write) -> None:
    made = trace(write("id,arrive_s,duration_s,gpus\nc,5,1,1\nb,3,1,1\nz,5,2,1\na,5,3,1\n"))
    assert [job.id for job in made.jobs] == ["b", "c", "z", "a"]


def test_philly_counts_from_its_first_job_and_its_clusters_are_tenants(write: Write) -> None:
    text = (
        "timestamp,duration,num_gpus,gpu_time,cluster\n"
        "2017-10-09 07:01:55,66.0,1,66.0,11cb48\n"
        "2017-10-09 06:13:03,2951.0,2,5902.0,6214e9\n"
    )
    made = trace(write(text), "philly")
    assert seconds(made) == [("2", 0.0, 2951.0, 2), ("1", 2932.0, 66.0, 1)]
    assert [job.tenant for job in made.jobs] == ["6214e9", "11cb48"]


def test_tiresias_is_read(write: Write) -> None:
    text = (
        "job_id,num_gpu,submit_time,iterations,model_name,duration,interval\n"
        "0,1,0,606,vgg19,164,30\n"
        "1,8,30,133,vgg11,147,23\n"
    )
    assert seconds(trace(write(text), "tiresias")) == [("0", 0.0, 164.0, 1), ("1", 30.0, 147.0, 8)]


OPENB = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time\n"


def test_an_openb_pod_is_one_worker_with_its_share_of_a_gpu(write: Write) -> None:
    rows = "p0,12000,16384,1,460,,LS,Succeeded,100,400,150\np1,4000,1000,2,1000,V100M16,BE,Running,90,300,\n"
    made = trace(write(OPENB + rows), "openb", vcpus_per_server=96, mem_gb_per_server=512)
    assert seconds(made) == [("p1", 0.0, 210.0, 1), ("p0", 10.0, 250.0, 1)]
    assert made.setup.resources == ("gpu", "vcpu", "mem_gb")
    assert made.jobs[1].worker == ((0, 460), (1, 12000), (2, 17180))
    assert made.jobs[0].worker[0] == (0, 2000)
    assert made.setup.nodes[1].capacity_milli == (8000, 96000, 512000)


def test_rows_without_work_are_skipped_and_counted(write: Write) -> None:
    made = trace(write("id,arrive_s,duration_s,gpus\na,0,10,0\nb,1,0,2\nc,2,-5,2\nd,3,4,2\n"))
    assert [job.id for job in made.jobs] == ["d"]
    assert made.origin["rows_left_out"] == {"without a GPU": 1, "without a positive duration": 2}


def test_the_command_says_how_many_rows_were_left_out(tmp_path: Path) -> None:
    (tmp_path / "jobs.csv").write_text(HEAD + "a,0,10,0\nb,1,0,2\nc,2,5,2\n")
    words = ("generate", "trace", "--set", "file=jobs.csv", "-o", "trace.json")
    said = tradewind(*words, cwd=tmp_path).stdout
    assert said.endswith("rows left out: 1 without a GPU, 1 without a positive duration\n")
    (tmp_path / "jobs.csv").write_text(HEAD + "c,2,5,2\n")
    assert "left out" not in tradewind(*words, cwd=tmp_path).stdout


def test_pods_that_were_never_deleted_are_skipped_and_counted(write: Write) -> None:
    made = trace(write(OPENB + "a,1,1,1,500,,LS,Running,5,,6\nb,1,1,1,500,,LS,Running,5,9,6\n"), "openb")
    assert [job.id for job in made.jobs] == ["b"]
    assert made.origin["rows_left_out"] == {"without an end": 1}


HEAD = "id,arrive_s,duration_s,gpus\n"


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        (HEAD + "a,0,10,1\nb,soon,10,1\n", ("line 3", "column arrive_s", "'soon'", "a number")),
        (HEAD + "a,0,nan,1\n", ("line 2", "column duration_s", "'nan'", "finite")),
        (HEAD + "a,0,10,1.5\n", ("line 2", "column gpus", "'1.5'", "whole number")),
        (HEAD + "a,0,10,-1\n", ("line 2", "column gpus", "'-1'", "whole number")),
        (HEAD + "a,0,10\n", ("line 2", "3 values", "4 columns")),
        (HEAD + "a,0,1e300,1\n", ("line 2", "column duration_s", "1e300")),
        (HEAD + "a,-3,10,1\n", ("line 2", "found -3.0;", "0 or more")),
        (HEAD + "a,0,10,1\na,1,10,1\n", ("line 3", "'a'", "no other row")),
        (HEAD, ("no job",)),
        ("id,arrive_s,gpus\na,0,1\n", ("'duration_s' is missing", "line 1")),
        (
            "id,arrive_s,duration_s,gpus,gpus\na,0,5,1,2\n",
            ("line 1", "found 2 columns 'gpus'", "must be one"),
        ),
        ('"""Words\nin lines\n"\na\n', ("'id' is missing; found \"Words in lines, but",)),
        (f"{','.join(f'c{i}' for i in range(999))}\n", ("c0, c1,", " …, but this format needs")),
        ("", ("missing",)),
        ("# our log\n" + HEAD + "a,0,soon,1\n", ("line 3", "column duration_s", "'soon'")),
        ((HEAD + "a,0,10,1\n").replace(",", ";"), ("'id' is missing", "semicolons", "commas")),
        (HEAD + '"a\n', ("CSV",)),
    ],
)
def test_a_bad_row_is_refused_with_file_line_column_found_and_allowed(
    write: Write, text: str, parts: tuple[str, ...]
) -> None:
    with pytest.raises(InputError) as caught:
        trace(write(text))
    assert "jobs.csv" in str(caught.value)
    for part in parts:
        assert part in str(caught.value)


def test_lines_above_the_header_that_begin_with_a_hash_are_comments(write: Write) -> None:
    plain = trace(write(HEAD + "a,0,10,1\n"))
    said = trace(write(f'# jobs.csv, from our log\n# "2026"\n{HEAD}a,0,10,1\n'))
    assert said.jobs == plain.jobs


def test_a_bad_timestamp_is_refused_with_its_line(write: Write) -> None:
    with pytest.raises(InputError, match=r"line 3, column timestamp: found 'yesterday'"):
        trace(
            write("timestamp,duration,num_gpus,cluster\n2017-10-09 07:01:55,66,1,a\nyesterday,66,1,a\n"),
            "philly",
        )


def test_a_share_above_a_whole_gpu_is_refused(write: Write) -> None:
    with pytest.raises(InputError, match=r"line 2, column gpu_milli: found 1200"):
        trace(write(OPENB + "a,1,1,1,1200,,LS,Running,5,9,6\n"), "openb")


def test_a_file_that_is_not_text_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "jobs.csv"
    path.write_bytes(b"id,arrive_s\n\xff\xfe\x00")
    with pytest.raises(InputError, match="UTF-8"):
        trace(str(path))


def test_a_missing_file_is_an_input_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        trace(str(tmp_path / "nothing.csv"))


def test_an_unknown_parameter_suggests_the_nearest() -> None:
    with pytest.raises(LookupFailed, match="'servers'"):
        workloads.generate("trace", {"server": 3})


def test_an_unknown_workload_suggests_the_nearest() -> None:
    with pytest.raises(LookupFailed, match="'trace'"):
        workloads.generate("traces")


def test_a_parameter_of_the_wrong_type_is_refused() -> None:
    with pytest.raises(InputError, match=r"cluster\.jobs: found 'many'; it must be a whole number"):
        workloads.generate("cluster", {"jobs": "many"})


def test_only_listed_choices_are_taken(write: Write) -> None:
    with pytest.raises(InputError, match="philly"):
        trace(write(HEAD + "a,0,1,1\n"), "borg")


def test_private_runtimes_are_known_to_the_customer_only(write: Write) -> None:
    made = trace(write(HEAD + "a,0,10,1\n"), runtime="private")
    assert made.jobs[0].work.total is None
    assert made.customers[0].runtime_us == 10 * US_PER_S


def test_the_limit_takes_the_first_by_arrival(write: Write) -> None:
    made = trace(write(HEAD + "a,9,10,1\nb,1,10,1\nc,5,10,1\n"), limit=2)
    assert [job.id for job in made.jobs] == ["b", "c"]


def test_racks_hold_the_servers_evenly(write: Write) -> None:
    made = trace(write(HEAD + "a,9,10,1\n"), servers=6, racks=3)
    assert [len([n for n in made.setup.nodes if n.parent == rack]) for rack in (1, 2, 3)] == [2, 2, 2]
    assert len(made.setup.hosts) == 6


def test_a_synthetic_cluster_is_the_same_for_the_same_seed_only() -> None:
    first, again, other = (workloads.generate("cluster", {"jobs": 300}, seed) for seed in (7, 7, 8))
    assert first.jobs == again.jobs
    assert first.setup == again.setup
    assert first.jobs != other.jobs


def test_a_synthetic_cluster_asks_for_the_load_it_says() -> None:
    made = workloads.generate("cluster", {"jobs": 4000, "load": 1.1}, 3)
    asked = sum(job.work.total * job.workers_max for job in made.jobs if isinstance(job.work.total, int))
    span = made.jobs[-1].arrive_us
    assert asked / (span * 160) == pytest.approx(1.1, rel=0.01)
    assert {job.tenant for job in made.jobs} == {"vision", "speech", "search", "ads", "maps"}
    runtimes = np.array([job.work.total for job in made.jobs], float)
    assert np.mean(runtimes) > 2.5 * np.median(runtimes)


def test_more_jobs_arrive_at_noon_than_at_night() -> None:
    hours = arrivals_s(20_000, 4 * 86400.0, np.random.default_rng(0)) // 3600 % 24
    noon, night = np.isin(hours, (11, 12, 13)).sum(), np.isin(hours, (23, 0, 1)).sum()
    assert noon > 2.5 * night
