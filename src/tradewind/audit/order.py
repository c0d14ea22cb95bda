"""The order of events within an instant, in the tables of a run.

Changes come first, then cancelled plans, jobs that end, what customers say, arrivals, the slot with its data and the timer,
and then what these lead to: quotes are withdrawn, answered and made, jobs are refused, and at the horizon the rest ends.
Only the order in which customers say something within a microsecond is theirs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from typing import Any, NamedTuple

from tradewind.model.result import Table, Violation

STAGE = {
    "changed": 0, "voided": 1, "finished": 2, "left": 2, "released": 2, "ended": 2, "cancelled": 3, "answered": 3,
    "expired": 3, "arrived": 4, "slot": 5, "data": 6, "timer": 7, "withdrawn": 8,
}  # fmt: skip
"""Kind -> place of its events within an instant; those of quotes depend on when the quote was made."""
CLOSED, QUOTED, REFUSED, AT_END = 9, 10, 11, 12
"""Places of answers to open quotes, of new quotes and their answers, of refusals by a decision, of the end at the horizon."""
BY_JOB = ("finished", "left", "released", "ended", "arrived", "data")
"""Kinds whose events come in order of their jobs; changes and cancelled plans are checked with their contents."""
SAID = ("answered", "expired")
"""Kinds that close no quote by themselves."""
Key = tuple[int, int]
"""(time, job)."""


class _Row(NamedTuple):
    at_us: int
    kind: str
    job: int


def out_of_order(tables: Mapping[str, Table], horizon_us: int) -> Iterator[Violation]:
    """The first event of each instant that comes too late in it."""
    places = _Places(tables, horizon_us)
    rows = (_Row(*row) for row in zip(*_columns(tables, "events", *_Row._fields), strict=True))
    for at_us, group in groupby(rows, key=lambda row: row.at_us):
        before, last = "", -1
        reached: dict[str, int] = {}
        for row in group:
            stage, found = places.of(row)
            if stage != last and (last, stage) != (CLOSED, QUOTED):
                reached = {}
            what = row.kind if row.job < 0 else f"{row.kind} of job {row.job}"
            if stage < last or any(found[name] < reached.get(name, -1) for name in found):
                yield Violation("time.order", detail=f"{what} at {at_us} us comes after {before}")
                break
            reached.update(found)
            before, last = what, stage


class _Places:
    """Where events belong: the stage, and the place there by each of the numberings that have one."""

    def __init__(self, tables: Mapping[str, Table], horizon_us: int) -> None:
        self._horizon_us = horizon_us
        self._answers = _first(zip(*_columns(tables, "answers", "at_us", "job"), strict=True))
        self._offers = _first(zip(*_columns(tables, "offers", "at_us", "job"), strict=True))
        (when,) = _columns(tables, "decisions", "at_us")
        verdicts = zip(*_columns(tables, "verdicts", "decision", "job"), strict=True)
        self._verdicts = _first((when[row], job) for row, job in verdicts)
        self._open: dict[int, tuple[int, int]] = {}  # job -> number and time of its open quote
        self._count = 0

    def of(self, row: _Row) -> tuple[int, dict[str, int]]:
        at_us, kind, job = row
        if kind == "ended" and at_us >= self._horizon_us:
            return AT_END, {"job": job}
        if kind == "quoted":
            self._open[job] = self._count, at_us
            self._count += 1
            return QUOTED, {"offer": self._offers.get((at_us, job), -1)}
        if (stage := STAGE.get(kind, -1)) >= 0:
            number = self._open.get(job, (-1, 0))[0]
            if stage in (STAGE["ended"], STAGE["cancelled"], STAGE["withdrawn"]) and kind not in SAID:
                self._open.pop(job, None)
            return stage, {"job": job} if kind in BY_JOB else {"quote": number} if kind == "withdrawn" else {}
        _, made_us = self._open.pop(job, (-1, at_us))
        if (answer := self._answers.get((at_us, job))) is None:
            return REFUSED, {"verdict": self._verdicts.get((at_us, job), -1)}
        offer = self._offers.get((at_us, job))
        found = {"answer": answer} if offer is None else {"answer": answer, "offer": offer}
        return CLOSED if made_us < at_us else QUOTED, found


def _first(keys: Iterable[Key]) -> dict[Key, int]:
    found: dict[Key, int] = {}
    for row, key in enumerate(keys):
        found.setdefault(key, row)
    return found


def _columns(tables: Mapping[str, Table], table: str, *names: str) -> list[list[Any]]:
    return [list(tables[table][name]) for name in names]
