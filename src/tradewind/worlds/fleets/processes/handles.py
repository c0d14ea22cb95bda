"""Handles on running ranks: supervisors that are polled, stopped, adopted after a crash of the loop, or lost."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tradewind.worlds.fleet import Exit
from tradewind.worlds.fleets.processes.supervisor import SWEEP_S, claim, kill_group, start_ticks

CHECK_EVERY_S = 1.0
LOST = "was lost with its supervisor"


class RankHandle:
    """Handle on the supervisor of one rank. A rank of the same user may stop its supervisor: it is continued, and killed if
    it does not end its rank in time. grace_s: time between SIGTERM and SIGKILL.
    """

    def __init__(
        self,
        control: Path,
        pid: int,
        process: subprocess.Popen[bytes] | None = None,
        *,
        grace_s: float = 10.0,
    ) -> None:
        self.control, self.pid = control, pid
        self._process = process
        self._patience_s = grace_s + SWEEP_S + 2 * CHECK_EVERY_S
        self._asked_s: float | None = None
        self._checked_s = time.monotonic()
        self.exit: Exit | None = None
        self.pidfd = -1
        if pid:
            with contextlib.suppress(ProcessLookupError):
                self.pidfd = os.pidfd_open(pid)

    def poll(self) -> Exit | None:
        """How the rank ended; None while it runs."""
        if self.exit is None and (self.pidfd < 0 or select.select([self.pidfd], [], [], 0)[0]):
            if self._process is not None:
                self._process.wait()
            self.release()
            self.exit = read_exit(self.control) or Exit(None, how=LOST)
        elif self.exit is None and time.monotonic() - self._checked_s > CHECK_EVERY_S:
            self._checked_s = time.monotonic()
            self._continue()
        return self.exit

    def _continue(self) -> None:
        """Continue a supervisor that was stopped; kill one that does not end."""
        overdue = self._asked_s is not None and time.monotonic() - self._asked_s > self._patience_s
        with contextlib.suppress(OSError):
            if overdue:
                signal.pidfd_send_signal(self.pidfd, signal.SIGKILL)
            elif _stat(self.pid)[0] == b"T":
                signal.pidfd_send_signal(self.pidfd, signal.SIGCONT)

    def stop(self) -> None:
        """Ask the supervisor to stop its rank."""
        if self.pidfd >= 0 and self._asked_s is None:
            self._asked_s = time.monotonic()
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self.pidfd, signal.SIGTERM)

    def release(self) -> None:
        """Close the file descriptor; the supervisor is not affected."""
        if self.pidfd >= 0:
            os.close(self.pidfd)
        self.pidfd = -1

    def child(self) -> int:
        """Process id of the command; 0 before it starts."""
        return int((_read(self.control / "child") or {}).get("pid", 0))


def _read(path: Path) -> dict[str, Any] | None:
    try:
        found: dict[str, Any] = json.loads(path.read_text())
    except (OSError, ValueError):
        return None
    return found


def read_exit(control: Path) -> Exit | None:
    """The exit that a supervisor recorded; notes: `killed` after the grace period, log `rotated`."""
    found = _read(control / "exit")
    if found is None:
        return None
    notes = tuple(
        name
        for name, field in (("killed", "killed"), ("rotated", "turned"), ("left", "left"))
        if found[field]
    )
    if found["dropped"]:
        notes += (f"wrote output that could not be kept: {found['dropped']}",)
    if found["code"] is None:
        return Exit(None, bool(found["asked"]), LOST, notes)
    return Exit(int(found["code"]), bool(found["asked"]), notes=notes)


def read_claim(control: Path) -> int | None:
    """Process that claimed a rank; 0: it must never start; None: nobody has."""
    owner = _read(control / "claim")
    return None if owner is None else int(owner.get("pid", 0))


def kill_groups(control: Path) -> None:
    """Kill and remove the control groups of a rank that lost its supervisor."""
    for group in (_read(control / "spec.json") or {}).get("groups", ()):
        kill_group(group)
        for _ in range(100):  # what was killed takes a moment to end
            try:
                os.rmdir(group)
            except FileNotFoundError:
                break
            except OSError:
                time.sleep(0.01)


def adopt(control: Path, token: str, grace_s: float) -> RankHandle | None:
    """Handle on a supervisor that an earlier loop started; None if the rank never started and never will."""
    if not control.is_dir() or claim(str(control), 0):
        return None
    owner = _read(control / "claim") or {}
    pid = int(owner.get("pid", 0))
    if not pid:
        return None
    is_ours = _is_supervisor(pid, int(owner.get("start", 0)), token)
    handle = RankHandle(control, pid if is_ours else 0, grace_s=grace_s)
    handle.poll()
    return handle


def _is_supervisor(pid: int, start: int, token: str) -> bool:
    """Whether a process id still belongs to our supervisor: same start time, our token in its environment."""
    try:
        return start_ticks(pid) == start and token.encode() in Path(f"/proc/{pid}/environ").read_bytes()
    except (OSError, IndexError):
        return False


def marked_processes(token: str) -> list[int]:
    """Processes that carry the token of a state directory."""
    found, mark = [], f"TRADEWIND_TOKEN={token}".encode()
    for entry in os.listdir("/proc"):
        if entry.isdecimal():
            with contextlib.suppress(OSError):
                if mark in Path(f"/proc/{entry}/environ").read_bytes().split(b"\0"):
                    found.append(int(entry))
    return found


def processes_of(uid: int) -> list[int]:
    """Processes of a user."""
    found = []
    for entry in os.listdir("/proc"):
        if entry.isdecimal():
            owner, state = _status(int(entry))
            if owner == uid and state != "Z":
                found.append(int(entry))
    return found


def unsupervised(token: str, uid: int | None, supervisors: Iterable[int]) -> list[int]:
    """Processes that are marked or of a user, and neither one of `supervisors` (process ids) nor a descendant of one.

    Another run may use the same user: what descends from a process with another token is left alone. Tokens of that user's
    own processes say nothing: its jobs set what they like.
    """
    known, found = set(supervisors), []
    for pid in {*marked_processes(token), *(processes_of(uid) if uid is not None else ())}:
        lineage = _lineage(pid)
        others = {_token(each) for each in lineage if uid is None or _status(each)[0] != uid}
        if not known & set(lineage) and others <= {"", token}:
            found.append(pid)
    return found


def _status(pid: int) -> tuple[int, str]:
    """User and state of a process; (-1, ""): it is gone. The owner of its files may be root, if it wishes so."""
    try:
        text = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return -1, ""
    return int(text.partition("\nUid:")[2].split()[0]), text.partition("\nState:")[2].split()[0]


def _token(pid: int) -> str:
    """The token that a process carries; empty: none."""
    try:
        variables = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return ""
    marks = [each for each in variables if each.startswith(b"TRADEWIND_TOKEN=")]
    return marks[0].partition(b"=")[2].decode(errors="replace") if marks else ""


def _lineage(pid: int) -> list[int]:
    """A process and all its ancestors."""
    chain = [pid]
    while chain[-1] > 1:
        try:
            chain.append(int(_stat(chain[-1])[1]))
        except OSError:
            break
    return chain


def _stat(pid: int) -> list[bytes]:
    """State, parent and all that follows in the status of a process."""
    return Path(f"/proc/{pid}/stat").read_bytes().rsplit(b")", 1)[1].split()
