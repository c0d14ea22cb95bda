"""Nodes: sites, racks, servers and switches, with their capacities."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tradewind.model.errors import ScenarioError
from tradewind.model.machine import Machine
from tradewind.model.units import UNLIMITED

NodeKind = Literal["site", "rack", "server", "switch"]
NODE_KINDS: tuple[NodeKind, ...] = ("site", "rack", "server", "switch")


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A site, rack, server or switch. What its children use counts against its own capacity too.

    parent          index of the site or rack that contains it, -1 for none
    capacity_milli  milli-units per resource (order of Setup.resources); UNLIMITED where not given
    machine         the machines that it rents out; None: workers are not tied to machines
    interruptions_per_hour  how often all its machines are expected to be taken back (spot); 0: never
    """

    name: str
    kind: NodeKind = "site"
    parent: int = -1
    capacity_milli: tuple[int, ...] = ()
    machine: Machine | None = None
    interruptions_per_hour: float = 0.0

    def __post_init__(self) -> None:
        if not self.name:
            raise ScenarioError("a node has an empty name; give every node a name")
        if self.kind not in NODE_KINDS:
            raise ScenarioError(
                f"nodes[{self.name}].kind is {self.kind!r}; allowed are {', '.join(NODE_KINDS)}"
            )
        for amount in self.capacity_milli:
            if not 0 <= amount <= UNLIMITED:  # written so that NaN fails too
                raise ScenarioError(
                    f"nodes[{self.name}].capacity is {amount / 1000:g}; it must be 0 or more. "
                    "Leave the resource out if it is unlimited."
                )
        if not 0 <= self.interruptions_per_hour < float("inf"):
            raise ScenarioError(
                f"nodes[{self.name}].interruptions_per_hour is {self.interruptions_per_hour}; "
                "it must be finite and 0 or more"
            )
        if self.interruptions_per_hour and min(self.capacity_milli, default=UNLIMITED) == UNLIMITED:
            raise ScenarioError(
                f"nodes[{self.name}] can be interrupted but has no capacity; spot machines are never unlimited. "
                "Give their number."
            )
