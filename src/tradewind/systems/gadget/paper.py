"""GADGET as printed: Algorithm 1 with LP-RS-MDE (Algorithm 2), gains of the slot alone, a fresh embedding every slot.

The rounding over-allocates, which a real cluster cannot. It is made feasible by discarding rings that do not fit and
trying other mappings; what the raw rounding would have used is in every decision's certificate data.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tradewind.model.decision import Certificate
from tradewind.model.job import Job
from tradewind.model.setup import Setup
from tradewind.model.spec import Param, Spec
from tradewind.systems.gadget.kernels.bound import knapsack, possible
from tradewind.systems.gadget.kernels.paper import most_workers, paper
from tradewind.systems.gadget.kernels.slot import Slot, no_rings
from tradewind.systems.gadget.shared.choice import (
    ARCHITECTURES,
    TRIGGERS,
    WORKS,
    RingChoice,
    RingRecord,
    Sight,
)
from tradewind.systems.gadget.shared.gains import fine_gains
from tradewind.systems.gadget.shared.scheduler import RingScheduler


class Rounding:
    """How ``gadget-paper`` chooses rings; every slot has its own random stream, so there is no state."""

    sight: Sight = "slot"

    def __init__(self, setup: Setup, seed: int, tries: int) -> None:
        self._setup, self._seed, self._tries = setup, seed, tries

    def choose(
        self, slot: Slot, jobs: Sequence[Job], records: Sequence[RingRecord], number: int
    ) -> RingChoice:
        """Feasible rings; the certificate reports what the raw rounding used, and what Theorem 8 lets it use."""
        slot = possible(slot)
        if not (slot.gain > 0).any():
            return RingChoice(rings=no_rings(slot))
        most = most_workers(slot, fine_gains(self._setup, slot, jobs, [record.done for record in records]))
        found = paper(slot, np.random.default_rng([self._seed, number]), self._tries, most)
        data = {
            "value": found.value, "slot": number, "raw_value": found.raw_value, "raw_room": found.raw_room,
            "raw_links": found.raw_links, "beta": float(found.allowed.beta.max()), "gamma": found.allowed.gamma,
            "widest": found.widest, "roundings": found.roundings, "met": found.met,
        }  # fmt: skip
        return RingChoice(
            rings=found.rings, certificate=Certificate("gadget.knapsack", knapsack(slot), "max", data)
        )


def _paper(setup: Setup, params: Mapping[str, Any], rng: np.random.Generator) -> RingScheduler:
    return RingScheduler(setup, Rounding(setup, int(rng.integers(1 << 30)), int(params["tries"])))


PAPER = Spec(
    name="gadget-paper",
    summary="GADGET as printed (LP ring selection, randomised rounding), reduced to the rings that fit",
    factory=_paper,
    works=WORKS,
    architectures=ARCHITECTURES,
    triggers=TRIGGERS,
    needs=frozenset(("bid",)),
    params={
        "tries": Param(
            default=10,
            doc="most roundings per slot (u_b in the paper, which prints no number)",
            least=1,
            most=100_000,
        )
    },
    system="gadget",
)
