"""Capacity and bandwidth as they are now, and which plans a change cancels."""

from __future__ import annotations

from collections.abc import Iterable

from tradewind.model.decision import Step
from tradewind.model.job import Job
from tradewind.model.setup import Setup
from tradewind.model.units import OPEN
from tradewind.model.view import Change

_Row = tuple[int, int, int]
"""(0, node, resource) or (1, link, direction)."""


class Surroundings:
    """What the scenario's changes have made of nodes and links so far."""

    def __init__(self, setup: Setup) -> None:
        self._setup = setup
        self._capacity = [list(node.capacity_milli) for node in setup.nodes]
        self._bps = [[link.ab_bps, link.ba_bps] for link in setup.links]
        self._down_nodes: set[int] = set()
        self._down_links: set[int] = set()

    def take(self, change: Change) -> None:
        """Applies one row of the scenario's changes; prices do not concern this object."""
        match change.kind:
            case "capacity":
                self._capacity[change.a][change.b] = change.value
            case "bandwidth":
                for direction in (0, 1) if change.b == 2 else (change.b,):
                    self._bps[change.a][direction] = change.value
                if self._setup.links[change.a].shared:
                    self._bps[change.a] = [change.value, change.value]
            case "node_down":
                self._down_nodes.add(change.a)
            case "node_up":
                self._down_nodes.discard(change.a)
            case "link_down":
                self._down_links.add(change.a)
            case "link_up":
                self._down_links.discard(change.a)

    def node_is_down(self, node: int) -> bool:
        """A node is down with any of its ancestors."""
        while node >= 0:
            if node in self._down_nodes:
                return True
            node = self._setup.nodes[node].parent
        return False

    def link_is_down(self, link: int) -> bool:
        """A link is down by itself or with one of its ends."""
        ends = self._setup.links[link]
        return link in self._down_links or self.node_is_down(ends.a) or self.node_is_down(ends.b)

    def victims(
        self, now: int, running: Iterable[tuple[Job, int, tuple[Step, ...]]]
    ) -> list[tuple[int, bool]]:
        """(job, whether something failed under it) for every plan that can no longer be carried out.

        A plan that touches a dead node or link goes. Where capacity or bandwidth shrank below what is planned, the
        newest plans go first (a higher number is newer, then a higher job index) until the rest fits.
        """
        gone: list[tuple[int, bool]] = []
        used: dict[_Row, dict[int, int]] = {}
        for job, _, steps in sorted(running, key=lambda entry: (entry[1], entry[0].index)):
            ahead = [step for step in steps if step.until_us > now]
            if any(self._is_dead(step) for step in ahead):
                gone.append((job.index, True))
                continue
            claims = [claim for step in ahead for claim in self._claims(now, job, step)]
            for row, slot, amount in claims:
                book = used.setdefault(row, {})
                book[slot] = book.get(slot, 0) + amount
            if any(self._is_over(row, slot, used[row]) for row, slot, _ in claims):
                for row, slot, amount in claims:
                    used[row][slot] -= amount
                gone.append((job.index, False))
        return gone

    def _is_over(self, row: _Row, slot: int, book: dict[int, int]) -> bool:
        """Whether a row holds more than it has: what is open-ended (slot -1) counts in every booked slot."""
        kind, number, which = row
        limit = (self._bps if kind else self._capacity)[number][which]
        opened = book.get(-1, 0)
        if slot >= 0:
            return opened + book[slot] > limit
        return opened + max((n for at, n in book.items() if at >= 0), default=0) > limit

    def _is_dead(self, step: Step) -> bool:
        return any(self.node_is_down(node) for node in step.nodes) or any(
            self.link_is_down(link) for route in step.routes for link in route.path
        )

    def _claims(self, now: int, job: Job, step: Step) -> list[tuple[_Row, int, int]]:
        """(row, slot or -1 for an open-ended step, amount) of everything that a step needs from now on."""
        slot_us, setup = self._setup.slot_us, self._setup
        amounts: list[tuple[_Row, int]] = []
        servers = step.servers or (0,) * len(step.nodes)
        for node, workers, ps in zip(step.nodes, step.workers, servers, strict=True):
            for demand, count in ((job.worker, workers), (job.server, ps)):
                for resource, milli in demand:
                    amounts += [((0, at, resource), milli * count) for at in setup.lineage[node]]
        for route in step.routes:
            both = route.duplex == "push-pull"
            for link, direction in directions(setup, route.src, route.path, both=both):
                amounts.append(((1, link, direction), route.bps))
        slots: Iterable[int] = (-1,)
        if step.until_us < OPEN:
            slots = range(max(step.from_us, now) // slot_us, -(-step.until_us // slot_us))
        return [(row, slot, amount) for slot in slots for row, amount in amounts]


def directions(setup: Setup, src: int, path: tuple[int, ...], *, both: bool) -> list[tuple[int, int]]:
    """(link, direction) pairs that a path from `src` reserves; a shared link always counts as direction 0, once."""
    found, at = [], src
    for number in path:
        link = setup.links[number]
        direction = 0 if link.a == at else 1
        at = link.b if direction == 0 else link.a
        if link.shared:
            found.append((number, 0))
        else:
            found.append((number, direction))
            if both:
                found.append((number, 1 - direction))
    return found
