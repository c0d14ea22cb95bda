"""The ranks of one job as they are: one attempt at a time, watched, stopped, adopted after a crash of the loop."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from dataclasses import dataclass, field
from typing import Any

from tradewind.model.decision import Step
from tradewind.model.job import Job
from tradewind.worlds.processes.launching import Launch, Launcher, Rank
from tradewind.worlds.processes.watching import STOPPED, Exit, Reports, Watch, adopt, strays_of

FAILED = "failed:"
"""How the reason begins where an attempt was the job's own failure."""


@dataclass(slots=True, kw_only=True)
class Attempt:
    """One start of all ranks of a job, and what came of it.

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
class Crew:
    """A job's processes and their history."""

    job: Job
    attempts: list[Attempt] = field(default_factory=list)
    watches: list[Watch] = field(default_factory=list)
    stopping: str = ""  # why the ranks were asked to end; empty while they shall run
    failures: int = 0  # in a row, without progress
    best: int = 0  # iterations when the job last failed
    not_before: float = 0.0  # no new attempt before this second of the wall
    complete: bool = False  # every rank ended with 0
    given_up: bool = False
    announced: int = -1  # state of the plan for which the world has set down the job's end
    spent_s: float = 0.0  # seconds that attempts ran which are over
    heard: float = 0.0  # when the job last reported an iteration
    reports: Reports = field(default_factory=Reports)

    @property
    def current(self) -> Attempt | None:
        """The attempt that is under way."""
        return self.attempts[-1] if self.watches else None

    @property
    def ranks(self) -> tuple[Rank, ...]:
        """Who runs now."""
        return self.attempts[-1].launch.ranks if self.watches else ()

    @property
    def has_failed(self) -> bool:
        """Whether nothing runs, or the rest is being stopped, because the last attempt failed."""
        why = self.stopping if self.watches else self.attempts[-1].why if self.attempts else ""
        return why.startswith(FAILED)

    def running_s(self, now: float) -> float:
        """Seconds of the wall that the job's ranks have run."""
        attempt = self.current
        return self.spent_s + (max(0.0, now - attempt.began) if attempt is not None else 0.0)

    def begin(self, launcher: Launcher, attempt: Attempt) -> None:
        """Starts the ranks of an attempt that is already in the journal."""
        launch = attempt.launch
        launcher.prepare(launch)
        self.attempts.append(attempt)
        self.stopping, self.heard = "", 0.0
        for number in range(len(launch.ranks)):
            self.watches.append(_start(launcher, launch, number, 0))

    def take_over(self, launcher: Launcher, token: str, wanted: tuple[Rank, ...]) -> None:
        """After a crash: adopts ranks that run, learns how others ended, starts those that never began but should."""
        attempt = self.attempts[-1]
        launch = attempt.launch
        launcher.prepare(launch)
        for number in range(len(launch.ranks)):
            tries = 0
            while launcher.control(launch, number, tries + 1).is_dir():
                tries += 1
            watch = adopt(launcher.control(launch, number, tries), token)
            if watch is None and launch.ranks == wanted:
                watch = _start(launcher, launch, number, tries + 1)
            elif watch is None:
                watch = Watch(launcher.control(launch, number, tries), 0)
                watch.exit = Exit(STOPPED, asked=True)
            self.watches.append(watch)

    def stop(self, why: str) -> None:
        """Asks all ranks to end."""
        if not self.stopping:
            self.stopping = why
            for watch in self.watches:
                watch.stop()

    def exits(self) -> list[Exit | None]:
        """How each rank ended; None for those that run."""
        return [watch.look() for watch in self.watches]

    def close(self, token: str, keep: list[int]) -> None:
        """The attempt is over: nothing of it may be left, even where a keeper was killed."""
        if any(watch.exit is not None and watch.exit.code is None for watch in self.watches):
            for pid in strays_of(token, keep):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        self.watches = []

    def read(self, launcher: Launcher) -> None:
        """Takes in what the ranks reported."""
        if self.attempts:
            ranks = range(max(len(attempt.launch.ranks) for attempt in self.attempts))
            if self.reports.read(launcher.report(self.job, rank) for rank in ranks):
                self.heard = time.time()

    def is_hung(self, stall_s: float, now: float) -> bool:
        """Whether a job that has reported in this attempt says nothing any more."""
        return bool(stall_s and self.watches and self.heard and now - self.heard > stall_s)


def _start(launcher: Launcher, launch: Launch, number: int, tries: int) -> Watch:
    control = launcher.control(launch, number, tries)
    process = launcher.start(launch, number, control)
    return Watch(control, process.pid, process)


def verdict(ranks: tuple[Rank, ...], exits: list[Exit], names: list[str], stopping: str) -> tuple[str, bool]:
    """(what became of an attempt whose ranks have all ended, whether it is the job's own failure)."""
    codes = [each.code for each in exits]
    if all(code == 0 for code in codes):
        return "complete", False
    if stopping and not stopping.startswith(FAILED):
        return stopping, False
    if stopping:
        return stopping, True
    if all(each.asked or each.code == 0 for each in exits):
        return "stopped", False  # by a loop that was killed before it could write down why
    number = next(i for i, code in enumerate(codes) if code != 0)
    if codes[number] == STOPPED:
        return f"{FAILED} rank {number}@{names[ranks[number].node]} stopped without being asked", True
    return f"{FAILED} rank {number}@{names[ranks[number].node]} {exits[number]}", True


def as_record(attempt: Attempt) -> dict[str, Any]:
    """An attempt as plain values, for the journal."""
    launch = attempt.launch
    return {
        "job": launch.job.index, "number": launch.number, "slot": launch.slot, "port": launch.port,
        "ranks": [list(rank) for rank in launch.ranks], "at_us": attempt.at_us, "began": attempt.began,
        "step": list(attempt.step),
    }  # fmt: skip


def from_record(job: Job, step: Step, record: dict[str, Any]) -> Attempt:
    """The attempt that a journal tells of."""
    ranks = tuple(Rank(role, node, local) for role, node, local in record["ranks"])
    launch = Launch(job, record["number"], record["slot"], ranks, record["port"])
    return Attempt(launch=launch, at_us=record["at_us"], began=record["began"], step=step)
