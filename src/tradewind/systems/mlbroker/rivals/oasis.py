"""OASiS as the mlBroker paper uses it (Sec. 6.3): each job takes the cheapest resources at current unit prices.

It looks at the rent alone and is blind to data transfer, deployment and parameter traffic. "Current" are the marginal
prices that the slot before reached; list prices at first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tradewind.model.arrays import Floats, Ints
from tradewind.model.job import Job
from tradewind.model.setup import Setup
from tradewind.systems.mlbroker.kernels.limits import usage_of
from tradewind.systems.mlbroker.kernels.prices import marginal
from tradewind.systems.mlbroker.kernels.rivals import cheapest_rent
from tradewind.systems.mlbroker.kernels.sites import Weights
from tradewind.systems.mlbroker.kernels.slot import Slot
from tradewind.systems.mlbroker.shared.limits import within_limits
from tradewind.systems.mlbroker.shared.slots import SlotPolicy, mlbroker_spec


class Oasis:
    """State: the unit prices (R, K) that the slot before reached."""

    def __init__(self) -> None:
        self._price: Floats | None = None

    def choose(self, slot: Slot, jobs: Sequence[Job]) -> tuple[Ints, Ints]:
        del jobs
        price = slot.tiers.usd[:, :, 0] if self._price is None else self._price
        workers, server = within_limits(slot, *cheapest_rent(slot, price))
        self._price = np.empty(price.shape)
        marginal(usage_of(slot, workers, server), slot.tiers.usd, slot.tiers.intercept, self._price)
        return workers, server

    def state(self) -> Any:
        return None if self._price is None else self._price.tolist()

    def resume(self, state: Any) -> None:
        self._price = None if state is None else np.array(state)


def _oasis(setup: Setup, params: Mapping[str, Any], rng: np.random.Generator) -> SlotPolicy:
    return SlotPolicy(setup, Oasis(), Weights())


OASIS = mlbroker_spec(
    name="oasis",
    summary="Each job takes the cheapest resources at current unit prices, blind to data and traffic",
    factory=_oasis,
)
