"""Makes a list of rows as providers and catalogues publish them: joins, corrects, drops, and says what it did.

- Google Cloud publishes hosts and GPUs apart: they are added by machine type. T4, P4, P100 and V100 are attached to
  n1-standard hosts with 4 vCPUs per GPU, one of many possible hosts.
- Zones of a region become one row: on demand the lowest price, spot the lowest seen.
- A spot price that is missing, 0, or not below the price on demand is none.
- Parts of a GPU, accelerators that are no GPUs, and machines without a price are left out and counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from tradewind.prices.listing import ListedMachine

GPU_GB: Final[Mapping[str, float]] = {
    "A10": 24, "A100": 40, "A100-80GB": 80, "A10G": 24, "B200": 180, "B300": 288, "H100": 80, "H200": 141, "K80": 12,
    "L4": 24, "L40S": 48, "M60": 8, "P100": 16, "P4": 8, "RTXPRO4500": 32, "RTXPRO6000": 96, "Radeon MI25": 16,
    "Radeon Pro V520": 8, "T4": 16, "T4g": 16, "V100": 16, "V100-32GB": 32,
}  # fmt: skip
"""Memory of a GPU in GB, for sources that do not say it."""
ALIASES: Final[Mapping[str, str]] = {
    "RTX PRO Server 6000": "RTXPRO6000", "RTX PRO 4500": "RTXPRO4500", "H100-MEGA": "H100", "MI25": "Radeon MI25",
}  # fmt: skip
NO_GPU: Final = ("tpu", "Inferentia", "Trainium", "Qualcomm", "Virtex", "Gaudi", "Xilinx", "Alveo")
GPUS_OF: Final[Mapping[str, float]] = {
    "Standard_ND96isr_H100_v5": 8, "Standard_NV4as_v4": 0.125, "Standard_NV8as_v4": 0.25, "Standard_NV16as_v4": 0.5,
}  # fmt: skip
"""Machines whose number of GPUs catalogues get wrong (12 for the first, 1 for the others)."""
GCP_GPU: Final[Mapping[str, str]] = {
    "a2-highgpu": "A100", "a2-megagpu": "A100", "a2-ultragpu": "A100-80GB", "a3-highgpu": "H100", "a3-megagpu": "H100-MEGA",
    "a3-ultragpu": "H200", "a4-highgpu": "B200",
}  # fmt: skip
G2_GPUS: Final[Mapping[str, int]] = {"4": 1, "8": 1, "12": 1, "16": 1, "32": 1, "24": 2, "48": 4, "96": 8}
ATTACHED: Final = ("T4", "P4", "P100", "V100")
HOST_VCPUS_PER_GPU: Final = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """A row as it was published; None where it says nothing."""

    cloud: str
    region: str
    machine: str
    gpu: str
    gpus: float | None
    gpu_gb: float | None = None
    vcpus: float | None
    memory_gb: float | None
    usd_per_hour: float | None
    spot_usd_per_hour: float | None


def listed(rows: Iterable[Published]) -> tuple[tuple[ListedMachine, ...], tuple[str, ...]]:
    """The machines of published rows, and notes on what was joined, corrected and left out."""
    dropped: Counter[str] = Counter()
    found: dict[tuple[str, str, str], ListedMachine] = {}
    google: list[Published] = []
    others: list[Published] = []
    for row in rows:
        (google if row.cloud == "gcp" else others).append(row)
    for row in (*others, *_joined(google, dropped)):
        if why := _why_not(row):
            dropped[why] += 1
            continue
        machine = _machine(row)
        key = (machine.cloud, machine.region, machine.machine)
        found[key] = _cheaper(found[key], machine) if key in found else machine
    notes = [
        f"{count} {'row' if count == 1 else 'rows'} left out: {why}" for why, count in sorted(dropped.items())
    ]
    return tuple(found[key] for key in sorted(found)), tuple(notes)


def _why_not(row: Published) -> str:
    gpus = GPUS_OF.get(row.machine, row.gpus)
    if not row.gpu or not gpus:
        return "no GPU"
    if row.gpu.startswith(NO_GPU):
        return "an accelerator that is no GPU"
    if gpus != int(gpus):
        return "a part of a GPU"
    return "" if row.usd_per_hour else "no price on demand"


def _machine(row: Published) -> ListedMachine:
    gpu = ALIASES.get(row.gpu, row.gpu)
    usd, spot = row.usd_per_hour or 0.0, row.spot_usd_per_hour
    return ListedMachine(
        cloud=row.cloud,
        region=row.region,
        machine=row.machine,
        gpu=gpu,
        gpus=int(GPUS_OF.get(row.machine, row.gpus or 0)),
        gpu_gb=row.gpu_gb or GPU_GB.get(gpu),
        vcpus=row.vcpus,
        memory_gb=row.memory_gb,
        usd_per_hour=usd,
        spot_usd_per_hour=spot if spot and spot < usd else None,
    )


def _cheaper(a: ListedMachine, b: ListedMachine) -> ListedMachine:
    """One row of two zones of a region."""
    spots = [spot for each in (a, b) if (spot := each.spot_usd_per_hour) is not None]
    usd = min(a.usd_per_hour, b.usd_per_hour)
    spot = min(spots, default=None)
    return replace(a, usd_per_hour=usd, spot_usd_per_hour=spot if spot is None or spot < usd else None)


def _joined(rows: Iterable[Published], dropped: Counter[str]) -> Iterable[Published]:
    """Google Cloud's hosts with the GPUs of their region; rows that have both are kept."""
    hosts: dict[tuple[str, str], Published] = {}
    gpus: dict[tuple[str, str, int], Published] = {}
    for row in rows:
        if row.machine and row.gpu:
            yield row
        elif row.machine:
            hosts[row.region, row.machine] = row
        elif row.gpus == int(row.gpus or 0):
            gpus[row.region, row.gpu, int(row.gpus or 0)] = row
    used = set()
    for (region, name), host in sorted(hosts.items()):
        gpu, count = _gpu_of(name)
        if gpu and (region, gpu, count) in gpus:
            used.add((region, gpu, count))
            yield _sum(host, gpus[region, gpu, count], name)
        elif gpu:
            dropped[f"GCP host whose GPU has no price in its region ({gpu})"] += 1
    for (region, gpu, count), row in sorted(gpus.items()):
        named = f"n1-standard-{HOST_VCPUS_PER_GPU * count}"
        if gpu in ATTACHED and (region, named) in hosts:
            yield _sum(hosts[region, named], row, f"{named}+{count}x{gpu}")
        elif (region, gpu, count) not in used:
            what = (
                "an accelerator that is no GPU"
                if gpu.startswith(NO_GPU)
                else f"GCP GPU without a host ({gpu})"
            )
            dropped[what] += 1


def _gpu_of(host: str) -> tuple[str, int]:
    """GPU type and number of a Google Cloud machine type; ("", 0) for one without."""
    family, _, size = host.rpartition("-")
    if family == "g2-standard" and size in G2_GPUS:
        return "L4", G2_GPUS[size]
    if family in GCP_GPU and size.endswith("g") and size[:-1].isdecimal():
        return GCP_GPU[family], int(size[:-1])
    return "", 0


def _sum(host: Published, gpu: Published, name: str) -> Published:
    def add(a: float | None, b: float | None) -> float | None:
        return None if a is None or b is None else round(a + b, 5)

    return replace(
        host,
        machine=name,
        gpu=gpu.gpu,
        gpus=gpu.gpus,
        gpu_gb=gpu.gpu_gb,
        usd_per_hour=add(host.usd_per_hour, gpu.usd_per_hour),
        spot_usd_per_hour=add(host.spot_usd_per_hour, gpu.spot_usd_per_hour),
    )
