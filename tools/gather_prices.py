"""Makes the built-in tables of prices and region pairs from two files with collected facts.

    python tools/gather_prices.py GPU_INSTANCES.csv REGION_PAIRS.csv

The first has the columns cloud, region, instance, gpu, gpus, vcpus, mem_gib, usd_per_hour, spot_usd_per_hour_min; the
second src, dst, gbps_median, rtt_ms, usd_per_gb. Egress prices that are missing are filled with the median of the
source's prices to the same cloud, or, where it has none, with that of its cloud, and marked.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from pathlib import Path
from statistics import median_low

from tradewind.prices.cells import Row, read_sheet
from tradewind.prices.gather import Published, listed
from tradewind.prices.table import COLUMNS, MOST, MOST_USD_PER_HOUR, about, csv_text

DATA = Path(__file__).parents[1] / "src" / "tradewind" / "prices" / "data"
MACHINE_COLUMNS = (
    "cloud", "region", "instance", "gpu", "gpus", "vcpus", "mem_gib", "usd_per_hour", "spot_usd_per_hour_min",
)  # fmt: skip
PRICES_OF, PAIRS_OF = "2026-08", "2022"
CORRECTED = "Standard_ND96isr_H100_v5 of Azure is published with 12 GPUs; it has 8, and is listed so"
AZURE = "prices of Azure are known for regions of the United States only"
JOINED = (
    "GCP: host and GPU prices added; T4, P4, P100, V100 on n1-standard hosts with 4 vCPUs per GPU; "
    "a3-megagpu is listed as H100"
)
SPOT = (
    "spot is the lowest price seen, not one to rely on; empty where there is none below the price on demand"
)
TIERS = "# tiers aws: 0 x1, 10240 x0.944, 51200 x0.778, 153600 x0.556"
NO_TIERS = (
    "volume tiers to other clouds are listed for AWS only; elsewhere every GB counts at the first price"
)


def machines(text: str) -> str:
    """The table of machines."""
    rows = read_sheet(text, "machines", MACHINE_COLUMNS, ()).rows
    found, notes = listed(map(_published, rows))
    head = about(
        PRICES_OF,
        "public list prices of AWS, Google Cloud and Azure, Linux, collected in August 2026",
        (SPOT, JOINED, CORRECTED, AZURE, *notes),
    )
    return csv_text(head, COLUMNS, ([getattr(each, name) for name in COLUMNS] for each in found))


def _published(row: Row) -> Published:
    return Published(
        cloud=row.name("cloud"),
        region=row.name("region"),
        machine=row.text("instance"),
        gpu=row.text("gpu"),
        gpus=row.maybe("gpus", 1e5),
        vcpus=row.maybe("vcpus", MOST),
        memory_gb=row.maybe("mem_gib", MOST),
        usd_per_hour=row.maybe("usd_per_hour", 10 * MOST_USD_PER_HOUR),
        spot_usd_per_hour=row.maybe("spot_usd_per_hour_min", 10 * MOST_USD_PER_HOUR),
    )


def pairs(text: str) -> str:
    """The table of region pairs."""
    rows = read_sheet(text, "pairs", ("src", "dst", "gbps_median", "rtt_ms", "usd_per_gb"), ()).rows
    by_source: dict[tuple[str, str], list[float]] = defaultdict(list)
    by_cloud: dict[tuple[str, str], list[float]] = defaultdict(list)
    for row in rows:
        usd = row.maybe("usd_per_gb", 10)
        if usd is not None:
            by_source[row.text("src"), _cloud(row.text("dst"))].append(usd)
            by_cloud[_cloud(row.text("src")), _cloud(row.text("dst"))].append(usd)
    out, filled = [], 0
    for row in rows:
        src, dst = row.text("src"), row.text("dst")
        if src == dst:
            continue
        usd = row.maybe("usd_per_gb", 10)
        filled += usd is None
        known = by_source[src, _cloud(dst)] or by_cloud[_cloud(src), _cloud(dst)]
        out.append(
            (_region(src), _region(dst), round(row.number("gbps_median", 1e4), 3), _rounded(row.maybe("rtt_ms", 1e5)),
             median_low(known) if usd is None else usd, 1 if usd is None else None)
        )  # fmt: skip
    notes = (
        f"{filled} egress prices are not published and were filled: the median of the source's prices to that cloud, "
        "else of its cloud's; column filled is 1",
        NO_TIERS,
        "bandwidth: median of measured throughput; Google Cloud was measured in one zone of each region",
    )
    head = [
        *about(PAIRS_OF, "published measurements and egress prices between cloud regions, 2022", notes),
        TIERS,
    ]
    return csv_text(head, ("src", "dst", "gbps", "rtt_ms", "usd_per_gb", "filled"), sorted(out))


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 1)


def _cloud(place: str) -> str:
    return place.partition(":")[0]


def _region(place: str) -> str:
    """`gcp:us-east1-b` -> `gcp:us-east1`: Google Cloud's regions were measured in a zone."""
    return place.rpartition("-")[0] if place.startswith("gcp:") else place


def main(instances: str, region_pairs: str) -> None:
    """Write both tables."""
    for name, text in (
        ("machines.csv", machines(Path(instances).read_text(encoding="utf-8"))),
        ("pairs.csv", pairs(Path(region_pairs).read_text(encoding="utf-8"))),
    ):
        (DATA / name).write_text(text, encoding="utf-8")
        print(f"{DATA / name}: {len(text):,} bytes")


if __name__ == "__main__":
    main(*sys.argv[1:])
