"""The command line, run as a user runs it: real processes, real files."""

from __future__ import annotations

import json
import re
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.command import tradewind

DPS = Path(__file__).parents[2] / "examples" / "dps.yaml"
TRADEWIND = [sys.executable, "-m", "tradewind.cli.main"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("cli")
    made = tradewind("generate", "cluster", "--set", "jobs=60", "--seed", "3", "-o", str(path / "s.json"))
    assert made.returncode == 0, made.stderr
    ran = tradewind(
        "run", str(path / "s.json"), "--policy", "srtf", "--seed", "1", "-o", str(path / "r.json")
    )
    assert ran.returncode == 0, ran.stderr
    return path


def test_help_answers_quickly_and_imports_no_heavy_library() -> None:
    heavy = "('numpy', 'numba', 'pydantic', 'matplotlib', 'sqlalchemy', 'rich', 'statistics')"
    code = f"import sys, tradewind.cli.main; print([m for m in {heavy} if m in sys.modules])"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert loaded.stdout.strip() == "[]"
    best = min(_cpu_seconds(["--help"]) for _ in range(3))
    assert best < 1.0  # 0.5 s; processor time, which other programs lengthen little


def test_a_run_without_a_page_imports_nothing_that_draws() -> None:
    code = "import sys; from tradewind.cli.main import main\ntry: main()\nfinally: print('matplotlib' in sys.modules)"
    words = ["run", "cluster", "--policy", "fifo", "--given", "jobs=5", "--json"]
    done = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "False"


@pytest.mark.parametrize("command", ["policies", "workloads"])
def test_a_listing_without_options_imports_no_heavy_library_and_prints_what_typer_would(command: str) -> None:
    heavy = "('numpy', 'numba', 'pydantic', 'matplotlib')"
    said = f"print([m for m in {heavy} if m in sys.modules])"
    code = f"import sys; from tradewind.cli.main import main\ntry: main()\nfinally: {said}"
    assert tradewind(command).returncode == 0  # the listing is kept from here on
    done = subprocess.run([sys.executable, "-c", code, command], capture_output=True, text=True, check=True)
    listing, _, imported = done.stdout.rstrip().rpartition("\n")
    assert imported == "[]"
    assert listing.rstrip() == tradewind(command, "").stdout.rstrip()  # an empty name goes through typer


def _cpu_seconds(args: list[str]) -> float:
    begin = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([*TRADEWIND, *args], stdout=subprocess.DEVNULL, timeout=120, check=True)
    end = resource.getrusage(resource.RUSAGE_CHILDREN)
    return end.ru_utime + end.ru_stime - begin.ru_utime - begin.ru_stime


def test_the_json_of_a_run_is_one_documented_object(folder: Path) -> None:
    done = tradewind("run", str(folder / "s.json"), "--policy", "las", "--bound", "--json")
    found = json.loads(done.stdout)
    assert done.stderr == ""
    assert {"policy", "objective", "metrics", "audit", "bound", "seconds"} <= set(found)
    assert found["policy"] == "las"
    assert found["objective"] == {"name": "jct_mean_s", "value": found["metrics"]["jct_mean_s"]}
    assert found["audit"] == {"ok": True, "violations": []}
    assert set(found["bound"]) == {"value", "sense", "ratio", "kind"}
    assert found["bound"]["ratio"] >= 1.0
    assert set(found["seconds"]) == {"total", "decide_p50", "decide_p99"}
    wanted = [
        "cost_usd",
        "cost_transfer_usd",
        "cost_rent_usd",
        "cost_deploy_usd",
        "cost_traffic_usd",
        "profit_usd",
    ]
    wanted += [
        "welfare_usd",
        "utility",
        "epoch_s",
        "jct_mean_s",
        "makespan_s",
        "jobs_accepted",
        "jobs_completed",
    ]
    assert set(wanted) <= set(found["metrics"])


def test_bound_is_null_unless_asked_for(folder: Path) -> None:
    assert (
        json.loads(tradewind("run", str(folder / "s.json"), "--policy", "fifo", "--json").stdout)["bound"]
        is None
    )


def test_the_same_run_twice_is_the_same_file_byte_for_byte(folder: Path, tmp_path: Path) -> None:
    again = tmp_path / "r.json"
    assert (
        tradewind(
            "run", str(folder / "s.json"), "--policy", "srtf", "--seed", "1", "-o", str(again)
        ).returncode
        == 0
    )
    assert again.read_bytes() == (folder / "r.json").read_bytes()


def test_audit_passes_a_good_run_and_fails_a_tampered_one(folder: Path, tmp_path: Path) -> None:
    good = tradewind("audit", str(folder / "s.json"), str(folder / "r.json"))
    assert (good.returncode, "ok" in good.stdout) == (0, True)
    other = tradewind(
        "generate", "cluster", "--set", "jobs=60", "--seed", "4", "-o", str(tmp_path / "other.json")
    )
    assert other.returncode == 0
    wrong = tradewind("audit", str(tmp_path / "other.json"), str(folder / "r.json"))
    assert wrong.returncode == 2
    assert "hash" in wrong.stderr


def test_a_run_in_another_folder_finds_the_file_or_workload_that_it_was_made_from(tmp_path: Path) -> None:
    for name in ("in", "out"):
        (tmp_path / name).mkdir()
    small = ("generate", "cluster", "--set", "jobs=5", "-o", "in/s.json")
    assert tradewind(*small, cwd=tmp_path).returncode == 0
    for source, more in (("in/s.json", ()), ("cluster", ("--given", "jobs=4", "--seed", "3"))):
        ran = tradewind("run", source, "--policy", "fifo", *more, "-o", "out/r.json", cwd=tmp_path)
        assert ran.returncode == 0, ran.stderr
        told = tradewind("show", "out/r.json", "--json", cwd=tmp_path)
        assert told.returncode == 0, told.stderr
        assert len({row["job"] for row in json.loads(told.stdout)}) == (4 if more else 5)


def test_a_slot_without_a_unit_is_pointed_out_before_anything_runs(tmp_path: Path) -> None:
    text = (
        "{tradewind_scenario: 1, objective: jct_mean_s, slot_us: SLOT, horizon_us: 2 min,"
        "nodes: [{name: a, capacity: {gpu: 8}}],"
        "jobs: [{id: j, worker: {gpu: 1}, work: {runtime_us: 1 s}}]}"
    )
    for slot, warned in (("3600", True), ("3600 us", False), ("1 s", False)):
        (tmp_path / "s.yaml").write_text(text.replace("SLOT", slot))
        done = tradewind("run", "s.yaml", "--policy", "fifo", cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert ("3600 microseconds (0.0036 s), so that the horizon has 33,333 slots" in done.stderr) == warned
        assert "Warning" not in done.stderr


def test_a_comparison_says_why_a_policy_sold_nothing(tmp_path: Path) -> None:
    text = re.sub(r"budget_usd: [\d.]+", "budget_usd: 0.0001", DPS.read_text())
    (tmp_path / "s.yaml").write_text(text)
    done = tradewind("compare", "s.yaml", "--policies", "random", cwd=tmp_path)
    assert "random: None of the 8 jobs that were made an offer accepted it" in " ".join(done.stdout.split())


def test_a_report_of_the_same_run_twice_is_refused_and_does_not_show_two_seeds(
    folder: Path, tmp_path: Path
) -> None:
    again = str(tmp_path / "again.json")
    ran = tradewind("run", str(folder / "s.json"), "--policy", "srtf", "--seed", "1", "-o", again)
    assert ran.returncode == 0, ran.stderr
    words = ("--scenario", str(folder / "s.json"), "-o", str(tmp_path / "r.html"))
    for runs in ((str(folder / "r.json"), again), (again, again)):
        done = tradewind("report", *runs, *words)
        assert done.returncode == 2
        assert f"it has the policy, parameters and seed of {runs[0]}" in done.stderr
    other = tradewind("run", str(folder / "s.json"), "--policy", "srtf", "--seed", "2", "-o", again)
    assert other.returncode == 0, other.stderr
    assert tradewind("report", str(folder / "r.json"), again, *words).returncode == 0


def test_a_report_of_runs_of_unlike_scenarios_is_refused(tmp_path: Path) -> None:
    for name, policy in (("dps", "random"), ("cluster", "fifo")):
        given = ("--given", "jobs=5") if name == "cluster" else ()
        source = str(DPS) if name == "dps" else name
        ran = tradewind("run", source, "--policy", policy, *given, "-o", f"{name}.json", cwd=tmp_path)
        assert ran.returncode == 0, ran.stderr
    done = tradewind("report", "dps.json", "cluster.json", "-o", "r.html", cwd=tmp_path)
    assert done.returncode == 2
    assert "cluster.json: it is a run of" in done.stderr
    assert "Traceback" not in done.stderr


def test_replay_finds_its_scenario_beside_it_and_rebuilds_the_books(folder: Path) -> None:
    done = tradewind("replay", str(folder / "r.json"), "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["same"] is True


def test_compare_writes_a_report_and_intervals_over_seeds(tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    args = (
        "compare",
        "cluster",
        "--given",
        "jobs=40",
        "--policies",
        "fifo,las",
        "--seeds",
        "3",
        "-o",
        str(page),
        "--json",
    )
    done = tradewind(*args)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert len(found["runs"]) == 6
    first = found["summary"][0]["objective"]
    assert first["low95"] < first["mean"] < first["high95"]
    assert page.read_text().startswith("<!")


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("run", "cluster", "--policy", "fifoo"), "Did you mean 'fifo'"),
        (("run", "clustr", "--policy", "fifo"), "Did you mean 'cluster'"),
        (("run", "missing.json", "--policy", "fifo"), "missing.json"),
        (("run", "cluster", "--policy", "las", "--set", "limit=1"), "Did you mean 'limits'"),
        (("run", "cluster", "--policy", "las", "--set", "limits"), "NAME=VALUE"),
        (("generate", "cluster", "--set", "jobs=many", "-o", "x.json"), "whole number"),
        (("generate", "cluster", "-o", "x.txt"), "x.txt"),
        (("compare", "cluster", "--policies", ","), "--policies"),
        (("schema", "scenari"), "scenario"),
        (("run",), "SCENARIO"),
        (("audit", "a.json", "b.json"), "a.json"),
    ],
)
def test_a_mistake_ends_with_code_2_and_a_sentence(args: tuple[str, ...], words: str, tmp_path: Path) -> None:
    done = tradewind(*args, cwd=tmp_path)
    assert done.returncode == 2
    assert words in done.stderr
    assert "Traceback" not in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_schema_is_a_json_schema() -> None:
    for which in ("scenario", "run"):
        done = tradewind("schema", which)
        assert done.returncode == 0
        assert "$defs" in json.loads(done.stdout)


def test_policies_and_workloads_list_their_parameters() -> None:
    names = {line["name"]: line for line in json.loads(tradewind("policies", "--json").stdout)}
    assert names["las"]["params"]["limits"]["default"] == "3250,7200"
    lines = {line["name"]: line for line in json.loads(tradewind("workloads", "--json").stdout)}
    assert "jobs" in lines["cluster"]["params"]


def test_a_brokered_run_bills_its_tenants_and_explains_a_placement(tmp_path: Path) -> None:
    made = ("generate", "mlbroker", "--set", "slots=3", "--set", "sites=5", "--set", "jobs_per_slot=4")
    assert tradewind(*made, "-o", str(tmp_path / "m.json")).returncode == 0
    ran = tradewind("run", str(tmp_path / "m.json"), "--policy", "mlbroker", "-o", str(tmp_path / "r.json"))
    assert ran.returncode == 0, ran.stderr
    assert "bills by tenant" in ran.stdout
    compared = tradewind("compare", str(tmp_path / "m.json"), "--policies", "mlbroker,local").stdout
    bills = {
        usd for line in ran.stdout.splitlines() if "pooled" in line for usd in [line.split("│")[3].strip()]
    }
    rows = [
        line.split("│")[1:-1] for line in compared.splitlines() if "│ pooled" in line or " pooled │" in line
    ]
    assert bills == {row[2].strip() for row in rows}
    assert any(row[2] != row[3] for row in rows)
    job = json.loads((tmp_path / "m.json").read_text())["jobs"][0]["id"]
    said = tradewind("explain", str(tmp_path / "r.json"), "--job", job, "--slot", "0", "--json")
    assert said.returncode == 0, said.stderr
    found = json.loads(said.stdout)
    assert found["next_usd"] is None or found["next_usd"] >= found["added_usd"] - 1e-9
    assert found["tiers"]
    unknown = tradewind("explain", str(tmp_path / "r.json"), "--job", "nobody", "--slot", "0")
    assert (unknown.returncode, "nobody" in unknown.stderr) == (2, True)


def test_a_wan_is_planned_with_a_checked_certificate() -> None:
    done = tradewind("plan-wan", "internet2", "--model", "resnet50", "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["certificate_checked"] is True
    assert 1.0 <= found["ratio"] <= 1.0 + 1e-9
    missing = tradewind("plan-wan")
    assert (missing.returncode, "b4" in missing.stderr.lower()) == (2, True)


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_an_interrupted_run_leaves_no_file(how: signal.Signals, tmp_path: Path) -> None:
    long = ["--given", "jobs=50000", "--loop"]  # a short run may end, with its file, before the signal comes
    args = ["run", "cluster", *long, "--policy", "las", "-o", str(tmp_path / "r.json")]
    for delay in (0.3, 1.2):
        child = subprocess.Popen(
            [*TRADEWIND, *args], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
        )
        time.sleep(delay)
        child.send_signal(how)
        _, said = child.communicate(timeout=60)
        if child.returncode:
            assert not (tmp_path / "r.json").exists()
            assert "Traceback" not in said or delay < 1.0  # an interrupt while Python starts is Python's own
