"""A hostile or broken job hurts itself: its neighbour completes, the loop goes on, ends when asked, and starts again."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.builders import job, node, scenario, setup
from tests.hostile.programs import PYTHON, PYTHON_PROGRAM, SHELL, program
from tests.worlds.live_runs import alarms, handles, log, run_live
from tests.worlds.live_scenarios import S, counting
from tests.worlds.test_check_fleet import mounted, mounts
from tradewind import api
from tradewind.engine.live import LiveSession
from tradewind.model.job import Fixed, Rounds
from tradewind.model.result import Run
from tradewind.model.scenario import Scenario
from tradewind.worlds.fleet import Exit, Launch, Rank, Wanted
from tradewind.worlds.fleet_world import FleetWorld
from tradewind.worlds.fleets.processes import handles as handles_module
from tradewind.worlds.fleets.processes import launch
from tradewind.worlds.fleets.processes.fleet import ProcessFleet
from tradewind.worlds.fleets.processes.groups import groups
from tradewind.worlds.fleets.processes.handles import processes_of
from tradewind.worlds.fleets.processes.launch import ExecutionOptions, Limits

ROOT = os.geteuid() == 0
UID = 61_700 + 10 * (os.getpid() % 300)
"""Tests that run at the same time have different users."""
PATIENCE_S = 120.0
NEEDS_ROOT = pytest.mark.skipif(not ROOT, reason="separate users need root")
LIMITS = Limits(processes=40, report_bytes=1_000_000, memory_bytes=1 << 29)
OPTIONS = ExecutionOptions(
    grace_s=0.3, backoff_s=0.02, retries=1, limits=LIMITS, first_uid=UID if ROOT else None
)
SAME_USER = ExecutionOptions(grace_s=0.3, backoff_s=0.02, retries=1, limits=LIMITS)
OF_ANOTHER_USER = (
    "it writes into the files of the loop",
    "it signals all that it can",
    "it waits for the loop's lock",
    "it forks without end",
    "its daemon carries the token of another run",
)
Seen = Callable[[FleetWorld], bool]


def beside_a_neighbour(command: tuple[str, ...]) -> Scenario:
    where = setup([node("a"), node("b")], slot_us=S, horizon_us=100_000 * S)
    work = Rounds(count=1000, compute_us=10)
    jobs = [
        job(0, work=work, command=command),
        job(1, work=Rounds(count=4, compute_us=10), command=counting(4)),
    ]
    return scenario(jobs, where=where)


def attacked(state: Path, command: tuple[str, ...], options: ExecutionOptions, seen: Seen) -> Run:
    """A run that is stopped when the deed is done and the neighbour is complete; then it is started and stopped again."""
    given = beside_a_neighbour(command)
    until = time.monotonic() + PATIENCE_S

    def stop(session: LiveSession, world: FleetWorld) -> None:
        neighbour = world.gangs.get(1)
        if neighbour is not None and neighbour.complete and seen(world):
            world.interrupt()
        assert time.monotonic() < until, "what should happen did not"

    run_live(given, state, options=options, observer=stop)
    run = run_live(given, state, options=options, observer=stop)
    assert did(state), log(state)
    assert run.violations == ()
    assert run.tables["outcomes"]["state"][1] == "finished"
    api.save(run, state / "run.json")
    assert api.check(given, api.load_run(state / "run.json")) == ()
    if options.first_uid is not None:
        assert processes_of(options.first_uid) == [], "nothing of the job is left"
    return run


def did(state: Path) -> bool:
    return any(state.glob("jobs/0000-*/did"))


@pytest.mark.parametrize("name", [*SHELL, *PYTHON])
def test_a_hostile_job_hurts_only_itself(name: str, state: Path) -> None:
    if name in OF_ANOTHER_USER and not ROOT:
        pytest.skip("jobs of the loop's own user are not kept from it")

    def seen(world: FleetWorld) -> bool:
        if name == "it reports times that are no times" and world.clock.now_us() < 3 * S:
            return False  # what it measured is told when the next slot begins
        ends = "exit 1" in SHELL.get(name, "") or "without a name" in name
        return did(state) and (not ends or world.gangs[0].given_up)

    run = attacked(state, program(name), OPTIONS, seen)
    if "without a name" in name:
        assert "was ended by signal 35" in alarms(run)
    if "lock" in name:
        lines = log(state).splitlines()
        assert not [line for line in lines if line.startswith("opened") and line != "opened run"]
        assert "refused lock" in lines
    if "forks without end" in name or "memory" in name:
        assert "refused" in log(state)
    if "prints" in name:
        assert sum(path.stat().st_size for path in state.glob("logs/0000-*/*")) <= 2 * LIMITS.log_bytes
    if name.startswith("its report file is a") and "link" not in name and "device" not in name:
        assert "replaced its report file" in alarms(run)


def test_a_chain_of_forks_is_ended_without_control_groups(
    state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(launch, "groups", lambda name: [])
    attacked(state, program("it forks a chain that is never there"), OPTIONS, lambda world: did(state))


@pytest.mark.parametrize("again", [False, True])
def test_a_job_that_stops_its_supervisor_is_ended_when_it_should(
    again: bool, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(handles_module, "SWEEP_S", 0.5)
    monkeypatch.setattr(handles_module, "CHECK_EVERY_S", 0.3)
    stop = 'touch ../did; trap "" TERM; while :; do kill -STOP $PPID; sleep 0.01; done'
    once = "touch ../did; kill -STOP $PPID; exec sleep 1000"
    attacked(state, ("sh", "-c", stop if again else once), SAME_USER, lambda world: did(state))


def test_a_flood_of_reports_costs_the_loop_little(state: Path) -> None:
    flood = 'yes \'{"iteration":1}\' | head -c 60000000 >> "$TRADEWIND_REPORT"; touch ../did; exec sleep 1000'
    begun = time.process_time()
    run = attacked(state, ("sh", "-c", flood), OPTIONS, lambda world: did(state))
    assert time.process_time() - begun < 10
    attempts: Any = run.tables["attempts"]
    most = max(n for n, who in zip(attempts["iterations"], attempts["job"], strict=True) if who == 0)
    assert most <= (LIMITS.report_bytes + (1 << 18)) / len('{"iteration":1}\n')


DAEMON = """
import os, time
if os.fork() == 0:
    os.setsid()
    if os.fork():
        os._exit(0)
    os.execve("/bin/sleep", ["sleep", "1000"], ENVIRONMENT)
time.sleep(0.2)
open("../did", "w").close()
time.sleep(1000)
"""


@NEEDS_ROOT
@pytest.mark.parametrize("environment", [{}, {"TRADEWIND_TOKEN": "that of another run"}])
@pytest.mark.parametrize("has_groups", [True, False])
def test_a_daemon_without_its_environment_does_not_outlive_its_killed_supervisor(
    has_groups: bool, environment: dict[str, str], state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not has_groups:
        monkeypatch.setattr(launch, "groups", lambda name: [])
    elif not groups("x"):
        pytest.skip("no control groups here")
    killed: list[int] = []

    def seen(world: FleetWorld) -> bool:
        if did(state) and not killed and (running := handles(world, 0)):
            killed.append(running[0].pid)
            os.kill(running[0].pid, signal.SIGKILL)
        return bool(killed) and len(world.gangs[0].attempts) > 1

    attacked(state, (PYTHON_PROGRAM, "-c", f"ENVIRONMENT = {environment}{DAEMON}"), OPTIONS, seen)


def test_output_that_cannot_be_written_is_dropped_and_the_exit_code_kept(state: Path) -> None:
    folder = state / "logs" / "0000-j0"
    folder.mkdir(parents=True)
    state.chmod(0o711)
    (folder / "rank-0.log").symlink_to("/dev/full")
    command = ("sh", "-c", "for i in 1 2 3; do echo some output; done; exit 0")
    given = scenario(
        [job(0, work=Fixed(runtime_us=S), command=command)], where=beside_a_neighbour(command).setup
    )
    run = run_live(given, state, options=OPTIONS)
    assert run.tables["outcomes"]["state"] == ["finished"]
    assert run.tables["attempts"]["why"] == ["complete"]
    assert "rank-0.log: No space left on device" in alarms(run)


@pytest.mark.skipif(not mounts(), reason="no file system can be mounted here")
def test_an_exit_code_is_kept_on_a_full_disk(state: Path) -> None:
    state.mkdir(mode=0o711)
    assert mounted(state)
    try:
        where = setup([node("a")], slot_us=S, horizon_us=S)
        waits = (
            "sh",
            "-c",
            "while [ ! -e ../../../go ]; do echo waiting; sleep 0.05; done; yes | head -c 20000; exit 7",
        )
        rank = Launch(job(0, work=Fixed(runtime_us=S), command=waits), 0, 0, (Rank("worker", 0, 0),))
        fleet = ProcessFleet(state, where, SAME_USER, "full-disk")
        until = time.monotonic() + PATIENCE_S
        while "waiting" not in fleet.logs(rank.job, 0) and time.monotonic() < until:
            fleet.reconcile([Wanted(rank)])
            fleet.observe(0.05)
        (state / "go.later").touch()
        with (state / "ballast").open("wb", buffering=0) as file:
            for size in (4096, 1):
                with contextlib.suppress(OSError):
                    while True:
                        file.write(b"x" * size)
        (state / "go.later").rename(state / "go")
        exits: tuple[Exit | None, ...] = (None,)
        while exits == (None,) and time.monotonic() < until:
            exits = fleet.observe(0.05).launches[rank.key].exits
        fleet.close()
        assert exits[0] is not None
        assert exits[0].code == 7
        assert "No space left on device" in "".join(exits[0].notes)
    finally:
        subprocess.run(["umount", "-l", str(state)], check=True)


def test_an_alarm_has_the_time_at_which_it_was_raised(state: Path) -> None:
    where = setup([node("a")], slot_us=1000 * S, horizon_us=10_000 * S)
    given = scenario(
        [job(0, work=Fixed(runtime_us=S), command=("sh", "-c", "sleep 0.5; exit 1"))], where=where
    )
    run = run_live(given, state, options=OPTIONS, slot_seconds=1000.0)
    times: Any = run.tables["alarms"]["at_us"]
    first, second = times
    assert 0.5 * S <= first < second - 0.5 * S
