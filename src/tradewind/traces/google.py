"""Google's cluster data of 2011: a table of jobs, or the original `job_events` (one part, or a folder of parts).

A table of jobs has a header with submit_s, start_s, end_s (seconds; end_s is empty where a job did not end) and user.

`job_events` has no header and eight columns: timestamp (microseconds), missing info, job id, event type, user, scheduling
class, job name, logical job name. A job is submitted at its first event 0, starts at its first event 1, and ends at its
last event 2 to 6 (evict, fail, finish, kill, lost) unless an event 0 follows. Timestamp 0 means before the trace, and
2^63 - 1 after it. Jobs that were submitted before the trace, or in a part that is not there, are left out and counted.

A job is one worker, because neither source has the number of tasks of all jobs.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass, replace
from math import nan
from pathlib import Path

import numpy as np

from tradewind.model.arrays import Floats
from tradewind.model.columns import Numbered
from tradewind.model.errors import InputError
from tradewind.traces.readers import Columns, Table, Trace, opened

SUBMIT, SCHEDULE, ENDS = "0", "1", frozenset("23456")
TYPES = frozenset("012345678")
AFTER_US = 2**63 - 1
WIDTH = 8
EARLY = "submitted before the trace"


def read_google(path: Path) -> Trace:
    """Jobs of either source; users are tenants, ids are numbers of rows or job ids, the first arrival becomes time 0."""
    if _is_events(path):
        events = Events(path)
        trace = events.columns().trace(from_zero=True)
        return replace(trace, skipped=trace.skipped | {EARLY: events.early}) if events.early else trace
    table = Table(path, ("submit_s", "start_s", "end_s", "user"))
    return Columns(
        table=table,
        ids=Numbered(np.arange(1, len(table) + 1)),
        arrive_us=table.times_us("submit_s"),
        runtime_us=table.times_us("end_s", gaps=True) - table.times_us("start_s", gaps=True),
        gpus=np.ones(len(table), np.int64),
        tenants=table.text("user"),
    ).trace(from_zero=True)


def submitted_us(path: Path) -> Floats:
    """Instants of all submissions, ascending, also of jobs that never started or ended."""
    if _is_events(path):
        return np.sort(Events(path).columns().arrive_us)
    return np.sort(Table(path, ("submit_s",)).times_us("submit_s"))


def _is_events(path: Path) -> bool:
    """Whether this is a folder, or a file that starts with a timestamp instead of names of columns."""
    if path.is_dir():
        return True
    with opened(path) as file:
        return file.readline().partition(",")[0].strip().isdigit()


@dataclass(slots=True)
class _Seen:
    """What the events so far say of a job; times in microseconds, NaN: not known."""

    user: str
    submit_us: float = nan
    start_us: float = nan
    end_us: float = nan


class Events:
    """The jobs of `job_events`, and how many were left out because they are older than the trace."""

    def __init__(self, path: Path) -> None:
        self.path = path
        parts = sorted((*path.glob("*.csv"), *path.glob("*.csv.gz"))) if path.is_dir() else [path]
        if not parts:
            raise InputError(
                "has no file *.csv or *.csv.gz; give the folder of the parts of job_events", where=str(path)
            )
        found: dict[str, _Seen] = {}
        for part in parts:
            with opened(part) as file:
                reader = csv.reader(file, strict=True)
                for row in reader:
                    if row:
                        _count(found, row, f"{part}, line {reader.line_num}")
        self.jobs = {id: seen for id, seen in found.items() if seen.submit_us > 0}
        self.early = len(found) - len(self.jobs)

    def __len__(self) -> int:
        return len(self.jobs)

    def bad(self, row: int, column: str, found: object, allowed: str) -> InputError:
        """The error for one job."""
        return InputError(f"found {found!r}; it must be {allowed}", where=f"{self.path}, job {row}, {column}")

    def columns(self) -> Columns:
        """The jobs as columns."""
        jobs = self.jobs.values()
        times = np.array([(j.submit_us, j.start_us, j.end_us) for j in jobs], np.float64).reshape(-1, 3)
        return Columns(
            table=self,
            ids=list(self.jobs),
            arrive_us=times[:, 0],
            runtime_us=times[:, 2] - times[:, 1],
            gpus=np.ones(len(self), np.int64),
            tenants=[j.user for j in jobs],
        )


def _count(found: dict[str, _Seen], row: list[str], where: str) -> None:
    """Take one event into account."""
    if len(row) != WIDTH:
        raise InputError(f"found {len(row)} values; job_events has {WIDTH} columns", where=where)
    stamp, _, id, kind, user = row[:5]
    if not (stamp.isascii() and stamp.isdigit() and int(stamp) <= AFTER_US):
        raise InputError(
            f"found {stamp!r}; it must be microseconds from 0 to 2^63 - 1", where=f"{where}, column timestamp"
        )
    if kind not in TYPES:
        raise InputError(f"found {kind!r}; it must be 0 to 8", where=f"{where}, column event type")
    seen = found.get(id)
    if seen is None:
        seen = found[id] = _Seen(user)
    at_us = nan if int(stamp) == AFTER_US else float(stamp)
    if kind == SUBMIT:
        seen.submit_us = at_us if seen.submit_us != seen.submit_us else seen.submit_us
        seen.end_us = nan
    elif kind == SCHEDULE:
        seen.start_us = at_us if seen.start_us != seen.start_us else seen.start_us
    elif kind in ENDS:
        seen.end_us = at_us
