"""What is due when: arrivals, changes, slots with their volumes, the policy's timer, and what was added at run time."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from heapq import heappop, heappush
from typing import Any

from tradewind.model.codec import plain, read
from tradewind.model.decision import HeldQuote
from tradewind.model.job import Job
from tradewind.model.scenario import Scenario
from tradewind.model.units import OPEN
from tradewind.model.view import Change, Event


class Agenda:
    """The script of a scenario, slots, a timer, and additions that no script has.

    slots       whether slots are reported (always, if the scenario has stream data)
    unscripted  nobody compares the run with its script: all changes are numbered in turn
    arrival_us  when the next job arrives; OPEN if none does
    other_us    when anything else is due; it matters only while there are jobs, or some are to come
    found       changes that no script has, so far; they are numbered after those of the script
    """

    def __init__(self, scenario: Scenario, *, slots: bool, unscripted: bool = False) -> None:
        self._unscripted = unscripted
        self._jobs, self._changes, self._setup = tuple(scenario.jobs), scenario.changes, scenario.setup
        self.slots = slots or len(scenario.volumes) > 0
        self.found: list[Change] = []
        self.has_changes = bool(scenario.changes)  # or additions, which are taken at the same point
        self._volumes = volumes_by_slot(scenario)
        self._next_job = self._next_change = self._next_slot = 0
        self._timer_us = OPEN
        self._added: list[tuple[int, int, Change | Event]] = []  # (time, order, a change or another event)
        self._submitted: list[Job] = []  # that no script has, in order of arrival
        self.feeds: dict[int, tuple[tuple[int, int], ...]] = {}  # stream -> (node, bytes) of every slot
        self._order = 0
        self.arrival_us = self._jobs[0].arrive_us if self._jobs else OPEN
        self.other_us = self._script_us = OPEN
        self._find_next()

    # ------------------------------------------------------------------ additions
    def submit(self, job: Job) -> None:
        """Add a job that the script does not have; it arrives after all others of its instant."""
        self._submitted.append(job)
        self.arrival_us = min(self.arrival_us, job.arrive_us)

    def change(self, change: Change) -> None:
        """Add a change that the script does not have."""
        self._add(change.at_us, change)

    def report(self, event: Event) -> None:
        """Add a cancellation, or an event of a held quote, which happens unless the job is over by then."""
        self._add(event.at_us, event)

    def hold(self, held: HeldQuote) -> None:
        """Let a quote expire when it is due."""
        self.report(Event(held.expires_us, "expired", held.quote.job, held.id))

    def _add(self, at_us: int, what: Change | Event) -> None:
        self._order += 1
        self.has_changes = True
        heappush(self._added, (at_us, self._order, what))
        self._find_next()

    def set_timer(self, at_us: int) -> None:
        """Set the policy's timer."""
        self._timer_us = at_us
        self.other_us = at_us if at_us < self._script_us else self._script_us

    # ------------------------------------------------------------------ time
    def _find_next(self) -> None:
        """Find when anything but an arrival is due: a change, an addition or a slot, or the timer."""
        due = OPEN
        if self._next_change < len(self._changes):
            due = min(due, self._changes[self._next_change].at_us)
        if self._added:
            due = min(due, self._added[0][0])
        if self.slots and self._next_slot < self._setup.slots:
            due = min(due, self._next_slot * self._setup.slot_us)
        self._script_us, self.other_us = due, min(due, self._timer_us)

    def arrivals(self, now_us: int) -> Sequence[Job]:
        """Take the jobs that arrive now, in the order of the script."""
        jobs, first = self._jobs, self._next_job
        end, count = first, len(jobs)
        while end < count and jobs[end].arrive_us == now_us:
            end += 1
        self._next_job = end
        self.arrival_us = jobs[end].arrive_us if end < count else OPEN
        if not self._submitted:
            return jobs[first:end]
        added = [job for job in self._submitted if job.arrive_us == now_us]
        self._submitted = self._submitted[len(added) :]
        if self._submitted:
            self.arrival_us = min(self.arrival_us, self._submitted[0].arrive_us)
        return [*jobs[first:end], *added]

    def changes(self, now_us: int) -> tuple[list[tuple[int, Change]], list[Event]]:
        """Take what is due by now: changes with their numbers, and other events that were added."""
        due: list[tuple[int, Change]] = []
        reported: list[Event] = []
        in_turn = len(self.found) if self._unscripted else 0
        while self._next_change < len(self._changes) and self._changes[self._next_change].at_us <= now_us:
            due.append((self._next_change + in_turn, self._changes[self._next_change]))
            self._next_change += 1
        first = self._next_change if self._unscripted else len(self._changes)
        while self._added and self._added[0][0] <= now_us:
            what = heappop(self._added)[2]
            if isinstance(what, Change):
                due.append((first + len(self.found), what))
                self.found.append(what)
            else:
                reported.append(what)
        self._find_next()
        return due, reported

    def slot_and_timer(self, now_us: int, active: Container[int], events: list[Event]) -> None:
        """Add the events of a slot that begins now, with the volumes of active streams, and of the timer."""
        slot = self._next_slot
        if self.slots and now_us == slot * self._setup.slot_us and slot < self._setup.slots:
            self._next_slot += 1
            self._find_next()
            events.append(Event(now_us, "slot", -1, slot))
            for job, volumes in self._volumes.get(slot, {}).items():
                if job in active:
                    events.append(Event(now_us, "data", job, slot, tuple(volumes)))
            for job, each in self.feeds.items():
                if job in active:
                    events.append(Event(now_us, "data", job, slot, each))
        if self._timer_us == now_us:
            self._timer_us = OPEN
            self.other_us = self._script_us
            events.append(Event(now_us, "timer"))

    # ------------------------------------------------------------------ saving
    def save(self) -> dict[str, Any]:
        """What is not in a script, as JSON data; quotes that expire are not part of it."""
        return {
            "next_slot": self._next_slot,
            "timer_us": self._timer_us,
            "found": plain(self.found),
            "feeds": plain(self.feeds),
        }

    def restore(self, data: Mapping[str, Any]) -> None:
        """Continue from what `save` returned, in a new agenda without a script."""
        self._next_slot, self._timer_us = data["next_slot"], data["timer_us"]
        self.found = list(read(tuple[Change, ...], data["found"], "agenda.found"))
        self.feeds = read(dict[int, tuple[tuple[int, int], ...]], data["feeds"], "agenda.feeds")
        self._find_next()


def volumes_by_slot(scenario: Scenario) -> dict[int, dict[int, list[tuple[int, int]]]]:
    """Slot -> stream job -> [(node, bytes)] of its data in that slot."""
    v = scenario.volumes
    result: dict[int, dict[int, list[tuple[int, int]]]] = {}
    for slot, job, node, size in zip(
        v.slot.tolist(), v.job.tolist(), v.node.tolist(), v.bytes.tolist(), strict=True
    ):
        result.setdefault(slot, {}).setdefault(job, []).append((node, size))
    return result
