"""Ranks that stop their supervisor on a machine of an engine, where no loop sees it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeVar

import pytest

from tests.builders import job, setup
from tradewind.model.job import Fixed
from tradewind.worlds.fleet import Exit, Launch, Rank
from tradewind.worlds.fleets import starter
from tradewind.worlds.fleets.processes.handles import read_claim, read_exit
from tradewind.worlds.fleets.processes.launch import ExecutionOptions, Launcher, write_spec
from tradewind.worlds.fleets.processes.supervisor import put

PATIENCE_S = 120.0
Found = TypeVar("Found")
ONCE = "touch ../did; kill -STOP $PPID; exec sleep 1000"
AGAIN = 'touch ../did; trap "" TERM; while :; do kill -STOP $PPID; sleep 0.01; done'
MANY = "for i in $(seq 200); do setsid sleep 1000 & done; touch ../did; kill -KILL $PPID; wait"


def wait_for(look: Callable[[], Found | None]) -> Found:
    until = time.monotonic() + PATIENCE_S
    while not (found := look()):
        assert time.monotonic() < until, "what should happen did not"
        time.sleep(0.05)
    return found


@contextmanager
def started(command: str, folder: Path) -> Iterator[tuple[subprocess.Popen[bytes], Path]]:
    """A starter whose rank runs a shell command, and the directory that they share."""
    launcher = Launcher(folder, setup(), ExecutionOptions(grace_s=0.3), "token")
    launch = Launch(
        job(work=Fixed(runtime_us=1), command=("sh", "-c", command)), 0, 0, (Rank("worker", 0, 0),)
    )
    port, control = launcher.prepare(launch).port, launcher.control(launch, 0, 0)
    spec = launcher.spec(launch, 0, control, port)
    write_spec(control, spec | {"beat": str(folder / "beat"), "cpus": [], "meet": ""})
    process = subprocess.Popen([sys.executable, "-E", "-S", starter.__file__, str(control)])
    try:
        yield process, control
    finally:
        process.kill()
        if owner := read_claim(control):
            with suppress(ProcessLookupError):
                os.kill(owner, signal.SIGKILL)


@pytest.mark.parametrize("command", [ONCE, AGAIN])
def test_a_rank_that_stops_its_supervisor_is_ended_when_it_should(command: str, tmp_path: Path) -> None:
    with started(command, tmp_path) as (process, control):
        wait_for(lambda: next(tmp_path.glob("jobs/*/did"), None))
        put(str(control), "stop", True)
        found: Exit = wait_for(lambda: read_exit(control))
        assert found.asked
        assert process.wait(PATIENCE_S) == 0
        assert not Path(f"/proc/{read_claim(control)}").exists()


def test_a_rank_that_ends_before_its_supervisor_has_read_the_request_was_asked_to_stop(
    tmp_path: Path,
) -> None:
    """Slurm signals ranks themselves when their gang is cancelled."""
    command = f'exec >&- 2>&-; sleep 0.2; for rank in {tmp_path}/control/*/*-*; do echo true > "$rank/stop"; done; exit 75'
    with started(command, tmp_path) as (_, control):
        found: Exit = wait_for(lambda: read_exit(control))
        assert (found.code, found.asked) == (75, True)


def test_a_starter_that_is_told_to_stop_while_it_ends_what_is_left_records_the_loss(tmp_path: Path) -> None:
    """Slurm, Ray and Kubernetes send SIGTERM when they like."""
    with started(MANY, tmp_path) as (process, control):
        wait_for(lambda: next(tmp_path.glob("jobs/*/did"), None))
        owner = wait_for(lambda: read_claim(control))
        while Path(f"/proc/{owner}").exists():
            pass
        until = time.monotonic() + PATIENCE_S
        while process.poll() is None and time.monotonic() < until:
            process.send_signal(signal.SIGTERM)
        found = read_exit(control)
        assert found is not None
        assert found.code is None
        assert "left" not in found.notes
