"""What became of ranks: keepers that are watched, adopted or lost, and the reports that ranks write."""

from __future__ import annotations

import contextlib
import json
import math
import os
import select
import signal
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from tradewind.worlds.processes.supervisor import claim, start_ticks

STOPPED = 75
"""Exit code of a rank that wrote its checkpoint and wants to be resumed (EX_TEMPFAIL)."""
LARGEST_READ = 1 << 22


class Exit(NamedTuple):
    """How a rank ended. code: of the program, negative for a signal; None where its keeper is gone without a word."""

    code: int | None
    asked: bool = False
    killed: bool = False
    turned: int = 0

    def __str__(self) -> str:
        if self.code is None:
            return "was lost with its keeper"
        if self.code < 0:
            return f"was ended by {signal.Signals(-self.code).name}"
        return f"ended with {self.code}"


class Watch:
    """One rank's keeper."""

    def __init__(self, control: Path, pid: int, process: subprocess.Popen[bytes] | None = None) -> None:
        self.control, self.pid = control, pid
        self._process = process
        self._asked = False
        self.exit: Exit | None = None
        self.told = False  # whether its end has been spoken about
        self.handle = -1
        if pid:
            with contextlib.suppress(ProcessLookupError):
                self.handle = os.pidfd_open(pid)

    def look(self) -> Exit | None:
        """How the rank ended; None while it runs."""
        if self.exit is None and (self.handle < 0 or select.select([self.handle], [], [], 0)[0]):
            if self._process is not None:
                self._process.wait()
            if self.handle >= 0:
                os.close(self.handle)
            self.handle = -1
            self.exit = read_exit(self.control) or Exit(None)
        return self.exit

    def stop(self) -> None:
        """Asks the keeper to end its rank; it sees to the rest."""
        if self.handle >= 0 and not self._asked:
            self._asked = True
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self.handle, signal.SIGTERM)

    def child(self) -> int:
        """Process id of the command; 0 where it has not begun."""
        return int((_read(self.control / "child") or {}).get("pid", 0))


def _read(path: Path) -> dict[str, float] | None:
    try:
        found: dict[str, float] = json.loads(path.read_text())
    except (OSError, ValueError):
        return None
    return found


def read_exit(control: Path) -> Exit | None:
    """What the keeper wrote when all was over."""
    found = _read(control / "exit")
    if found is None:
        return None
    return Exit(int(found["code"]), bool(found["asked"]), bool(found["killed"]), int(found["turned"]))


def adopt(control: Path, token: str) -> Watch | None:
    """The keeper of a launch that an earlier loop began; None where the rank was never started and never will be."""
    if not control.is_dir() or claim(str(control), 0):
        return None
    owner = _read(control / "claim") or {}
    pid = int(owner.get("pid", 0))
    if not pid:
        return None
    watch = Watch(control, pid if _is_ours(pid, int(owner.get("start", 0)), token) else 0)
    watch.look()
    return watch


def _is_ours(pid: int, start: int, token: str) -> bool:
    """Whether a process id still belongs to the keeper: same start time, and our token in its environment."""
    try:
        return start_ticks(pid) == start and token.encode() in Path(f"/proc/{pid}/environ").read_bytes()
    except (OSError, IndexError):
        return False


def strays(token: str) -> list[int]:
    """Processes that carry the token of a state directory."""
    found, mark = [], f"TRADEWIND_TOKEN={token}".encode()
    for entry in os.listdir("/proc"):
        if entry.isdecimal():
            with contextlib.suppress(OSError):
                if mark in Path(f"/proc/{entry}/environ").read_bytes().split(b"\0"):
                    found.append(int(entry))
    return found


def strays_of(token: str, keep: Iterable[int]) -> list[int]:
    """Strays that no keeper in `keep` (process ids) watches over: neither one of them nor below one."""
    known = set(keep)
    return [pid for pid in strays(token) if not known & set(_lineage(pid))]


def _lineage(pid: int) -> list[int]:
    """A process and all above it."""
    chain = [pid]
    while chain[-1] > 1:
        try:
            fields = Path(f"/proc/{chain[-1]}/stat").read_bytes().rsplit(b")", 1)[1].split()
        except OSError:
            break
        chain.append(int(fields[1]))
    return chain


class Report(NamedTuple):
    """A line that a rank wrote after an iteration."""

    iteration: int
    seconds: float
    bytes_sent: float
    loss: float
    workers: int
    at: float


class Reports:
    """Reads the report files of a job bit by bit. What ranks write is not trusted: only whole, sensible lines count."""

    def __init__(self) -> None:
        self._offsets: dict[Path, int] = {}
        self.last: Report | None = None
        self.iterations = 0

    def read(self, paths: Iterable[Path]) -> list[tuple[Path, Report]]:
        """New lines since the last call."""
        found = []
        for path in paths:
            for line in self._lines(path):
                report = _parse(line)
                if report is not None:
                    found.append((path, report))
                    self.iterations = max(self.iterations, report.iteration)
                    if self.last is None or report.at >= self.last.at:
                        self.last = report
        return found

    def _lines(self, path: Path) -> list[bytes]:
        try:
            handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        except OSError:
            return []
        with open(handle, "rb") as file:
            file.seek(self._offsets.get(path, 0))
            data = file.read(LARGEST_READ)
        whole, _, _ = data.rpartition(b"\n")
        # a line that never ends is no report: it is passed over
        self._offsets[path] = self._offsets.get(path, 0) + (
            len(whole) + 1 if whole else (len(data) if len(data) == LARGEST_READ else 0)
        )
        return whole.splitlines()


def _parse(line: bytes) -> Report | None:
    try:
        raw = json.loads(line)
        values = [float(raw.get(name, 0)) for name in Report._fields]
    except (ValueError, AttributeError, TypeError, RecursionError):
        return None
    if not all(math.isfinite(value) and abs(value) < 1e18 for value in values):
        return None
    if min(values[0], values[1], values[2], values[4]) < 0:
        return None
    return Report(int(values[0]), values[1], values[2], values[3], int(values[4]), values[5])
