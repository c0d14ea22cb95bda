"""A request as a seller sees it, and the kinds of items on offer."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from tradewind.model.arrays import Floats
from tradewind.model.decision import Step
from tradewind.model.errors import InputError, LookupFailed
from tradewind.model.setup import Setup
from tradewind.model.units import MILLI, US_PER_HOUR
from tradewind.systems.dps.kernels.place import BEST_FIT, LARGEST, RANDOM, WORST_FIT

PLACEMENTS = {"pa": WORST_FIT, "best-fit": BEST_FIT, "random": RANDOM}
"""Placement rules: Algorithm 2 of the paper, ours, and random."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """A request: kinds as rows of the seller's tables, items, runtimes in slots, and where it would run."""

    job: int
    tenant: str
    k: int
    m: int
    d_k: int
    d_m: int
    unit_k: float
    """Resource units that one worker takes."""
    unit_m: float
    slot: int
    spread: int
    idle_k: int
    idle_m: int
    runtime: int = 0
    finish_us: int = 0
    step: Step | None = None


class Kinds:
    """The kinds on offer: resources called `ps…` are parameter servers, all others workers; without any `ps…`, both."""

    def __init__(self, setup: Setup) -> None:
        names = setup.resources
        second = [r for r, name in enumerate(names) if name.startswith("ps")]
        self.first = [r for r in range(len(names)) if r not in second]
        self.second = second or self.first
        self.row_k = {r: row for row, r in enumerate(self.first)}
        self.row_m = {r: row for row, r in enumerate(self.second)}
        self.cap_k, self.cap_m = _capacity(setup, self.first), _capacity(setup, self.second)

    def expected(self, setup: Setup) -> tuple[float, Floats]:
        """Expected jobs in total and per kind (K + M,), from the public forecast; one per slot without a forecast."""
        total = setup.forecast.get("jobs", float(setup.slots))
        rows = [
            setup.forecast.get(f"jobs.{setup.resources[r]}", total / len(group))
            for group in (self.first, self.second)
            for r in group
        ]
        return total, np.array(rows)


def _capacity(setup: Setup, resources: list[int]) -> Floats:
    """Units of each resource on all hosts together."""
    hosts, most = [setup.nodes[h] for h in setup.hosts], LARGEST * MILLI
    return np.array([sum(min(n.capacity_milli[r], most) for n in hosts) / MILLI for r in resources])


PER_JOB, PER_HOUR = "usd_per_item", "usd_per_item_hour"
"""Keys of the public forecast: what an item is usually worth for a whole job, or for an hour."""
ABOVE = math.e
"""The highest unit price is this many times what an item is usually worth."""


@dataclass(frozen=True, slots=True)
class PriceScale:
    """What a unit price of 1 means in USD: for an item and a job, or for an item and an hour.

    usd     the highest unit price; 1 where the scenario does not say what an item is worth, as in the paper
    hourly  whether an item is paid by the hour of the job's runtime on several servers, which its owner can know
    """

    usd: float = 1.0
    hourly: bool = False
    slot_hours: float = 0.0

    @classmethod
    def of(cls, setup: Setup) -> PriceScale:
        """The scale that the public forecast states."""
        stated = [key for key in (PER_JOB, PER_HOUR) if key in setup.forecast]
        known = {PER_JOB, PER_HOUR, "jobs", *(f"jobs.{name}" for name in setup.resources)}
        for key in setup.forecast:
            if key not in known and key.startswith(("usd", "jobs")):
                raise LookupFailed("forecast for sellers", key, known)
        if len(stated) == 2:
            raise InputError(
                f"both {PER_JOB} and {PER_HOUR} are stated; an item is priced by the job or by the hour",
                where="forecast",
            )
        if not stated:
            return cls()
        worth = setup.forecast[stated[0]]
        if not 0.0 < worth < 1e12:
            raise InputError(f"found {worth}; it must be positive", where=f"forecast.{stated[0]}")
        return cls(ABOVE * worth, stated[0] == PER_HOUR, setup.slot_us / US_PER_HOUR)

    def items(self, spread: int) -> float:
        """How often an item of a job with this runtime in slots is paid: once, or once an hour."""
        return max(1, spread) * self.slot_hours if self.hourly else 1.0

    @property
    def words(self) -> str:
        """The unit of a price."""
        return "USD per item-hour" if self.hourly else "USD per item"

    def share(self, usd: float, where: str, most: float = 1.0) -> float:
        """A unit price in USD as a share of the highest one; refused where it lies outside."""
        if not 0.0 <= usd <= most * self.usd:
            raise InputError(
                f"found {usd}; a unit price must lie between 0 and {most * self.usd:.6g} {self.words}",
                where=where,
            )
        return usd / self.usd
