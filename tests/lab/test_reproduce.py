"""Reproducing a paper: CSV, pictures and a page; results survive interruptions and are recomputed when code changes."""

from __future__ import annotations

import csv
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.lab import sample_study
from tradewind.cli import show
from tradewind.lab.reproduce import commit, reproduce, shortest_first
from tradewind.lab.reproduce_times import Times, collect, expected
from tradewind.lab.study import Effort
from tradewind.model.errors import InputError, LookupFailed
from tradewind.registry import studies
from tradewind.tasks.pool import PoolTask

QUICK = Effort(quick=True, seeds=3)
MADE = {"made": "STUDY", "pieces": "PIECES", "broken": "BROKEN"}


@pytest.fixture(autouse=True)
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, attribute in MADE.items():
        monkeypatch.setitem(studies.entries, name, f"tests.lab.sample_study:{attribute}")
    monkeypatch.chdir(tmp_path)


def computed() -> int:
    return len(sample_study.COUNTER.read_text())


def test_every_figure_becomes_a_table_two_pictures_and_a_part_of_the_page(tmp_path: Path) -> None:
    results = reproduce(["made"], tmp_path / "out", effort=QUICK)
    assert [(r.word, r.verdict.ours) for r in results] == [("partly reproduced", "holds")] * 2
    page = (tmp_path / "out" / "index.html").read_text()
    for name in ("fig-1", "table-2"):
        with (tmp_path / "out" / "made" / f"{name}.csv").open() as file:
            rows = list(csv.DictReader(file))
        assert [(r["size"], r["policy"]) for r in rows[:2]] == [("1.0", "ours"), ("1.0", "theirs")]
        assert (tmp_path / "out" / "made" / f"{name}.svg").read_text().startswith("<svg")
        assert (tmp_path / "out" / "made" / f"{name}.png").read_bytes().startswith(b"\x89PNG")
        assert f"Figure {name}" in page
    assert "&lt;half&gt;" in page
    assert "http://" not in page.replace("http://www.w3.org", "")


def test_claims_are_a_table_with_what_was_found_for_the_paper_and_for_ours(tmp_path: Path) -> None:
    (result,) = reproduce(["made"], tmp_path / "out", effort=QUICK, figure="fig-1")
    with (tmp_path / "out" / "verdicts.csv").open() as file:
        cheap, positive, fast = csv.DictReader(file)
    assert (cheap["claim"], cheap["paper"], cheap["paper holds"], cheap["ours"], cheap["ours holds"]) == (
        "cheap", "theirs", "no", "ours", "yes"
    )  # fmt: skip
    assert cheap["paper found"] == "8 against 8"
    assert cheap["ours found"] == "5 against 8"
    assert (positive["paper"], positive["paper holds"], positive["ours holds"]) == ("", "yes", "")
    assert (fast["paper holds"], fast["paper found"]) == ("", "")
    page = (tmp_path / "out" / "index.html").read_text()
    assert "theirs: 8 against 8" in page
    assert "ours (ours): 5 against 8" in page
    assert ">no judge<" in page
    assert result.unjudged() == ["no judge: fast: theirs is fast"]
    assert result.short() == "1 of 2 claims hold; not: cheap"


def test_claims_without_a_judge_are_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    results = reproduce(["made"], tmp_path / "out", effort=QUICK, figure="fig-1")
    show.reproduction(results, tmp_path / "out", as_json=False)
    assert "made/fig-1: no judge: fast: theirs is fast" in capsys.readouterr().out
    show.reproduction(results, tmp_path / "out", as_json=True)
    (printed,) = json.loads(capsys.readouterr().out)
    assert (printed["verdict"], printed["ours"]) == ("partly reproduced", "holds")
    assert [c["claim"] for c in printed["claims"]] == ["cheap", "positive", "fast"]


def test_saved_results_are_reused_unless_the_effort_changes(tmp_path: Path) -> None:
    reproduce(["made"], tmp_path / "out", effort=QUICK, figure="fig-1")
    assert computed() == 1
    reproduce(["made"], tmp_path / "out", effort=QUICK, figure="fig-1")
    assert computed() == 1
    reproduce(["made"], tmp_path / "out", effort=Effort(quick=True, seeds=2), figure="fig-1")
    assert computed() == 2
    reproduce(["made"], tmp_path / "out", effort=QUICK, figure="fig-1")
    assert computed() == 2, "the results of another effort are kept beside"


def test_figures_of_the_same_code_are_computed_once(tmp_path: Path) -> None:
    first, second = reproduce(["made"], tmp_path / "out", effort=QUICK)
    assert computed() == 1
    assert first.rows == second.rows
    assert len(list((tmp_path / "out" / "kept").iterdir())) == 2
    reproduce(["made"], tmp_path / "out", effort=QUICK)
    assert computed() == 1


def test_one_process_begins_with_the_study_that_takes_least() -> None:
    def task(group: str, figure: str, part: str, seconds: float) -> PoolTask:
        args = ("study", figure, part)
        return PoolTask(name=f"{figure}/{part}", group=group, call=print, args=args, expected_s=seconds)

    tasks = [
        task("long", "b", "2", 50.0),
        task("long", "b", "1", 60.0),
        task("short", "d", "", 9.0),
        task("long", "a", "", 5.0),
        task("short", "c", "", 1.0),
    ]
    assert [t.name for t in shortest_first(tasks)] == ["c/", "d/", "a/", "b/2", "b/1"]


def test_results_name_the_commit_of_their_code(tmp_path: Path) -> None:
    reproduce(["made"], tmp_path / "out", effort=QUICK, figure="fig-1")
    (kept,) = (tmp_path / "out" / "kept").iterdir()
    assert json.loads(kept.read_text())["commit"] == commit()
    assert re.fullmatch(r"([0-9a-f]{7}\+?)?", commit())


def test_the_same_effort_gives_the_same_page_byte_for_byte(tmp_path: Path) -> None:
    for folder in ("a", "b"):
        reproduce(["made"], tmp_path / folder, effort=QUICK)
    assert (tmp_path / "a" / "index.html").read_bytes() == (tmp_path / "b" / "index.html").read_bytes()


def test_a_damaged_file_is_computed_again(tmp_path: Path) -> None:
    reproduce(["made"], tmp_path / "out", effort=QUICK, figure="fig-1")
    (kept,) = (tmp_path / "out" / "kept").iterdir()
    for damage in ("{half", "[]", '{"key": "other"}'):
        kept.write_text(damage)
        reproduce(["made"], tmp_path / "out", effort=QUICK, figure="fig-1")
    assert computed() == 4


def test_an_unknown_figure_is_rejected_with_a_suggestion(tmp_path: Path) -> None:
    with pytest.raises(LookupFailed, match="fig-1"):
        reproduce(["made"], tmp_path / "out", effort=QUICK, figure="fig-11")


@pytest.mark.parametrize("arrivals", ["google", "nope:jobs.csv", "google:missing.csv", "google:empty.csv"])
def test_arrivals_that_cannot_be_read_are_refused_before_anything_is_computed(
    arrivals: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("empty.csv").write_text("submit_s,start_s,end_s,user\n")
    with pytest.raises(InputError):
        reproduce(["made"], tmp_path / "out", effort=Effort(quick=True, seeds=2, arrivals=arrivals))
    assert not (tmp_path / "out").exists()


def test_a_failed_figure_is_reported_and_the_others_are_computed(tmp_path: Path) -> None:
    broken, fine = reproduce(["broken"], tmp_path / "out", effort=QUICK)
    assert broken.failed
    assert "three is not two" in broken.error
    assert fine.word == "partly reproduced"
    page = (tmp_path / "out" / "index.html").read_text()
    assert "three is not two" in page
    assert ">failed<" in page
    assert not list((tmp_path / "out" / "kept").glob("broken-fig-9*")), "a failure is not kept"


def begin(folder: Path, jobs: int) -> subprocess.Popen[bytes]:
    """Start `reproduce` of the study with parts in a separate process."""
    code = (
        "import signal; signal.signal(signal.SIGINT, signal.default_int_handler);"  # a background job ignores it
        "from pathlib import Path; from tradewind.registry import studies; from tradewind.cli.guard import guarded;"
        "from tradewind.lab.reproduce import reproduce; from tradewind.lab.study import Effort;"
        "from tradewind.tasks.pool import Where;"
        "studies.entries['pieces'] = 'tests.lab.sample_study:PIECES';"
        f"import sys; sys.exit(guarded(lambda: reproduce(['pieces'], Path('out'), "
        f"effort=Effort(quick=True, seeds=3), where=Where({jobs}))))"
    )
    root = Path(__file__).parents[2]
    env = os.environ | {"PYTHONPATH": os.pathsep.join([str(root), *(p for p in sys.path if p)])}
    return subprocess.Popen([sys.executable, "-c", code], cwd=folder, env=env, stderr=subprocess.DEVNULL)


def until(reached: Callable[[], bool]) -> None:
    """Wait until the condition holds; fail after two minutes."""
    for _ in range(6000):
        if reached():
            return
        time.sleep(0.02)
    raise AssertionError("the condition was not reached")


def kept(folder: Path) -> int:
    return len(list((folder / "out" / "kept").glob("pieces-*.json")))


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    stat = Path(f"/proc/{pid}/stat")
    return not (stat.exists() and stat.read_text().split(")")[1].split()[0] == "Z")


@pytest.mark.parametrize(("how", "code"), [(signal.SIGINT, 130), (signal.SIGKILL, -9)])
def test_an_interrupted_reproduction_resumes(tmp_path: Path, how: int, code: int) -> None:
    running = begin(tmp_path, jobs=2)
    until(lambda: kept(tmp_path) == 2 and len(sample_study.PIDS.read_text().split()) == 4)
    running.send_signal(how)
    assert running.wait(timeout=120) == code
    until(lambda: not any(alive(int(pid)) for pid in sample_study.PIDS.read_text().split()))
    assert computed() == 2
    sample_study.GATE.write_text("open")
    (result,) = reproduce(["pieces"], tmp_path / "out", effort=QUICK)
    assert computed() == 4, "two parts were kept, two computed now"
    assert [r["size"] for r in result.rows] == [0, 0, 1, 1, 2, 2, 3, 3]


def test_the_time_of_the_full_version_is_measured_or_estimated_from_the_quick_one() -> None:
    times: Times = {"quick": {"dps/fig-2": 2.0, "dps/fig-3": 4.0}, "full": {"dps/fig-2": 100.0}}
    full = Effort(quick=False, seeds=3)
    assert expected("dps", "fig-2", full, times) == (100.0, True)
    assert expected("dps", "fig-3", full, times) == (200.0, False)
    assert expected("dps", "fig-3", QUICK, times) == (4.0, True)


def test_measured_times_of_parts_are_added_up(tmp_path: Path) -> None:
    sample_study.GATE.write_text("open")
    reproduce(["pieces", "made"], tmp_path / "out", effort=QUICK)
    times = collect(tmp_path / "out", {"quick": {"other/fig-1": 3.0}, "full": {}})
    assert set(times["quick"]) == {"other/fig-1", "pieces/fig-1", "made/fig-1", "made/table-2"}
    assert times["full"] == {}
