"""The order of events within an instant, in the tables of a run.

Changes come first, then cancelled plans, what was measured, jobs that end, what customers say, arrivals, the slot with
its data and the timer, and then what these lead to: quotes are withdrawn, answered and made, jobs are refused, and at the
horizon the rest ends. Only the order in which customers say something within a microsecond is theirs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import groupby
from typing import Any, NamedTuple

from tradewind.model.result import Table, Violation
from tradewind.model.tables import INTERRUPTED

STAGE = {
    "changed": 0, "voided": 1, "measured": 1, "finished": 2, "left": 2, "released": 2, "ended": 2, "cancelled": 3,
    "answered": 3, "expired": 3, "arrived": 4, "slot": 5, "data": 6, "timer": 7, "withdrawn": 8,
}  # fmt: skip
"""Kind -> place of its events within an instant; those of quotes depend on when the quote was made."""
CLOSED, QUOTED, REFUSED, AT_END = 9, 10, 11, 12
"""Places of answers to open quotes, of new quotes and answers to them, of refusals by a decision, of ends with the run."""
BY_JOB = ("measured", "finished", "left", "released", "ended", "arrived", "data")
"""Kinds whose events come in order of their jobs; changes and cancelled plans are checked with their contents."""
SAID = ("cancelled", "answered", "expired")
"""Kinds of what customers say, which is in any order."""


class _Row(NamedTuple):
    at_us: int
    kind: str
    job: int


def out_of_order(tables: Mapping[str, Table], horizon_us: int) -> Iterator[Violation]:
    """The first event of each instant that comes too late in it."""
    places = _Places(tables, horizon_us)
    rows = (_Row(*row) for row in _rows(tables, "events", *_Row._fields))
    for at_us, group in groupby(rows, key=lambda row: row.at_us):
        before, last = "", (-1, -1)
        for row in group:
            what, place = row.kind if row.job < 0 else f"{row.kind} of job {row.job}", places.of(row)
            if place < last:
                yield Violation("time.order", detail=f"{what} at {at_us} us comes after {before}")
                break
            before, last = what, place


class _Places:
    """Stage of each event and its place there."""

    def __init__(self, tables: Mapping[str, Table], horizon_us: int) -> None:
        alarms = _rows(tables, "alarms", "at_us", "text") if "alarms" in tables else ()
        self._end_us = min([horizon_us, *(at_us for at_us, text in alarms if text == INTERRUPTED)])
        self._answers = {key: row for row, key in enumerate(_rows(tables, "answers", "at_us", "job"))}
        when = [at_us for (at_us,) in _rows(tables, "decisions", "at_us")]
        verdicts = enumerate(_rows(tables, "verdicts", "decision", "job"))
        self._verdicts = {(when[decision], job): row for row, (decision, job) in verdicts}
        self._open: dict[int, tuple[int, int]] = {}  # job -> number and time of its open quote
        self._quotes = 0

    def of(self, row: _Row) -> tuple[int, int]:
        """(stage, place)."""
        at_us, kind, job = row
        if kind == "quoted":
            self._open[job] = self._quotes, at_us
            self._quotes += 1
            return QUOTED, job
        if kind in ("answered", "expired"):
            return STAGE[kind], 0
        number, made_us = self._open.pop(
            job, (-1, at_us)
        )  # whatever else happens to the job closes its quote
        if kind == "ended" and at_us >= self._end_us:
            return AT_END, job
        if kind in STAGE:
            return STAGE[kind], job if kind in BY_JOB else number if kind == "withdrawn" else 0
        if (answer := self._answers.get((at_us, job))) is None:
            return REFUSED, self._verdicts.get((at_us, job), -1)
        return (CLOSED, answer) if made_us < at_us else (QUOTED, job)


def _rows(tables: Mapping[str, Table], table: str, *names: str) -> Iterator[tuple[Any, ...]]:
    return zip(*(tables[table][name] for name in names), strict=True)
