"""Lists as CSV text: machines, and egress between regions. What is written can be read again."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any, Final

from tradewind.model.errors import InputError
from tradewind.prices.cells import Row, Sheet, read_sheet
from tradewind.prices.listing import Egress, EgressPrice, ListedMachine, PriceList, Tier, without_twins

MOST_USD_PER_HOUR: Final = 100_000.0
MOST_USD_PER_GB: Final = 100.0
MOST: Final = 1e6
NEEDED: Final = ("cloud", "region", "machine", "gpu", "gpus", "usd_per_hour")
FURTHER: Final = ("zone", "gpu_gb", "vcpus", "memory_gb", "spot_usd_per_hour")
COLUMNS: Final = (
    "cloud", "region", "zone", "machine", "gpu", "gpus", "gpu_gb", "vcpus", "memory_gb", "usd_per_hour",
    "spot_usd_per_hour",
)  # fmt: skip
PAIR_COLUMNS: Final = ("gbps", "rtt_ms", "usd_per_gb", "filled")
"""Columns of a table of region pairs; egress and bandwidth may be in one file."""


def read_machines(text: str, where: str, *, egress: Egress, day: str = "", name: str = "") -> PriceList:
    """A list of machines from CSV text; day: its date, if the text has no `# date:` line."""
    sheet = read_sheet(text, where, NEEDED, FURTHER)
    return PriceList(
        name=name or where,
        date=sheet.date(day),
        source="; ".join(sheet.all("source")) or where,
        notes=sheet.all("note"),
        machines=without_twins(map(_machine, sheet.rows), where),
        egress=egress,
    )


def _machine(row: Row) -> ListedMachine:
    gpus = row.number("gpus", 1024)
    if gpus != int(gpus):
        raise row.error("gpus", "it must be a whole number; parts of a GPU cannot be listed")
    usd = row.number("usd_per_hour", MOST_USD_PER_HOUR)
    spot = row.maybe("spot_usd_per_hour", MOST_USD_PER_HOUR)
    return ListedMachine(
        cloud=row.name("cloud"),
        region=row.name("region"),
        zone=row.name("zone") if row.text("zone") else "",
        machine=row.name("machine"),
        gpu=row.name("gpu"),
        gpus=int(gpus),
        gpu_gb=row.maybe("gpu_gb", MOST),
        vcpus=row.maybe("vcpus", MOST),
        memory_gb=row.maybe("memory_gb", MOST),
        usd_per_hour=usd,
        spot_usd_per_hour=spot if spot is not None and spot < usd else None,
    )


def read_egress(text: str, where: str, *, day: str = "") -> Egress:
    """Egress prices from CSV text; `# tiers aws: 0 x1, 10240 x0.944` gives a cloud's tiers."""
    sheet = read_sheet(text, where, ("src", "dst", "usd_per_gb"), PAIR_COLUMNS)
    prices: dict[tuple[str, str], EgressPrice] = {}
    for row in sheet.rows:
        pair = pair_of(row)
        if row.text("filled") not in ("", "0", "1"):
            raise row.error("filled", "it must be 1 where the price is an estimate, else empty")
        price = EgressPrice(row.number("usd_per_gb", MOST_USD_PER_GB, zero=True), row.text("filled") == "1")
        if pair in prices:
            raise InputError(f"line {row.line} lists {pair[0]} to {pair[1]} again; keep one row", where=where)
        prices[pair] = price
    return Egress(
        date=sheet.date(day),
        source="; ".join(sheet.all("source")) or where,
        notes=sheet.all("note"),
        prices=prices,
        tiers=dict(_tiers(sheet)),
    )


def pair_of(row: Row) -> tuple[str, str]:
    """Two different regions as `cloud:region`."""
    src, dst = row.name("src"), row.name("dst")
    for column, place in (("src", src), ("dst", dst)):
        if place.count(":") != 1 or place.startswith(":") or place.endswith(":"):
            raise row.error(column, "write cloud:region, for example aws:us-east-1")
    if src == dst:
        raise row.error("dst", "it is the same region as src; leave the row out")
    return src, dst


def _tiers(sheet: Sheet) -> Iterable[tuple[str, tuple[Tier, ...]]]:
    for key, value in sheet.about:
        if not key.startswith("tiers "):
            continue
        try:
            tiers = tuple(
                Tier(float(start), float(factor))
                for start, factor in (part.split(" x") for part in value.split(","))
            )
            starts, factors = zip(*tiers, strict=True)
            rising = all(a < b for a, b in pairwise(starts))
            good = rising and starts[0] == 0 and factors[0] == 1 and all(0 < f <= 1 for f in factors)
        except ValueError:
            good = False
        if not good:
            raise InputError(
                f"`# {key}: {value[:80]}` is not a list of tiers; write rising volumes in GB with their factors "
                "in (0, 1], the first `0 x1`: 0 x1, 10240 x0.944",
                where=sheet.where,
            )
        yield key.removeprefix("tiers ").strip(), tiers


def machines_csv(prices: PriceList, machines: Iterable[ListedMachine] | None = None) -> str:
    """A list, or some machines of it, as CSV text with its date and source."""
    rows = ([getattr(machine, name) for name in COLUMNS] for machine in machines or prices.machines)
    return csv_text(about(prices.date, prices.source, prices.notes), COLUMNS, rows)


def about(day: str, source: str, notes: Sequence[str]) -> list[str]:
    """The lines above a table."""
    return [f"# date: {day}", f"# source: {source}", *(f"# note: {note}" for note in notes)]


def csv_text(head: Sequence[str], columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """CSV text below lines that describe it; whole numbers without a point, None as an empty cell."""
    out = io.StringIO()
    out.writelines(f"{line}\n" for line in head)
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([_cell(cell) for cell in row] for row in rows)
    return out.getvalue()


def _cell(value: Any) -> Any:
    return int(value) if isinstance(value, float) and value.is_integer() else value
