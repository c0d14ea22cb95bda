"""The gang of a job: all its ranks, started and stopped together, one attempt at a time."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean, median
from typing import Any

from tradewind.model.codec import plain, read
from tradewind.model.decision import Step
from tradewind.model.job import Job
from tradewind.model.progress import iteration_us
from tradewind.model.setup import Setup
from tradewind.model.tables import COMPLETE, FAILED
from tradewind.worlds.fleet import (
    STOPPED,
    Exit,
    IterationReport,
    Launch,
    LaunchStatus,
    Rank,
    Wanted,
    ranks_of,
)
from tradewind.worlds.measured import UNKNOWN, Expectation, RankMeasure, standard_error, steady

HOUR_S = 3600
OFTEN = 5
"""See RetryOptions.retries."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryOptions:
    """When a job whose ranks fail is started again.

    retries    consecutive failures without progress before a job is given up; with progress, OFTEN x (retries + 1)
               failures within an hour
    backoff_s  pause before the first retry; doubles with each failure within an hour, up to 32 times as long
    stall_s    a job that has reported before and is silent for this time is restarted; 0: never
    start_s    a job whose ranks have not been started after this time raises an alarm that says why
    """

    retries: int = 3
    backoff_s: float = 0.5
    stall_s: float = 300.0
    start_s: float = 30.0


@dataclass(slots=True)
class Tally:
    """What the ranks of an attempt reported; all ranks step together, so the one with most reports counts.

    iterations  number of reports of that rank; measured_s: median seconds of an iteration; loss: the last one
    ranks       RankMeasure of every rank that reported
    """

    iterations: int = 0
    measured_s: float = 0.0
    bytes_sent: float = 0.0
    loss: float = 0.0
    ranks: list[Sequence[Any]] = field(default_factory=list)
    last: IterationReport | None = None
    expected: Expectation = field(default_factory=Expectation)
    _seconds: dict[int, array[float]] = field(default_factory=dict)
    _waits: dict[int, array[float]] = field(default_factory=dict)
    _sent: dict[int, array[float]] = field(default_factory=dict)
    _samples: dict[int, array[float]] = field(default_factory=dict)
    _predicted: dict[int, array[float]] = field(default_factory=dict)
    _losses: dict[int, float] = field(default_factory=dict)
    _accuracies: dict[int, tuple[float, float]] = field(default_factory=dict)

    def add(self, reports: Sequence[tuple[int, IterationReport]], now_s: float = 0.0) -> None:
        """Count new reports."""
        expected_us = self.expected.of_each(now_s, [(rank, report.seconds) for rank, report in reports])
        for (rank, report), each_us in zip(reports, expected_us, strict=True):
            self._seconds.setdefault(rank, array("d")).append(report.seconds)
            self._waits.setdefault(rank, array("d")).append(report.communication_seconds)
            self._sent.setdefault(rank, array("d")).append(report.bytes_sent)
            self._samples.setdefault(rank, array("d")).append(report.samples)
            self._predicted.setdefault(rank, array("d")).append(each_us)
            self._losses[rank] = report.loss
            if report.accuracy >= 0:
                self._accuracies[rank] = (report.accuracy, report.site_accuracy)
            self.bytes_sent += report.bytes_sent
            if self.last is None or report.iteration >= self.last.iteration:
                self.last = report

    def settle(self) -> None:
        """Compute the figures; until then they are those of the journal, or 0."""
        if self._seconds:
            most = max(sorted(self._seconds), key=lambda rank: len(self._seconds[rank]))
            self.iterations, self.loss = len(self._seconds[most]), self._losses[most]
            self.measured_s = float(median(self._seconds[most]))
            self.ranks = [self._measure(rank) for rank in sorted(self._seconds)]

    def spent_s(self, counted: Collection[int]) -> tuple[float, float]:
        """Seconds of all reported iterations of the ranks that count, and those spent waiting among them."""
        ranks = [rank for rank in self._seconds if rank in counted]
        return sum(sum(self._seconds[r]) for r in ranks), sum(sum(self._waits[r]) for r in ranks)

    def _measure(self, rank: int) -> RankMeasure:
        seconds, waits = steady(self._seconds[rank]), steady(self._waits[rank])
        samples = steady(self._samples[rank])
        return RankMeasure(
            rank, len(seconds), fmean(seconds), standard_error(seconds), fmean(waits),
            *self._accuracies.get(rank, (UNKNOWN, UNKNOWN)), fmean(steady(self._sent[rank])),
            fmean(samples) if min(samples) >= 0 else UNKNOWN, fmean(steady(self._predicted[rank])),
        )  # fmt: skip


@dataclass(slots=True, kw_only=True)
class Attempt:
    """One launch of a job and its outcome.

    step      the step with which it began
    latest    the step that was last in force for its ranks; None: that with which it began
    ended_us  -1 while it runs; why: how it ended
    """

    launch: Launch
    at_us: int
    step: Step
    latest: Step | None = None
    ended_us: int = -1
    why: str = ""
    tally: Tally = field(default_factory=Tally)


@dataclass(slots=True)
class Gang:
    """A job's running ranks and its past attempts."""

    job: Job
    attempts: list[Attempt] = field(default_factory=list)
    status: LaunchStatus | None = None  # of the running attempt; None: nothing is known yet
    stopping: str = ""  # why the ranks were asked to stop; empty while they should run
    failures: int = 0  # consecutive, without progress
    iterations: int = 0  # the most that any rank reported
    best: int = 0  # iterations at the last failure
    retry_us: int = 0  # earliest instant of the next attempt
    complete: bool = False  # all ranks ended with 0
    given_up: bool = False
    told_us: int = 0  # when its measurements were last told
    announced: int = -1  # plan stamp for which the job's end has been queued
    spent_us: int = 0  # time that past attempts ran
    last_report_s: float | None = None  # when an iteration was last reported in this attempt (monotonic)
    waiting_since_s: float | None = None  # since when its ranks wait to be started (monotonic)
    has_waited: bool = False  # whether that has raised an alarm
    noted: set[int] = field(default_factory=set)  # ranks whose exit or silence has raised its alarms

    @property
    def current(self) -> Attempt | None:
        """The running attempt."""
        return self.attempts[-1] if self.attempts and self.attempts[-1].ended_us < 0 else None

    @property
    def ranks(self) -> tuple[Rank, ...]:
        """The running ranks."""
        return self.attempts[-1].launch.ranks if self.current is not None else ()

    @property
    def last(self) -> IterationReport | None:
        """The last report."""
        return next((a.tally.last for a in reversed(self.attempts) if a.tally.last is not None), None)

    @property
    def has_failed(self) -> bool:
        """Whether the last attempt failed and no new one has been seen."""
        if self.stopping.startswith(FAILED) and self.current is not None:
            return True
        seen = self.attempts[:-1] if self.current is not None and self.status is None else self.attempts
        return bool(seen) and seen[-1].why.startswith(FAILED)

    def wanted(self, step: Step | None) -> Wanted | None:
        """What the fleet should do for this job; step: the one in force."""
        attempt = self.current
        if attempt is None:
            return None
        return Wanted(attempt.launch, not self.stopping, self._step(step).routes)

    def _step(self, step: Step | None) -> Step:
        """The step that the running ranks carry out: the one in force, or the last that was for them, until they end."""
        attempt = self.attempts[-1]
        if step is not None and ranks_of(step) == attempt.launch.ranks:
            attempt.latest = step
        return attempt.latest or attempt.step

    def running_us(self, now_us: int) -> int:
        """Time that the job's ranks have run."""
        attempt = self.current
        return self.spent_us + (max(0, now_us - attempt.at_us) if attempt is not None else 0)

    def begin(self, attempt: Attempt) -> None:
        """Begin an attempt that is already in the journal."""
        self.attempts.append(attempt)
        self.status, self.stopping, self.last_report_s = None, "", None
        self.waiting_since_s, self.has_waited, self.noted = None, False, set()

    def stop(self, why: str) -> None:
        """Ask all ranks to stop."""
        self.stopping = self.stopping or why

    def take(self, status: LaunchStatus, now_s: float, setup: Setup, step: Step | None) -> None:
        """Take in what the fleet knows about the running attempt; step: the one in force."""
        self.status = status
        if not status.waiting:
            self.waiting_since_s = None
        elif self.waiting_since_s is None:
            self.waiting_since_s = now_s
        attempt = self.attempts[-1]
        attempt.tally.expected.change(now_s, iteration_us(setup, self.job, self._step(step)))
        if status.reports:
            self.last_report_s = now_s
            attempt.tally.add(status.reports, now_s)
            self.iterations = max(self.iterations, *(report.iteration for _, report in status.reports))

    def is_to_tell(self, now_us: int, slot_us: int) -> bool:
        """Whether what its ranks measured should be told: once in every slot, and when all have ended with 0."""
        if self.complete:
            return self.told_us < self.attempts[-1].ended_us
        return self.last_report_s is not None and now_us // slot_us > self.told_us // slot_us

    @property
    def is_running(self) -> bool:
        """Whether it still has ranks that will end; those that cannot be reached end without a loop."""
        if self.current is None:
            return False
        exits = self.status.exits if self.status is not None else (None,) * len(self.ranks)
        silent = self.status.unreachable if self.status is not None else ()
        return any(each is None and number not in silent for number, each in enumerate(exits))

    def has_to_wait(self, start_s: float, now_s: float) -> bool:
        """Whether its ranks have waited too long to be started."""
        return self.waiting_since_s is not None and now_s - self.waiting_since_s > start_s

    def rest(self, now_s: float) -> None:
        """Let it be silent: there is nothing to do."""
        if self.last_report_s is not None:
            self.last_report_s = now_s

    def is_hung(self, stall_s: float, now_s: float) -> bool:
        """Whether a job that has reported in this attempt, and can be reached, has been silent for too long."""
        return bool(
            stall_s
            and self.last_report_s is not None
            and now_s - self.last_report_s > stall_s
            and self.status is not None
            and not self.status.unreachable
        )

    def end(self, at_us: int, why: str) -> Attempt:
        """Close the running attempt."""
        attempt = self.attempts[-1]
        self.spent_us += max(0, at_us - attempt.at_us)
        attempt.ended_us, attempt.why = at_us, why
        attempt.tally.settle()
        self.complete = why == COMPLETE
        self.status = None
        return attempt

    def count_failure(self, options: RetryOptions, now_us: int, pace: float) -> str:
        """Schedule a retry or give up; return which, in words."""
        progress = self.iterations > self.best
        self.failures, self.best = (1 if progress else self.failures + 1), self.iterations
        since = now_us - int(HOUR_S * pace)
        lately = sum(each.why.startswith(FAILED) and each.ended_us >= since for each in self.attempts)
        self.retry_us = now_us + int(options.backoff_s * 2 ** min(lately - 1, 5) * pace)
        most = OFTEN * (options.retries + 1)
        self.given_up = self.failures > options.retries or lately >= most
        often = f"failure {lately} of {most} within an hour; " if lately > self.failures else ""
        return often + ("given up" if self.given_up else f"retry {self.failures} of {options.retries}")


def last_words(gang: Gang, exits: Sequence[Exit], logs: Callable[[Job, int], str]) -> str:
    """What the first rank that failed wrote last, as the end of an alarm."""
    rank = next((number for number, each in enumerate(exits) if each.code), None)
    _, _, own = ("", "", "") if rank is None else logs(gang.job, rank).rpartition("--- attempt ")
    lines = [line.strip() for line in own.splitlines()[1:] if line.strip() and not line.startswith("--- ")]
    text = " | ".join(lines[-LAST_LINES:])[-LAST_CHARACTERS:]
    return f"{QUOTE}{text}" if text else ""


def complaints(
    gang: Gang, status: LaunchStatus, names: Sequence[str], options: RetryOptions, now_s: float
) -> Iterator[str]:
    """What the operator should know of the running attempt: ranks that wait, misbehaved or cannot be reached, each once."""
    number = gang.attempts[-1].launch.number
    if not gang.has_waited and gang.has_to_wait(options.start_s, now_s):
        gang.has_waited = True
        yield f"attempt {number} has not started after {options.start_s:g} s: {status.waiting}; it is tried further"
    for rank, found in enumerate(status.exits):
        silent = rank in status.unreachable and not status.waiting
        if rank in gang.noted or (found is None and not silent):
            continue
        gang.noted.add(rank)
        who = f"rank {rank}@{names[gang.ranks[rank].node]} of attempt {number}"
        if found is None:
            yield f"{who} cannot be reached; it counts as running until there is evidence"
        for note in found.notes if found is not None else ():
            yield f"{who} {note}"


def is_awaited(gang: Gang, busy: Sequence[Gang]) -> bool:
    """Whether a job has to wait because it goes on from another whose ranks have not ended."""
    others = (each for each in busy if each.job.home == gang.job.home and each is not gang)
    return gang.job.continues is not None and any(each.current is not None for each in others)


def verdict(
    gang: Gang, exits: Sequence[Exit], names: Sequence[str], down: Collection[int]
) -> tuple[str, bool]:
    """(how an attempt ended whose ranks have all exited, whether it is the job's own failure)."""
    if all(each.code == 0 for each in exits):
        return COMPLETE, False
    if gang.stopping:
        return gang.stopping, gang.stopping.startswith(FAILED)
    if all(each.asked or each.code == 0 for each in exits):
        return "stopped", False  # by a loop that was killed before it recorded why
    number = next(i for i, each in enumerate(exits) if each.code != 0)
    node = gang.ranks[number].node
    if exits[number].code is None and node in down:
        return f"lost with node {names[node]}", False
    how = "stopped without being asked" if exits[number].code == STOPPED else str(exits[number])
    return f"{FAILED} rank {number}@{names[node]} {how}", True


def attempt_record(attempt: Attempt, wall: float) -> dict[str, Any]:
    """Journal record of the start of an attempt."""
    launch = attempt.launch
    return {
        "job": launch.job.index, "number": launch.number, "slot": launch.slot, "at_us": attempt.at_us, "wall": wall,
        "ranks": [list(rank) for rank in launch.ranks], "step": list(attempt.step),
    }  # fmt: skip


def attempt_from_record(job: Job, step: Step, record: Mapping[str, Any]) -> Attempt:
    """The attempt that a journal record describes."""
    ranks = tuple(Rank(role, node, local) for role, node, local in record["ranks"])
    return Attempt(
        launch=Launch(job, record["number"], record["slot"], ranks), at_us=record["at_us"], step=step
    )


TALLIED = ("iterations", "measured_s", "bytes_sent", "loss", "ranks")
LAST_LINES, LAST_CHARACTERS = 3, 300
"""What an alarm quotes of a log."""
QUOTE = "; its log ends with: "
"""Leads the end of a log in the text of an alarm."""
KEPT = ("failures", "iterations", "best", "retry_us", "given_up")


def end_record(gang: Gang, attempt: Attempt, wall: float) -> dict[str, Any]:
    """Journal record of the end of an attempt."""
    return {
        "job": gang.job.index, "number": attempt.launch.number, "ended_us": attempt.ended_us, "why": attempt.why,
        "wall": wall, "tally": {name: getattr(attempt.tally, name) for name in TALLIED},
        "gang": {name: getattr(gang, name) for name in KEPT},
    }  # fmt: skip


def save_gangs(gangs: Mapping[int, Gang], active: Collection[int]) -> dict[str, Any]:
    """Gangs with attempts as JSON data; a job that is over while its ranks still end is saved with its gang."""
    found = {}
    for index, gang in gangs.items():
        if gang.attempts and (index in active or gang.current is not None):
            found[str(index)] = _save(gang) | ({} if index in active else {"job": plain(gang.job)})
    return found


def restore_gangs(saved: Mapping[str, Any], active: Mapping[int, Job]) -> dict[int, Gang]:
    """The gangs that `save_gangs` returned, and new ones for all other active jobs."""
    gangs = {index: Gang(job) for index, job in active.items()}
    for name, row in saved.items():
        if "job" in row:
            gangs[int(name)] = Gang(read(Job, row["job"], "gang.job"))
        if int(name) in gangs:
            _restore(gangs[int(name)], row)
    return gangs


def _save(gang: Gang) -> dict[str, Any]:
    return {
        "attempts": [attempt_record(each, 0.0) for each in gang.attempts],
        "ends": [
            [each.ended_us, each.why, {name: getattr(each.tally, name) for name in TALLIED}]
            for each in gang.attempts
        ],
        "kept": {
            name: getattr(gang, name) for name in (*KEPT, "stopping", "complete", "announced", "spent_us")
        },
    }


def _restore(gang: Gang, saved: Mapping[str, Any]) -> None:
    for record, (ended_us, why, tally) in zip(saved["attempts"], saved["ends"], strict=True):
        attempt = attempt_from_record(gang.job, read(Step, record["step"], "attempt.step"), record)
        attempt.ended_us, attempt.why, attempt.tally = ended_us, why, Tally(**tally)
        gang.attempts.append(attempt)
    for name, value in saved["kept"].items():
        setattr(gang, name, value)


def replay_end(gang: Gang, record: Mapping[str, Any]) -> None:
    """Bring a gang to the state after the end of an attempt."""
    attempt = gang.end(record["ended_us"], record["why"])
    attempt.tally = Tally(**record["tally"])
    for name in KEPT:
        setattr(gang, name, record["gang"][name])
