"""The work done by active jobs: computed from the rates of their plans, or reported by their ranks.

Completion is rounded up to a microsecond. A failure resets computed progress to the start of the slot.
"""

from __future__ import annotations

from collections.abc import Mapping
from heapq import heappop, heappush
from typing import Any

from tradewind.model.codec import plain, read
from tradewind.model.decision import Plan, Step
from tradewind.model.estimate import ALL, Measured
from tradewind.model.job import DECLARED, Dataset, Fixed, Job, Rounds, Stream
from tradewind.model.progress import chunks_done, rate
from tradewind.model.setup import Setup
from tradewind.model.units import MICRO, OPEN
from tradewind.model.view import Event

Places = tuple[tuple[int, int], ...]
"""(node, workers) of a step."""


class ActiveJob:
    """State of a job between arrival and end."""

    # What most jobs never change is the same for all of them until it is set.
    steps: tuple[Step, ...] = ()
    at = -1  # current step; -1: idle or waiting for the next one
    next = 0  # the step after the current one
    done = 0
    since_us = 0
    num_den = (0, 1)
    stamp = 0
    number = -1
    start_us = -1
    releasing = False  # finished, but its resources are held for another microsecond
    mark_us = -1  # start of a slot, and the work done by then
    mark_done = 0
    entered_us = -1
    warm_us = 0  # until then the current step does no work (Job.warmup_us)
    ran: tuple[int, Places, int] = (-1, (), 0)  # end, places and warm_us of what ran last for some time
    last_places: frozenset[tuple[int, int]] = frozenset()  # (node, servers) of the current step
    been_places: frozenset[tuple[int, int]] = frozenset()  # of the last step before it that took any time
    pace = DECLARED  # Customer.pace_milli

    def __init__(self, job: Job, total: int | None) -> None:
        self.job = job
        self.total = total

    def progress(self, now_us: int) -> int:
        """Work done by now."""
        num, den = self.num_den
        done = self.done + max(0, now_us - self.since_us) * num // den
        # a job waiting for the end of a whole slot (`whole_slots`) has done all its work
        return done if self.total is None or done <= self.total else self.total


SAVED: Mapping[str, Any] = {
    "total": int | None, "steps": tuple[Step, ...], "at": int, "next": int, "done": int, "since_us": int,
    "num_den": tuple[int, int], "stamp": int, "number": int, "start_us": int, "releasing": bool, "mark_us": int,
    "mark_done": int, "entered_us": int, "last_places": frozenset[tuple[int, int]],
    "been_places": frozenset[tuple[int, int]], "warm_us": int, "ran": tuple[int, Places, int], "pace": int,
}  # fmt: skip
"""Everything that an ActiveJob knows beside its job."""


def _saved(state: ActiveJob) -> dict[str, Any]:
    """What distinguishes it from a job that arrives: most jobs wait."""
    fresh = ActiveJob(state.job, None)
    return {name: plain(value) for name in SAVED if (value := getattr(state, name)) != getattr(fresh, name)}


def is_measured(job: Job) -> bool:
    """Whether ranks can report completion and progress: fixed jobs and rounds (docs/jobs.md).

    Worker-slots and chunks of a dataset are amounts of allocation, which follow from the plan wherever it runs.
    """
    return isinstance(job.work, Fixed) or (isinstance(job.work, Rounds) and job.work.unit == "round")


class Progress:
    """Work, steps and completions of all active jobs.

    failures  whether nodes or links may fail, so that the work at the start of each slot has to be known
    reported  progress and completion of fixed jobs and rounds come from `report` and `announce`
    failing   jobs whose ranks have failed: the end of their plan does not complete them
    """

    def __init__(self, setup: Setup, *, failures: bool, reported: bool = False) -> None:
        self.setup, self._failures, self._reported = setup, failures, reported
        self.active: dict[int, ActiveJob] = {}
        self.failing: set[int] = set()
        self._heap: list[tuple[int, int, int, str]] = []  # (time, job, stamp, what)
        self._told: list[Event] = []  # what was measured at the present instant

    # ------------------------------------------------------------------ time
    def next_us(self) -> int:
        """The next instant at which a job completes or enters a step; OPEN if there is none."""
        heap = self._heap
        while heap:
            state = self.active.get(heap[0][1])
            if state is not None and state.stamp == heap[0][2]:
                return heap[0][0]
            heappop(heap)  # a later plan replaced it
        return OPEN

    def advance(self, now_us: int, events: list[Event]) -> None:
        """Add the completions of this instant, and enter the steps that begin."""
        heap, first = self._heap, len(events)
        while heap and heap[0][0] == now_us:
            _, job, stamp, what = heappop(heap)
            state = self.active.get(job)
            if state is not None and state.stamp == stamp:
                self._fire(state, what, now_us, events)
        if self._told:
            events[first:first] = self._told  # before what ends
            self._told.clear()

    def end(self, end_us: int, events: list[Event]) -> None:
        """End all remaining jobs."""
        for index, state in self.active.items():
            left = 0 if state.releasing else state.progress(end_us)  # a finished job has said what it did
            events.append(Event(end_us, "ended", index, left))
        self.active.clear()

    # ------------------------------------------------------------------ jobs
    def add(
        self, job: Job, total: int | None, leaves_us: int | None = None, pace_milli: int = DECLARED
    ) -> None:
        """Add a job that arrived; a stream leaves at `leaves_us`. pace_milli: its true time (model.job.Customer)."""
        state = self.active[job.index] = ActiveJob(job, total)
        if pace_milli != DECLARED and not self._reported:
            state.pace = pace_milli
        if leaves_us is not None:
            state.stamp += 1
            heappush(self._heap, (leaves_us, job.index, state.stamp, "left"))

    def report(self, job: int, done: int) -> None:
        """Set measured progress, at most up to the total."""
        state = self.active[job]
        state.done = done if state.total is None else min(done, state.total)

    def compute(self, totals: Mapping[int, int], now_us: int) -> None:
        """Compute all progress from now on, where it was reported; totals: job -> all its work, where that is known."""
        self._reported = False
        self.failing.clear()
        for index, state in self.active.items():
            state.total = totals.get(index, state.total)
            if is_measured(state.job) and state.steps:
                self._enter(state, state.next if state.at < 0 else state.at, now_us)

    def announce(self, at_us: int, job: int, what: str) -> None:
        """Let a job end at an instant: it is `finished`, it `left`, or it `failed` for good."""
        heappush(self._heap, (at_us, job, self.active[job].stamp, what))

    def finish(self, job: int, what: str, now_us: int, events: list[Event]) -> None:
        """Let a job end now: it is `finished`, or it `left`."""
        self._fire(self.active[job], what, now_us, events)

    def drop(self, job: int, now_us: int) -> int:
        """Remove a job that was turned away; return the work it did."""
        state = self.active.pop(job, None)
        return state.progress(now_us) if state is not None else 0

    def cancel(self, job: int, now_us: int) -> int | None:
        """Remove a job that its owner withdrew; return the work it did, None if it is over."""
        state = self.active.get(job)
        if state is None or state.releasing:
            return None
        if state.at >= 0:
            self._credit(state, now_us)
        del self.active[job]
        return state.done

    def void(self, job: int, failed: bool, now_us: int) -> int:
        """Cancel a job's plan; return the work it keeps. failed: a node or link it used is down."""
        state = self.active[job]
        self._credit(state, now_us)
        # chunks count when their step is over, and ranks report what their checkpoints keep
        if failed and not isinstance(state.job.work, Dataset) and not self._is_reported(state.job):
            state.done = state.mark_done
        state.steps = ()
        state.since_us = now_us
        state.ran = (-1, (), 0)
        self._enter(state, 0, now_us)
        return state.done

    def replace(self, plan: Plan, number: int, now_us: int) -> None:
        """Replace a job's future by a plan of decision `number`."""
        state = self.active[plan.job]
        if state.at >= 0:
            self._credit(state, now_us)
        if state.start_us == now_us:  # a step replaced at the instant it begins does not count
            state.start_us = -1
        if state.entered_us == now_us:
            state.last_places, state.entered_us = state.been_places, -1
        state.steps, state.number = plan.steps, number
        self._enter(state, 0, now_us)

    # ------------------------------------------------------------------ saving
    def save(self) -> dict[str, Any]:
        """The state as JSON data; jobs are named by their index."""
        active = {str(index): _saved(state) for index, state in self.active.items()}
        return {"active": active, "due": sorted(self._heap), "failing": sorted(self.failing)}

    def restore(self, data: Mapping[str, Any], jobs: Mapping[int, Job]) -> None:
        """Continue from what `save` returned."""
        for index, values in data["active"].items():
            state = self.active[int(index)] = ActiveJob(jobs[int(index)], None)
            for name, value in values.items():
                setattr(state, name, read(SAVED[name], value, f"progress.{name}"))
        self._heap = [(at, job, stamp, what) for at, job, stamp, what in data["due"]]
        self.failing = set(data["failing"])

    # ------------------------------------------------------------------ steps
    def _is_reported(self, job: Job) -> bool:
        return self._reported and is_measured(job)

    def _fire(self, state: ActiveJob, what: str, now: int, events: list[Event]) -> None:
        index = state.job.index
        if what == "failed" and (now, index, state.stamp, "left") in self._heap:
            return  # it leaves at this instant
        if what == "measured":
            self._tell(state, now)
            self._watch(state, now)
            return
        if what == "next":
            self._credit(state, now)
            if state.total is not None and isinstance(state.job.work, Dataset) and state.done >= state.total:
                what, state.at = "finished", -1  # its last step is counted
            else:
                if state.pace != DECLARED and isinstance(state.job.work, Dataset):
                    self._tell(state, now)
                self._enter(state, state.next, now)
                return
        elif what in ("released", "left"):
            events.append(Event(now, "left" if what == "left" else "released", index))
            del self.active[index]
            return
        if what == "failed" or index in self.failing:
            if state.at >= 0:
                self._credit(state, now)
            events.append(Event(now, "ended", index, state.done))
            del self.active[index]
            return
        if state.pace != DECLARED:
            self._tell(state, now, all_done=True)
        events.append(Event(now, "finished", index))
        if state.job.hold == "through":
            state.num_den, state.at, state.steps = (0, 1), -1, ()  # no failure can cancel what is done
            state.releasing = True
            state.stamp += 1
            heappush(self._heap, (now + 1, index, state.stamp, "released"))
        else:
            del self.active[index]

    def _credit(self, state: ActiveJob, now: int) -> None:
        """Add the work of the current step up to now; chunks of a dataset count when their step is over."""
        if self._failures:
            self._mark(state, now)
        state.done = state.progress(now)
        state.since_us = max(state.since_us, now)
        work = state.job.work
        if state.job.warmup_us and state.at >= 0 and now > state.entered_us:
            step = state.steps[state.at]
            state.ran = (now, tuple(zip(step.nodes, step.workers, strict=True)), state.warm_us)
        if isinstance(work, Dataset) and state.at >= 0:
            step = state.steps[state.at]
            if now >= step.until_us:
                state.done += chunks_done(self.setup, work, step, state.pace)

    def _watch(self, state: ActiveJob, now: int) -> None:
        """Let the job be measured while its current step runs: a slot after it began, then after twice the time, …"""
        slot_us = self.setup.slot_us
        at = ((2 * now - state.start_us) // slot_us + 1) * slot_us
        if at < state.steps[state.at].until_us:
            heappush(self._heap, (at, state.job.index, state.stamp, "measured"))

    def _tell(self, state: ActiveJob, now: int, *, all_done: bool = False) -> None:
        """Report what was measured of a job whose declaration is wrong; how far a fixed job is shows at its end."""
        assert state.total is not None
        done = state.total if all_done else state.progress(now)
        unit = 1 if isinstance(state.job.work, Fixed | Dataset) else MICRO
        if done >= unit and (all_done or not isinstance(state.job.work, Fixed)):
            seconds = state.pace / DECLARED  # of what would take a second as declared
            rounds = 0 if isinstance(state.job.work, Fixed) else done // unit
            fact = (Measured(ALL, rounds, seconds, 0.0, 1.0),)
            self._told.append(Event(now, "measured", state.job.index, done, fact))

    def _mark(self, state: ActiveJob, now: int) -> None:
        """Record the progress at the start of the current slot, to which a failure resets the job."""
        boundary = now - now % self.setup.slot_us
        if state.mark_us < boundary:
            state.mark_us, state.mark_done = boundary, state.progress(boundary)

    def _enter(self, state: ActiveJob, at: int, now: int) -> None:
        """Make step `at` current, or wait for it to begin, or idle if there is none."""
        if type(state.job.work) is Stream:  # its only scheduled entry is its departure
            return
        state.stamp += 1
        state.num_den, state.at, state.next = (0, 1), -1, at
        if at >= len(state.steps):
            return
        step = state.steps[at]
        if step.from_us > now:
            heappush(self._heap, (step.from_us, state.job.index, state.stamp, "next"))
            return
        state.at, state.next = at, at + 1
        job = state.job
        if self._reported and is_measured(job):
            num, den = 0, 1
        else:
            num, den = rate(self.setup, job, step)
            if state.pace != DECLARED:
                num, den = num * DECLARED, den * state.pace
            state.num_den = num, den
        if state.start_us < 0:
            state.start_us = now
        if state.pace != DECLARED:
            self._watch(state, now)
        state.since_us = now + self._restart(state, step, now) if job.restart_us else now
        if job.warmup_us:
            state.since_us = max(state.since_us, self._warm_us(state, step, now))
        if num and state.total is not None:
            needed_us = -((state.done - state.total) * den // num)
            finish = state.since_us + (needed_us if needed_us > 1 else 1)  # a step takes at least 1 us
            work = job.work
            if type(work) is Rounds and work.whole_slots:
                slot = self.setup.slot_us
                finish = state.start_us + -(-(finish - state.start_us) // slot) * slot
            if finish <= step.until_us:
                heappush(self._heap, (finish, job.index, state.stamp, "finished"))
                return
        if step.until_us < OPEN:
            heappush(self._heap, (step.until_us, state.job.index, state.stamp, "next"))

    @staticmethod
    def _warm_us(state: ActiveJob, step: Step, now: int) -> int:
        """When a step begins to do work: after the warm-up, unless it continues what ran until now."""
        until, places, warm_us = state.ran
        continues = until == now and places == tuple(zip(step.nodes, step.workers, strict=True))
        state.entered_us, state.warm_us = now, warm_us if continues else now + state.job.warmup_us
        return state.warm_us

    @staticmethod
    def _restart(state: ActiveJob, step: Step, now: int) -> int:
        """Microseconds lost because workers or servers moved since the last step that took any time."""
        state.been_places, state.entered_us = state.last_places, now
        state.last_places = frozenset(zip(step.nodes, step.servers or (0,) * len(step.nodes), strict=True))
        moved = bool(state.been_places) and state.last_places != state.been_places
        return state.job.restart_us if moved else 0
