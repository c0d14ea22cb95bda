"""Changes of sites, capacities and prices of a running service, as the engine takes them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tradewind.files.messages import find
from tradewind.files.scenario_build import tariff_of
from tradewind.model.errors import InputError
from tradewind.model.setup import Setup
from tradewind.model.units import MILLI, UNLIMITED
from tradewind.service.config import Config, PricesFile
from tradewind.store.board import Row

Wanted = list[tuple[str, int, int, int]]
"""(kind, a, b, value), as in model.view.Change."""


def named(setup: Setup, wanted: Wanted) -> dict[str, float]:
    """Changes of capacities and of prices (as factors) in the words of people."""
    return {
        f"{kind} of {setup.nodes[a].name}.{setup.resources[b]}": value / MILLI for kind, a, b, value in wanted
    }


def of_site(setup: Setup, name: str, state: str | None, capacity: Mapping[str, float]) -> dict[str, Any]:
    """The request that lets a site join, drain or leave, or changes its capacity."""
    node = find(setup.node_index, name, "site", "site")
    changes: Wanted = []
    if state == "leave":
        changes.append(("node_down", node, 0, 0))
    elif state == "join":
        changes.append(("node_up", node, 0, 0))
        changes += [
            ("capacity", node, r, milli)
            for r, milli in enumerate(setup.nodes[node].capacity_milli)
            if milli < UNLIMITED and setup.resources[r] not in capacity
        ]
    for resource, units in capacity.items():
        row = find(setup.resource_index, resource, "resource", f"capacity of {name}")
        if not 0 <= units < UNLIMITED / MILLI:
            raise InputError(f"capacity of {name}.{resource} is {units}; it must be 0 or more")
        changes.append(("capacity", node, row, round(units * MILLI)))
    back = [node] if state == "join" or capacity else []
    return {"changes": changes, "drain": [node] if state == "drain" else [], "undrain": back}


def of_prices(setup: Setup, prices: PricesFile) -> Wanted:
    """Changes that put a price list into force: every tariff in thousandths of the one that the service began with."""
    changes: Wanted = []
    for name, tariffs in prices.rent.items():
        node = find(setup.node_index, name, "node", "rent")
        for resource, given in tariffs.items():
            row, where = (
                find(setup.resource_index, resource, "resource", f"rent.{name}"),
                f"rent.{name}.{resource}",
            )
            old, new = setup.rent.get((node, row)), tariff_of(given, where)
            if old is None:
                raise InputError(f"{where}: it had no price when the service began; it cannot get one now")
            ratios = {round(MILLI * b / a) if a else -1 for a, b in zip(old.usd, new.usd, strict=False)}
            if new.starts != old.starts or new.rule != old.rule or len(ratios) != 1 or -1 in ratios:
                raise InputError(
                    f"{where}: its tiers must stay where they are and change by one factor, "
                    f"from {list(old.usd)} at {list(old.starts)}"
                )
            changes.append(("price", node, row, ratios.pop()))
    return changes


def of_config(before: Config, after: Config, rows: list[Row]) -> Wanted:
    """Changes that bring sites and prices to what another CONFIG says, beside those that are so already."""
    setup, wanted = before.setup, after.setup
    place = {name: node for name, node in wanted.node_index.items() if name in setup.node_index}
    shown = {(row["node"], row["resource"]): row for row in rows}
    changes: Wanted = []
    for node in setup.hosts:
        other = place.get(setup.nodes[node].name)
        for resource, milli in enumerate(() if other is None else wanted.nodes[other].capacity_milli):
            row = shown.get((setup.nodes[node].name, setup.resources[resource]))
            if row is None or milli >= UNLIMITED:
                continue
            if row["capacity_milli"] != milli and not row["is_down"]:
                changes.append(("capacity", node, resource, milli))
            old, new = setup.rent.get((node, resource)), wanted.rent.get((other or 0, resource))
            if old is not None and new is not None and old.usd[0]:
                factor = round(MILLI * new.usd[0] / old.usd[0])
                if round(MILLI * row["price_factor"]) != factor:
                    changes.append(("price", node, resource, factor))
    return changes
