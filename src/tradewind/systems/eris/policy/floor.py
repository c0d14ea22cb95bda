"""A floor under posted prices: what scarce resources were worth on other days, or to earlier bidders.

An idle resource should not be free when better bids are likely to come. The floor is a multiple of the mean dual prices
of the pooled LP: of the setup's forecast if there is one, else of the bids so far. It does not depend on a bidder's own
bid and never falls, so neither a lie nor waiting lowers a payment.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tradewind.model.arrays import Floats
from tradewind.model.job import Job
from tradewind.model.setup import Setup
from tradewind.model.view import View
from tradewind.systems.eris.kernels.pool import reserve_prices, scarcity_prices

FIRST = 8
"""Bids before the floor is first learned; afterwards at every doubling."""


class Floor:
    """usd (K + 1,): USD per unit and slot of each resource, the last per GB of bandwidth."""

    def __init__(self, setup: Setup, usd: Floats, *, scale: float, learns: bool) -> None:
        self.usd = usd
        self._setup, self._scale, self._learns = setup, scale, learns
        self._bids: list[int] = []

    def learn(self, view: View, job: Job) -> None:
        """Learns from a bid after it was quoted."""
        if not self._learns:
            return
        self._bids.append(job.index)
        count = len(self._bids)
        if count >= FIRST and count & (count - 1) == 0:
            slots = job.arrive_us // self._setup.slot_us + 1
            past = [view.job(index) for index in self._bids]
            prices = scarcity_prices(self._setup, past, slots, slots)
            self.usd = np.maximum(self.usd, self._scale * reserve_prices(prices))

    def save(self) -> dict[str, Any]:
        return {"usd": self.usd.tolist(), "bids": self._bids}

    def restore(self, state: dict[str, Any]) -> None:
        self.usd, self._bids = np.array(state["usd"]), list(state["bids"])


def forecast_floor(setup: Setup, scale: float) -> Floats | None:
    """The forecast's prices times `scale`; None without a forecast."""
    keys = [f"price_{name}" for name in (*setup.resources, "transfer")]
    if not all(key in setup.forecast for key in keys):
        return None
    return scale * np.array([max(0.0, setup.forecast[key]) for key in keys])
