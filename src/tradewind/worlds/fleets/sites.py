"""Which machines of an engine are which nodes of a scenario."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tradewind.model.errors import InputError
from tradewind.model.setup import Setup
from tradewind.model.units import UNLIMITED
from tradewind.worlds.fleet import Launch
from tradewind.worlds.fleets.engine import Machine

SITE_LABELS = ("site", "topology.kubernetes.io/zone")
"""Labels by which a machine is found where no file says what it is."""


class Sites:
    """Nodes of a setup and their machines: by a table (node -> machines), else by name, else by the machine's label."""

    def __init__(self, setup: Setup, table: Mapping[str, Sequence[str]], machines: Sequence[Machine]) -> None:
        self._setup, self._table = setup, table
        self.machines: tuple[Machine, ...] = ()
        self._counted: dict[int, set[str]] = {node: set() for node in setup.hosts}
        self.update(machines)
        known = {machine.name for machine in machines}
        for node, found in self._of.items():
            name = setup.nodes[node].name
            if missing := sorted(set(table.get(name, ())) - known):
                raise InputError(
                    f"node {name!r} is mapped to {', '.join(missing)}, which the cluster does not have; it has "
                    f"{_some(known)}"
                )
            if not found:
                raise InputError(
                    f"no machine of the cluster is node {name!r}: none has this name or the label {SITE_LABELS[0]}={name}; "
                    f"the cluster has {_some(known)}. Name nodes after machines, or map them with --sites FILE"
                )

    def update(self, machines: Sequence[Machine]) -> bool:
        """Take over what the engine said last; return whether anything is new."""
        if not machines or tuple(machines) == self.machines:
            return False
        self.machines = tuple(machines)
        self._of = {node: self._found(self._setup.nodes[node].name) for node in self._setup.hosts}
        for node, found in self._of.items():
            self._counted[node].update(name for machine in found for name in machine.capacity)
        return True

    def _found(self, name: str) -> list[Machine]:
        """The machines of a node."""
        if name in self._table:
            return [machine for machine in self.machines if machine.name in self._table[name]]
        named = [machine for machine in self.machines if machine.name == name]
        return named or [machine for machine in self.machines if site_of(machine) == name]

    def place(self, launch: Launch) -> list[Machine]:
        """A machine for every rank: those of a node in turn, as long as they are up."""
        found = []
        for rank in launch.ranks:
            choice = [machine for machine in self._of[rank.node] if machine.is_up] or self._of[rank.node]
            found.append(choice[rank.local % len(choice)])
        return found

    def down(self) -> frozenset[int]:
        """Nodes that have no machine that is up."""
        return frozenset(
            node for node, machines in self._of.items() if not any(machine.is_up for machine in machines)
        )

    def limits(self, in_use: Mapping[tuple[int, str], int]) -> dict[tuple[int, int], int]:
        """(node, resource) -> what there is, where that is less than the setup says.

        There is what machines that are up have, and what is `in_use` on others: it goes on, but nothing new starts there.
        """
        found = {}
        for node, machines in self._of.items():
            for index, name in enumerate(self._setup.resources):
                declared = self._setup.nodes[node].capacity_milli[index]
                has = sum(machine.capacity.get(name, 0) for machine in machines if machine.is_up)
                has += in_use.get((node, name), 0)
                if name in self._counted[node] and has < declared < UNLIMITED:
                    found[node, index] = has
        return found


def site_of(machine: Machine) -> str:
    """The site that a machine's labels name; empty: none."""
    return next((machine.labels[label] for label in SITE_LABELS if machine.labels.get(label)), "")


def _some(names: set[str]) -> str:
    listed = sorted(names)
    return ", ".join(listed[:10]) + (f" and {len(listed) - 10} more" if len(listed) > 10 else "") or "none"
