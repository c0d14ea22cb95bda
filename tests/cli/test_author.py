"""Claims about `tradewind new` and `check-policy`: what is written works, what is broken is found."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests import command


def tradewind(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return command.tradewind(*arguments, cwd=folder)


def test_a_new_policy_runs_is_compared_and_passes_its_test(tmp_path: Path) -> None:
    made = tradewind(tmp_path, "new", "policy", "my-idea")
    assert made.returncode == 0, made.stderr
    compared = tradewind(
        tmp_path,
        "compare",
        "cluster",
        "--given",
        "jobs=30",
        "--policies",
        "fifo,./my_idea.py:MY_IDEA",
        "--json",
    )
    assert compared.returncode == 0, compared.stderr
    assert [run["policy"] for run in json.loads(compared.stdout)["runs"]] == ["fifo", "my-idea"]
    tested = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "."], cwd=tmp_path, check=False
    )
    assert tested.returncode == 0


def test_a_new_workload_generates_and_passes_its_test(tmp_path: Path) -> None:
    assert tradewind(tmp_path, "new", "workload", "my-load").returncode == 0
    made = tradewind(tmp_path, "generate", "./my_load.py:MY_LOAD", "--set", "jobs=7", "-o", "s.json")
    assert made.returncode == 0, made.stderr
    assert len(json.loads((tmp_path / "s.json").read_text())["jobs"]) == 7
    refused = tradewind(tmp_path, "generate", "./my_load.py:MY_LOAD", "--set", "jobs=0", "-o", "s.json")
    assert refused.returncode == 2
    assert "jobs" in refused.stderr
    tested = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "."], cwd=tmp_path, check=False
    )
    assert tested.returncode == 0


@pytest.mark.parametrize("name", ["My-Idea", "1st", "a--b", "a-", "class", "../x", "x" * 50, ""])
def test_a_name_that_python_cannot_take_is_refused(tmp_path: Path, name: str) -> None:
    done = tradewind(tmp_path, "new", "policy", name)
    assert done.returncode == 2
    assert "NAME" in done.stderr
    assert not list(tmp_path.iterdir())


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    (tmp_path / "test_mine.py").write_text("precious")
    done = tradewind(tmp_path, "new", "policy", "mine")
    assert done.returncode == 2
    assert "exists already" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["test_mine.py"]


def test_a_policy_with_hidden_state_fails_the_check(tmp_path: Path) -> None:
    assert tradewind(tmp_path, "new", "policy", "forgetful").returncode == 0
    text = (tmp_path / "forgetful.py").read_text()
    text = text.replace(
        "        if self.newest_first:\n",
        "        self.calls = getattr(self, 'calls', 0) + 1\n        if self.calls % 3:\n",
    )
    (tmp_path / "forgetful.py").write_text(text)
    done = tradewind(tmp_path, "check-policy", "./forgetful.py:FORGETFUL", "--json")
    assert done.returncode == 1, done.stderr
    failed = [check for check in json.loads(done.stdout)["checks"] if not check["ok"]]
    assert failed
    assert all("restore" in check["check"] + check["detail"] for check in failed)
    assert "save() must hold the whole state" in failed[0]["detail"]


def test_a_policy_that_forgets_the_limits_of_racks_fails_the_check(tmp_path: Path) -> None:
    assert tradewind(tmp_path, "new", "policy", "flat").returncode == 0
    text = (tmp_path / "flat.py").read_text().replace("view.setup.lineage[node]", "(node,)")
    (tmp_path / "flat.py").write_text(text)
    done = tradewind(tmp_path, "check-policy", "./flat.py")
    assert done.returncode == 1
    assert "capacity.node" in done.stdout


def test_a_policy_that_crashes_fails_the_check_without_a_traceback(tmp_path: Path) -> None:
    assert tradewind(tmp_path, "new", "policy", "crash").returncode == 0
    text = (
        (tmp_path / "crash.py")
        .read_text()
        .replace("        plans: list[Plan] = []\n", "        plans = 1 / 0\n")
    )
    (tmp_path / "crash.py").write_text(text)
    done = tradewind(tmp_path, "check-policy", "./crash.py")
    assert done.returncode == 1
    assert "division by zero" in done.stdout
    assert "crash.py, line" in done.stdout
    assert "Traceback" not in done.stderr


def test_a_policy_that_cannot_be_made_is_an_error_without_a_traceback(tmp_path: Path) -> None:
    assert tradewind(tmp_path, "new", "policy", "crash").returncode == 0
    text = (tmp_path / "crash.py").read_text().replace('params["newest_first"]', 'params["newest"]')
    (tmp_path / "crash.py").write_text(text)
    done = tradewind(tmp_path, "run", "cluster", "--given", "jobs=3", "--policy", "./crash.py")
    assert done.returncode == 1
    assert "crash cannot be made: KeyError: 'newest' (crash.py, line" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("first", "said"),
    [
        ("return 1 / 0", "load failed: ZeroDivisionError: division by zero (load.py, line"),
        ("return [1]", "load returned list; it must return a Scenario"),
    ],
)
def test_a_workload_that_makes_no_scenario_is_an_error_without_a_traceback(
    tmp_path: Path, first: str, said: str
) -> None:
    assert tradewind(tmp_path, "new", "workload", "load").returncode == 0
    begin = "    random = np.random.default_rng(seed)\n"
    text = (tmp_path / "load.py").read_text()
    assert begin in text
    (tmp_path / "load.py").write_text(text.replace(begin, f"    {first}\n{begin}"))
    for words in (("generate", "./load.py", "-o", "s.json"), ("run", "./load.py:LOAD", "--policy", "fifo")):
        done = tradewind(tmp_path, *words)
        assert done.returncode == 1
        assert said in done.stderr
        assert "Traceback" not in done.stderr


def test_help_version_and_one_policy_are_shown(tmp_path: Path) -> None:
    assert "check-policy" in tradewind(tmp_path, "-h").stdout
    assert tradewind(tmp_path, "--version").stdout == tradewind(tmp_path, "version").stdout
    shown = tradewind(tmp_path, "policies", "las").stdout
    assert "tick_s" in shown
    assert ("1e-06 to 1000000000" in shown, "float" in shown) == (True, False)
    assert "example: tradewind run" in shown
    assert "gpus_per_server" in tradewind(tmp_path, "workloads", "cluster").stdout
    assert tradewind(tmp_path, "policies", "lass").returncode == 2
    assert "--install-completion" in tradewind(tmp_path, "-h").stdout
