"""State directories, users and exit codes of live runs."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from tests.builders import job, node, scenario, setup
from tests.worlds.live_runs import log, one, two_sites
from tests.worlds.live_scenarios import S
from tradewind import api
from tradewind.model.errors import InputError
from tradewind.model.job import Fixed
from tradewind.registry import policies
from tradewind.worlds.fleets.processes.fleet import ProcessFleet
from tradewind.worlds.fleets.processes.launch import ExecutionOptions, uid_of
from tradewind.worlds.fleets.processes.users import FIRST_UID, LATER_UID, USERS, later_uid
from tradewind.worlds.live import LiveRequest, live

NEEDS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="separate users need root")


def request(command: tuple[str, ...], state: Path, **more: object) -> LiveRequest:
    return LiveRequest(
        scenario=one(command), spec=policies.find("fifo"), state=state, slot_seconds=0.25,
        options=ExecutionOptions(grace_s=0.5, **more),  # type: ignore[arg-type]
    )  # fmt: skip


def test_exits_of_another_run_in_the_same_directory_are_not_believed(state: Path) -> None:
    run = live(request(("true",), state))
    assert run.tables["outcomes"]["state"] == ["finished"]
    (state / "store.db").unlink()
    with pytest.raises(InputError, match="it holds the files of another run; use another --state"):
        live(request(("true",), state))


def test_a_fleet_takes_only_directories_of_its_own_run(tmp_path: Path) -> None:
    options = ExecutionOptions()
    ProcessFleet(tmp_path, two_sites(), options, "one").close()
    ProcessFleet(tmp_path, two_sites(), options, "one").close()
    with pytest.raises(InputError, match="files of another run"):
        ProcessFleet(tmp_path, two_sites(), options, "two")


@pytest.mark.parametrize("how", ["empty", "cut", "no text", "a fifo", "a link to nothing", "a folder"])
def test_a_state_directory_whose_owner_cannot_be_read_is_refused(how: str, tmp_path: Path) -> None:
    mine, options = tmp_path / "run", ExecutionOptions()
    ProcessFleet(tmp_path, two_sites(), options, "one").close()
    written = mine.read_bytes()
    mine.unlink()
    match how:
        case "a fifo":
            os.mkfifo(mine)
        case "a link to nothing":
            mine.symlink_to("/nowhere")
        case "a folder":
            mine.mkdir()
        case _:
            mine.write_bytes({"empty": b"", "cut": written[:-1], "no text": b"\xff"}[how])
    with pytest.raises(InputError, match="files of another run"):
        ProcessFleet(tmp_path, two_sites(), options, "one")


@pytest.mark.parametrize("mode", [0o755, 0o711, 0o1777])
def test_the_mode_of_an_existing_directory_stays(mode: int, state: Path) -> None:
    state.mkdir()
    state.chmod(mode)
    live(request(("true",), state))
    assert state.stat().st_mode & 0o7777 == mode


def test_where_memory_runs_out_ranks_are_ended_before_the_loop(state: Path) -> None:
    asked = request(("cat", "/proc/self/oom_score_adj"), state)
    live(replace(asked, options=replace(asked.options, as_root=os.geteuid() == 0)))
    assert log(state).splitlines()[1] == "1000"


@NEEDS_ROOT
def test_a_loop_that_is_root_runs_every_job_as_a_user_of_its_own(state: Path) -> None:
    live(request(("id", "-u"), state))
    assert log(state).splitlines()[1] == str(FIRST_UID)


def test_jobs_after_the_first_thousands_have_users_of_their_own_too(tmp_path: Path) -> None:
    options = ExecutionOptions(first_uid=FIRST_UID, users=USERS, later_uid=LATER_UID)
    one = job(0, work=Fixed(runtime_us=S))
    numbers = (0, 1, USERS - 1, USERS, USERS + 1, 2 * USERS, 10**6)
    users = [uid_of(options, replace(one, index=number)) for number in numbers]
    assert len(set(users)) == len(users)
    assert users[:4] == [FIRST_UID, FIRST_UID + 1, FIRST_UID + USERS - 1, LATER_UID]
    for kind in ("uid", "gid"):
        (tmp_path / f"{kind}_map").write_text("0 0 4294967295\n")
    assert later_uid(tmp_path) == LATER_UID
    (tmp_path / "gid_map").write_text("0 100000 65536\n")  # a container's
    assert later_uid(tmp_path) is None


@NEEDS_ROOT
@pytest.mark.skipif(later_uid() is None, reason="this namespace has few users")
def test_a_later_user_runs_its_job_and_can_be_ended(state: Path) -> None:
    asked = request(("sh", "-c", "id -u; touch $TRADEWIND_CHECKPOINT_DIR/x"), state)
    live(replace(asked, options=replace(asked.options, first_uid=LATER_UID)))
    assert log(state).splitlines()[1] == str(LATER_UID)
    assert (state / "jobs/0000-j0/checkpoint/x").stat().st_uid == LATER_UID


@NEEDS_ROOT
def test_a_directory_that_users_of_jobs_cannot_reach_is_refused_and_left_as_it_is(state: Path) -> None:
    state.mkdir(mode=0o700)
    with pytest.raises(InputError, match=r"is closed to others.*--as-root"):
        live(request(("true",), state))
    assert list(state.iterdir()) == []
    live(request(("id", "-u"), state, as_root=True))
    assert log(state).splitlines()[1] == "0"
    assert state.stat().st_mode & 0o777 == 0o700


@NEEDS_ROOT
def test_a_program_that_users_of_jobs_cannot_reach_is_refused(state: Path) -> None:
    closed = state.parent / "closed"
    closed.mkdir(mode=0o700)
    (closed / "program").write_text("#!/bin/sh\n")
    (closed / "program").chmod(0o755)
    with pytest.raises(InputError, match=r"jobs\[j0\] runs .*closed is closed to others"):
        live(request((str(closed / "program"),), state))


@pytest.mark.parametrize(("command", "stop", "code"), [
    (("true",), False, 0),
    (("false",), False, 1),
    (("sleep", "1000"), True, 130),
])  # fmt: skip
def test_the_exit_code_says_how_the_run_ended(
    command: tuple[str, ...], stop: bool, code: int, state: Path
) -> None:
    where = setup([node("a")], slot_us=S, horizon_us=100_000 * S)
    api.dump(
        scenario([job(0, work=Fixed(runtime_us=S), command=command)], where=where),
        state.parent / "given.yaml",
    )
    words = ["live", "given.yaml", "--policy", "fifo", "--state", str(state), "--retries", "0"]
    process = subprocess.Popen(
        [sys.executable, "-m", "tradewind.cli.main", *words], cwd=state.parent,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    until = time.monotonic() + 120
    while stop and not list(state.glob("control/*/*/child")) and time.monotonic() < until:
        time.sleep(0.05)
    if stop:
        process.send_signal(signal.SIGINT)
    assert process.wait(120) == code
