"""Rules that split the saving of pooled demand: no group pays more than alone, and the shares add up to the bill.

*Proportional*: every group gets the same discount on its cost alone. *Shapley*: every group pays its own costs and its
Shapley share of the pooled rent (the mean, over orders of arrival, of the rise that it causes), capped at its cost
alone; what the caps cut off is paid by the others in proportion to the room below their caps. Where a decision costs
more than all groups alone (a wasteful policy, short capacity), no group pays more than its plans at list price.
"""

from itertools import permutations

import numpy as np

from tradewind.model.arrays import Floats
from tradewind.systems.mlbroker.kernels.slot import Tiers

EXACT_UP_TO = 6
"""Number of groups up to which all orders of arrival are enumerated."""


def total_charge(alone: Floats, cost: float, margin: float) -> float:
    """Sum of all bills, USD: the cost plus the broker's part `margin` (0 to 1) of the saving."""
    if not 0.0 <= margin <= 1.0:
        raise ValueError(f"margin is {margin}; it must be between 0 (at cost) and 1 (no discount passed on)")
    return cost + margin * max(float(alone.sum()) - cost, 0.0)


def proportional(alone: Floats, cost: float, margin: float = 0.0) -> Floats:
    """Shares (G,), each the same part of `alone` (G,), that add up to the total charge."""
    total = total_charge(alone, cost, margin)
    together = float(alone.sum())
    share: Floats = alone * (total / together) if together > 0.0 else np.full(len(alone), total / len(alone))
    return share


def split_excess(alone: Floats, listed: Floats, cost: float) -> Floats:
    """Shares (G,) of a cost above sum(alone): groups whose plans at list price exceed `alone` pay the excess.

    `listed` (G,), the plans at list price, is at least `alone`. The pooled cost never exceeds its sum, so no share
    exceeds it either.
    """
    room = listed - alone
    space = float(room.sum())
    part = min((cost - float(alone.sum())) / space, 1.0) if space > 0.0 else 0.0
    share: Floats = alone + room * part
    return share


def shapley_rent(usage: Floats, price: Tiers, orders: int = 64, seed: int = 0) -> Floats:
    """Shapley shares (G,) of the rent of `usage` (G, R, K): over all orders, or `orders` sampled ones and their reverses.

    The rent is concave, so in every order the rise is at most the rent alone; so is the share, sampled or not.
    """
    groups = usage.shape[0]
    if groups <= EXACT_UP_TO:
        ways = [np.array(way) for way in permutations(range(groups))]
    else:
        rng = np.random.default_rng(seed)
        drawn = [rng.permutation(groups) for _ in range(orders)]
        ways = drawn + [order[::-1] for order in drawn]
    share = np.zeros(groups)
    for way in ways:
        share[way] += np.diff(_rent(np.cumsum(usage[way], axis=0), price), prepend=0.0)
    return share / len(ways)


def _rent(usage: Floats, price: Tiers) -> Floats:
    """Rent (G,) of each usage (G, R, K)."""
    pieces = price.usd[None] * usage[..., None] + price.intercept[None]
    rent: Floats = pieces.min(axis=3).sum(axis=(1, 2))
    return rent


def shapley(own: Floats, usage: Floats, price: Tiers, alone: Floats, margin: float = 0.0) -> Floats:
    """Shares (G,): own costs (G,) plus Shapley rent, capped at `alone` (G,) where the sum allows it.

    They add up to :func:`total_charge` of the pooled cost sum(own) + rent.
    """
    raw = own + shapley_rent(usage, price)
    total = total_charge(alone, float(raw.sum()), margin)
    return capped(raw, alone, total)


def capped(raw: Floats, most: Floats, total: float) -> Floats:
    """Shares that add up to `total` (at most sum(most)), as near to `raw` as the caps `most` allow."""
    share = np.minimum(raw, most)
    left = total - float(share.sum())
    if left >= 0.0:
        room = most - share
        space = float(room.sum())
        return share + room * (left / space) if space > 0.0 else share + left / len(share)
    return share * (total / float(share.sum()))
