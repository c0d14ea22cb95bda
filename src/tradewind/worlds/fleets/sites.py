"""Which machines of an engine are which nodes of a scenario."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tradewind.model.errors import InputError
from tradewind.model.setup import Setup
from tradewind.worlds.fleet import Launch
from tradewind.worlds.fleets.engine import Machine

SITE_LABELS = ("site", "topology.kubernetes.io/zone")
"""Labels by which a machine is found where no file says what it is."""


class Sites:
    """Nodes of a setup and their machines: by a table (node -> machines), else by name, else by the machine's label."""

    def __init__(self, setup: Setup, table: Mapping[str, Sequence[str]], machines: Sequence[Machine]) -> None:
        known = {machine.name for machine in machines}
        self._machines: dict[int, tuple[str, ...]] = {}
        for index in setup.hosts:
            name = setup.nodes[index].name
            labelled = [machine.name for machine in machines if site_of(machine) == name]
            found = tuple(table.get(name, [name] if name in known else labelled))
            if missing := sorted(set(found) - known):
                raise InputError(
                    f"node {name!r} is mapped to {', '.join(missing)}, which the cluster does not have; it has "
                    f"{_some(known)}"
                )
            if not found:
                raise InputError(
                    f"no machine of the cluster is node {name!r}: none has this name or the label {SITE_LABELS[0]}={name}; "
                    f"the cluster has {_some(known)}. Name nodes after machines, or map them with --sites FILE"
                )
            self._machines[index] = found
        self._last: dict[str, Machine] = {machine.name: machine for machine in machines}

    def place(self, launch: Launch, machines: Sequence[Machine]) -> list[Machine]:
        """A machine for every rank: those of a node in turn, as long as they are up."""
        self._last |= {machine.name: machine for machine in machines}
        found = []
        for rank in launch.ranks:
            all_of_it = [self._last[name] for name in self._machines[rank.node]]
            choice = [machine for machine in all_of_it if machine.is_up] or all_of_it
            found.append(choice[rank.local % len(choice)])
        return found

    def down(self, machines: Sequence[Machine]) -> frozenset[int]:
        """Nodes that have no machine that is up."""
        up = {machine.name for machine in machines if machine.is_up}
        return frozenset(node for node, names in self._machines.items() if up.isdisjoint(names))


def site_of(machine: Machine) -> str:
    """The site that a machine's labels name; empty: none."""
    return next((machine.labels[label] for label in SITE_LABELS if machine.labels.get(label)), "")


def _some(names: set[str]) -> str:
    listed = sorted(names)
    return ", ".join(listed[:10]) + (f" and {len(listed) - 10} more" if len(listed) > 10 else "") or "none"
