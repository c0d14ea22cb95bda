"""The process world: carries out decisions as processes on this machine, by the wall clock.

Arrivals, changes, slots and timers come from the scenario at their instants, as in the simulated world. What ranks do
is measured: a job is finished when all its ranks have ended with 0, and its progress is what they report. Worker-slots
and chunks of a dataset are amounts of allocation and follow from the plan. Between two instants the world compares what
should run with what runs, and starts and stops ranks until both agree. A loop that was killed and restarted therefore
needs no special case. Every start is recorded in the journal before it happens.
"""

from __future__ import annotations

import os
import select
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from heapq import heappush
from pathlib import Path
from typing import Any

from tradewind.model.decision import Step
from tradewind.model.errors import InputError
from tradewind.model.job import Dataset, Fixed, Job, Rounds, Stream
from tradewind.model.scenario import Scenario
from tradewind.model.units import MICRO
from tradewind.model.view import Event
from tradewind.worlds.clock import Clock
from tradewind.worlds.processes.gang import (
    FAILED,
    Attempt,
    Gang,
    attempt_from_record,
    attempt_record,
    end_record,
    verdict,
)
from tradewind.worlds.processes.handles import Exit
from tradewind.worlds.processes.launch import ExecutionOptions, Launch, Launcher, Rank, free_port, ranks_of
from tradewind.worlds.simulated import ActiveJob, SimulatedWorld

MAX_SLEEP_S = 0.5
"""Reports of ranks are read at least this often."""

Record = Callable[[str, dict[str, Any]], None]
"""(kind, plain values) -> None: appends a record to the journal; it is on disk when the call returns."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunContext:
    """What a process world needs from its run.

    state    directory of the run
    token    marks all processes of the run
    record   appends to the journal
    on_poll  called regularly with the world, for a live view
    """

    state: Path
    token: str
    clock: Clock
    record: Record
    options: ExecutionOptions
    on_poll: Callable[[ProcessWorld], None] | None = None


def is_measured(job: Job) -> bool:
    """Whether completion and progress are measured: fixed jobs and rounds (docs/jobs.md)."""
    return isinstance(job.work, Fixed) or (isinstance(job.work, Rounds) and job.work.unit == "round")


class ProcessWorld(SimulatedWorld):
    """Runs a scenario's jobs as processes. `replay`, `replay_attempt` and `resume` restore it after a crash."""

    def __init__(self, scenario: Scenario, context: RunContext, *, slots: bool) -> None:
        super().__init__(scenario, slots=slots)
        self.context, self._clock, self._options = context, context.clock, context.options
        self.launcher = Launcher(context.state, scenario.setup, context.options, context.token)
        self.gangs: dict[int, Gang] = {}
        self.stopped = False
        self._names = [node.name for node in scenario.setup.nodes]
        self._wake_reader, self._wake_writer = os.pipe()
        os.set_blocking(self._wake_writer, False)

    # ------------------------------------------------------------------ time
    def wait(self) -> Sequence[Event]:
        """Sleep until the next event, and meanwhile keep the right ranks running."""
        self._add_gangs()
        while not self.stopped:
            due = self._next_instant()
            if due is None and not any(
                self._wanted(gang) or self._outcome(gang) for gang in self.gangs.values()
            ):
                return self._shut_down(self._setup.horizon_us)
            if self._wait_until(self._setup.horizon_us if due is None else due):
                if due is None:
                    return self._shut_down(self._setup.horizon_us)
                self._clock.arrive(due)
                if events := self._process(due):
                    return events
        return self._shut_down(self._measured_now())

    def _add_gangs(self) -> None:
        """Create a gang for every new job."""
        for index in self._active:
            if index not in self.gangs:
                self.gangs[index] = Gang(self._scenario.jobs[index])

    def interrupt(self) -> None:
        """End the run as soon as possible; safe in a signal handler."""
        self.stopped = True
        os.write(self._wake_writer, b".")

    def close(self) -> None:
        """Release file descriptors; running processes are not affected."""
        os.close(self._wake_reader)
        os.close(self._wake_writer)

    def _measured_now(self) -> int:
        """The present, but later than all events so far."""
        return min(max(self._clock.now_us(), self._now + 1), self._setup.horizon_us)

    def _wait_until(self, due: int) -> bool:
        """Return True at `due`; False if ranks caused an earlier event or the run was stopped."""
        while not self.stopped:
            if self._reconcile(due):
                return False
            left = self._clock.seconds_until(due)
            if left <= 0:
                return True
            self._sleep(left)
        return False

    def _sleep(self, limit_s: float) -> None:
        """Sleep until a supervisor ends, a retry is due, `interrupt` is called or time is up."""
        poll = select.poll()
        poll.register(self._wake_reader, select.POLLIN)
        now, limit_s = time.time(), min(limit_s, MAX_SLEEP_S)
        for gang in self.gangs.values():
            for handle in gang.handles:
                if handle.pidfd >= 0:
                    poll.register(handle.pidfd, select.POLLIN)
            if gang.not_before > now:
                limit_s = min(limit_s, gang.not_before - now)
        if any(ready == self._wake_reader for ready, _ in poll.poll(max(1.0, limit_s * 1000))):
            os.read(self._wake_reader, 4096)
        if self.context.on_poll is not None:
            self.context.on_poll(self)

    # ------------------------------------------------------------------ reconciliation
    def _step(self, state: ActiveJob) -> Step | None:
        """The step in force now."""
        return next((s for s in state.steps if s.from_us <= self._now < s.until_us), None)

    def _wanted(self, gang: Gang) -> tuple[Rank, ...]:
        """The ranks that should run now."""
        state = self._active.get(gang.job.index)
        if state is None or gang.complete or gang.given_up:
            return ()
        step = self._step(state)
        return ranks_of(gang.job, step) if step is not None else ()

    def _reconcile(self, due: int) -> bool:
        """Start and stop ranks as wanted; return whether this queued an event for the loop."""
        queued = False
        for gang in self.gangs.values():
            if gang.handles:
                gang.read(self.launcher)
                self._check_attempt(gang)
            self._measure(gang)
            if what := self._outcome(gang):
                state = self._active[gang.job.index]
                if gang.announced != state.stamp:
                    gang.announced = state.stamp
                    at = min(max(self._clock.now_us(), self._now + 1), due)
                    heappush(self._heap, (at, gang.job.index, state.stamp, what))
                    queued = True
            elif not gang.handles and gang.not_before <= time.time() and (wanted := self._wanted(gang)):
                self._begin(gang, wanted)
        return queued

    def _outcome(self, gang: Gang) -> str:
        """How a job ended, if the loop has to process it: it is complete, or it was given up."""
        state = self._active.get(gang.job.index)
        if state is None or not (gang.complete or gang.given_up):
            return ""
        if gang.given_up:  # emitted while a step is in force, so that the policy knows what becomes free
            return "failed" if self._step(state) is not None else ""
        return "left" if isinstance(gang.job.work, Stream) else "finished"

    def _check_attempt(self, gang: Gang) -> None:
        """Close the running attempt if all ranks have ended; stop it if it failed, hangs or is no longer wanted."""
        exits = gang.exits()
        self._report_misbehaviour(gang, exits)
        done = [each for each in exits if each is not None]
        if len(done) == len(exits):
            self._close(gang, done)
        elif gang.stopping:
            return
        elif any(each.code != 0 for each in done):
            gang.stop(verdict(gang.ranks, [each or Exit(0) for each in exits], self._names, "")[0])
        elif self._wanted(gang) != gang.ranks:
            gang.stop("moved" if self._wanted(gang) else "paused")
        elif gang.is_hung(self._options.stall_s, time.time()):
            gang.stop(f"{FAILED} no iteration reported for {self._options.stall_s:g} s")

    def _report_misbehaviour(self, gang: Gang, exits: list[Exit | None]) -> None:
        """Raise an alarm for each rank that had to be killed or wrote too much."""
        attempt = gang.attempts[-1]
        for number, (found, handle) in enumerate(zip(exits, gang.handles, strict=True)):
            if found is None or handle.reported:
                continue
            handle.reported = True
            who = f"rank {number}@{self._names[gang.ranks[number].node]} of attempt {attempt.launch.number}"
            if found.killed:
                self._alarm(gang, f"{who} ignored SIGTERM for {self._options.grace_s:g} s and was killed")
            if found.rotations:
                size = self._options.limits.log_bytes
                self._alarm(
                    gang, f"{who} wrote more than its log limit ({size} bytes); the oldest output was dropped"
                )

    def _alarm(self, gang: Gang, text: str) -> None:
        self.context.record("alarm", {"at_us": max(0, self._now), "job": gang.job.index, "text": text})

    def _close(self, gang: Gang, exits: list[Exit]) -> None:
        """Record the end of an attempt; schedule a retry or give up if it failed."""
        attempt, now = gang.attempts[-1], time.time()
        why, failed = verdict(gang.ranks, exits, self._names, gang.stopping)
        gang.spent_s += max(0.0, now - attempt.began)
        attempt.ended, attempt.ended_us, attempt.why = now, self._measured_now(), why
        others = [h.pid for other in self.gangs.values() if other is not gang for h in other.handles]
        gang.close(self.context.token, others)
        if why == "complete":
            gang.complete = True
        if failed:
            progress = gang.reports.iterations > gang.best
            gang.failures, gang.best = (1 if progress else gang.failures + 1), gang.reports.iterations
            gang.not_before = now + self._options.backoff_s * 2 ** min(gang.failures - 1, 5)
            gang.given_up = gang.failures > self._options.retries
            after = "given up" if gang.given_up else f"retry {gang.failures} of {self._options.retries}"
            self._alarm(gang, f"attempt {attempt.launch.number} {why}; {after}")
        self.context.record("over", end_record(gang, attempt))

    def _begin(self, gang: Gang, wanted: tuple[Rank, ...]) -> None:
        """Record an attempt, then start it."""
        step = self._step(self._active[gang.job.index])
        assert step is not None
        taken = [a.launch.port for other in self.gangs.values() if (a := other.current) is not None]
        slot = self._now // self._setup.slot_us
        launch = Launch(gang.job, len(gang.attempts), slot, wanted, free_port(taken))
        attempt = Attempt(
            launch=launch, at_us=max(self._clock.now_us(), self._now), began=time.time(), step=step
        )
        self.context.record("attempt", attempt_record(attempt))
        gang.begin(self.launcher, attempt)

    # ------------------------------------------------------------------ progress
    def _pace(self, job: Job, step: Step) -> tuple[int, int]:
        return (0, 1) if is_measured(job) else super()._pace(job, step)

    def _measure(self, gang: Gang) -> None:
        """Update measured progress: rounds that ranks reported, or the time that they ran, up to the total."""
        state = self._active.get(gang.job.index)
        if state is None or not is_measured(gang.job):
            return
        if isinstance(gang.job.work, Rounds):
            done = gang.reports.iterations * MICRO
        else:
            done = int(gang.running_s(time.time()) * self._clock.pace)
        state.done = done if state.total is None else min(done, state.total)

    def _fire(self, state: ActiveJob, what: str, now: int, events: list[Event]) -> None:
        """As in the simulated world, but a plan that is over does not finish a job whose ranks had failed."""
        index = state.job.index
        if what != "failed":
            count = len(events)
            super()._fire(state, what, now, events)
            if len(events) == count or events[-1].kind != "finished" or not self.gangs[index].has_failed:
                return
            events.pop()
        elif state.at >= 0:
            self._credit(state, now)
        events.append(Event(now, "ended", index, state.done))
        self._active.pop(index, None)

    # ------------------------------------------------------------------ the end
    def _shut_down(self, at: int) -> Sequence[Event]:
        """Stop all ranks, wait until they have ended, and emit how the remaining jobs ended."""
        self._clock.arrive(at)
        while any(gang.handles for gang in self.gangs.values()):
            for gang in self.gangs.values():
                if gang.handles:
                    gang.stop("the run is over")
                    self._check_attempt(gang)
            if any(gang.handles for gang in self.gangs.values()):
                self._sleep(MAX_SLEEP_S)
        events: list[Event] = []
        for gang in self.gangs.values():
            gang.read(self.launcher)
            self._measure(gang)
            if gang.complete and (state := self._active.get(gang.job.index)) is not None:
                self._fire(state, "left" if isinstance(gang.job.work, Stream) else "finished", at, events)
        return [*events, *self._end(at)]

    # ------------------------------------------------------------------ recovery
    def replay(self, events: Sequence[Event]) -> Sequence[Event]:
        """Replay an instant of the journal without processes; return the events that this world emits for it."""
        at = events[0].at_us
        while (due := self._next_instant()) is not None and due < at:
            self._process(due)
        for event in events:
            state = self._active.get(event.job)
            if state is None:
                continue
            if event.kind in ("voided", "ended", "refused") and is_measured(state.job):
                state.done = event.value
            what = {"finished": "finished", "left": "left", "ended": "failed"}.get(event.kind)
            if what is not None:
                heappush(self._heap, (at, event.job, state.stamp, what))
        return self._process(at)

    def replay_attempt(self, record: dict[str, Any], step: Step) -> None:
        """Replay the journal record of the start of an attempt."""
        gang = self._gang(record)
        gang.attempts.append(attempt_from_record(gang.job, step, record))

    def replay_end(self, record: dict[str, Any]) -> None:
        """Replay the journal record of the end of an attempt."""
        gang = self._gang(record)
        attempt = gang.attempts[-1]
        attempt.ended, attempt.ended_us, attempt.why = record["ended"], record["ended_us"], record["why"]
        gang.spent_s += max(0.0, attempt.ended - attempt.began)
        gang.failures, gang.best, gang.not_before = record["failures"], record["best"], record["not_before"]
        gang.complete, gang.given_up = record["complete"], record["given_up"]

    def _gang(self, record: dict[str, Any]) -> Gang:
        return self.gangs.setdefault(record["job"], Gang(self._scenario.jobs[record["job"]]))

    def resume(self) -> None:
        """Adopt or start the ranks of every attempt that had not ended by the journal."""
        for gang in self.gangs.values():
            if gang.attempts and not gang.attempts[-1].ended:
                gang.take_over(self.launcher, self.context.token, self._wanted(gang))


def check_commands(scenario: Scenario) -> None:
    """Check that every job has a command, and a number of parameter servers that a live run supports."""
    for job in scenario.jobs:
        if not job.command:
            raise InputError(
                f"jobs[{job.id}] has no command, so it cannot be started. Add command: [program, argument, …] "
                "(docs/jobs.md), or use `tradewind run` to simulate."
            )
        if job.servers > 1:
            raise InputError(
                f"jobs[{job.id}] has {job.servers} parameter servers; a live job has at most one. Set servers to 1 or 0."
            )
        if isinstance(job.work, Dataset) and job.servers == 0 and job.architecture == "ps":
            raise InputError(f"jobs[{job.id}] has architecture ps but no parameter server. Set servers to 1.")
