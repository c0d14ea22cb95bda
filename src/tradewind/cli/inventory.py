"""`tradewind inventory`: the machines of a cluster as the nodes of a scenario."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.table import Table

from tradewind.cli.show import number
from tradewind.cli.terminal import open_console, say
from tradewind.files import atomic, scenario_file, yaml_text
from tradewind.model.units import MILLI
from tradewind.worlds.fleets import open_engine
from tradewind.worlds.fleets.engine import Machine
from tradewind.worlds.fleets.sites import site_of

RACK_LABELS = ("rack", "topology.kubernetes.io/rack")


def command(address: str, output: Path | None, as_json: bool) -> None:
    """Print the machines of a cluster, and write a scenario without jobs."""
    engine = open_engine(address)
    try:
        machines = engine.machines()
    finally:
        engine.close()
    document = scenario(address, machines)
    if output is not None:
        atomic.write_text(output, yaml_text.dump(document))
        scenario_file.load(output)
    if as_json:
        print(json.dumps(document["nodes"], indent=1))
        return
    resources = list(dict.fromkeys(name for machine in machines for name in machine.capacity))
    table = Table("machine", "address", "site", "state", *resources)
    for each in machines:
        amounts = [number(each.capacity.get(name, 0) / MILLI) for name in resources]
        table.add_row(each.name, each.address, site_of(each), "up" if each.is_up else "down", *amounts)
    open_console().print(table)
    if output is not None:
        say(f"a scenario with these nodes and no jobs: {output}")


def scenario(name: str, machines: Sequence[Machine]) -> dict[str, Any]:
    """A scenario document: sites and racks by labels, machines that are up as servers."""
    nodes: dict[str, dict[str, Any]] = {}
    for machine in machines:
        if not machine.is_up:
            continue
        parent = site_of(machine)
        if parent:
            nodes.setdefault(parent, {"name": parent, "kind": "site"})
        rack = _first(machine.labels, RACK_LABELS)
        if rack:
            named = f"{parent}/{rack}" if parent else rack
            nodes.setdefault(named, {"name": named, "kind": "rack"} | ({"parent": parent} if parent else {}))
            parent = named
        capacity = {resource: milli / MILLI for resource, milli in machine.capacity.items()}
        nodes[machine.name] = {
            "name": machine.name, "kind": "server", **({"parent": parent} if parent else {}), "capacity": capacity,
        }  # fmt: skip
    return {
        "tradewind_scenario": 1, "name": f"inventory of {name}", "objective": "jct_mean_s", "slot_us": "60 s",
        "horizon_us": "7 d", "nodes": list(nodes.values()), "jobs": [],
    }  # fmt: skip


def _first(labels: Mapping[str, str], names: Sequence[str]) -> str:
    return next((labels[name] for name in names if labels.get(name)), "")
