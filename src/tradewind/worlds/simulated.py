"""The simulated world: event-driven on a continuous clock of integer microseconds.

At each instant it emits changes, completions, arrivals in file order, slot data and timers, in this order. It computes
progress by integrating the rate of work (completion is rounded up to a microsecond). A failure resets a job to its
progress at the start of the slot.
"""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heappop, heappush

from tradewind.model.decision import Decision, Plan, Quote, Step
from tradewind.model.job import Dataset, Job, Rounds, Stream
from tradewind.model.progress import rate
from tradewind.model.scenario import Scenario
from tradewind.model.units import OPEN
from tradewind.model.view import Change, Event
from tradewind.worlds.environment import Environment


class ActiveJob:
    """State of a job between arrival and end."""

    __slots__ = (
        "at", "been_places", "done", "entered_us", "job", "last_places", "mark_done", "mark_us", "next", "num_den",
        "number", "releasing", "since_us", "stamp", "start_us", "steps", "total",
    )  # fmt: skip

    def __init__(self, job: Job, total: int | None) -> None:
        self.job = job
        self.total = total
        self.steps: tuple[Step, ...] = ()
        self.at = -1  # current step; -1: idle or waiting for the next one
        self.next = 0  # the step after the current one
        self.done = 0
        self.since_us = 0
        self.num_den = (0, 1)
        self.stamp = 0
        self.number = -1
        self.start_us = -1
        self.releasing = False  # finished, but its resources are held for another microsecond
        self.mark_us = -1  # start of a slot, and the work done by then
        self.mark_done = 0
        self.entered_us = -1
        self.last_places: frozenset[tuple[int, int]] = frozenset()  # (node, servers) of the current step
        self.been_places: frozenset[tuple[int, int]] = (
            frozenset()
        )  # of the last step before it that took any time

    def progress(self, now_us: int) -> int:
        """Work done by now."""
        num, den = self.num_den
        done = self.done + max(0, now_us - self.since_us) * num // den
        # a job waiting for the end of a whole slot (`whole_slots`) has done all its work
        return done if self.total is None or done <= self.total else self.total


class SimulatedWorld:
    """Simulates a scenario. `slots`: emit an event per slot (always done if the scenario has stream data).

    unscripted  `cancel` and `change` may add events that the scenario does not have, at any later instant
    """

    def __init__(self, scenario: Scenario, *, slots: bool, unscripted: bool = False) -> None:
        self._scenario = scenario
        self._setup = scenario.setup
        self._slots = slots or len(scenario.volumes) > 0
        self._environment = Environment(scenario.setup)
        self._failures = unscripted or any(c.kind in ("node_down", "link_down") for c in scenario.changes)
        self._now = -1
        self._next_job = 0
        self._next_change = self._script_change = 0  # number of the next change, and its row in the scenario
        self._next_slot = 0
        self._timer: int | None = None
        self._number = -1
        self._active: dict[int, ActiveJob] = {}
        self._heap: list[tuple[int, int, int, str]] = []  # (time, job, stamp, what)
        self._volumes = volumes_by_slot(scenario)
        self._unscripted: list[
            tuple[int, int, Change | int]
        ] = []  # (time, order, a change or a job to cancel)
        self._added = 0
        self._cancelled: list[int] = []

    # ------------------------------------------------------------------ time
    def wait(self) -> Sequence[Event]:
        """Events of the next instant that has any; empty at the end."""
        while (now := self._next_instant()) is not None:
            if events := self._process(now):
                return events
        return self._end(self._setup.horizon_us)

    def _process(self, now: int) -> list[Event]:
        """Events of one instant: changes, completions, arrivals, slot and data, timer."""
        self._now = now
        events: list[Event] = []
        if self._scenario.changes or self._unscripted:
            self._apply_changes(now, events)
        heap = self._heap
        while heap and heap[0][0] == now:
            _, job, stamp, what = heappop(heap)
            state = self._active.get(job)
            if state is not None and state.stamp == stamp:
                self._fire(state, what, now, events)
        if self._cancelled:
            self._cancel_jobs(now, events)
        jobs = self._scenario.jobs
        i, n = self._next_job, len(jobs)
        while i < n and jobs[i].arrive_us == now:
            self._arrive(jobs[i], events)
            i += 1
        self._next_job = i
        if self._slots:
            self._begin_slot(now, events)
        if self._timer == now:
            self._timer = None
            events.append(Event(now, "timer"))
        return events

    def _next_instant(self) -> int | None:
        jobs, heap = self._scenario.jobs, self._heap
        while heap:  # drop entries that a later plan replaced
            state = self._active.get(heap[0][1])
            if state is not None and state.stamp == heap[0][2]:
                break
            heappop(heap)
        now = heap[0][0] if heap else OPEN
        more = self._next_job < len(jobs)
        if more and jobs[self._next_job].arrive_us < now:
            now = jobs[self._next_job].arrive_us
        if self._active or more:
            if self._script_change < len(self._scenario.changes):
                now = min(now, self._scenario.changes[self._script_change].at_us)
            if self._unscripted:
                now = min(now, self._unscripted[0][0])
            if self._slots and self._next_slot < self._setup.slots:
                now = min(now, self._next_slot * self._setup.slot_us)
            if self._timer is not None and self._timer < now:
                now = self._timer
        return None if now > self._setup.horizon_us else now

    def _end(self, end: int) -> Sequence[Event]:
        """Emit `ended` for the remaining jobs."""
        events = [Event(end, "ended", index, state.progress(end)) for index, state in self._active.items()]
        self._now = end
        self._active.clear()
        return events

    def _begin_slot(self, now: int, events: list[Event]) -> None:
        if now != self._next_slot * self._setup.slot_us or self._next_slot >= self._setup.slots:
            return
        slot = self._next_slot
        self._next_slot += 1
        events.append(Event(now, "slot", -1, slot))
        for job, volumes in self._volumes.get(slot, {}).items():
            if job in self._active:
                events.append(Event(now, "data", job, slot, tuple(volumes)))

    # ------------------------------------------------------------------ jobs
    def _arrive(self, job: Job, events: list[Event]) -> None:
        customer = self._scenario.customers[job.index]
        total = job.work.total
        if total is None and not isinstance(job.work, Stream):
            total = customer.runtime_us
        state = self._active[job.index] = ActiveJob(job, total)
        events.append(Event(job.arrive_us, "arrived", job.index, 0, job))
        if isinstance(job.work, Stream):
            assert customer.runtime_us is not None
            state.stamp += 1
            heappush(self._heap, (job.arrive_us + customer.runtime_us, job.index, state.stamp, "left"))

    def _fire(self, state: ActiveJob, what: str, now: int, events: list[Event]) -> None:
        index = state.job.index
        if what == "next":
            self._credit(state, now)
            if state.total is not None and isinstance(state.job.work, Dataset) and state.done >= state.total:
                what = "finished"
            else:
                self._enter(state, state.next, now)
                return
        if what == "released":
            events.append(Event(now, "released", index))
            del self._active[index]
        elif what == "left":
            events.append(Event(now, "left", index))
            del self._active[index]
        else:
            events.append(Event(now, "finished", index))
            if state.job.hold == "through":
                state.num_den, state.at, state.steps = (0, 1), -1, ()  # no failure can cancel what is done
                state.releasing = True
                state.stamp += 1
                heappush(self._heap, (now + 1, index, state.stamp, "released"))
            else:
                del self._active[index]

    def _credit(self, state: ActiveJob, now: int) -> None:
        """Add the work of the current step up to now; chunks of a dataset count when their step is over."""
        if self._failures:
            self._mark(state, now)
        state.done = state.progress(now)
        state.since_us = max(state.since_us, now)
        work = state.job.work
        if isinstance(work, Dataset) and state.at >= 0:
            step = state.steps[state.at]
            if now >= step.until_us:
                state.done += sum(flow.bytes for flow in step.flows) // work.chunk_bytes

    def _mark(self, state: ActiveJob, now: int) -> None:
        """Record the progress at the start of the current slot, to which a failure resets the job."""
        boundary = now - now % self._setup.slot_us
        if state.mark_us < boundary:
            state.mark_us, state.mark_done = boundary, state.progress(boundary)

    def _enter(self, state: ActiveJob, at: int, now: int) -> None:
        """Make step `at` current, or wait for it to begin, or idle if there is none."""
        if isinstance(state.job.work, Stream):  # its only scheduled entry is its departure
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
        state.num_den = num, den = self._pace(state.job, step)
        restart = self._restart(state, step, now) if state.job.restart_us else 0
        if state.start_us < 0:
            state.start_us = now
        state.since_us = now + restart
        if num and state.total is not None:
            left = state.total - state.done
            finish = state.since_us + max(1, -(-left * den // num))  # a step takes at least 1 us
            work = state.job.work
            if isinstance(work, Rounds) and work.whole_slots:
                slot = self._setup.slot_us
                finish = state.start_us + -(-(finish - state.start_us) // slot) * slot
            if finish <= step.until_us:
                heappush(self._heap, (finish, state.job.index, state.stamp, "finished"))
                return
        if step.until_us < OPEN:
            heappush(self._heap, (step.until_us, state.job.index, state.stamp, "next"))

    def _pace(self, job: Job, step: Step) -> tuple[int, int]:
        """Work per microsecond as a fraction; 0 if progress does not follow from time alone."""
        return rate(self._setup, job, step)

    @staticmethod
    def _restart(state: ActiveJob, step: Step, now: int) -> int:
        """Microseconds lost because workers or servers moved since the last step that took any time."""
        state.been_places, state.entered_us = state.last_places, now
        state.last_places = frozenset(zip(step.nodes, step.servers or (0,) * len(step.nodes), strict=True))
        moved = bool(state.been_places) and state.last_places != state.been_places
        return state.job.restart_us if moved else 0

    # ------------------------------------------------------------------ changes
    def change(self, change: Change) -> None:
        """Add a change that the scenario does not have."""
        self._add(change.at_us, change)

    def cancel(self, at_us: int, job: int) -> None:
        """Cancel a job at a later instant; nothing happens if it is over by then."""
        self._add(at_us, job)

    def _add(self, at_us: int, what: Change | int) -> None:
        self._added += 1
        heappush(self._unscripted, (at_us, self._added, what))

    def _apply_changes(self, now: int, events: list[Event]) -> None:
        """Apply the changes that are due, and void the plans that no longer fit."""
        due: list[Change] = []
        changes = self._scenario.changes
        while self._script_change < len(changes) and changes[self._script_change].at_us <= now:
            due.append(changes[self._script_change])
            self._script_change += 1
        while self._unscripted and self._unscripted[0][0] <= now:
            what = heappop(self._unscripted)[2]
            if isinstance(what, Change):
                due.append(what)
            else:
                self._cancelled.append(what)
        limits = False
        for change in due:
            self._environment.apply(change)
            limits = limits or change.kind not in ("price", "egress")
            events.append(Event(now, "changed", -1, self._next_change, change))
            self._next_change += 1
        if limits:
            self._void_plans(now, events)

    def _cancel_jobs(self, now: int, events: list[Event]) -> None:
        """Remove the jobs that were cancelled at this instant and did not finish at it."""
        for job in self._cancelled:
            state = self._active.get(job)
            if state is None or state.releasing:
                continue
            if state.at >= 0:
                self._credit(state, now)
            events.append(Event(now, "cancelled", job, state.done))
            del self._active[job]
        self._cancelled = []

    def _void_plans(self, now: int, events: list[Event]) -> None:
        """Cancel the plans that a change of limits leaves without room."""
        running = [(v.job, v.number, v.steps) for v in self._active.values() if v.steps]
        for job, failed in self._environment.cancelled(now, running):
            state = self._active[job]
            self._credit(state, now)
            if failed and not isinstance(state.job.work, Dataset):  # chunks count when their step is over
                state.done = state.mark_done
            state.steps = ()
            state.since_us = now
            self._enter(state, 0, now)
            events.append(Event(now, "voided", job, state.done))

    # ------------------------------------------------------------------ decisions
    def ask(self, quote: Quote) -> int:
        """The customer's choice: the offer within budget with the largest surplus, the first on a tie; -1 for none."""
        job, customer = self._scenario.jobs[quote.job], self._scenario.customers[quote.job]
        slot, best, choice = self._setup.slot_us, 0.0, -1
        for number, offer in enumerate(quote.offers):
            if customer.budget_usd is not None and offer.payment_usd > customer.budget_usd:
                continue
            valuation = customer.valuation or job.utility
            if valuation is not None and valuation.of == "delay_slots":
                delay = (offer.finish_us - 1) // slot - job.arrive_us // slot
                gain = valuation.value(delay) - offer.payment_usd
                if gain <= 0:
                    continue
            else:
                gain = (customer.budget_usd or 0.0) - offer.payment_usd
            if choice < 0 or gain > best:
                best, choice = gain, number
        return choice

    def apply(self, number: int, decision: Decision) -> Sequence[Event]:
        """Apply a decision. Repeating a number has no effect."""
        if number <= self._number:
            return ()
        self._number = number
        now = self._now
        for plan in decision.plans:
            self._replace(plan, number, now)
        if decision.wake_us is not None:
            self._timer = decision.wake_us
        events = []
        for verdict in decision.verdicts:
            state = self._active.pop(verdict.job, None)
            events.append(Event(now, "refused", verdict.job, state.progress(now) if state is not None else 0))
        return events

    def _replace(self, plan: Plan, number: int, now: int) -> None:
        state = self._active[plan.job]
        if state.at >= 0:
            self._credit(state, now)
        if state.start_us == now:  # a step replaced at the instant it begins does not count
            state.start_us = -1
        if state.entered_us == now:
            state.last_places, state.entered_us = state.been_places, -1
        state.steps, state.number = plan.steps, number
        self._enter(state, 0, now)


def volumes_by_slot(scenario: Scenario) -> dict[int, dict[int, list[tuple[int, int]]]]:
    """Slot -> stream job -> [(node, bytes)] of its data in that slot."""
    v = scenario.volumes
    result: dict[int, dict[int, list[tuple[int, int]]]] = {}
    for slot, job, node, size in zip(
        v.slot.tolist(), v.job.tolist(), v.node.tolist(), v.bytes.tolist(), strict=True
    ):
        result.setdefault(slot, {}).setdefault(job, []).append((node, size))
    return result
