"""Handles on running ranks: supervisors that are polled, stopped, adopted after a crash of the loop, or lost."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
from collections.abc import Iterable
from pathlib import Path

from tradewind.worlds.fleet import Exit
from tradewind.worlds.processes.supervisor import claim, start_ticks


class RankHandle:
    """Handle on the supervisor of one rank."""

    def __init__(self, control: Path, pid: int, process: subprocess.Popen[bytes] | None = None) -> None:
        self.control, self.pid = control, pid
        self._process = process
        self._asked = False
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
            self.exit = read_exit(self.control) or Exit(None, how="was lost with its supervisor")
        return self.exit

    def stop(self) -> None:
        """Ask the supervisor to stop its rank."""
        if self.pidfd >= 0 and not self._asked:
            self._asked = True
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


def _read(path: Path) -> dict[str, float] | None:
    try:
        found: dict[str, float] = json.loads(path.read_text())
    except (OSError, ValueError):
        return None
    return found


def read_exit(control: Path) -> Exit | None:
    """The exit that a supervisor recorded; notes: `killed` after the grace period, log `rotated`."""
    found = _read(control / "exit")
    if found is None:
        return None
    notes = tuple(name for name, field in (("killed", "killed"), ("rotated", "turned")) if found[field])
    return Exit(int(found["code"]), bool(found["asked"]), notes=notes)


def adopt(control: Path, token: str) -> RankHandle | None:
    """Handle on a supervisor that an earlier loop started; None if the rank never started and never will."""
    if not control.is_dir() or claim(str(control), 0):
        return None
    owner = _read(control / "claim") or {}
    pid = int(owner.get("pid", 0))
    if not pid:
        return None
    handle = RankHandle(control, pid if _is_supervisor(pid, int(owner.get("start", 0)), token) else 0)
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


def unsupervised(token: str, supervisors: Iterable[int]) -> list[int]:
    """Marked processes that are neither one of `supervisors` (process ids) nor a descendant of one."""
    known = set(supervisors)
    return [pid for pid in marked_processes(token) if not known & set(_lineage(pid))]


def _lineage(pid: int) -> list[int]:
    """A process and all its ancestors."""
    chain = [pid]
    while chain[-1] > 1:
        try:
            fields = Path(f"/proc/{chain[-1]}/stat").read_bytes().rsplit(b")", 1)[1].split()
        except OSError:
            break
        chain.append(int(fields[1]))
    return chain
