"""Searches a list of machines, and compares two lists."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from tradewind.model.errors import LookupFailed
from tradewind.prices.listing import ListedMachine, PriceList
from tradewind.prices.places import CONTINENTS, means


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """What is looked for; empty fields do not limit. Several values are separated by commas."""

    gpu: str = ""
    region: str = ""
    gpus: int = 0
    spot: bool = False
    cheapest: bool = False

    def find(self, prices: PriceList) -> tuple[ListedMachine, ...]:
        """The machines, cheapest per GPU first; raises an error that suggests a name where one is not known."""
        gpus, regions = _words(self.gpu), _words(self.region)
        known = {gpu.lower(): gpu for gpu in prices.gpus}
        for gpu in gpus:
            if gpu.lower() not in known:
                raise LookupFailed("GPU type of the list", gpu, prices.gpus)
        for word in regions:
            if not any(means(word, place) for place in prices.places):
                raise LookupFailed("region of the list", word, (*_regions(prices), *CONTINENTS))
        found = [
            machine
            for machine in prices.machines
            if (not gpus or machine.gpu in {known[gpu.lower()] for gpu in gpus})
            and (not regions or any(means(word, machine.place) for word in regions))
            and machine.gpus >= self.gpus
            and (not self.spot or machine.spot_usd_per_hour is not None)
        ]
        found.sort(key=lambda each: (each.usd_per_gpu_hour(spot=self.spot), each.key))
        return tuple(self._first(found) if self.cheapest else found)

    def _first(self, machines: Sequence[ListedMachine]) -> list[ListedMachine]:
        """The first machine of each GPU type."""
        seen: dict[str, ListedMachine] = {}
        for machine in machines:
            seen.setdefault(machine.gpu, machine)
        return list(seen.values())


def _words(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]


def _regions(prices: PriceList) -> list[str]:
    return [place.partition(":")[2] for place in prices.places]


class Change(NamedTuple):
    """A machine whose price differs between two lists; None where one list has none."""

    machine: ListedMachine
    old_usd: float | None
    new_usd: float | None
    old_spot: float | None
    new_spot: float | None

    @property
    def kind(self) -> str:
        """New, gone or changed."""
        return "new" if self.old_usd is None else "gone" if self.new_usd is None else "changed"


def diff(old: PriceList, new: PriceList) -> tuple[Change, ...]:
    """Machines that are new, gone or have another price, by name."""
    before = {machine.key: machine for machine in old.machines}
    after = {machine.key: machine for machine in new.machines}
    found = []
    for key in sorted(before.keys() | after.keys()):
        a, b = before.get(key), after.get(key)
        old_usd, old_spot = (a.usd_per_hour, a.spot_usd_per_hour) if a else (None, None)
        new_usd, new_spot = (b.usd_per_hour, b.spot_usd_per_hour) if b else (None, None)
        if (old_usd, old_spot) != (new_usd, new_spot):
            found.append(Change(b or before[key], old_usd, new_usd, old_spot, new_spot))
    return tuple(found)
