"""The world of processes: decisions come true on this machine, by the wall clock.

Arrivals, changes, slots and timers come from the scenario at their instants, as in the simulated world. What ranks do
is measured: a job is finished when all its ranks have ended with 0, its progress is what they report. Worker-slots and
chunks of a data set are amounts of allocation, so they count by the plan. Between two instants the world looks at what
should run and what does, and starts and stops until both are the same; so it makes no difference whether the loop has
run all the time or was killed and came back. Every start is announced (`note`) before it happens.
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
from tradewind.worlds.processes.gang import FAILED, Attempt, Crew, as_record, from_record, verdict
from tradewind.worlds.processes.launching import Launch, Launcher, Rank, Rules, free_port, ranks_of
from tradewind.worlds.processes.watching import Exit
from tradewind.worlds.simulated import Live, SimulatedWorld

LONGEST_NAP_S = 0.5
"""The loop looks at reports at least this often."""

Note = Callable[[str, dict[str, Any]], None]
"""(kind, plain values) -> None: writes to the journal, on disk when it returns."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ground:
    """Where and how a world of processes runs.

    state  directory of the run; token marks its processes; note writes to its journal
    tell   called now and then with the world, for a live view
    """

    state: Path
    token: str
    clock: Clock
    note: Note
    rules: Rules
    tell: Callable[[ProcessWorld], None] | None = None


def is_measured(job: Job) -> bool:
    """Whether only the ranks can say when the job is done: fixed jobs and rounds (docs/jobs.md)."""
    return isinstance(job.work, Fixed) or (isinstance(job.work, Rounds) and job.work.unit == "round")


class ProcessWorld(SimulatedWorld):
    """Runs a scenario's jobs as processes. `recall` and `resume` bring it back after a crash."""

    def __init__(self, scenario: Scenario, ground: Ground, *, slots: bool) -> None:
        check_commands(scenario)
        super().__init__(scenario, slots=slots)
        self._ground, self._clock, self._rules = ground, ground.clock, ground.rules
        self.launcher = Launcher(ground.state, scenario.setup, ground.rules, ground.token)
        self.crews: dict[int, Crew] = {}
        self.stopped = False
        self._names = [node.name for node in scenario.setup.nodes]
        self._bell, self._rope = os.pipe()
        os.set_blocking(self._rope, False)

    # ------------------------------------------------------------------ time
    def wait(self) -> Sequence[Event]:
        """Sleeps until something happens, and sees meanwhile that what should run runs."""
        self._enlist()
        while not self.stopped:
            due = self._next_instant()
            if due is None and not any(
                self._wanted(crew) or self._outcome(crew) for crew in self.crews.values()
            ):
                return self._go_home(self._setup.horizon_us)
            if self._reached(self._setup.horizon_us if due is None else due):
                if due is None:
                    return self._go_home(self._setup.horizon_us)
                self._clock.arrive(due)
                if events := self._happen(due):
                    return events
        return self._go_home(self._measured_now())

    def _enlist(self) -> None:
        """A crew for every job that is there."""
        for index in self._live:
            if index not in self.crews:
                self.crews[index] = Crew(self._scenario.jobs[index])

    def interrupt(self) -> None:
        """Ends the run at the next opportunity; safe in a signal handler."""
        self.stopped = True
        os.write(self._rope, b".")

    def close(self) -> None:
        """Gives back what the world holds of the system; the processes are not touched."""
        os.close(self._bell)
        os.close(self._rope)

    def _measured_now(self) -> int:
        """The present, later than all that has been told."""
        return min(max(self._clock.now_us(), self._now + 1), self._setup.horizon_us)

    def _reached(self, due: int) -> bool:
        """True when it is `due`; False when ranks made something else happen before, or the run was stopped."""
        while not self.stopped:
            if self._manage(due):
                return False
            left = self._clock.seconds_until(due)
            if left <= 0:
                return True
            self._nap(left)
        return False

    def _nap(self, most_s: float) -> None:
        """Sleeps until a keeper ends, a retry is due, the bell rings or time is up."""
        poll = select.poll()
        poll.register(self._bell, select.POLLIN)
        now, most_s = time.time(), min(most_s, LONGEST_NAP_S)
        for crew in self.crews.values():
            for watch in crew.watches:
                if watch.handle >= 0:
                    poll.register(watch.handle, select.POLLIN)
            if crew.not_before > now:
                most_s = min(most_s, crew.not_before - now)
        if any(ready == self._bell for ready, _ in poll.poll(max(1.0, most_s * 1000))):
            os.read(self._bell, 4096)
        if self._ground.tell is not None:
            self._ground.tell(self)

    # ------------------------------------------------------------------ what should run, what does
    def _step(self, live: Live) -> Step | None:
        """The step that is in force now."""
        return next((s for s in live.steps if s.from_us <= self._now < s.until_us), None)

    def _wanted(self, crew: Crew) -> tuple[Rank, ...]:
        """The ranks that should run now."""
        live = self._live.get(crew.job.index)
        if live is None or crew.complete or crew.given_up:
            return ()
        step = self._step(live)
        return ranks_of(crew.job, step) if step is not None else ()

    def _manage(self, due: int) -> bool:
        """Brings what runs nearer to what should run; says whether something happened that the loop must hear."""
        heard = False
        for crew in self.crews.values():
            if crew.watches:
                crew.read(self.launcher)
                self._mind(crew)
            self._measure(crew)
            if what := self._outcome(crew):
                live = self._live[crew.job.index]
                if crew.announced != live.stamp:
                    crew.announced = live.stamp
                    at = min(max(self._clock.now_us(), self._now + 1), due)
                    heappush(self._heap, (at, crew.job.index, live.stamp, what))
                    heard = True
            elif not crew.watches and crew.not_before <= time.time() and (wanted := self._wanted(crew)):
                self._begin(crew, wanted)
        return heard

    def _outcome(self, crew: Crew) -> str:
        """What the loop must hear of a job: that it is complete, or that it was given up."""
        live = self._live.get(crew.job.index)
        if live is None or not (crew.complete or crew.given_up):
            return ""
        if crew.given_up:  # said while the policy has it running, so that it knows what comes free
            return "failed" if self._step(live) is not None else ""
        return "left" if isinstance(crew.job.work, Stream) else "finished"

    def _mind(self, crew: Crew) -> None:
        """Looks after an attempt that is under way."""
        exits = crew.exits()
        self._complain(crew, exits)
        done = [each for each in exits if each is not None]
        if len(done) == len(exits):
            self._close(crew, done)
        elif crew.stopping:
            return
        elif any(each.code != 0 for each in done):
            crew.stop(verdict(crew.ranks, [each or Exit(0) for each in exits], self._names, "")[0])
        elif self._wanted(crew) != crew.ranks:
            crew.stop("moved" if self._wanted(crew) else "paused")
        elif crew.is_hung(self._rules.stall_s, time.time()):
            crew.stop(f"{FAILED} no iteration reported for {self._rules.stall_s:g} s")

    def _complain(self, crew: Crew, exits: list[Exit | None]) -> None:
        """Says clearly what a rank did that it should not."""
        attempt = crew.attempts[-1]
        for number, (found, watch) in enumerate(zip(exits, crew.watches, strict=True)):
            if found is None or watch.told:
                continue
            watch.told = True
            who = f"rank {number}@{self._names[crew.ranks[number].node]} of attempt {attempt.launch.number}"
            if found.killed:
                self._alarm(crew, f"{who} ignored SIGTERM for {self._rules.grace_s:g} s and was killed")
            if found.turned:
                size = self._rules.limits.log_bytes
                self._alarm(
                    crew, f"{who} wrote more than its log may hold ({size} bytes); the oldest part is gone"
                )

    def _alarm(self, crew: Crew, text: str) -> None:
        self._ground.note("alarm", {"at_us": max(0, self._now), "job": crew.job.index, "text": text})

    def _close(self, crew: Crew, exits: list[Exit]) -> None:
        """All ranks of an attempt have ended."""
        attempt, now = crew.attempts[-1], time.time()
        why, failed = verdict(crew.ranks, exits, self._names, crew.stopping)
        crew.spent_s += max(0.0, now - attempt.began)
        attempt.ended, attempt.ended_us, attempt.why = now, self._measured_now(), why
        keep = [w.pid for other in self.crews.values() if other is not crew for w in other.watches]
        crew.close(self._ground.token, keep)
        if why == "complete":
            crew.complete = True
        if failed:
            progress = crew.reports.iterations > crew.best
            crew.failures, crew.best = (1 if progress else crew.failures + 1), crew.reports.iterations
            crew.not_before = now + self._rules.backoff_s * 2 ** min(crew.failures - 1, 5)
            crew.given_up = crew.failures > self._rules.retries
            after = "given up" if crew.given_up else f"retry {crew.failures} of {self._rules.retries}"
            self._alarm(crew, f"attempt {attempt.launch.number} {why}; {after}")
        self._ground.note("over", over_record(crew, attempt))

    def _begin(self, crew: Crew, wanted: tuple[Rank, ...]) -> None:
        """Announces an attempt, then starts it."""
        step = self._step(self._live[crew.job.index])
        assert step is not None
        taken = [a.launch.port for c in self.crews.values() if (a := c.current) is not None]
        slot = self._now // self._setup.slot_us
        launch = Launch(crew.job, len(crew.attempts), slot, wanted, free_port(taken))
        attempt = Attempt(
            launch=launch, at_us=max(self._clock.now_us(), self._now), began=time.time(), step=step
        )
        self._ground.note("attempt", as_record(attempt))
        crew.begin(self.launcher, attempt)

    # ------------------------------------------------------------------ progress
    def _pace(self, job: Job, step: Step) -> tuple[int, int]:
        return (0, 1) if is_measured(job) else super()._pace(job, step)

    def _measure(self, crew: Crew) -> None:
        """Progress as it is: rounds that ranks reported, microseconds that they ran; never more than there is to do."""
        live = self._live.get(crew.job.index)
        if live is None or not is_measured(crew.job):
            return
        if isinstance(crew.job.work, Rounds):
            done = crew.reports.iterations * MICRO
        else:
            done = int(crew.running_s(time.time()) * self._clock.pace)
        live.done = done if live.total is None else min(done, live.total)

    def _ripe(self, live: Live, what: str, now: int, events: list[Event]) -> None:
        """A plan that is over finishes nothing where the ranks that should have carried it out had failed."""
        index = live.job.index
        if what != "failed":
            count = len(events)
            super()._ripe(live, what, now, events)
            if len(events) == count or events[-1].kind != "finished" or not self.crews[index].has_failed:
                return
            events.pop()
        elif live.at >= 0:
            self._credit(live, now)
        events.append(Event(now, "ended", index, live.done))
        self._live.pop(index, None)

    # ------------------------------------------------------------------ the end
    def _go_home(self, at: int) -> Sequence[Event]:
        """Stops everything, waits until it has ended, and says what became of the jobs that are still there."""
        self._clock.arrive(at)
        while any(crew.watches for crew in self.crews.values()):
            for crew in self.crews.values():
                if crew.watches:
                    crew.stop("the run is over")
                    self._mind(crew)
            if any(crew.watches for crew in self.crews.values()):
                self._nap(LONGEST_NAP_S)
        events: list[Event] = []
        for crew in self.crews.values():
            crew.read(self.launcher)
            self._measure(crew)
            if crew.complete and (live := self._live.get(crew.job.index)) is not None:
                self._ripe(live, "left" if isinstance(crew.job.work, Stream) else "finished", at, events)
        return [*events, *self._end(at)]

    # ------------------------------------------------------------------ after a crash
    def recall(self, events: Sequence[Event]) -> Sequence[Event]:
        """Lives through an instant of the journal again, without processes; returns what this world makes of it."""
        at = events[0].at_us
        while (due := self._next_instant()) is not None and due < at:
            self._happen(due)
        for event in events:
            live = self._live.get(event.job)
            if live is None:
                continue
            if event.kind in ("voided", "ended", "refused") and is_measured(live.job):
                live.done = event.value
            what = {"finished": "finished", "left": "left", "ended": "failed"}.get(event.kind)
            if what is not None:
                heappush(self._heap, (at, event.job, live.stamp, what))
        return self._happen(at)

    def remember(self, kind: str, record: dict[str, Any], step: Step | None) -> None:
        """Takes up what the journal says of an attempt."""
        crew = self.crews.setdefault(record["job"], Crew(self._scenario.jobs[record["job"]]))
        if kind == "attempt":
            assert step is not None
            crew.attempts.append(from_record(crew.job, step, record))
        else:
            attempt = crew.attempts[-1]
            attempt.ended, attempt.ended_us, attempt.why = record["ended"], record["ended_us"], record["why"]
            crew.spent_s += max(0.0, attempt.ended - attempt.began)
            crew.failures, crew.best, crew.not_before = (
                record["failures"],
                record["best"],
                record["not_before"],
            )
            crew.complete, crew.given_up = record["complete"], record["given_up"]

    def resume(self) -> None:
        """Adopts or starts the ranks of every attempt that the journal does not call over."""
        for crew in self.crews.values():
            if crew.attempts and not crew.attempts[-1].ended:
                crew.take_over(self.launcher, self._ground.token, self._wanted(crew))


def over_record(crew: Crew, attempt: Attempt) -> dict[str, Any]:
    """The end of an attempt as plain values."""
    return {
        "job": crew.job.index, "number": attempt.launch.number, "ended": attempt.ended, "ended_us": attempt.ended_us,
        "why": attempt.why, "failures": crew.failures, "best": crew.best, "not_before": crew.not_before,
        "complete": crew.complete, "given_up": crew.given_up,
    }  # fmt: skip


def check_commands(scenario: Scenario) -> None:
    """Every job must say what to run, and with how many parameter servers it can be run."""
    for job in scenario.jobs:
        if not job.command:
            raise InputError(
                f"jobs[{job.id}] has no command, so nothing of it can be started. Add command: [program, argument, …] "
                "(docs/jobs.md), or use `tradewind run` to simulate."
            )
        if job.servers > 1:
            raise InputError(
                f"jobs[{job.id}] has {job.servers} parameter servers; a live job has rank 0 as its only one. Use 1 or 0."
            )
        if isinstance(job.work, Dataset) and job.servers == 0 and job.architecture == "ps":
            raise InputError(f"jobs[{job.id}] is a ps job without parameter servers; set servers to 1")
