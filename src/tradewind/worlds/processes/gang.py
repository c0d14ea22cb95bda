"""The gang of a job: all its ranks, started and stopped together, one attempt at a time."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from dataclasses import dataclass, field
from typing import Any

from tradewind.model.decision import Step
from tradewind.model.job import Job
from tradewind.worlds.processes.handles import STOPPED, Exit, RankHandle, adopt, unsupervised
from tradewind.worlds.processes.launch import Launch, Launcher, Rank
from tradewind.worlds.processes.reports import ReportReader

FAILED = "failed:"
"""Prefix of the reason of an attempt that failed by the job's own fault."""


@dataclass(slots=True, kw_only=True)
class Attempt:
    """One start of all ranks of a job, and its outcome.

    began, ended  seconds since 1970 (ended: 0 while it runs); why: how it ended
    """

    launch: Launch
    at_us: int
    began: float
    step: Step
    ended_us: int = -1
    ended: float = 0.0
    why: str = ""


@dataclass(slots=True)
class Gang:
    """A job's running ranks and its past attempts."""

    job: Job
    attempts: list[Attempt] = field(default_factory=list)
    handles: list[RankHandle] = field(default_factory=list)
    stopping: str = ""  # why the ranks were asked to stop; empty while they should run
    failures: int = 0  # consecutive, without progress
    best: int = 0  # iterations at the last failure
    not_before: float = 0.0  # earliest wall-clock time of the next attempt
    complete: bool = False  # all ranks ended with 0
    given_up: bool = False
    announced: int = -1  # plan stamp for which the job's end has been queued
    spent_s: float = 0.0  # seconds that past attempts ran
    last_report: float = 0.0  # when an iteration was last reported in this attempt; 0: never
    reports: ReportReader = field(default_factory=ReportReader)

    @property
    def current(self) -> Attempt | None:
        """The running attempt."""
        return self.attempts[-1] if self.handles else None

    @property
    def ranks(self) -> tuple[Rank, ...]:
        """The running ranks."""
        return self.attempts[-1].launch.ranks if self.handles else ()

    @property
    def has_failed(self) -> bool:
        """Whether the last attempt failed and no new one has started."""
        why = self.stopping if self.handles else self.attempts[-1].why if self.attempts else ""
        return why.startswith(FAILED)

    def running_s(self, now: float) -> float:
        """Wall-clock seconds that the job's ranks have run."""
        attempt = self.current
        return self.spent_s + (max(0.0, now - attempt.began) if attempt is not None else 0.0)

    def begin(self, launcher: Launcher, attempt: Attempt) -> None:
        """Start the ranks of an attempt that is already in the journal."""
        launch = attempt.launch
        launcher.prepare(launch)
        self.attempts.append(attempt)
        self.stopping, self.last_report = "", 0.0
        for number in range(len(launch.ranks)):
            self.handles.append(_start(launcher, launch, number, 0))

    def take_over(self, launcher: Launcher, token: str, wanted: tuple[Rank, ...]) -> None:
        """Recover the last attempt after a crash of the loop.

        Adopt running ranks, read how others ended, and start ranks that never started but are still wanted.
        """
        attempt = self.attempts[-1]
        launch = attempt.launch
        launcher.prepare(launch)
        for number in range(len(launch.ranks)):
            tries = 0
            while launcher.control(launch, number, tries + 1).is_dir():
                tries += 1
            handle = adopt(launcher.control(launch, number, tries), token)
            if handle is None and launch.ranks == wanted:
                handle = _start(launcher, launch, number, tries + 1)
            elif handle is None:
                handle = RankHandle(launcher.control(launch, number, tries), 0)
                handle.exit = Exit(STOPPED, asked=True)
            self.handles.append(handle)

    def stop(self, why: str) -> None:
        """Ask all ranks to stop."""
        if not self.stopping:
            self.stopping = why
            for handle in self.handles:
                handle.stop()

    def exits(self) -> list[Exit | None]:
        """How each rank ended; None for running ranks."""
        return [handle.poll() for handle in self.handles]

    def close(self, token: str, others: list[int]) -> None:
        """Clean up after an attempt; `others` are the supervisors of other gangs.

        If a supervisor died, its rank's processes may still run: kill all that no other supervisor owns.
        """
        if any(handle.exit is not None and handle.exit.code is None for handle in self.handles):
            for pid in unsupervised(token, others):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        self.handles = []

    def read(self, launcher: Launcher) -> None:
        """Read new reports of the ranks."""
        if self.attempts:
            ranks = range(max(len(attempt.launch.ranks) for attempt in self.attempts))
            if self.reports.read(launcher.report(self.job, rank) for rank in ranks):
                self.last_report = time.time()

    def is_hung(self, stall_s: float, now: float) -> bool:
        """Whether a job that has reported in this attempt has been silent for too long."""
        return bool(stall_s and self.handles and self.last_report and now - self.last_report > stall_s)


def _start(launcher: Launcher, launch: Launch, number: int, tries: int) -> RankHandle:
    control = launcher.control(launch, number, tries)
    process = launcher.start(launch, number, control)
    return RankHandle(control, process.pid, process)


def verdict(ranks: tuple[Rank, ...], exits: list[Exit], names: list[str], stopping: str) -> tuple[str, bool]:
    """(how an attempt ended whose ranks have all exited, whether it is the job's own failure)."""
    codes = [each.code for each in exits]
    if all(code == 0 for code in codes):
        return "complete", False
    if stopping and not stopping.startswith(FAILED):
        return stopping, False
    if stopping:
        return stopping, True
    if all(each.asked or each.code == 0 for each in exits):
        return "stopped", False  # by a loop that was killed before it recorded why
    number = next(i for i, code in enumerate(codes) if code != 0)
    if codes[number] == STOPPED:
        return f"{FAILED} rank {number}@{names[ranks[number].node]} stopped without being asked", True
    return f"{FAILED} rank {number}@{names[ranks[number].node]} {exits[number]}", True


def attempt_record(attempt: Attempt) -> dict[str, Any]:
    """Journal record of the start of an attempt."""
    launch = attempt.launch
    return {
        "job": launch.job.index, "number": launch.number, "slot": launch.slot, "port": launch.port,
        "ranks": [list(rank) for rank in launch.ranks], "at_us": attempt.at_us, "began": attempt.began,
        "step": list(attempt.step),
    }  # fmt: skip


def attempt_from_record(job: Job, step: Step, record: dict[str, Any]) -> Attempt:
    """The attempt that a journal record describes."""
    ranks = tuple(Rank(role, node, local) for role, node, local in record["ranks"])
    launch = Launch(job, record["number"], record["slot"], ranks, record["port"])
    return Attempt(launch=launch, at_us=record["at_us"], began=record["began"], step=step)


def end_record(gang: Gang, attempt: Attempt) -> dict[str, Any]:
    """Journal record of the end of an attempt."""
    return {
        "job": gang.job.index, "number": attempt.launch.number, "ended": attempt.ended, "ended_us": attempt.ended_us,
        "why": attempt.why, "failures": gang.failures, "best": gang.best, "not_before": gang.not_before,
        "complete": gang.complete, "given_up": gang.given_up,
    }  # fmt: skip
