"""What is due when: arrivals, changes, slots with their volumes, the policy's timer, and what was added at run time."""

from __future__ import annotations

from collections.abc import Container, Sequence
from heapq import heappop, heappush

from tradewind.model.decision import HeldQuote
from tradewind.model.job import Job
from tradewind.model.scenario import Scenario
from tradewind.model.units import OPEN
from tradewind.model.view import Change, Event


class Agenda:
    """The script of a scenario, slots, a timer, and additions that no script has.

    slots       whether slots are reported (always, if the scenario has stream data)
    unscripted  nobody compares the run with its script: all changes are numbered in turn
    timer_us    the instant for which the policy set its timer
    found       changes that no script has, so far; they are numbered after those of the script
    """

    def __init__(self, scenario: Scenario, *, slots: bool, unscripted: bool = False) -> None:
        self._unscripted = unscripted
        self._jobs, self._changes, self._setup = scenario.jobs, scenario.changes, scenario.setup
        self.slots = slots or len(scenario.volumes) > 0
        self.timer_us: int | None = None
        self.found: list[Change] = []
        self.has_changes = bool(scenario.changes)  # or additions, which are taken at the same point
        self._volumes = volumes_by_slot(scenario)
        self._next_job = self._next_change = self._next_slot = 0
        self._added: list[tuple[int, int, Change | Event]] = []  # (time, order, a change or another event)
        self._order = 0

    # ------------------------------------------------------------------ additions
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

    # ------------------------------------------------------------------ time
    def next_us(self, busy: bool) -> int:
        """The next instant at which something is due; OPEN if nothing is. busy: whether there are active jobs.

        Without active jobs and arrivals to come, nobody needs changes, slots and timers.
        """
        now = OPEN
        if self._next_job < len(self._jobs):
            now = self._jobs[self._next_job].arrive_us
        elif not busy:
            return OPEN
        if self._next_change < len(self._changes):
            now = min(now, self._changes[self._next_change].at_us)
        if self._added:
            now = min(now, self._added[0][0])
        if self.slots and self._next_slot < self._setup.slots:
            now = min(now, self._next_slot * self._setup.slot_us)
        if self.timer_us is not None and self.timer_us < now:
            now = self.timer_us
        return now

    def arrivals(self, now_us: int) -> Sequence[Job]:
        """Take the jobs that arrive now, in the order of the script."""
        jobs, first = self._jobs, self._next_job
        end, count = first, len(jobs)
        while end < count and jobs[end].arrive_us == now_us:
            end += 1
        if end == first:
            return ()
        self._next_job = end
        return jobs[first:end]

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
        return due, reported

    def slot(self, now_us: int, active: Container[int], events: list[Event]) -> None:
        """Add the events of a slot that begins now: the slot, and the volumes of active streams."""
        slot = self._next_slot
        if now_us != slot * self._setup.slot_us or slot >= self._setup.slots:
            return
        self._next_slot += 1
        events.append(Event(now_us, "slot", -1, slot))
        for job, volumes in self._volumes.get(slot, {}).items():
            if job in active:
                events.append(Event(now_us, "data", job, slot, tuple(volumes)))


def volumes_by_slot(scenario: Scenario) -> dict[int, dict[int, list[tuple[int, int]]]]:
    """Slot -> stream job -> [(node, bytes)] of its data in that slot."""
    v = scenario.volumes
    result: dict[int, dict[int, list[tuple[int, int]]]] = {}
    for slot, job, node, size in zip(
        v.slot.tolist(), v.job.tolist(), v.node.tolist(), v.bytes.tolist(), strict=True
    ):
        result.setdefault(slot, {}).setdefault(job, []).append((node, size))
    return result
