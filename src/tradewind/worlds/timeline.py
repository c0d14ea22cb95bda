"""Agenda and progress together: the next instant, its events in their order, and what decisions change.

At each instant: changes, completions, cancellations and answers to quotes, arrivals in the order of the script, slot and
data, timer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tradewind.model.decision import Decision
from tradewind.model.job import NO_PRIVATE_DATA, Customer, Job, Stream
from tradewind.model.scenario import Scenario
from tradewind.model.units import OPEN
from tradewind.model.view import Change, Event
from tradewind.worlds.agenda import Agenda
from tradewind.worlds.environment import Environment
from tradewind.worlds.progress import Progress


class Timeline:
    """What happens in a world, instant by instant. A world decides when an instant is due.

    without_end  slots and timers are due also while there are no jobs, because more may be submitted at any time
    """

    def __init__(
        self, scenario: Scenario, agenda: Agenda, progress: Progress, *, without_end: bool = False
    ) -> None:
        self.agenda, self.progress, self._without_end = agenda, progress, without_end
        self.private: dict[int, Customer] = {}  # of jobs that no script has
        self.environment = Environment(scenario.setup)
        self.now_us = -1
        self._customers, self._horizon_us = tuple(scenario.customers), scenario.setup.horizon_us
        self._number = -1

    def next_us(self) -> int | None:
        """The next instant at which anything is due; None if there is none before the horizon."""
        agenda, progress = self.agenda, self.progress
        now, arrival = progress.next_us(), agenda.arrival_us
        if arrival < now:
            now = arrival
        if agenda.other_us < now and (progress.active or arrival < OPEN or self._without_end):
            now = agenda.other_us
        return None if now > self._horizon_us else now

    def process(self, now: int) -> list[Event]:
        """Events of an instant; empty where only a plan went on to its next step."""
        self.now_us = now
        events: list[Event] = []
        agenda, progress = self.agenda, self.progress
        if agenda.has_changes:
            self._advance_with_changes(now, events)
        else:
            progress.advance(now, events)
        if agenda.arrival_us == now:
            for each in agenda.arrivals(now):
                self._arrive(each, events)
        if agenda.other_us == now:
            agenda.slot_and_timer(now, progress.active, events)
        return events

    def _advance_with_changes(self, now: int, events: list[Event]) -> None:
        """Changes, what was measured, completions, and what customers say."""
        progress = self.progress
        due, reported = self.agenda.changes(now)
        if due:
            self._change(due, now, events)
        told = {event.job: event for event in reported if event.kind == "measured"}
        events += [told[job] for job in sorted(told) if job in progress.active]
        progress.advance(now, events)
        for event in reported:
            if event.kind == "measured":
                continue
            if event.kind == "cancelled":
                done = progress.cancel(event.job, now)
                if done is not None:
                    events.append(Event(now, "cancelled", event.job, done))
            elif event.job in progress.active:
                events.append(event)

    def customer(self, job: int) -> Customer:
        """The private part of a job."""
        return self._customers[job] if job < len(self._customers) else self.private.get(job, NO_PRIVATE_DATA)

    def end(self, end_us: int) -> list[Event]:
        """End the run: events of the jobs that remain."""
        self.now_us = end_us
        events: list[Event] = []
        self.progress.end(end_us, events)
        return events

    def apply(self, number: int, decision: Decision) -> Sequence[Event]:
        """Apply a decision. Repeating a number has no effect."""
        if number <= self._number:
            return ()
        self._number = number
        now, progress = self.now_us, self.progress
        for plan in decision.plans:
            progress.replace(plan, number, now)
        if decision.wake_us is not None:
            self.agenda.set_timer(decision.wake_us)
        if not decision.verdicts:
            return ()
        return [Event(now, "refused", v.job, progress.drop(v.job, now)) for v in decision.verdicts]

    def _arrive(self, job: Job, events: list[Event]) -> None:
        total, customer = job.work.total, self.customer(job.index)
        if total is None and type(job.work) is Stream:
            stays = customer.runtime_us
            self.progress.add(job, None, None if stays is None else job.arrive_us + stays)
        else:
            self.progress.add(job, customer.runtime_us if total is None else total, None, customer.pace_milli)
        events.append(Event(job.arrive_us, "arrived", job.index, 0, job))

    # ------------------------------------------------------------------ saving
    def save(self) -> dict[str, Any]:
        """The state as JSON data, without what is private."""
        parts = {"agenda": self.agenda.save(), "progress": self.progress.save()}
        return {"now_us": self.now_us, "number": self._number, **parts}

    def restore(self, data: Mapping[str, Any], jobs: Mapping[int, Job]) -> None:
        """Continue from what `save` returned, in a new timeline without a script."""
        self.now_us, self._number = data["now_us"], data["number"]
        self.agenda.restore(data["agenda"])
        self.progress.restore(data["progress"], jobs)
        for change in self.agenda.found:
            self.environment.apply(change)

    def _change(self, due: Sequence[tuple[int, Change]], now: int, events: list[Event]) -> None:
        """Apply changes, and void the plans that a change of limits leaves without room."""
        limits = False
        for number, change in due:
            self.environment.apply(change)
            limits = limits or change.kind not in ("price", "egress")
            events.append(Event(now, "changed", -1, number, change))
        if not limits:
            return
        running = [(v.job, v.number, v.steps) for v in self.progress.active.values() if v.steps]
        for job, failed in self.environment.cancelled(now, running):
            events.append(Event(now, "voided", job, self.progress.void(job, failed, now)))
