"""A floor under posted prices: what scarce resources were worth on other days, or to earlier bidders.

An idle resource should not be free when better bids are likely to come. The floor is a multiple of the mean dual prices
of the pooled LP: of the setup's forecast if there is one, else of the bids so far (with a window: of the last window), and
less where these were few. It does not depend on a bidder's own bid and never falls, so neither a lie nor waiting lowers a
payment.
"""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np

from tradewind.model.arrays import Floats
from tradewind.model.job import Job
from tradewind.model.setup import Setup
from tradewind.systems.eris.kernels.pool import (
    PastBid,
    host_capacity,
    past_bid,
    reserve_prices,
    scarcity_prices,
)

FIRST = 8
"""Bids before the floor is first learned, at half of what they show; afterwards at every doubling, with more of it."""


class Floor:
    """usd (K + 1,): USD per unit and slot of each resource, the last per GB of bandwidth."""

    def __init__(self, setup: Setup, usd: Floats, *, scale: float, learns: bool) -> None:
        self.usd = usd
        self._setup, self._scale, self._learns = setup, scale, learns
        self._hosts = host_capacity(setup)
        self._count = 0
        self._bids: deque[PastBid] = deque()

    def learn(self, job: Job) -> None:
        """Learns from a bid after it was quoted."""
        if not self._learns:
            return
        slot, window = job.arrive_us // self._setup.slot_us, self._setup.window_slots
        first = 0 if window is None else max(0, slot + 1 - window)
        if (bid := past_bid(job, self._hosts, self._setup.slot_us)) is not None:
            self._bids.append(bid)
        while self._bids and self._bids[0].job.start < first:
            self._bids.popleft()
        self._count += 1
        if self._count >= FIRST and self._count & (self._count - 1) == 0:
            slots = slot + 1 - first
            prices = scarcity_prices(self._setup, self._bids, first, slots, slots)
            trust = self._scale * self._count / (self._count + FIRST)
            self.usd = np.maximum(self.usd, trust * reserve_prices(prices))

    def save(self) -> dict[str, Any]:
        return {"usd": self.usd.tolist(), "count": self._count, "bids": [bid.save() for bid in self._bids]}

    def restore(self, state: dict[str, Any]) -> None:
        self.usd, self._count = np.array(state["usd"]), state["count"]
        self._bids = deque(PastBid.read(row) for row in state["bids"])


def forecast_floor(setup: Setup, scale: float) -> Floats | None:
    """The forecast's prices times `scale`; None without a forecast."""
    keys = [f"price_{name}" for name in (*setup.resources, "transfer")]
    if not all(key in setup.forecast for key in keys):
        return None
    return scale * np.array([max(0.0, setup.forecast[key]) for key in keys])
