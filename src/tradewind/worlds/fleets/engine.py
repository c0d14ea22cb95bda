"""Engines: cluster managers that start programs on machines. `shared.SharedFleet` makes a fleet of any of them.

An engine is trusted with little: it starts one program per rank where it is told and names its machines. Whether a rank
runs, and how it ended, is known from files that supervisors write (worlds.fleets.shared).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol, runtime_checkable

from tradewind.model.errors import TradewindError


class EngineUnreachable(TradewindError):
    """The engine did not answer. That says nothing about what it runs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """A machine of an engine.

    address   where other machines reach its programs; empty: each of them has an address of its own
    capacity  what it has, by resource, in thousandths: cpu, gpu, memory_gb, and what else the engine counts
    labels    what its administrator says about it, such as its site, zone or rack
    is_up     whether it takes programs
    """

    name: str
    address: str
    capacity: Mapping[str, int] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    is_up: bool = True


class EngineTask(NamedTuple):
    """One rank: the machine on which it runs, its program, and what it needs in thousandths of each resource."""

    machine: str
    argv: tuple[str, ...]
    demand: tuple[tuple[str, int], ...] = ()


class EngineGang(NamedTuple):
    """All ranks of a launch, in rank order. The name is unique and says to which run it belongs; tenant: of its job."""

    name: str
    tasks: tuple[EngineTask, ...]
    folder: str
    tenant: str = ""


class Engine(Protocol):
    """Calls may take seconds and may raise EngineUnreachable; they are made by one thread at a time."""

    @property
    def name(self) -> str:
        """What runs call it: slurm, ray, kubernetes."""

    def machines(self) -> Sequence[Machine]:
        """All machines, in the order of their names."""

    def start(self, gang: EngineGang) -> None:
        """Start a gang, together. Starting it twice is allowed: programs of ranks that were started before end at once."""

    def gangs(self, prefix: str) -> Mapping[str, Collection[int] | None]:
        """The gangs with this prefix that it has, by name, and the ranks of each that wait or run; None: all of them."""

    def cancel(self, name: str) -> None:
        """Remove a gang; nothing happens if it is over."""

    def close(self) -> None:
        """Let go of it; what it runs goes on."""


@runtime_checkable
class Explains(Protocol):
    """An engine that can say why gangs wait."""

    def waiting(self, prefix: str) -> Mapping[str, str]:
        """Gangs with this prefix that it has not started, and why."""
