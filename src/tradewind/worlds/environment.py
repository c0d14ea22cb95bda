"""Current capacity and bandwidth, and the plans that a change cancels."""

from __future__ import annotations

from collections.abc import Iterable

from tradewind.model.decision import Route, Step
from tradewind.model.job import Job
from tradewind.model.setup import Setup
from tradewind.model.units import OPEN
from tradewind.model.view import Change

_Row = tuple[int, int, int]
"""(0, node, resource), or (1, link, direction) while routes push and (2, link, direction) while they pull."""


class Environment:
    """State of nodes and links after the changes so far."""

    def __init__(self, setup: Setup) -> None:
        self._setup = setup
        self._capacity = [list(node.capacity_milli) for node in setup.nodes]
        self._bps = [[link.ab_bps, link.ba_bps] for link in setup.links]
        self._down_nodes: set[int] = set()
        self._down_links: set[int] = set()

    def apply(self, change: Change) -> None:
        """Apply one change of the scenario; price changes have no effect here."""
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

    def is_down(self, what: str, index: int) -> bool:
        """Whether a change took this `node` or `link` down."""
        return index in (self._down_nodes if what == "node" else self._down_links)

    def node_is_down(self, node: int) -> bool:
        """Whether the node or one of its ancestors is down."""
        return not self._down_nodes.isdisjoint(self._setup.ancestry[node])

    def link_is_down(self, link: int) -> bool:
        """Whether the link or one of its ends is down."""
        ends = self._setup.links[link]
        return link in self._down_links or self.node_is_down(ends.a) or self.node_is_down(ends.b)

    def cancelled(
        self, now: int, running: Iterable[tuple[Job, int, tuple[Step, ...]]]
    ) -> list[tuple[int, bool]]:
        """(job, whether a node or link it uses failed) for every plan that can no longer be carried out.

        Plans that use a failed node or link are cancelled. If capacity or bandwidth is exceeded, the newest plans are
        cancelled until the rest fits (newer: higher decision number, then higher job index).
        """
        found: list[tuple[int, bool]] = []
        used: dict[_Row, dict[int, int]] = {}
        for job, _, steps in sorted(running, key=lambda entry: (entry[1], entry[0].index)):
            ahead = [step for step in steps if step.until_us > now]
            if any(self._uses_failed(step) for step in ahead):
                found.append((job.index, True))
                continue
            claims = [claim for step in ahead for claim in self._claims(now, job, step)]
            for row, slot, amount in claims:
                claimed = used.setdefault(row, {})
                claimed[slot] = claimed.get(slot, 0) + amount
            if any(self._is_over(row, slot, used[row]) for row, slot, _ in claims):
                for row, slot, amount in claims:
                    used[row][slot] -= amount
                found.append((job.index, False))
        return found

    def _is_over(self, row: _Row, slot: int, claimed: dict[int, int]) -> bool:
        """Whether a row is over its limit; open-ended claims (slot -1) count in every booked slot."""
        kind, number, which = row
        limit = (self._bps if kind else self._capacity)[number][which]
        opened = claimed.get(-1, 0)
        if slot >= 0:
            return opened + claimed[slot] > limit
        return opened + max((n for at, n in claimed.items() if at >= 0), default=0) > limit

    def _uses_failed(self, step: Step) -> bool:
        return any(self.node_is_down(node) for node in step.nodes) or any(
            self.link_is_down(link) for route in step.routes for link in route.path
        )

    def _claims(self, now: int, job: Job, step: Step) -> list[tuple[_Row, int, int]]:
        """(row, slot, amount) of everything that a step needs from now on; slot -1 for an open-ended step."""
        slot_us, setup = self._setup.slot_us, self._setup
        amounts: list[tuple[_Row, int]] = []
        servers = step.servers or (0,) * len(step.nodes)
        for node, workers, ps in zip(step.nodes, step.workers, servers, strict=True):
            for demand, count in ((job.worker, workers), (job.server, ps)):
                for resource, milli in demand:
                    amounts += [((0, at, resource), milli * count) for at in setup.lineage[node]]
        for route in step.routes:
            amounts += [(row, route.bps) for row in _link_rows(setup, route, pulls_back=job.pulls_back)]
        slots: Iterable[int] = (-1,)
        if step.until_us < OPEN:
            slots = range(max(step.from_us, now) // slot_us, -(-step.until_us // slot_us))
        return [(row, slot, amount) for slot in slots for row, amount in amounts]


def _link_rows(setup: Setup, route: Route, *, pulls_back: bool) -> list[_Row]:
    """The rows that a route claims; a shared link is claimed once, as direction 0."""
    found: list[_Row] = []
    at = route.src
    for number in route.path:
        link = setup.links[number]
        way = 0 if link.a == at else 1
        at = link.b if way == 0 else link.a
        if link.shared:
            found.append((1, number, 0))
        elif route.duplex == "push-pull":
            found += [(phase, number, direction) for phase in (1, 2) for direction in (0, 1)]
        else:
            found += [(1, number, way), (2, number, 1 - way if pulls_back else way)]
    return found
