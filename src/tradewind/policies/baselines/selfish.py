"""Selfish: every job's full cost minimised alone at list prices, as if nobody else rented."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tradewind.maths.broker_rivals import selfish
from tradewind.maths.broker_sites import Weights
from tradewind.maths.broker_slot import Ints, Slot
from tradewind.model.job import Job
from tradewind.model.setup import Setup
from tradewind.model.spec import Spec
from tradewind.policies.mlbroker_limits import within_limits
from tradewind.policies.mlbroker_slots import ARCHITECTURES, NEEDS, TRIGGERS, WORKS, Broker


class Selfish:
    """Keeps nothing between slots."""

    def choose(self, slot: Slot, jobs: Sequence[Job]) -> tuple[Ints, Ints]:
        del jobs
        return within_limits(slot, *selfish(slot))

    def state(self) -> Any:
        return None

    def resume(self, state: Any) -> None:
        pass


def _selfish(setup: Setup, params: Mapping[str, Any], rng: np.random.Generator) -> Broker:
    return Broker(setup, Selfish(), Weights())


SELFISH = Spec(
    name="selfish",
    summary="Every job's full cost minimised alone at list prices",
    factory=_selfish,
    works=WORKS,
    architectures=ARCHITECTURES,
    objectives=frozenset(("cost_usd",)),
    triggers=TRIGGERS,
    needs=NEEDS,
    system="mlbroker",
)
