"""Reads the progress reports that ranks append to their files."""

from __future__ import annotations

import json
import math
import os
import stat
from pathlib import Path

from tradewind.worlds.fleet import IterationReport

LARGEST_READ = 1 << 18
"""Bytes read from one file per call."""
LARGEST_END = 1 << 23
"""Bytes read from the file of a rank that has ended; more is ignored."""
MOST_NAMES, LONGEST_NAME = 10_000, 40
"""Shards that a report may name; reports with more are ignored."""
NUMBERS = ("iteration", "seconds", "bytes_sent", "loss", "workers", "at", "communication_seconds")
ACCURACIES = ("accuracy", "site_accuracy")
"""Numbers from 0 to 1 that only some reports have; all others count as not reported (-1)."""
LARGEST_VALUE = 1e18
"""Reports with larger numbers are ignored."""
LEAST_S, LARGEST_S = 1e-9, 1e9
"""Reports of other times than 0 and these are ignored: rates and ratios of them would be no numbers."""
FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW


class ReportReader:
    """Reads the report file of a rank from `offset` on. Ranks are not trusted: only complete, valid lines count.

    home   directory of the job, in which the job can replace everything by anything
    limit  bytes from `offset` on that are read at most; 0: no limit
    note   what the operator should know about this rank's reports
    """

    def __init__(self, home: Path, rank: int, offset: int, limit: int = 0) -> None:
        self._home, self._name = home, file_name(rank)
        self._offset, self._limit, self._until = offset, limit, offset + limit if limit else 0
        self.note = ""

    def drain(self) -> list[IterationReport]:
        """New reports of a rank that has ended."""
        begin, before = self._offset, -1
        found: list[IterationReport] = []
        while before != self._offset and self._offset - begin < LARGEST_END:
            before = self._offset
            found += self.read()
        return found

    def read(self) -> list[IterationReport]:
        """New reports since the last call."""
        try:
            data = self._data()
        except OSError:
            return []
        whole, _, _ = data.rpartition(b"\n")
        # skip a line that is longer than a whole read
        self._offset += len(whole) + 1 if whole else (len(data) if len(data) == LARGEST_READ else 0)
        return [report for line in whole.splitlines() if (report := _parse(line)) is not None]

    def _data(self) -> bytes:
        """New bytes of the file, which is read only if it is one, inside the job's own directory."""
        if self._until and self._offset >= self._until:
            self.note = f"reported more than its limit (report_bytes: {self._limit}); the rest is ignored"
            return b""
        home = os.open(self._home, FOLDER)
        try:
            folder = os.open("report", FOLDER, dir_fd=home)
        finally:
            os.close(home)
        try:
            handle = os.open(self._name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder)
        finally:
            os.close(folder)
        try:
            if stat.S_ISREG(os.fstat(handle).st_mode):
                return os.pread(handle, LARGEST_READ, self._offset)
        finally:
            os.close(handle)
        self.note = "replaced its report file by something that is no file; it is not read"
        return b""


def file_name(rank: int) -> str:
    """Name of a rank's report file in the directory `report` of its job."""
    return f"rank-{rank}.jsonl"


def _parse(line: bytes) -> IterationReport | None:
    try:
        raw = json.loads(line)
        values = [float(raw.get(name, 0)) for name in NUMBERS]
        accuracies = [float(raw.get(name, -1.0)) for name in ACCURACIES]
        samples = float(raw.get("samples", -1.0))
        processed = tuple(raw.get("processed", ()))
    except (ValueError, ArithmeticError, AttributeError, TypeError, RecursionError):
        return None
    if not all(math.isfinite(value) and abs(value) < LARGEST_VALUE for value in values):
        return None
    iteration, seconds, sent, loss, workers, at, communication = values
    if min(iteration, seconds, sent, workers, communication) < 0:
        return None
    if any(value and not LEAST_S <= value <= LARGEST_S for value in (seconds, communication)):
        return None
    if len(processed) > MOST_NAMES or not all(
        isinstance(name, str) and len(name) < LONGEST_NAME for name in processed
    ):
        return None
    accuracy, site_accuracy = (value if 0.0 <= value <= 1.0 else -1.0 for value in accuracies)
    return IterationReport(
        int(iteration),
        seconds,
        sent,
        loss,
        int(workers),
        at,
        communication,
        processed,
        accuracy,
        site_accuracy,
        samples if 0.0 <= samples < LARGEST_VALUE else -1.0,
    )
