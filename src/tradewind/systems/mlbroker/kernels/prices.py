"""The concave price of pooled demand: bill, marginal price, chord. Eq. (2) with any number of tiers."""

import numpy as np

from tradewind.model.arrays import Floats
from tradewind.solvers.kernel import kernel
from tradewind.systems.mlbroker.kernels.slot import NO_LIMIT, Slot, Tiers


@kernel
def piece(usd: Floats, intercept: Floats, amount: float) -> int:
    """The tier j with the least `usd_j amount + intercept_j`; ties go to the earliest."""
    best = 0
    for j in range(1, len(usd)):
        if usd[j] * amount + intercept[j] < usd[best] * amount + intercept[best]:
            best = j
    return best


@kernel
def bill(usage: Floats, usd: Floats, intercept: Floats) -> float:
    """C2 of Eq. (3): sum over sites and resources of F(usage). usage (R, K); usd, intercept (R, K, L)."""
    total = 0.0
    for r in range(usage.shape[0]):
        for k in range(usage.shape[1]):
            j = piece(usd[r, k], intercept[r, k], usage[r, k])
            total += usd[r, k, j] * usage[r, k] + intercept[r, k, j]
    return total


@kernel
def marginal(usage: Floats, usd: Floats, intercept: Floats, price: Floats) -> None:
    """Fill `price` (R, K) with the unit price of the tier that `usage` (R, K) reaches."""
    for r in range(usage.shape[0]):
        for k in range(usage.shape[1]):
            price[r, k] = usd[r, k, piece(usd[r, k], intercept[r, k], usage[r, k])]


def most_usage(slot: Slot) -> Floats:
    """[H_i] (I, K): the most of each resource that a job can use at one site, n N + m.

    N workers process all the data and prices are not negative, so more at one site never pay.
    """
    limited = slot.most_workers != NO_LIMIT
    limit = np.where(limited, np.minimum(slot.most_workers, slot.needed), slot.needed)
    most: Floats = slot.worker * limit[:, None] + slot.server
    return most


def chord(price: Tiers, most: Floats) -> Floats:
    """(R, K): F(H)/H, the slope of the concave price's chord over [0, H]; the list price where H = 0.

    `most` [H] is (K,) or (R, K). The chord equals the linear relaxation of (8c)-(8e) with the smallest M of each
    constraint: (a - b)(H - l)+ in (8c) and e in (8d).
    """
    h = np.broadcast_to(most, price.usd.shape[:2])[..., None]
    least = (price.usd * h + price.intercept).min(axis=2)
    slope: Floats = np.where(h[..., 0] > 0.0, least / np.maximum(h[..., 0], 1e-300), price.usd[..., 0])
    return slope


def chord_slopes(slot: Slot) -> Floats:
    """The chord of every site and resource (R, K) for the jobs of a slot."""
    return chord(slot.tiers, most_usage(slot).sum(axis=0))
