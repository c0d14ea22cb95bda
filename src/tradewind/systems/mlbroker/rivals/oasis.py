"""The policy `oasis`: OASiS as the mlBroker paper uses it (Sec. 6.3).

Each job takes the cheapest resources at current unit prices, ignoring data transfer, deployment and parameter traffic.
Current prices are the marginal prices reached in the previous slot, list prices at first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tradewind.model.arrays import Floats, Ints
from tradewind.model.job import Job
from tradewind.model.setup import Setup
from tradewind.systems.mlbroker.kernels.limits import usage_of, within_limits
from tradewind.systems.mlbroker.kernels.prices import marginal
from tradewind.systems.mlbroker.kernels.rivals import cheapest_rent
from tradewind.systems.mlbroker.kernels.sites import Weights
from tradewind.systems.mlbroker.kernels.slot import Slot
from tradewind.systems.mlbroker.shared.policy import SlotPolicy, mlbroker_spec


class Oasis:
    """State: the marginal prices (R, K) reached in the previous slot; ties go to the first site.

    With `ties`, the other reading of the paper: list prices in every slot, and a draw among equally cheap sites.
    """

    def __init__(self, ties: np.random.Generator | None = None) -> None:
        self._ties = ties
        self._price: Floats | None = None

    def choose(self, slot: Slot, jobs: Sequence[Job]) -> tuple[Ints, Ints]:
        """The lowest rent for each job, repaired where that breaks a limit."""
        del jobs
        price = slot.tiers.usd[:, :, 0] if self._price is None else self._price
        workers, server = within_limits(slot, *cheapest_rent(slot, price, self._ties))
        if self._ties is None:
            self._price = np.empty(price.shape)
            marginal(usage_of(slot, workers, server), slot.tiers.usd, slot.tiers.intercept, self._price)
        return workers, server

    def state(self) -> Any:
        """The prices (R, K), or None."""
        return None if self._price is None else self._price.tolist()

    def resume(self, state: Any) -> None:
        """Continue from :meth:`state`."""
        self._price = None if state is None else np.array(state)


def _oasis(setup: Setup, params: Mapping[str, Any], rng: np.random.Generator) -> SlotPolicy:
    return SlotPolicy(setup, Oasis(), Weights())


OASIS = mlbroker_spec(
    name="oasis",
    summary="Each job takes the cheapest resources at current unit prices, ignoring data and traffic",
    factory=_oasis,
)
