"""The nouns: a machine with its prices, egress between regions, and a dated list of both with a hash."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import astuple, dataclass, field
from datetime import date as Day
from functools import cached_property
from typing import Final, NamedTuple

from tradewind.model.errors import InputError
from tradewind.prices.cells import first_day

STALE_DAYS: Final = 90
"""A list older than this is worth a warning."""


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class ListedMachine:
    """A machine type in a region. Prices are USD per machine-hour; spot is the lowest seen, None where there is none."""

    cloud: str
    region: str
    zone: str = ""
    machine: str
    gpu: str
    gpus: int
    gpu_gb: float | None = None
    vcpus: float | None = None
    memory_gb: float | None = None
    usd_per_hour: float
    spot_usd_per_hour: float | None = None

    @property
    def place(self) -> str:
        """`cloud:region`, the name under which egress and bandwidth are known."""
        return f"{self.cloud}:{self.region}"

    @property
    def key(self) -> tuple[str, str, str, str]:
        """What is unique in a list."""
        return self.cloud, self.region, self.zone, self.machine

    def usd_per_gpu_hour(self, *, spot: bool = False) -> float:
        """The price of one GPU; of spot only where there is a spot price."""
        usd = self.spot_usd_per_hour if spot else self.usd_per_hour
        if usd is None:
            raise ValueError(f"{self.machine} in {self.place} has no spot price")
        return usd / self.gpus


class EgressPrice(NamedTuple):
    """USD per GB from one region to another; filled: not listed, but estimated by the rule in the notes."""

    usd_per_gb: float
    filled: bool = False


class Tier(NamedTuple):
    """From this volume per source region and month on, a GB to another cloud costs `factor` times the list price."""

    from_gb: float
    factor: float


@dataclass(frozen=True, kw_only=True)
class Egress:
    """A dated table of egress prices between regions."""

    date: str
    source: str
    notes: tuple[str, ...] = ()
    prices: Mapping[tuple[str, str], EgressPrice]
    tiers: Mapping[str, tuple[Tier, ...]] = field(default_factory=dict)

    def price(self, src: str, dst: str) -> EgressPrice:
        """The price of a pair, 0 within a region; raises an error that names a pair that is not known."""
        if src == dst:
            return EgressPrice(0.0)
        found = self.prices.get((src, dst))
        if found is None:
            raise InputError(
                f"no egress price is known from {src} to {dst}; add the pair to a CSV file with the columns "
                "src, dst, usd_per_gb and give it with --egress"
            )
        return found

    @cached_property
    def places(self) -> frozenset[str]:
        """All regions of the table."""
        return frozenset(place for pair in self.prices for place in pair)


@dataclass(frozen=True, kw_only=True)
class PriceList:
    """A dated list of machines, and the egress prices that go with it."""

    name: str
    date: str
    source: str
    notes: tuple[str, ...] = ()
    machines: tuple[ListedMachine, ...]
    egress: Egress

    @cached_property
    def hash(self) -> str:
        """sha256 (64 hex digits) over machines, egress prices and tiers; names, dates and order do not count."""
        digest = hashlib.sha256()
        for each in (
            *sorted((astuple(machine) for machine in self.machines), key=json.dumps),
            *sorted((*pair, *price) for pair, price in self.egress.prices.items()),
            *sorted((cloud, *tiers) for cloud, tiers in self.egress.tiers.items()),
        ):
            digest.update(json.dumps(each, allow_nan=False).encode() + b"\n")
        return digest.hexdigest()

    @cached_property
    def gpus(self) -> tuple[str, ...]:
        """The GPU types of the list, sorted."""
        return tuple(sorted({machine.gpu for machine in self.machines}))

    @cached_property
    def places(self) -> tuple[str, ...]:
        """The regions of the list, sorted, as `cloud:region`."""
        return tuple(sorted({machine.place for machine in self.machines}))

    def stale(self, today: Day, after_days: int = STALE_DAYS) -> tuple[str, ...]:
        """A sentence for each part of the list that is older than `after_days` or dated in the future."""
        egress = "egress prices", self.egress.date, "give newer ones with --egress before you buy"
        return (*self.stale_machines(today, after_days), *aged(*egress, today, after_days))

    def stale_machines(self, today: Day, after_days: int = STALE_DAYS) -> tuple[str, ...]:
        """The same of the machines alone."""
        return aged(
            f"prices of {self.name}", self.date, "import newer ones before you buy", today, after_days
        )


def aged(what: str, day: str, advice: str, today: Day, after_days: int) -> tuple[str, ...]:
    """A sentence if facts of a day are older than `after_days` or dated in the future."""
    age = (today - first_day(day, "date")).days
    if 0 <= age <= after_days:
        return ()
    return (
        f"the {what} are of {day}, {f'{age} days old; {advice}' if age > 0 else 'which is to come; correct the date'}",
    )


def without_twins(machines: Iterable[ListedMachine], where: str) -> tuple[ListedMachine, ...]:
    """The machines sorted; raises an error that names one that is listed twice."""
    found: dict[tuple[str, str, str, str], ListedMachine] = {}
    for machine in machines:
        if machine.key in found:
            named = f"{machine.machine} in {machine.place}{' ' if machine.zone else ''}{machine.zone}"
            raise InputError(f"lists {named} twice; keep one row", where=where)
        found[machine.key] = machine
    return tuple(found[key] for key in sorted(found))
