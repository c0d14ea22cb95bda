"""Fidelity to a script: what a world that plays a scenario must report, beside the rules that always hold."""

from __future__ import annotations

from collections.abc import Sequence

from tradewind.model.job import Customer
from tradewind.model.result import Violation
from tradewind.model.scenario import Script
from tradewind.model.setup import Setup
from tradewind.model.units import OPEN
from tradewind.model.view import Change, Event

Volumes = tuple[tuple[int, int], ...]


class Fidelity:
    """Checks of a script: arrivals, changes, volumes and customers, in the order in which they are due."""

    def __init__(self, setup: Setup, script: Script) -> None:
        self._setup, self._script = setup, script
        self._jobs = tuple(script.jobs)
        self.has_failures = any(change.kind in ("node_down", "link_down") for change in script.changes)
        self.has_volumes = len(script.volumes) > 0
        self.customers: Sequence[Customer] = tuple(script.customers)

    def arrival(self, event: Event, turn: int) -> Violation | None:
        """Job number `turn` arrives next, at its time and as the script has it."""
        job = self._jobs[turn] if turn < len(self._jobs) else None
        if event.job == turn and (event.fact is job or event.fact == job):
            return None
        detail = f"job {event.job} arrived at {event.at_us} us; it is not the next arrival of the script"
        return Violation("time.arrival", detail=detail)

    def is_next(self, change: Change, turn: int) -> bool:
        """Whether change number `turn` is as the script has it."""
        return turn < len(self._script.changes) and change == self._script.changes[turn]

    def is_next_failure(self, number: int, change: Change, found: int) -> bool:
        """Whether it is what a measured world may report without a script: a node or link that fails, shrinks or comes back.

        found: number of such changes so far; they are numbered after those of the script.
        """
        setup = self._setup
        if change.kind == "capacity":
            return number == len(self._script.changes) + found and 0 <= change.value <= self._most(change)
        what, _, how = change.kind.partition("_")
        count = {"node": len(setup.nodes), "link": len(setup.links)}.get(what, 0)
        return (
            number == len(self._script.changes) + found
            and how in ("down", "up")
            and 0 <= change.a < count
            and change.b == change.value == 0
        )

    def _most(self, change: Change) -> int:
        """The largest capacity that setup or script give a node; -1 if there is no such node or resource."""
        setup, a, b = self._setup, change.a, change.b
        if not (0 <= a < len(setup.nodes) and 0 <= b < len(setup.resources)):
            return -1
        same = (each for each in self._script.changes if (each.kind, each.a, each.b) == ("capacity", a, b))
        return max([setup.nodes[a].capacity_milli[b], *(each.value for each in same)])

    def change_due_us(self, turn: int) -> int:
        """When change number `turn` is due; OPEN if there is none."""
        changes = self._script.changes
        return changes[turn].at_us if turn < len(changes) else OPEN

    def volumes_of(self, slot: int, streams: set[int]) -> dict[int, Volumes]:
        """Volumes of a slot, for active streams."""
        rows = self._script.volumes
        low, high = rows.slot.searchsorted([slot, slot + 1])
        found: dict[int, list[tuple[int, int]]] = {}
        columns = (rows.job[low:high].tolist(), rows.node[low:high].tolist(), rows.bytes[low:high].tolist())
        for job, node, size in zip(*columns, strict=True):
            if job in streams:
                found.setdefault(job, []).append((node, size))
        return {job: tuple(pairs) for job, pairs in found.items()}

    def missing(self, turn: int) -> int:
        """Jobs that have not arrived."""
        return len(self._jobs) - turn
