"""Menus at posted prices, and what a floor would have earned on past days.

A floor pays where better bids are likely to come and the resource is short; where bids are few or hardly fit, it turns away
jobs that nobody replaces. Which of the two holds is not seen in a price. So the mechanism itself is run on past days, with
several multiples of their scarcity prices as floor.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt

import numpy as np

from tradewind.model.arrays import Floats
from tradewind.model.job import Job
from tradewind.model.setup import Setup
from tradewind.model.units import GB
from tradewind.systems.eris.kernels.oracle import flat_menu, menu
from tradewind.systems.eris.kernels.task import Market, Menu, TrainingTask
from tradewind.systems.eris.shared.market import CapacityLedger, PostedPrices, plan_of, task_of, worth_of

SCALES = (0.0, 0.125, 0.25, 0.5, 0.7, 1.0, 1.4, 2.0)
"""Multiples of the scarcity prices that are tried as floor; the first is no floor."""
NOISE = 2.0
"""Standard errors by which a floor must have been better than none."""


def posted_menu(ledger: CapacityLedger, job: Job, first: int, prices: PostedPrices, *, flat: bool) -> Menu:
    """Offers to a bid at posted prices, from slot `first` on.

    Unlike the paper, data pays a flat charge for its bytes instead of a price for every move (flat). Moves can only be
    chosen near-optimally, so a later bidder might find a cheaper way; with the flat charge every price is an exact minimum.
    """
    market = ledger.market(job, first, prices)
    task, worth = task_of(ledger, job), worth_of(ledger.setup, job, first, len(market.room))
    if not flat:
        return menu(task, market, worth)
    data = int(task.data.sum()) * task.chunk_bytes / GB
    return flat_offers(task, market, worth, prices.posted(flat=True).data_usd * data)


def flat_offers(task: TrainingTask, market: Market, worth: Floats, flat_usd: float) -> Menu:
    """`flat_menu`, where no slot has room for what a worker can train of workers that train less, down to a chunk per slot.

    Else a bidder could have them by stating more epochs.
    """
    found = flat_menu(task, market, worth, flat_usd)
    most = int(market.room.max(initial=0)) // task.chunk_bytes
    for chunks in range(most, 0, -1) if most < task.rate // task.need else ():
        if found.offers:
            break
        found = flat_menu(task._replace(rate=chunks * task.need), market, worth, flat_usd)
    return found


def replay(setup: Setup, jobs: Sequence[Job], floor: Floats) -> float:
    """Welfare in USD of selling to these bids, which arrive in order at starts of slots, at a floor (K + 1,)."""
    ledger, prices, earned = CapacityLedger(setup), PostedPrices(gamma=1.0, floor=floor), 0.0
    for job in jobs:
        first = job.arrive_us // setup.slot_us
        worth = worth_of(setup, job, first, setup.slots - first)
        offers = posted_menu(ledger, job, first, prices, flat=True).offers
        if offers:
            taken = max(offers, key=lambda offer: float(worth[offer.slots[-1]]) - offer.usd)
            ledger.reserve(job, plan_of(ledger, job, taken, first))
            earned += float(worth[taken.slots[-1]])
    return earned


def best_floor(setup: Setup, days: Sequence[Sequence[Job]], prices: Floats) -> Floats:
    """The multiple of prices (K + 1,) that earned most on past days; 0 where none was better than no floor beyond noise."""
    if not prices.any():
        return prices
    earned = np.array([[replay(setup, day, scale * prices) for day in days] for scale in SCALES])
    gain = earned - earned[0]
    mean, error = gain.mean(axis=1), gain.std(axis=1, ddof=1) / sqrt(len(days))
    best: Floats = SCALES[int(np.argmax(np.where(mean > NOISE * error, mean, 0.0)))] * prices
    return best
