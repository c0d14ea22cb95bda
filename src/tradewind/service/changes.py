"""Changes of sites, capacities and prices of a running service, as the engine takes them."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from tradewind.files.messages import find
from tradewind.files.scalars import MOST_UNITS
from tradewind.files.scenario_build import tariff_of
from tradewind.model.errors import InputError
from tradewind.model.setup import Setup
from tradewind.model.tariff import Tariff
from tradewind.model.units import MILLI, UNLIMITED, to_milli
from tradewind.service.config import Config, PricesFile
from tradewind.store.board import Row

Wanted = list[tuple[str, int, int, int, int]]
"""(kind, a, b, value, of), as in model.view.Change."""
FINEST = 10**9
"""Largest denominator of a price over the one that the service began with."""


def named(setup: Setup, wanted: Wanted) -> dict[str, float]:
    """Changes of capacities and of prices (as factors) in the words of people."""
    return {
        f"{kind} of {setup.nodes[a].name}.{setup.resources[b]}": value / of
        for kind, a, b, value, of in wanted
    }


def of_site(setup: Setup, name: str, state: str | None, capacity: Mapping[str, float]) -> dict[str, Any]:
    """The request that lets a site join, drain or leave, or changes its capacity."""
    node = find(setup.node_index, name, "site", "site")
    changes: Wanted = []
    if state == "leave":
        changes.append(("node_down", node, 0, 0, MILLI))
    elif state == "join":
        changes.append(("node_up", node, 0, 0, MILLI))
        changes += [
            ("capacity", node, r, milli, MILLI)
            for r, milli in enumerate(setup.nodes[node].capacity_milli)
            if milli < UNLIMITED and setup.resources[r] not in capacity
        ]
    for resource, units in capacity.items():
        row = find(setup.resource_index, resource, "resource", f"capacity of {name}")
        if not 0 <= units < UNLIMITED / MILLI:
            raise InputError(f"capacity of {name}.{resource} is {units}; it must be 0 or more")
        try:
            milli = to_milli(units)
        except ValueError as error:
            raise InputError(f"capacity of {name}.{resource}: {error}") from None
        changes.append(("capacity", node, row, milli, MILLI))
    back = [node] if state == "join" or capacity else []
    return {"changes": changes, "drain": [node] if state == "drain" else [], "undrain": back}


def of_prices(setup: Setup, prices: PricesFile) -> Wanted:
    """Changes that put a price list into force."""
    changes: Wanted = []
    for name, tariffs in prices.rent.items():
        node = find(setup.node_index, name, "node", "rent")
        for resource, given in tariffs.items():
            where = f"rent.{name}.{resource}"
            row = find(setup.resource_index, resource, "resource", f"rent.{name}")
            old = setup.rent.get((node, row))
            if old is None:
                raise InputError(f"{where}: it had no price when the service began; it cannot get one now")
            changes.append(("price", node, row, *_ratio(old, tariff_of(given, where), where)))
    return changes


def _ratio(old: Tariff, new: Tariff, where: str) -> tuple[int, int]:
    """A price over the one that the service began with, as two whole numbers; InputError if tiers change otherwise."""
    if old == new:
        return MILLI, MILLI
    if new.times(1) != new:
        raise InputError(f"{where} is {list(new.usd)}; prices have at most nine decimals")
    ratio = Fraction(str(new.usd[0])) / Fraction(str(old.usd[0])) if old.usd[0] else Fraction(-1)
    ratio = ratio.limit_denominator(FINEST)
    if ratio < 0 or old.times(float(ratio)) != new:
        wanted = "" if ratio < 0 else f", here to {list(old.times(float(ratio)).usd)}"
        raise InputError(
            f"{where}: its tiers must stay where they are and change by one factor from {list(old.usd)} at "
            f"{list(old.starts)}{wanted}"
        )
    if ratio.numerator > MOST_UNITS:
        raise InputError(
            f"{where}: {new.usd[0]:g} USD is too many times the {old.usd[0]:g} that the service began with"
        )
    whole = 1 if MILLI % ratio.denominator == 0 else ratio.denominator
    return int(ratio * whole * MILLI), whole * MILLI


def of_config(before: Config, after: Config, rows: list[Row]) -> Wanted:
    """Changes that bring sites and prices to what another CONFIG says, beside those that are so already."""
    setup, wanted = before.setup, after.setup
    place = {name: node for name, node in wanted.node_index.items() if name in setup.node_index}
    shown = {(row["node"], row["resource"]): row for row in rows}
    changes: Wanted = []
    for node in setup.hosts:
        other = place.get(setup.nodes[node].name)
        for resource, milli in enumerate(() if other is None else wanted.nodes[other].capacity_milli):
            row = shown.get((setup.nodes[node].name, setup.resources[resource]), {})
            if row.get("capacity_milli", UNLIMITED) != milli and not row.get("is_down"):
                changes.append(("capacity", node, resource, milli, MILLI))
    for (node, resource), old in setup.rent.items():
        names = setup.nodes[node].name, setup.resources[resource]
        if names[0] in place and (new := wanted.rent.get((place[names[0]], resource))) is not None:
            value, of = _ratio(old, new, f"rent.{names[0]}.{names[1]}")
            if shown[names]["price_factor"] != value / of:
                changes.append(("price", node, resource, value, of))
    return changes
