"""Reads the progress reports that ranks append to their files."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

LARGEST_READ = 1 << 22
"""Bytes read from one file per call."""
LARGEST_VALUE = 1e18
"""Reports with larger numbers are ignored."""


class IterationReport(NamedTuple):
    """One line of a report: what a rank did in an iteration."""

    iteration: int
    seconds: float
    bytes_sent: float
    loss: float
    workers: int
    at: float


class ReportReader:
    """Reads the report files of a job incrementally. Ranks are not trusted: only complete, valid lines count."""

    def __init__(self) -> None:
        self._offsets: dict[Path, int] = {}
        self.last: IterationReport | None = None
        self.iterations = 0

    def read(self, paths: Iterable[Path]) -> list[tuple[Path, IterationReport]]:
        """New reports since the last call."""
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
        # skip a line that is longer than a whole read
        self._offsets[path] = self._offsets.get(path, 0) + (
            len(whole) + 1 if whole else (len(data) if len(data) == LARGEST_READ else 0)
        )
        return whole.splitlines()


def _parse(line: bytes) -> IterationReport | None:
    try:
        raw = json.loads(line)
        values = [float(raw.get(name, 0)) for name in IterationReport._fields]
    except (ValueError, AttributeError, TypeError, RecursionError):
        return None
    if not all(math.isfinite(value) and abs(value) < LARGEST_VALUE for value in values):
        return None
    iteration, seconds, sent, loss, workers, at = values
    if min(iteration, seconds, sent, workers) < 0:
        return None
    return IterationReport(int(iteration), seconds, sent, loss, int(workers), at)
