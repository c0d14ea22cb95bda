"""Reads the tables of SkyPilot's catalogue and of gpuhunt: one file per cloud, in their own columns."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final

from tradewind.model.errors import InputError
from tradewind.prices.cells import Row, first_day, read_sheet
from tradewind.prices.gather import GPU_GB, Published, listed
from tradewind.prices.listing import Egress, PriceList
from tradewind.prices.table import MOST, MOST_USD_PER_HOUR

SKYPILOT: Final = (
    "InstanceType", "AcceleratorName", "AcceleratorCount", "vCPUs", "MemoryGiB", "Price", "SpotPrice", "Region",
)  # fmt: skip
GPUHUNT: Final = (
    "instance_name", "location", "price", "cpu", "memory", "gpu_count", "gpu_name", "gpu_memory", "spot",
)  # fmt: skip
_GPU_MIB = re.compile(r"'SizeInMiB': ([0-9.]+)")


def read_foreign(text: str, where: str, *, form: str, cloud: str, day: str, egress: Egress) -> PriceList:
    """A list from another catalogue's file; form: skypilot or gpuhunt."""
    rows = _READERS[form](text, where, cloud)
    machines, notes = listed(rows)
    if not machines:
        raise InputError(f"has no machine with a GPU and a price ({'; '.join(notes)})", where=where)
    if not day:
        raise InputError(
            "files of this catalogue have no date; give the day they were made with --date", where=where
        )
    first_day(day, "--date")
    return PriceList(
        name=where,
        date=day,
        source=f"{form} catalogue of {cloud}",
        notes=notes,
        machines=machines,
        egress=egress,
    )


def _skypilot(text: str, where: str, cloud: str) -> list[Published]:
    return [
        Published(
            cloud=cloud,
            region=row.name("Region"),
            machine=row.text("InstanceType"),
            gpu=row.text("AcceleratorName"),
            gpus=row.maybe("AcceleratorCount", MOST),
            gpu_gb=_gpu_gb(row),
            vcpus=row.maybe("vCPUs", MOST, zero=True),
            memory_gb=row.maybe("MemoryGiB", MOST, zero=True),
            usd_per_hour=row.maybe("Price", MOST_USD_PER_HOUR),
            spot_usd_per_hour=row.maybe("SpotPrice", MOST_USD_PER_HOUR, zero=True),
        )
        for row in read_sheet(text, where, SKYPILOT, None).rows
    ]


def _gpu_gb(row: Row) -> float | None:
    """Memory of a GPU: what is known of the type, else `GpuInfo` (some of whose files count GiB under MiB)."""
    known = GPU_GB.get(row.text("AcceleratorName"))
    match = _GPU_MIB.search(row.text("GpuInfo"))
    if known or match is None:
        return known
    size = float(match.group(1))
    return round(size / 1024, 1) if size >= 1024 else size or None


def _gpuhunt(text: str, where: str, cloud: str) -> list[Published]:
    """Prices on demand and spot are rows of their own and joined here."""
    found: dict[tuple[str, str], dict[bool, Row]] = {}
    for row in read_sheet(text, where, GPUHUNT, None).rows:
        spot = row.text("spot").lower()
        if spot not in ("true", "false"):
            raise row.error("spot", "it must be True or False")
        if row.text("gpu_count") not in ("", "0"):
            key = (row.name("location"), row.name("instance_name"))
            kept = found.setdefault(key, {}).setdefault(spot == "true", row)
            if row.number("price", MOST_USD_PER_HOUR) < kept.number("price", MOST_USD_PER_HOUR):
                found[key][spot == "true"] = row
    return [_offer(cloud, region, machine, rows) for (region, machine), rows in found.items()]


def _offer(cloud: str, region: str, machine: str, rows: Mapping[bool, Row]) -> Published:
    row = rows.get(False) or rows[True]
    vendor = row.text("gpu_vendor") or "nvidia"
    name = row.text("gpu_name")
    memory = row.maybe("gpu_memory", MOST)
    if name in ("A100", "V100") and memory and memory > GPU_GB[name]:
        name = f"{name}-{memory:.0f}GB"
    return Published(
        cloud=cloud,
        region=region,
        machine=machine,
        gpu=name if vendor in ("nvidia", "amd") else f"tpu-{name}",
        gpus=row.maybe("gpu_count", MOST),
        gpu_gb=memory,
        vcpus=row.maybe("cpu", MOST, zero=True),
        memory_gb=row.maybe("memory", MOST, zero=True),
        usd_per_hour=rows[False].number("price", MOST_USD_PER_HOUR) if False in rows else None,
        spot_usd_per_hour=rows[True].number("price", MOST_USD_PER_HOUR) if True in rows else None,
    )


_READERS: Final[Mapping[str, Callable[[str, str, str], list[Published]]]] = {
    "skypilot": _skypilot,
    "gpuhunt": _gpuhunt,
}
FORMS: Final = tuple(_READERS)
