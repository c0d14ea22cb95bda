"""What a fleet loses and finds again, as changes that no script has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tradewind.model.setup import Setup
from tradewind.model.view import Change
from tradewind.worlds.environment import Environment
from tradewind.worlds.fleet import Observations


class Inventory:
    """Nodes and links that the fleet lost, and capacities that it lacks, as events have told."""

    def __init__(self, setup: Setup) -> None:
        self._setup = setup
        self._lost: set[tuple[str, int]] = set()
        self._limits: dict[tuple[int, int], int] = {}
        self._given: dict[tuple[int, int], int] = {}  # capacities that the script or an operator has changed
        self._own: list[Change] = []  # changes of capacity that are on their way because of the fleet

    def __bool__(self) -> bool:
        """Whether something may come back."""
        return bool(self._lost or self._limits)

    def changes(self, seen: Observations, environment: Environment, at_us: int) -> Sequence[Change]:
        """What has changed since the last call: nodes and links that fail, shrink or come back."""
        lost, found = self._lost, list[Change]()
        down = {("node", n) for n in seen.down_nodes} | {("link", n) for n in seen.down_links}
        failed = {key for key in down - lost if not environment.is_down(*key)}
        for what, index in sorted(failed | (lost - down)):
            how = "down" if (what, index) in failed else "up"
            found.append(Change(at_us, f"{what}_{how}", index, 0, 0))
        lost &= down
        lost |= failed
        limits = {key: min(has, self._capacity(*key)) for key, has in seen.limits.items()}
        for node, resource in sorted(self._limits.keys() | limits.keys()):
            full = self._capacity(node, resource)
            has = limits.get((node, resource), full)
            if has != self._limits.get((node, resource), full) and ("node", node) not in lost:
                found.append(Change(at_us, "capacity", node, resource, has))
                self._keep(found[-1])
        return found

    def take(self, change: Change, *, scripted: bool) -> None:
        """A change has happened; unless it is the fleet's own, script or operator say from now on what a node has."""
        if change in self._own:
            self._own.remove(change)
            return
        if scripted:
            self._lost.discard((change.kind.partition("_")[0], change.a))
        if change.kind == "capacity":
            self._given[change.a, change.b] = change.value
            self._limits.pop((change.a, change.b), None)

    def replay(self, change: Change, *, counts: bool) -> None:
        """Take in a change that no script has, from the journal; counts: whether the fleet reports capacities."""
        what, _, how = change.kind.partition("_")
        if how:
            (self._lost.add if how == "down" else self._lost.discard)((what, change.a))
        elif what == "capacity" and counts:
            self._keep(change)

    def save(self) -> dict[str, Any]:
        """Everything as plain data."""
        limits, given = (
            [[*key, has] for key, has in sorted(each.items())] for each in (self._limits, self._given)
        )
        return {
            "lost": sorted(self._lost),
            "limits": limits,
            "given": given,
            "own": list(map(list, self._own)),
        }

    def restore(self, data: Mapping[str, Any]) -> None:
        """Continue from what `save` returned."""
        self._lost = {(what, index) for what, index in data["lost"]}
        self._limits = {(node, resource): has for node, resource, has in data["limits"]}
        self._given = {(node, resource): has for node, resource, has in data["given"]}
        self._own = [Change(*row) for row in data["own"]]

    def _keep(self, change: Change) -> None:
        """Remember a change of capacity that comes from the fleet."""
        self._own.append(change)
        self._limits[change.a, change.b] = change.value
        if change.value == self._capacity(change.a, change.b):
            del self._limits[change.a, change.b]

    def _capacity(self, node: int, resource: int) -> int:
        """What a node should have."""
        return self._given.get((node, resource), self._setup.nodes[node].capacity_milli[resource])
