"""The policy `local` (Sec. 6.3): data is processed where it is, the parameter server is at a random site."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tradewind.model.arrays import Ints
from tradewind.model.job import Job
from tradewind.model.setup import Setup
from tradewind.systems.mlbroker.kernels.limits import within_limits
from tradewind.systems.mlbroker.kernels.rivals import local
from tradewind.systems.mlbroker.kernels.sites import Weights
from tradewind.systems.mlbroker.kernels.slot import Slot
from tradewind.systems.mlbroker.shared.policy import SlotPolicy, mlbroker_spec


class Local:
    """Draws the server's site in every slot. State: the random generator."""

    def __init__(self, rng: np.random.Generator) -> None:
        self._rng = rng

    def choose(self, slot: Slot, jobs: Sequence[Job]) -> tuple[Ints, Ints]:
        """Workers at the data, repaired where that breaks a limit."""
        del jobs
        return within_limits(slot, *local(slot, self._rng))

    def state(self) -> Any:
        """The random generator."""
        return self._rng.bit_generator.state

    def resume(self, state: Any) -> None:
        """Continue from :meth:`state`."""
        self._rng.bit_generator.state = state


def _local(setup: Setup, params: Mapping[str, Any], rng: np.random.Generator) -> SlotPolicy:
    return SlotPolicy(setup, Local(rng), Weights())


LOCAL = mlbroker_spec(
    name="local",
    summary="Data is processed where it is, the parameter server is at a random site",
    factory=_local,
)
