"""GADGET: every slot, rings for all jobs together, never over-allocated, with a bound on what any rings could earn.

This is our algorithm; the paper's is ``gadget-paper``. Gains on the concave envelope, greedy with re-embedding,
configuration LP by column generation, annealed repair, rings that stay. See docs/systems/gadget.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, get_args

import numpy as np

from tradewind.model.decision import Certificate
from tradewind.model.job import Job
from tradewind.model.setup import Setup
from tradewind.model.spec import ESTIMATES, MEASUREMENT, Param, Spec
from tradewind.systems.gadget.kernels.slot import Slot
from tradewind.systems.gadget.kernels.solve import SlotEffort, solve
from tradewind.systems.gadget.shared.choice import (
    ARCHITECTURES,
    TRIGGERS,
    WORKS,
    RingChoice,
    RingRecord,
    Sight,
    rings_before,
)
from tradewind.systems.gadget.shared.scheduler import RingScheduler


class Embedding:
    """How ``gadget`` chooses rings; keeps no state."""

    def __init__(
        self, effort: SlotEffort, slot_us: int, *, sticky: bool, seed: int, sight: Sight = "ahead"
    ) -> None:
        self._effort, self._slot_us, self._sticky, self._seed = effort, slot_us, sticky, seed
        self.sight: Sight = sight

    def choose(
        self, slot: Slot, jobs: Sequence[Job], records: Sequence[RingRecord], number: int
    ) -> RingChoice:
        """Rings of a slot, with its bound as a certificate."""
        before = rings_before(slot, records) if self._sticky else None
        lost = sum(job.restart_us for job in jobs) / (len(jobs) * self._slot_us)
        effort = replace(self._effort, moving=min(1.0, lost))
        answer = solve(slot, effort, before=before, seed=self._seed + number)
        data = {"value": answer.value, "proof": answer.proof, "slot": number}
        return RingChoice(
            rings=answer.rings,
            certificate=Certificate("gadget.slot", answer.bound, "max", data) if answer.bound > 0 else None,
        )


def _gadget(setup: Setup, params: Mapping[str, Any], rng: np.random.Generator) -> RingScheduler:
    effort = SlotEffort(rounds=int(params["rounds"]), enough=float(params["enough"]))
    seed = int(rng.integers(1 << 30))
    embedding = Embedding(
        effort, setup.slot_us, sticky=bool(params["sticky"]), seed=seed, sight=params["sight"]
    )
    return RingScheduler(setup, embedding, measured=params["estimates"] == MEASUREMENT)


GADGET = Spec(
    name="gadget",
    summary="Rings for all jobs of a slot together: envelope gains, configuration LP, repair, few moves",
    factory=_gadget,
    works=WORKS,
    architectures=ARCHITECTURES,
    triggers=TRIGGERS,
    params={
        "rounds": Param(
            default=2000,
            doc="rounds of ruin and recreate in a slot that greedy does not certify; 0: greedy only",
            least=0,
            most=10_000_000,
        ),
        "enough": Param(
            default=0.999,
            doc="share of the slot's bound at which the search stops; also the least share of the worth that is kept when "
            "rings return to their servers",
            least=0,
            most=1,
        ),
        "sticky": Param(default=True, doc="keep rings on their servers unless moving pays"),
        "sight": Param(
            default="ahead",
            doc="gains: of this slot alone, as in the paper; on the concave envelope; or on it, less what can wait",
            choices=get_args(Sight),
        ),
        **ESTIMATES,
    },
    system="gadget",
)
