"""Central: each job's workers and server at the one site where that costs least alone (mlBroker, Sec. 6.3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tradewind.maths.broker_rivals import central
from tradewind.maths.broker_sites import Weights
from tradewind.maths.broker_slot import Ints, Slot
from tradewind.model.job import Job
from tradewind.model.setup import Setup
from tradewind.model.spec import Spec
from tradewind.policies.mlbroker_limits import within_limits
from tradewind.policies.mlbroker_slots import ARCHITECTURES, NEEDS, TRIGGERS, WORKS, Broker


class Central:
    """Keeps nothing between slots."""

    def choose(self, slot: Slot, jobs: Sequence[Job]) -> tuple[Ints, Ints]:
        del jobs
        return within_limits(slot, *central(slot))

    def state(self) -> Any:
        return None

    def resume(self, state: Any) -> None:
        pass


def _central(setup: Setup, params: Mapping[str, Any], rng: np.random.Generator) -> Broker:
    return Broker(setup, Central(), Weights())


CENTRAL = Spec(
    name="central",
    summary="Each job at the one site where that costs least alone; all its data is moved there",
    factory=_central,
    works=WORKS,
    architectures=ARCHITECTURES,
    objectives=frozenset(("cost_usd",)),
    triggers=TRIGGERS,
    needs=NEEDS,
    system="mlbroker",
)
