"""Local: data is processed where it lies, the parameter server stands at a random site (mlBroker, Sec. 6.3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tradewind.model.arrays import Ints
from tradewind.model.job import Job
from tradewind.model.setup import Setup
from tradewind.systems.mlbroker.kernels.rivals import local
from tradewind.systems.mlbroker.kernels.sites import Weights
from tradewind.systems.mlbroker.kernels.slot import Slot
from tradewind.systems.mlbroker.shared.limits import within_limits
from tradewind.systems.mlbroker.shared.slots import SlotPolicy, mlbroker_spec


class Local:
    """State: the random stream that draws the server's site, anew in every slot."""

    def __init__(self, rng: np.random.Generator) -> None:
        self._rng = rng

    def choose(self, slot: Slot, jobs: Sequence[Job]) -> tuple[Ints, Ints]:
        del jobs
        return within_limits(slot, *local(slot, self._rng))

    def state(self) -> Any:
        return self._rng.bit_generator.state

    def resume(self, state: Any) -> None:
        self._rng.bit_generator.state = state


def _local(setup: Setup, params: Mapping[str, Any], rng: np.random.Generator) -> SlotPolicy:
    return SlotPolicy(setup, Local(rng), Weights())


LOCAL = mlbroker_spec(
    name="local",
    summary="Data is processed where it lies, the parameter server at a random site",
    factory=_local,
)
