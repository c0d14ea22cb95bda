"""Comparing several settings of policies: from the command line, from Python, and as files."""

from __future__ import annotations

import csv
import json
import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import tradewind as tw
from tests.command import tradewind
from tradewind.model.errors import InputError, LookupFailed
from tradewind.registry import policies

ROOT = Path(__file__).parents[2]
UNTYPED: Any = tw
"""The API as somebody without a type checker calls it."""


def small() -> tw.Scenario:
    return tw.generate("cluster", jobs=30, servers=2, load=1.5, seed=1)


def test_one_policy_with_several_settings_gives_what_separate_runs_give() -> None:
    scenario = small()
    found = tw.compare(scenario, ["las", "las:limits=60,600", "las:limits=60,600:tick_s=5"])
    alone = [
        tw.run(scenario, policy="las", params=params)
        for params in ({}, {"limits": "60,600"}, {"limits": "60,600", "tick_s": 5.0})
    ]
    assert [run.tables for run in found.runs] == [run.tables for run in alone]
    assert [dict(run.params) for run in found.runs] == [dict(run.params) for run in alone]


def test_a_comma_within_a_value_ends_no_policy() -> None:
    assert policies.split("fifo, las:limits=60,600,7200:tick_s=2,srtf") == [
        "fifo",
        "las:limits=60,600,7200:tick_s=2",
        "srtf",
    ]
    assert policies.split("./a.py:MINE:depth=3,las") == ["./a.py:MINE:depth=3", "las"]
    assert policies.split("las,nonsense") == ["las", "nonsense"]
    with pytest.raises(LookupFailed, match="nonsense"):
        tw.compare(small(), policies.split("las,nonsense"))


def test_a_wrong_parameter_is_said_before_the_first_run() -> None:
    def never(*_: object) -> None:
        raise AssertionError("a run was made")

    with pytest.raises(LookupFailed, match="Did you mean 'limits'"):
        tw.compare(small(), ["fifo", "las:limit=3"], progress=never)


@pytest.mark.parametrize(
    ("policy", "says"),
    [
        ("las:limits=60,600,tick_s=5", r"separate parameters by colons: limits=60,600:tick_s=5"),
        ("eris:gamma=1000,floor=none", r"separate parameters by colons: gamma=1000:floor=none"),
        ("las:limits", r"found 'limits' after the colon; write las:NAME=VALUE"),
        ("las:", r"found '' after the colon; write las:NAME=VALUE"),
    ],
)
def test_parameters_that_are_not_separated_by_colons_are_explained(policy: str, says: str) -> None:
    with pytest.raises(InputError, match=says):
        policies.with_rivals(policies.split(f"fifo,{policy},fcfs"))


def test_a_setting_that_is_named_twice_is_run_once_and_not_taken_for_two_seeds() -> None:
    found = tw.compare(small(), ["las", "las:tick_s=1", "las:limits=3250,7200:tick_s=1.0", "las:tick_s=5"])
    assert [run.params["tick_s"] for run in found.runs] == [1.0, 5.0]


def test_two_files_whose_policies_have_one_name_are_refused(tmp_path: Path) -> None:
    assert tradewind("new", "policy", "mine", cwd=tmp_path).returncode == 0
    (tmp_path / "other.py").write_text((tmp_path / "mine.py").read_text())
    words = ("compare", "cluster", "--given", "jobs=5", "--policies")
    refused = tradewind(*words, "./mine.py,./other.py", cwd=tmp_path)
    assert refused.returncode == 2
    assert "policies: two are called 'mine'; give one of them another name in its Spec" in refused.stderr
    same = tradewind(*words, "./mine.py,mine.py:MINE,./mine.py:newest_first=false", cwd=tmp_path)
    assert same.returncode == 0, same.stderr
    assert "mine (newest_first=False)" in same.stdout


def test_pairs_within_a_value_are_not_parameters() -> None:
    (found, *_) = policies.with_rivals(policies.split("dps:contracts=acme=2.5,floor=3"))
    assert found.params == {"contracts": "acme=2.5,floor=3"}


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda s: UNTYPED.compare(s, "las"), "give a list of at least one, such as"),
        (lambda s: UNTYPED.compare(s, []), "give a list of at least one, such as"),
        (lambda s: UNTYPED.compare(s, ["las"], seeds=3), r"such as range\(3\)"),
        (lambda s: UNTYPED.compare(s, ["las"], seeds=[]), r"such as range\(3\)"),
        (
            lambda s: UNTYPED.compare([s, s], ["las"]),
            "found 2 with 1 seeds; give one scenario, or one for each seed",
        ),
        (lambda s: UNTYPED.compare([], ["las"]), "found 0 with 1 seeds"),
        (lambda s: UNTYPED.compare(s, ["las"], params={"limits": "60"}), "Known: las"),
        (lambda s: UNTYPED.compare(s, ["las"], params={"fifo": {}}), "Known: las"),
        (lambda s: UNTYPED.compare(s, ["las"], params={"las": "60"}), "give its parameters"),
        (lambda s: UNTYPED.compare(3, ["las"]), "found a int; give a Scenario or the path of a file"),
        (lambda s: UNTYPED.run(None, "las"), "found a NoneType; give a Scenario or the path of a file"),
        (lambda s: UNTYPED.optimum(s, effort=0), "whole number from 1 to 9"),
    ],
)
def test_wrong_arguments_are_explained(call: Callable[[tw.Scenario], object], says: str) -> None:
    with pytest.raises(InputError, match=says):
        call(small())


def test_a_comparison_is_a_frame_and_has_a_short_form() -> None:
    found = tw.compare(small(), ["fifo", "las", "las:limits=60,600", "srtf"], bound=True)
    frame = found.frame()
    assert frame["label"].tolist() == ["fifo", "las (limits=3250,7200)", "las (limits=60,600)", "srtf"]
    assert frame["value"].tolist() == [run.value for run in found.runs]
    assert frame["ratio"].tolist() == [run.bound.ratio for run in found.runs if run.bound]
    assert repr(found.runs[0]).startswith("Run(fifo on 'cluster-30', seed 0: jct_mean_s ")
    assert repr(found).startswith("Comparison(4 runs: Run(fifo")
    assert repr(found).endswith(", …)")


def test_the_optimum_of_a_small_scenario_is_proven_and_audited() -> None:
    given = {"family": "narrow", "sites": 3, "slots": 4, "jobs_per_slot": 2, "data_gb": 100}
    scenario = tw.generate("mlbroker", seed=2, threshold_scale=0.05, **given)
    found = tw.optimum(scenario)
    assert found.proven
    assert found.run is not None
    assert found.bound == pytest.approx(found.run.value, rel=1e-6)
    assert tw.check(scenario, found.run) == ()
    rivals = tw.compare(scenario, ["mlbroker", "central"]).runs
    assert all(run.value >= found.run.value * (1 - 1e-6) for run in rivals)


def test_a_gap_that_is_open_is_not_called_an_optimum(tmp_path: Path) -> None:
    words = ("--given", "jobs=12", "--given", "servers=1", "--given", "gpus_per_server=4", "--seed", "1")
    done = tradewind("optimum", "cluster", *words, "-o", "best.json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "not proven: the gap is 33.4%" in done.stdout
    assert tw.load_run(tmp_path / "best.json").policy == "offline-1"
    refused = tradewind("optimum", str(ROOT / "examples" / "gadget.yaml"), "-o", "x.json", cwd=tmp_path)
    assert refused.returncode == 2
    assert "no plan to write; no system has an offline solver for utility" in refused.stderr
    large = tradewind("optimum", "mlbroker", "--given", "slots=3", cwd=tmp_path)
    assert large.returncode == 0, large.stderr
    assert "the offline solver of mlbroker found no plan: the scenario is too large" in large.stdout


def test_scenarios_may_be_paths_and_seeds_must_not_be_negative(tmp_path: Path) -> None:
    tw.dump(small(), tmp_path / "s.json")
    by_path = tw.compare(tmp_path / "s.json", ["fifo"])
    assert by_path.runs[0].metrics == tw.run(str(tmp_path / "s.json"), policy="fifo").metrics
    for call in (lambda: tw.generate("cluster", seed=-1), lambda: tw.run(small(), policy="fifo", seed=-1)):
        with pytest.raises(InputError, match="whole number from 0"):
            call()


def test_tables_are_frames() -> None:
    run = tw.run(small(), policy="las")
    frame = run.frame("steps")
    assert list(frame.columns) == list(run.tables["steps"])
    assert frame["from_us"].tolist() == run.tables["steps"]["from_us"]
    with pytest.raises(LookupFailed, match="table of this run"):
        run.frame("stepz")


def test_the_example_runs(capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(ROOT / "examples" / "sweep.py"), run_name="__main__")
    said = capsys.readouterr().out
    assert "las    600,3600   seed 2" in said
    assert "jobs were interrupted" in said


def test_the_command_sets_parameters_of_policies_and_of_the_workload_apart(tmp_path: Path) -> None:
    def said(*words: str) -> str:
        done = tradewind("compare", "cluster", *words, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        return done.stdout

    found = json.loads(
        said("--policies", "fifo,las,las:limits=60,600", "--given", "jobs=20", "--set", "tick_s=2", "--json")
    )
    assert [run["params"].get("tick_s") for run in found["runs"]] == [None, 2.0, 2.0]
    assert [run["params"].get("limits") for run in found["runs"]] == [None, "3250,7200", "60,600"]
    for ending in ("csv", "json", "parquet", "html"):
        said("--policies", "fifo,las", "--given", "jobs=20", "--seeds", "2", "-o", f"x.{ending}")
    rows = list(csv.DictReader((tmp_path / "x.csv").open()))
    assert [(row["policy"], row["seed"]) for row in rows] == [
        ("fifo", "0"),
        ("fifo", "1"),
        ("las", "0"),
        ("las", "1"),
    ]
    assert [row["value"] for row in json.loads((tmp_path / "x.json").read_text())] == [
        float(row["value"]) for row in rows
    ]
    assert [row["params"] for row in json.loads((tmp_path / "x.json").read_text())] == [
        json.loads(row["params"]) for row in rows
    ], "objects in JSON, text in tables"
    assert pq.read_table(tmp_path / "x.parquet").column("value").to_pylist() == [
        float(row["value"]) for row in rows
    ]
    assert "seeds 0, 1" in (tmp_path / "x.html").read_text()


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (("cluster", "--policies", "las", "--set", "jobs=20"), "--given"),
        (("cluster", "--policies", "las", "--given", "job=20"), "Did you mean 'jobs'"),
        (("cluster", "--policies", "las", "-o", "x.pdf"), ".parquet"),
    ],
)
def test_a_parameter_in_the_wrong_place_is_explained(
    words: tuple[str, ...], part: str, tmp_path: Path
) -> None:
    done = tradewind("compare", *words, cwd=tmp_path)
    assert (done.returncode, part in done.stderr) == (2, True), done.stderr
