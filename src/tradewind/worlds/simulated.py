"""The simulated world: event-driven on a continuous clock of integer microseconds.

At an instant it reports changes, completions, arrivals in file order, slot data and timers, in this order. It alone
owns progress: it integrates the work's rate (completion rounded up to a microsecond), and a failure returns a job to
what it had done when the slot began.
"""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heappop, heappush

from tradewind.model.decision import Decision, Plan, Quote, Step
from tradewind.model.job import Dataset, Job, Rounds, Stream
from tradewind.model.progress import rate
from tradewind.model.scenario import Scenario
from tradewind.model.units import OPEN
from tradewind.model.view import Event
from tradewind.worlds.environment import Surroundings


class Live:
    """A job between arrival and end, as the world knows it."""

    __slots__ = (
        "at", "been_places", "done", "entered_us", "job", "last_places", "mark_done", "mark_us", "next", "num_den",
        "number", "since_us", "stamp", "start_us", "steps", "total",
    )  # fmt: skip

    def __init__(self, job: Job, total: int | None) -> None:
        self.job = job
        self.total = total
        self.steps: tuple[Step, ...] = ()
        self.at = -1  # current step, -1: idle or waiting for the next one
        self.next = 0  # the step after it
        self.done = 0
        self.since_us = 0
        self.num_den = (0, 1)
        self.stamp = 0
        self.number = -1
        self.start_us = -1
        self.mark_us = -1  # start of a slot, and the work that was done then
        self.mark_done = 0
        self.entered_us = -1
        self.last_places: frozenset[tuple[int, int]] = frozenset()  # of the current step
        self.been_places: frozenset[tuple[int, int]] = frozenset()  # where it last spent any time before

    def progress(self, now_us: int) -> int:
        """Work done by now."""
        num, den = self.num_den
        done = self.done + max(0, now_us - self.since_us) * num // den
        # a job that waits for the end of a whole slot has done all there is
        return done if self.total is None or done <= self.total else self.total


class SimulatedWorld:
    """Runs a scenario. `slots` says whether slot boundaries are instants (streams and slotted policies need them)."""

    def __init__(self, scenario: Scenario, *, slots: bool) -> None:
        self._scenario = scenario
        self._setup = scenario.setup
        self._slots = slots or len(scenario.volumes) > 0
        self._around = Surroundings(scenario.setup)
        self._failures = any(change.kind in ("node_down", "link_down") for change in scenario.changes)
        self._now = -1
        self._next_job = 0
        self._next_change = 0
        self._next_slot = 0
        self._timer: int | None = None
        self._number = -1
        self._live: dict[int, Live] = {}
        self._heap: list[tuple[int, int, int, str]] = []  # (time, job, stamp, what)
        self._volumes = volumes_by_slot(scenario)

    # ------------------------------------------------------------------ time
    def wait(self) -> Sequence[Event]:
        """Everything that happens at the next instant at which something happens; empty at the end."""
        while (now := self._next_instant()) is not None:
            if events := self._happen(now):
                return events
        return self._end(self._setup.horizon_us)

    def _happen(self, now: int) -> list[Event]:
        """What happens at an instant: changes, completions, arrivals, slot and data, timer."""
        self._now = now
        events: list[Event] = []
        if self._scenario.changes:
            self._take_changes(now, events)
        heap = self._heap
        while heap and heap[0][0] == now:
            _, job, stamp, what = heappop(heap)
            live = self._live.get(job)
            if live is not None and live.stamp == stamp:
                self._ripe(live, what, now, events)
        jobs = self._scenario.jobs
        i, n = self._next_job, len(jobs)
        while i < n and jobs[i].arrive_us == now:
            self._arrive(jobs[i], events)
            i += 1
        self._next_job = i
        if self._slots:
            self._take_slot(now, events)
        if self._timer == now:
            self._timer = None
            events.append(Event(now, "timer"))
        return events

    def _next_instant(self) -> int | None:
        jobs, heap = self._scenario.jobs, self._heap
        while heap:  # forget what a later plan made void
            live = self._live.get(heap[0][1])
            if live is not None and live.stamp == heap[0][2]:
                break
            heappop(heap)
        now = heap[0][0] if heap else OPEN
        more = self._next_job < len(jobs)
        if more and jobs[self._next_job].arrive_us < now:
            now = jobs[self._next_job].arrive_us
        if self._live or more:
            if self._next_change < len(self._scenario.changes):
                now = min(now, self._scenario.changes[self._next_change].at_us)
            if self._slots and self._next_slot < self._setup.slots:
                now = min(now, self._next_slot * self._setup.slot_us)
            if self._timer is not None and self._timer < now:
                now = self._timer
        return None if now > self._setup.horizon_us else now

    def _end(self, end: int) -> Sequence[Event]:
        """Everybody who is still there goes home; after that there is nothing."""
        events = [Event(end, "ended", index, live.progress(end)) for index, live in self._live.items()]
        self._now = end
        self._live.clear()
        return events

    def _take_slot(self, now: int, events: list[Event]) -> None:
        if now != self._next_slot * self._setup.slot_us or self._next_slot >= self._setup.slots:
            return
        slot = self._next_slot
        self._next_slot += 1
        events.append(Event(now, "slot", -1, slot))
        for job, volumes in self._volumes.get(slot, {}).items():
            if job in self._live:
                events.append(Event(now, "data", job, slot, tuple(volumes)))

    # ------------------------------------------------------------------ jobs
    def _arrive(self, job: Job, events: list[Event]) -> None:
        customer = self._scenario.customers[job.index]
        total = job.work.total
        if total is None and not isinstance(job.work, Stream):
            total = customer.runtime_us
        live = self._live[job.index] = Live(job, total)
        events.append(Event(job.arrive_us, "arrived", job.index, 0, job))
        if isinstance(job.work, Stream):
            assert customer.runtime_us is not None
            live.stamp += 1
            heappush(self._heap, (job.arrive_us + customer.runtime_us, job.index, live.stamp, "left"))

    def _ripe(self, live: Live, what: str, now: int, events: list[Event]) -> None:
        index = live.job.index
        if what == "next":
            self._credit(live, now)
            if live.total is not None and isinstance(live.job.work, Dataset) and live.done >= live.total:
                what = "finished"
            else:
                self._enter(live, live.next, now)
                return
        if what == "released":
            events.append(Event(now, "released", index))
            del self._live[index]
        elif what == "left":
            events.append(Event(now, "left", index))
            del self._live[index]
        else:
            events.append(Event(now, "finished", index))
            if live.job.hold == "through":
                live.num_den, live.at, live.steps = (0, 1), -1, ()  # no failure can cancel what is done
                live.stamp += 1
                heappush(self._heap, (now + 1, index, live.stamp, "released"))
            else:
                del self._live[index]

    def _credit(self, live: Live, now: int) -> None:
        """Books the work of the current step up to now; a dataset's chunks count when their step is over."""
        if self._failures:
            self._mark(live, now)
        live.done = live.progress(now)
        live.since_us = max(live.since_us, now)
        work = live.job.work
        if isinstance(work, Dataset) and live.at >= 0:
            step = live.steps[live.at]
            if now >= step.until_us:
                live.done += sum(flow.bytes for flow in step.flows) // work.chunk_bytes

    def _mark(self, live: Live, now: int) -> None:
        """Remembers the work done when the current slot began: what a failure returns the job to."""
        boundary = now - now % self._setup.slot_us
        if live.mark_us < boundary:
            live.mark_us, live.mark_done = boundary, live.progress(boundary)

    def _enter(self, live: Live, at: int, now: int) -> None:
        """Makes step `at` the current one, waits for it, or idles when there is none."""
        if isinstance(live.job.work, Stream):  # its only appointment is the day it leaves
            return
        live.stamp += 1
        live.num_den, live.at, live.next = (0, 1), -1, at
        if at >= len(live.steps):
            return
        step = live.steps[at]
        if step.from_us > now:
            heappush(self._heap, (step.from_us, live.job.index, live.stamp, "next"))
            return
        live.at, live.next = at, at + 1
        live.num_den = num, den = self._pace(live.job, step)
        restart = self._restart(live, step, now) if live.job.restart_us else 0
        if live.start_us < 0:
            live.start_us = now
        live.since_us = now + restart
        if num and live.total is not None:
            left = live.total - live.done
            ripe = live.since_us + max(1, -(-left * den // num))  # no step is over at the instant it begins
            work = live.job.work
            if isinstance(work, Rounds) and work.whole_slots:
                slot = self._setup.slot_us
                ripe = live.start_us + -(-(ripe - live.start_us) // slot) * slot
            if ripe <= step.until_us:
                heappush(self._heap, (ripe, live.job.index, live.stamp, "finished"))
                return
        if step.until_us < OPEN:
            heappush(self._heap, (step.until_us, live.job.index, live.stamp, "next"))

    def _pace(self, job: Job, step: Step) -> tuple[int, int]:
        """Work per microsecond as a fraction; 0 where time alone does nothing."""
        return rate(self._setup, job, step)

    @staticmethod
    def _restart(live: Live, step: Step, now: int) -> int:
        """Microseconds lost because workers or servers are not where they last spent any time."""
        live.been_places, live.entered_us = live.last_places, now
        live.last_places = frozenset(zip(step.nodes, step.servers or (0,) * len(step.nodes), strict=True))
        moved = bool(live.been_places) and live.last_places != live.been_places
        return live.job.restart_us if moved else 0

    # ------------------------------------------------------------------ changes
    def _take_changes(self, now: int, events: list[Event]) -> None:
        changes, limits = self._scenario.changes, False
        while self._next_change < len(changes) and changes[self._next_change].at_us <= now:
            change = changes[self._next_change]
            self._around.take(change)
            limits = limits or change.kind not in ("price", "egress")
            events.append(Event(now, "changed", -1, self._next_change, change))
            self._next_change += 1
        if not limits:
            return
        running = [(v.job, v.number, v.steps) for v in self._live.values() if v.steps]
        for job, failed in self._around.victims(now, running):
            live = self._live[job]
            self._credit(live, now)
            if failed and not isinstance(live.job.work, Dataset):  # chunks count when their step is over
                live.done = live.mark_done
            live.steps = ()
            live.since_us = now
            self._enter(live, 0, now)
            events.append(Event(now, "voided", job, live.done))

    # ------------------------------------------------------------------ decisions
    def ask(self, quote: Quote) -> int:
        """The customer's choice: within budget the best of valuation minus payment, the earlier on a tie; -1 for none."""
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
        """Carries a decision out, once per number; a number seen before changes nothing."""
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
            live = self._live.pop(verdict.job, None)
            events.append(Event(now, "refused", verdict.job, live.progress(now) if live is not None else 0))
        return events

    def _replace(self, plan: Plan, number: int, now: int) -> None:
        live = self._live[plan.job]
        if live.at >= 0:
            self._credit(live, now)
        if live.start_us == now:  # a step that is replaced at the instant it begins never was
            live.start_us = -1
        if live.entered_us == now:
            live.last_places, live.entered_us = live.been_places, -1
        live.steps, live.number = plan.steps, number
        self._enter(live, 0, now)


def volumes_by_slot(scenario: Scenario) -> dict[int, dict[int, list[tuple[int, int]]]]:
    """Slot -> stream job -> (node, bytes) of its data in that slot."""
    v = scenario.volumes
    result: dict[int, dict[int, list[tuple[int, int]]]] = {}
    for slot, job, node, size in zip(
        v.slot.tolist(), v.job.tolist(), v.node.tolist(), v.bytes.tolist(), strict=True
    ):
        result.setdefault(slot, {}).setdefault(job, []).append((node, size))
    return result
