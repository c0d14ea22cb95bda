"""A floor under posted prices: what scarce resources were worth on other days, or to earlier bidders.

An idle resource should not be free when better bids are likely to come. The floor is a multiple of the mean dual prices
of the pooled LP: of the setup's forecast if there is one, else of the bids so far (with a window: of the last window), and
less where these were few. It does not depend on a bidder's own bid and does not fall, so neither a lie nor waiting lowers a
payment; only a forecast that is shown to be too high is lowered (`policy.trust`).
"""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np

from tradewind.model.arrays import Floats, Ints
from tradewind.model.decision import Offer
from tradewind.model.job import Job
from tradewind.model.setup import Setup
from tradewind.model.units import GB, MILLI
from tradewind.systems.eris.kernels.pool import (
    PastBid,
    host_capacity,
    past_bid,
    reserve_prices,
    scarcity_prices,
)
from tradewind.systems.eris.policy.trust import Trust
from tradewind.systems.eris.shared.market import LARGE

FIRST = 8
"""Bids before the floor is first learned, at half of what they show; afterwards at every doubling, with more of it."""


class Floor:
    """usd (K + 1,): USD per unit and slot of each resource, the last per GB of bandwidth."""

    def __init__(
        self, setup: Setup, usd: Floats, *, scale: float, learns: bool, trust: Trust | None = None
    ) -> None:
        self._usd = usd
        self._setup, self._scale, self._learns, self._trust = setup, scale, learns, trust
        self._hosts = host_capacity(setup)
        self._count = 0
        self._bids: deque[PastBid] = deque()

    @property
    def usd(self) -> Floats:
        return self._usd if self._trust is None else self._trust.share * self._usd

    def look(self, slot: int, whole: Ints) -> None:
        """Compares what a forecast promises of a slot and those before with what was sold; whole (K,): milli-units."""
        if self._trust is not None:
            band = self._setup.transfer_bytes_per_slot
            units = np.append(np.where(whole < LARGE, whole / MILLI, 0.0), 0.0 if band is None else band / GB)
            self._trust.look(slot, float(self._usd @ units))

    def learn(self, job: Job) -> None:
        """Learns from a bid after it was quoted."""
        if self._trust is None and not self._learns:
            return
        bid, slot, window = self._past(job), job.arrive_us // self._setup.slot_us, self._setup.window_slots
        if self._trust is not None:
            if bid is not None:
                self._trust.bid(bid, self._setup.slots_ahead(slot))
            return
        first = 0 if window is None else max(0, slot + 1 - window)
        if bid is not None:
            self._bids.append(bid)
        while self._bids and self._bids[0].job.start < first:
            self._bids.popleft()
        self._count += 1
        if self._count >= FIRST and self._count & (self._count - 1) == 0:
            slots = slot + 1 - first
            prices = scarcity_prices(self._setup, self._bids, first, slots, slots)
            trust = self._scale * self._count / (self._count + FIRST)
            self._usd = np.maximum(self._usd, trust * reserve_prices(prices))

    def answered(self, job: Job, taken: Offer | None) -> None:
        """Takes in what a bidder took of its quote."""
        if self._trust is None or (bid := self._past(job)) is None:
            return
        if taken is None:
            self._trust.unsold(bid, self._setup.slots_ahead(bid.job.start))
        else:
            slots = [step.from_us // self._setup.slot_us for step in taken.plan.steps]
            self._trust.sold(slots, max(0.0, bid.utility.value(slots[-1] - bid.job.start)))

    def _past(self, job: Job) -> PastBid | None:
        return past_bid(job, self._hosts, self._setup.slot_us)

    def save(self) -> dict[str, Any]:
        return {
            "usd": self._usd.tolist(),
            "count": self._count,
            "bids": [bid.save() for bid in self._bids],
            "trust": None if self._trust is None else self._trust.save(),
        }

    def restore(self, state: dict[str, Any]) -> None:
        self._usd, self._count = np.array(state["usd"]), state["count"]
        self._bids = deque(PastBid.read(row) for row in state["bids"])
        if self._trust is not None:
            self._trust.restore(state["trust"])


def forecast_floor(setup: Setup, scale: float) -> Floats | None:
    """The forecast's prices times `scale`; None without a forecast."""
    keys = [f"price_{name}" for name in (*setup.resources, "transfer")]
    if not all(key in setup.forecast for key in keys):
        return None
    return scale * np.array([max(0.0, setup.forecast[key]) for key in keys])
