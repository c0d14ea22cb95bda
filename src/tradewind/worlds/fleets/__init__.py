"""Fleets: where ranks run (protocol: tradewind.worlds.fleet), by the address that users write.

processes            processes of this machine
slurm                the Slurm cluster that this machine is configured for
NAME[:ADDRESS]       an engine that a package registers (entry points tradewind.fleets)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from tradewind.model.setup import Setup
from tradewind.registry import fleets
from tradewind.worlds.fleet import Fleet
from tradewind.worlds.fleets.engine import Engine
from tradewind.worlds.fleets.processes.fleet import ProcessFleet
from tradewind.worlds.fleets.processes.launch import ExecutionOptions
from tradewind.worlds.fleets.shared import SharedFleet

PROCESSES = "processes"


def open_engine(address: str) -> Engine:
    """The engine of an address."""
    name, _, rest = address.partition(":")
    engine: Engine = fleets.find(name)(rest.removeprefix("//"))
    return engine


def open_fleet(
    address: str, state: Path, setup: Setup, options: ExecutionOptions, token: str,
    table: Mapping[str, Sequence[str]],
) -> Fleet:  # fmt: skip
    """The fleet of an address. token: marks everything of a run; table: node -> machines of a cluster."""
    if address == PROCESSES:
        return ProcessFleet(state, setup, options, token)
    return SharedFleet(state, setup, options, token, open_engine(address), table)
