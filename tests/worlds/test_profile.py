"""`tradewind profile`: what is measured of tiny programs and the reference trainer, and what is said of failures."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

from tradewind.cli.guard import guarded
from tradewind.cli.main import app
from tradewind.files.profile_file import load
from tradewind.model.errors import InputError
from tradewind.worlds.profile import Profile, ProfileOptions, measure

PROGRAM = """
import json, os, signal, sys, time
stopped = []
signal.signal(signal.SIGTERM, lambda *_: stopped.append(1))
saved = os.path.join(os.environ["TRADEWIND_CHECKPOINT_DIR"], os.environ["RANK"])
done = int(open(saved).read()) if RESUME and os.path.exists(saved) else 0
time.sleep(0.15)
while done < LAST:
    time.sleep(0.02)
    done += 1
    with open(os.environ["TRADEWIND_REPORT"], "a") as out:
        told = {"iteration": done, "seconds": 0.02, "bytes_sent": 100, "communication_seconds": 0.005}
        out.write(json.dumps(told) + "\\n")
    if stopped:
        time.sleep(0.1)
        open(saved, "w").write(str(done))
        sys.exit(CODE)
"""


def profiled(
    folder: Path, *, resume: bool = True, last: int = 10**6, code: int = 75, ranks: int = 1
) -> Profile:
    head = f"RESUME, LAST, CODE = {resume}, {last}, {code}\n"
    options = ProfileOptions(seconds=0.5, patience_s=20.0, grace_s=5.0, ranks=ranks)
    return measure([sys.executable, "-c", head + PROGRAM], folder, options)


def test_iterations_checkpoint_and_restart_are_measured(tmp_path: Path) -> None:
    for attempt in range(3):  # on a busy machine the first report may be seen late
        (folder := tmp_path / str(attempt)).mkdir()
        found = profiled(folder, ranks=2)
        if found.iterations_per_hour <= 3600 / 0.0199:
            break
    assert found.iteration_s == 0.02
    assert found.iterations > 5
    assert 3600 / 0.2 < found.iterations_per_hour <= 3600 / 0.0199
    assert found.communication_share == pytest.approx(0.25)
    assert found.bytes_sent_per_iteration == 100
    assert found.start_s >= 0.14
    assert found.checkpoint_s is not None
    assert 0.1 <= found.checkpoint_s < 3
    assert found.restart_s is not None
    assert found.restart_s >= 0.14
    assert found.notes == ()


def test_a_program_that_starts_anew_is_told_so(tmp_path: Path) -> None:
    found = profiled(tmp_path, resume=False)
    assert "went on at 1: its checkpoint loses work" in found.notes[0]


def test_a_program_that_ends_or_stops_in_another_way_has_no_checkpoint(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    complete = profiled(tmp_path / "a", last=10)
    assert complete.checkpoint_s is complete.restart_s is None
    assert "complete before" in complete.notes[0]
    other = profiled(tmp_path, code=3)
    assert other.checkpoint_s is None
    assert "exit 3 after SIGTERM" in other.notes[0]


@pytest.mark.parametrize(
    ("command", "patience_s", "message"),
    [
        ([sys.executable, "-c", "pass"], 60.0, "ended and reported no iteration; after each one"),
        (["sleep", "600"], 0.5, "ran for 0.5 s and reported no iteration"),
        (
            [sys.executable, "-c", "raise SystemExit('no data set')"],
            60.0,
            r"failed \(exit 1\); its last lines:\n  no data set",
        ),
        (["/no/such/program"], 60.0, "cannot be started"),
    ],
)
def test_what_goes_wrong_is_said(tmp_path: Path, command: list[str], patience_s: float, message: str) -> None:
    with pytest.raises(InputError, match=message):
        measure(command, tmp_path, ProfileOptions(seconds=0.2, patience_s=patience_s, grace_s=1.0))


def test_nothing_outlives_the_measurement(tmp_path: Path) -> None:
    deaf = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
    told = "import os; open(os.environ['TRADEWIND_REPORT'], 'a').write('{\"iteration\": 1, \"seconds\": 1}\\n')\n"
    pid = tmp_path / "pid"
    code = f"{deaf}{told}open({str(pid)!r}, 'w').write(str(os.getpid()))\ntime.sleep(60)"
    found = measure(
        [sys.executable, "-c", code], tmp_path, ProfileOptions(seconds=0.2, patience_s=60, grace_s=0.3)
    )
    assert "exit -9 after SIGTERM" in found.notes[0]
    assert not Path(f"/proc/{pid.read_text()}").exists()


@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="needs PyTorch")
def test_the_reference_trainer_keeps_the_contract(tmp_path: Path) -> None:
    out = tmp_path / "profile.yaml"
    trainer = [
        sys.executable,
        "-m",
        "tradewind.train",
        "--mode",
        "ring",
        "--iterations",
        "100000",
        "--size",
        "40KB",
    ]
    command = ["profile", "--seconds", "1", "--gpu", "A100", "-o", str(out), "--", *trainer]
    assert guarded(lambda: app(command, standalone_mode=False)) == 0
    found = load(out)
    assert found.gpu == "A100"
    assert found.command == trainer
    assert found.checkpoint_s is not None
    assert found.restart_s is not None
    assert found.notes == []


def test_wrong_profiles_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "p.yaml"
    for text, message in (
        ("tradewind_profile: 1\niteration_s: 0\n", "iteration_s is 0"),
        ("tradewind_profile: 2\niteration_s: 1\n", "supports version 1"),
        ("tradewind_profile: 1\niteration_s: .nan\n", "finite"),
        ("tradewind_profile: 1\niteratoin_s: 1\n", "Did you mean 'iteration_s'"),
    ):
        path.write_text(text)
        with pytest.raises(InputError, match=message):
            load(path)
