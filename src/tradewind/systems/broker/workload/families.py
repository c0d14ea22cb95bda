"""The families of markets: what each draws, and its sizes."""

from __future__ import annotations

from typing import NamedTuple

SMALL_TYPES = ("T4", "L4", "V100", "A100")
ALL_TYPES = ("T4", "L4", "A10", "A10G", "V100", "L40S", "A100", "A100-80GB", "H100", "H200")
SPEED = {
    "T4": 0.35, "L4": 0.6, "A10": 0.7, "A10G": 0.7, "V100": 1.0, "L40S": 1.6, "A100": 2.2, "A100-80GB": 2.4, "H100": 4.5,
    "H200": 5.0,
}  # fmt: skip
MEMORY_GB = {
    "T4": 16, "L4": 24, "A10": 24, "A10G": 24, "V100": 16, "L40S": 48, "A100": 40, "A100-80GB": 80, "H100": 80, "H200": 141,
}  # fmt: skip
FAST_BUS = frozenset(("V100", "A100", "A100-80GB", "H100", "H200"))


class Family(NamedTuple):
    """A family of markets.

    regions, slots, types   how many regions (0: all), hours, GPU types
    data_gb                 log-uniform range of a job's data
    alike                   prices are those of one region, times U[1 - alike, 1 + alike]; 0: real ones
    pool                    slot (per offer), region or cloud (per month), or "": tiers at `starts` USD x jobs, `rates`
    egress_tiers, capacity, spot   monthly egress tiers per source region; scarce machines; spot offers
    slack                   range of slack of deadlines
    """

    about: str
    regions: int = 8
    slots: int = 72
    types: tuple[str, ...] = SMALL_TYPES
    data_gb: tuple[float, float] = (10.0, 500.0)
    alike: float = 0.0
    pool: str = ""
    starts: tuple[float, float] = (0.0, 0.0)
    rates: tuple[float, float, float] = (1.0, 0.85, 0.7)
    egress_tiers: bool = False
    capacity: bool = False
    spot: bool = False
    slack: tuple[float, float] = (1.5, 5.0)


_REAL = Family(
    "real prices of all regions, spot, a discount per cloud and month, egress tiers, residency",
    regions=0, slots=168, types=ALL_TYPES, data_gb=(10.0, 5000.0), pool="cloud", starts=(4.0, 16.0), egress_tiers=True,
    spot=True,
)  # fmt: skip
FAMILIES: dict[str, Family] = {
    "A": Family("list prices of 12 regions; every job alone is optimal", regions=12),
    "Bs": Family(
        "discounts per offer and slot, prices within 5%", data_gb=(10.0, 200.0), alike=0.05, pool="slot",
        rates=(1.0, 0.8, 0.6),
    ),
    "Bm": Family("discounts per region and month", data_gb=(10.0, 200.0), pool="region", starts=(6.0, 24.0)),
    "Bt": Family(
        "the same with prices within 1% and one part of data", data_gb=(0.0, 0.0), alike=0.01, pool="region",
        starts=(18.0, 36.0),
    ),
    "C": Family("large data, monthly egress tiers", regions=16, data_gb=(2000.0, 50_000.0), egress_tiers=True),
    "D": Family("scarce machines, half of the jobs may pause", capacity=True, slack=(1.2, 2.5)),
    "E": Family("spot with capacity, price paths and interruptions", regions=12, spot=True),
    "F": _REAL,
    "Fo": _REAL._replace(about="F without spot", spot=False),
}  # fmt: skip
