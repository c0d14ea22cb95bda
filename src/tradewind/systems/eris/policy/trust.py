"""How far a stated forecast is believed: a price that nobody pays is not what a resource is worth.

Prices p are right for a slot in which bids are turned away if what is sold in it is worth about the sum of p times capacity,
as the dual prices of the LP promise. So the floor is the forecast times (seen + noise) / promised, where this is below 1:
promised in the slots in which some bid that was turned away would still have paid, seen in the same slots, and noise is the
square root of the sum of squares of what the bids so far are worth. A floor that turns nobody away is left as it is. The
share never rises again: a bid that waits can gain by it, but only as long as the forecast is shown to be too high.
"""

from __future__ import annotations

from math import sqrt
from typing import Any

from tradewind.systems.eris.kernels.pool import PastBid

WANTED = 0.1
"""A bid wants capacity as long as completing is worth this part of completing as soon as possible."""


class Trust:
    """share: the part of the forecast that is believed."""

    def __init__(self) -> None:
        self.share = 1.0
        self._promised, self._seen, self._squares = 0.0, 0.0, 0.0
        self._until, self._reach = 0, -1
        """First slot that is not counted yet, and last slot that a bid which was turned away wants."""
        self._worth: dict[int, float] = {}
        """Worth of what was sold, by slot from `_until` on."""

    def bid(self, bid: PastBid, ahead: int) -> None:
        """Takes in a bid that finds `ahead` slots."""
        self._squares += _soonest(bid, ahead)[1] ** 2

    def sold(self, slots: list[int], worth: float) -> None:
        """Takes in a sale that runs in these slots."""
        for slot in slots:
            self._worth[slot] = self._worth.get(slot, 0.0) + worth / len(slots)

    def unsold(self, bid: PastBid, ahead: int) -> None:
        """Takes in a bid that bought nothing."""
        delay, worth = _soonest(bid, ahead)
        if worth <= 0.0:
            return
        while delay + 1 < ahead and bid.utility.value(delay + 1) >= WANTED * worth:
            delay += 1
        self._reach = max(self._reach, bid.job.start + delay)

    def look(self, slot: int, promise: float) -> None:
        """Reckons up to and including a slot, in each of which the forecast promises so many USD."""
        self._count(slot, promise)
        promised, seen = self._promised, self._seen
        if slot <= self._reach:
            promised, seen = promised + promise, seen + self._worth.get(slot, 0.0)
        if promised > 0.0:
            self.share = min(self.share, (seen + sqrt(self._squares)) / promised)

    def _count(self, slot: int, promise: float) -> None:
        """Counts the slots before this one."""
        self._promised += promise * max(0, min(slot, self._reach + 1) - self._until)
        over = [past for past in self._worth if past < slot]
        self._seen += sum(worth for past in over if (worth := self._worth.pop(past)) and past <= self._reach)
        self._until = max(self._until, slot)

    def save(self) -> list[Any]:
        """Plain data."""
        sums = [self.share, self._promised, self._seen, self._squares]
        return [*sums, self._until, self._reach, list(self._worth.items())]

    def restore(self, state: list[Any]) -> None:
        self.share, self._promised, self._seen, self._squares, self._until, self._reach, rows = state
        self._worth = dict(rows)


def _soonest(bid: PastBid, ahead: int) -> tuple[int, float]:
    """Slots of delay and worth in USD of completing a bid as soon as the empty network allows; 0 USD if never."""
    delay = -(-bid.job.units // bid.job.widest) - 1
    return delay, max(0.0, bid.utility.value(delay)) if delay < ahead else 0.0
