"""Rivals of mlBroker that plan every job as if nobody else rented: central (one site) and selfish (Sec. 6.3)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tradewind.model.arrays import Ints
from tradewind.model.job import Job
from tradewind.model.spec import Spec
from tradewind.systems.mlbroker.kernels import rivals as rival_kernels
from tradewind.systems.mlbroker.kernels.sites import Weights
from tradewind.systems.mlbroker.kernels.slot import Slot
from tradewind.systems.mlbroker.shared.limits import within_limits
from tradewind.systems.mlbroker.shared.slots import SlotPolicy, mlbroker_spec

Plans = Callable[[Slot], tuple[Ints, Ints]]
"""A slot -> workers per job and site (I, R), server's site per job (I,)."""


class Alone:
    """Keeps nothing between slots."""

    def __init__(self, plans: Plans) -> None:
        self._plans = plans

    def choose(self, slot: Slot, jobs: Sequence[Job]) -> tuple[Ints, Ints]:
        del jobs
        return within_limits(slot, *self._plans(slot))

    def state(self) -> Any:
        return None

    def resume(self, state: Any) -> None:
        pass


def _spec(name: str, summary: str, plans: Plans) -> Spec:
    return mlbroker_spec(name, summary, lambda setup, params, rng: SlotPolicy(setup, Alone(plans), Weights()))


CENTRAL = _spec(
    "central",
    "Each job at the one site where that costs least alone; all its data is moved there",
    rival_kernels.central,
)
SELFISH = _spec("selfish", "Every job's full cost minimised alone at list prices", rival_kernels.selfish)
