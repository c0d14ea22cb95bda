"""Reads the progress reports that ranks append to their files."""

from __future__ import annotations

import json
import math
import os
from pathlib import Path

from tradewind.worlds.fleet import IterationReport

LARGEST_READ = 1 << 22
"""Bytes read from one file per call."""
LARGEST_VALUE = 1e18
"""Reports with larger numbers are ignored."""


class ReportReader:
    """Reads a rank's report file from `offset` on. Ranks are not trusted: only complete, valid lines count."""

    def __init__(self, path: Path, offset: int) -> None:
        self._path, self._offset = path, offset

    def drain(self) -> list[IterationReport]:
        """All new reports of a rank that has ended."""
        found, before = self.read(), -1
        while before != self._offset:
            before = self._offset
            found += self.read()
        return found

    def read(self) -> list[IterationReport]:
        """New reports since the last call."""
        try:
            handle = os.open(self._path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        except OSError:
            return []
        with open(handle, "rb") as file:
            file.seek(self._offset)
            data = file.read(LARGEST_READ)
        whole, _, _ = data.rpartition(b"\n")
        # skip a line that is longer than a whole read
        self._offset += len(whole) + 1 if whole else (len(data) if len(data) == LARGEST_READ else 0)
        return [report for line in whole.splitlines() if (report := _parse(line)) is not None]


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
