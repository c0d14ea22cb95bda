"""A request as a seller sees it, and the kinds of items on offer."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tradewind.model.arrays import Floats
from tradewind.model.decision import Step
from tradewind.model.errors import InputError
from tradewind.model.setup import Setup
from tradewind.model.units import MILLI
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


def unit_price(value: float, where: str) -> float:
    """Check that a unit price lies between 0 and 1."""
    if not 0.0 <= value <= 1.0:
        raise InputError(f"found {value}; a unit price must lie between 0 and 1", where=where)
    return value
