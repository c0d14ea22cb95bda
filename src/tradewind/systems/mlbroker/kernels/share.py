"""How the saving of pooled demand is split: nobody pays more than alone, and the shares add up to the bill.

Two rules. *Proportional*: everybody gets the same discount on what he would pay alone. *Shapley*: everybody pays his
own costs and his Shapley share of the pooled rent (the mean, over orders of arrival, of the rise that he causes),
capped at what he would pay alone; what the caps leave over goes to those with room, in proportion to it. Where a
decision costs more than all alone would (a wasteful policy, short capacity), nobody pays more than his plan at list price.
"""

from itertools import permutations

import numpy as np

from tradewind.model.arrays import Floats
from tradewind.systems.mlbroker.kernels.slot import Tiers

EXACT_UP_TO = 6  # groups for which all orders are taken


def total_charge(alone: Floats, cost: float, margin: float) -> float:
    """What all pay together, USD: the cost and the broker's part ``margin`` (0 to 1) of the saving."""
    if not 0.0 <= margin <= 1.0:
        raise ValueError(f"margin is {margin}; it must lie between 0 (at cost) and 1 (no discount passed on)")
    return cost + margin * max(float(alone.sum()) - cost, 0.0)


def proportional(alone: Floats, cost: float, margin: float = 0.0) -> Floats:
    """Shares (G,) that are the same part of ``alone`` (G,) for everybody and add up to what is charged."""
    total = total_charge(alone, cost, margin)
    together = float(alone.sum())
    share: Floats = alone * (total / together) if together > 0.0 else np.full(len(alone), total / len(alone))
    return share


def split_excess(alone: Floats, listed: Floats, cost: float) -> Floats:
    """Shares (G,) of a cost above sum(alone): the excess falls on those whose plans at list price are above alone.

    ``listed`` (G,) is at least ``alone``; pooled cost never exceeds its sum, so no share exceeds it either.
    """
    room = listed - alone
    space = float(room.sum())
    part = min((cost - float(alone.sum())) / space, 1.0) if space > 0.0 else 0.0
    share: Floats = alone + room * part
    return share


def shapley_rent(usage: Floats, price: Tiers, orders: int = 64, seed: int = 0) -> Floats:
    """Shapley shares (G,) of the pooled rent: all orders up to six groups, else ``orders`` of them and their reverses.

    usage (G, R, K): what each uses. The rent is concave, so a Shapley share never exceeds the rent of being alone,
    in the sample too: in every order the rise is at most that.
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
    """Rent (G,) of each of the usages (G, R, K)."""
    pieces = price.usd[None] * usage[..., None] + price.intercept[None]
    rent: Floats = pieces.min(axis=3).sum(axis=(1, 2))
    return rent


def shapley(own: Floats, usage: Floats, price: Tiers, alone: Floats, margin: float = 0.0) -> Floats:
    """Shares (G,) by own costs (G,) and Shapley rent, capped at ``alone`` (G,) where the sum allows it.

    The sum is exactly what :func:`charged` says for the pooled cost sum(own) + rent.
    """
    raw = own + shapley_rent(usage, price)
    total = total_charge(alone, float(raw.sum()), margin)
    return capped(raw, alone, total)


def capped(raw: Floats, most: Floats, total: float) -> Floats:
    """Shares as near to ``raw`` as caps ``most`` allow, summing to ``total`` (at most sum(most))."""
    share = np.minimum(raw, most)
    left = total - float(share.sum())
    if left >= 0.0:
        room = most - share
        space = float(room.sum())
        return share + room * (left / space) if space > 0.0 else share + left / len(share)
    return share * (total / float(share.sum()))
