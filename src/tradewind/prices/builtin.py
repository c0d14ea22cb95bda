"""The lists that are built in: machines of AWS, Azure and Google Cloud, and region pairs with egress and bandwidth."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import resources

from tradewind.prices.cells import read_sheet
from tradewind.prices.listing import Egress, PriceList
from tradewind.prices.table import read_egress, read_machines

CATALOGUE = "catalogue"
"""The name of the built-in list."""


@cache
def catalogue() -> PriceList:
    """The built-in list of machines and egress prices."""
    return read_machines(built_in("machines.csv"), "machines.csv", egress=egress(), name=CATALOGUE)


@cache
def egress() -> Egress:
    """The built-in egress prices."""
    return read_egress(built_in("pairs.csv"), "pairs.csv")


@cache
def positions() -> Mapping[str, tuple[float, float]]:
    """Latitude and longitude of regions, by `cloud:region`."""
    sheet = read_sheet(
        built_in("positions.csv"), "positions.csv", ("place", "latitude", "longitude", "near"), ()
    )
    return {
        row.name("place"): (float(row.text("latitude")), float(row.text("longitude"))) for row in sheet.rows
    }


def built_in(name: str) -> str:
    """The text of a built-in table."""
    return resources.files("tradewind.prices").joinpath("data", name).read_text(encoding="utf-8")
