"""What a live run recorded of its ranks, against plans and events: a run without it was not measured.

A plan in force starts ranks before the next instant, where its step says; a job ends before its time only when all its
ranks have ended with 0 or it was given up; a run ends before the horizon only when it was interrupted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from tradewind.audit.measurements import MeasurementLedger, Part
from tradewind.audit.record import Record
from tradewind.audit.shards import ShardLedger
from tradewind.model.decision import Step
from tradewind.model.job import Job
from tradewind.model.result import Table, Violation
from tradewind.model.setup import Setup
from tradewind.model.tables import COMPLETE, FAILED, INTERRUPTED, UNMOVED


class Attempt(NamedTuple):
    """A row of the table `attempts`, as far as it follows from plans and events."""

    job: int
    number: int
    slot: int
    at_us: int
    ended_us: int
    workers: int
    places: str
    why: str
    iterations: int
    predicted_s: float


class AttemptLedger:
    """The attempts of a run, in order of time, compared with the plans in force at their start."""

    def __init__(self, setup: Setup, tables: Mapping[str, Table]) -> None:
        self._setup = setup
        rows = _rows(tables, "attempts", Attempt._fields)
        self._of_job: dict[int, list[Attempt]] = {}
        for row in rows:
            self._of_job.setdefault(row[0], []).append(Attempt(*row))
        self._alarms = _rows(tables, "alarms", ("at_us", "job", "text"))
        has_data = not any(text == UNMOVED for _, _, text in self._alarms)
        self._shards = ShardLedger(setup, tables) if has_data else None
        self._measured = MeasurementLedger(setup, tables)
        self._open = sorted((Attempt(*row) for row in rows), key=lambda attempt: attempt.at_us)
        self._begun: set[int] = set()
        self._complete: dict[int, int] = {}  # job whose ranks are complete -> instant at which that was due

    def form(self, known: Sequence[Job]) -> Iterator[Violation]:
        """Attempts of a job are numbered and follow each other, and only the last may be complete; alarms are in time."""
        jobs = len(known)
        if self._shards is not None:
            yield from self._shards.form(known)
        for job, attempts in self._of_job.items():
            end_us = 0
            for number, attempt in enumerate(attempts):
                last = number == len(attempts) - 1
                ended = attempt.ended_us if attempt.ended_us >= 0 or not last else self._setup.horizon_us
                wrong = (
                    attempt.number != number
                    or not end_us <= attempt.at_us <= ended <= self._setup.horizon_us
                    or (attempt.why == COMPLETE and not last)
                )
                if wrong or not 0 <= job < jobs:
                    detail = f"attempt {attempt.number} of job {job} does not follow the one before it"
                    yield Violation("attempts.order", detail=f"{detail}, or is out of time")
                end_us = ended
        for at_us, job, _ in self._alarms:
            if not (0 <= at_us <= self._setup.horizon_us and -1 <= job < jobs):
                yield Violation("attempts.alarm", detail=f"an alarm for job {job} at {at_us} us")

    # ------------------------------------------------------------------ from instant to instant
    def before(self, last_us: int, next_us: int, records: Mapping[int, Record]) -> Iterator[Violation]:
        """Check what was begun from one instant until just before the next, in the state after the first."""
        while self._open and self._open[0].at_us < next_us:
            attempt = self._open.pop(0)
            record = records.get(attempt.job)
            step = None if record is None else _step(record, attempt.at_us)
            if record is None or step is None or not self._matches(attempt, record, step, last_us):
                name = "" if record is None else record.job.id
                detail = f"attempt {attempt.number} at {attempt.at_us} us ({attempt.places}) is not of the plan in force"
                yield Violation("attempts.plan", name, detail=detail)
            else:
                part = Part(attempt.iterations, attempt.predicted_s)
                yield from self._measured.begin(record.job, step, part)
            self._begun.add(attempt.job)
        interrupted = self.is_interrupted(next_us)
        if not interrupted:
            yield from self._idle(last_us, records.values())
        if self._shards is not None and last_us < next_us:
            yield from self._shards.before(last_us, next_us, records.values(), is_interrupted=interrupted)

    def _idle(self, last_us: int, records: Iterable[Record]) -> Iterator[Violation]:
        """A plan in force has ranks, and a job whose ranks are complete ends."""
        for record in records:
            job = record.job.index
            if record.is_over or (step := _step(record, last_us)) is None or not any(step.workers):
                continue
            self._measured.during(record.job, step)
            if job not in self._begun:
                detail = f"its plan was in force at {last_us} us, but no ranks were started"
                yield Violation("attempts.missing", record.job.id, detail=detail)
            last = self._last(job)
            if last is None or last.why != COMPLETE or last.ended_us > last_us:
                continue
            if (
                record.cancelled_slot == last_us // self._setup.slot_us
            ):  # its end was due, but it lost its plan
                self._complete.pop(job, None)
                continue
            if self._complete.setdefault(job, last_us) < last_us:
                detail = f"its ranks were complete at {last.ended_us} us, but it went on"
                yield Violation("attempts.complete", record.job.id, detail=detail)

    def _matches(self, attempt: Attempt, record: Record, step: Step, last_us: int) -> bool:
        """Whether an attempt runs the step in force."""
        slot_us = self._setup.slot_us
        return (
            not record.is_over
            and attempt.workers == sum(step.workers)
            and attempt.places == _places(self._setup, step)
            and last_us // slot_us <= attempt.slot <= attempt.at_us // slot_us
        )

    # ------------------------------------------------------------------ evidence
    def _last(self, job: int) -> Attempt | None:
        return self._of_job[job][-1] if job in self._of_job else None

    def is_complete(self, job: int, at_us: int) -> bool:
        """Whether the last ranks of a job had all ended with 0."""
        last = self._last(job)
        return last is not None and last.why == COMPLETE and 0 <= last.ended_us <= at_us

    def may_end(self, job: int, at_us: int) -> bool:
        """Whether a job may be over unfinished before the horizon: it was given up, or the run was interrupted."""
        begun = [attempt for attempt in self._of_job.get(job, ()) if attempt.at_us < at_us]
        # the last may have been begun too late to be seen
        failed = any(attempt.why.startswith(FAILED) for attempt in begun[-2:])
        return failed or self.is_interrupted(at_us)

    def is_interrupted(self, at_us: int) -> bool:
        """Whether the run was stopped at an instant."""
        return (at_us, -1, INTERRUPTED) in self._alarms

    def close(self) -> Iterator[Violation]:
        """Attempts that began after the end, and what was not made of data by then."""
        if self._shards is not None:
            yield from self._shards.close(
                is_interrupted=any(text == INTERRUPTED for _, _, text in self._alarms)
            )
        yield from self._measured.close()
        for attempt in self._open:
            detail = f"attempt {attempt.number} of job {attempt.job} at {attempt.at_us} us is not of the plan in force"
            yield Violation("attempts.plan", detail=detail)


def _rows(tables: Mapping[str, Table], table: str, columns: Sequence[str]) -> list[Any]:
    return list(zip(*(tables.get(table, {}).get(name, ()) for name in columns), strict=True))


def _step(record: Record, at_us: int) -> Step | None:
    return next((step for step in record.steps if step.from_us <= at_us < step.until_us), None)


def _places(setup: Setup, step: Step) -> str:
    """Ranks in order: parameter servers, then workers."""
    servers = step.servers or (0,) * len(step.nodes)
    found = [
        f"ps@{setup.nodes[n].name}"
        for n, count in zip(step.nodes, servers, strict=True)
        for _ in range(count)
    ]
    rows = zip(step.nodes, step.workers, strict=True)
    return " ".join([*found, *(f"{count}@{setup.nodes[n].name}" for n, count in rows if count)])
