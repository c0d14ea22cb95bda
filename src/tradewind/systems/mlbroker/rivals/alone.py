"""The policies `central` (Sec. 6.3) and `selfish`, which plan every job as if no other rented."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tradewind.model.arrays import Ints
from tradewind.model.job import Job
from tradewind.model.spec import Spec
from tradewind.systems.mlbroker.kernels.limits import within_limits
from tradewind.systems.mlbroker.kernels.rivals import central, selfish
from tradewind.systems.mlbroker.kernels.sites import Weights
from tradewind.systems.mlbroker.kernels.slot import Slot
from tradewind.systems.mlbroker.shared.policy import SlotPolicy, mlbroker_spec

Plans = Callable[[Slot], tuple[Ints, Ints]]
"""Slot -> workers (I, R), server site (I,)."""


class Alone:
    """Plans every job by itself. No state."""

    def __init__(self, plans: Plans) -> None:
        self._plans = plans

    def choose(self, slot: Slot, jobs: Sequence[Job]) -> tuple[Ints, Ints]:
        """Each job's own plan, repaired where it breaks a limit."""
        del jobs
        return within_limits(slot, *self._plans(slot))

    def state(self) -> Any:
        """Nothing."""
        return None

    def resume(self, state: Any) -> None:
        """Nothing to restore."""


def _spec(name: str, summary: str, plans: Plans) -> Spec:
    return mlbroker_spec(name, summary, lambda setup, params, rng: SlotPolicy(setup, Alone(plans), Weights()))


CENTRAL = _spec(
    "central", "Each job at the single site that is cheapest for it alone, with all its data", central
)
SELFISH = _spec("selfish", "Each job's cheapest plan by itself at list prices", selfish)
