"""Tiered prices of data between sites: volumes moved, their cost, and the linear price for bounds.

A decision is made at one price per pair of sites. Where prices fall with volume, the slot is decided several times: at
the first tier, at the last tier, and at the tiers that the best decision so far reaches. The cheapest true bill wins.
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from tradewind.model.arrays import Floats, Ints
from tradewind.solvers.transport import transport
from tradewind.systems.mlbroker.kernels.costs import cost_parts
from tradewind.systems.mlbroker.kernels.prices import bill, chord, marginal
from tradewind.systems.mlbroker.kernels.slot import Slot, Tiers

Choice = tuple[Ints, Ints]
"""Workers (I, R) and server site (I,)."""
ROUNDS = 2
"""Decisions at the tiers that the best one so far reaches, at most."""


def moved(slot: Slot, workers: Ints, server: Ints) -> Floats:
    """(R, R): data and parameters sent from site to site; training data moves at least cost by `slot.move_usd`."""
    volume = np.zeros(slot.move_usd.shape)
    for i in np.flatnonzero(server >= 0).tolist():
        sources, used = np.flatnonzero(slot.data[i]), np.flatnonzero(workers[i])
        flow, _ = transport(
            slot.move_usd[np.ix_(sources, used)], slot.data[i, sources], workers[i, used] * slot.chunk[i]
        )
        volume[np.ix_(sources, used)] += flow
        volume[used, server[i]] += workers[i, used] * slot.traffic[i]
    np.fill_diagonal(volume, 0.0)
    return volume


def most_moved(slot: Slot) -> Floats:
    """(R, R): upper bound on data sent from site to site: all data there, and the traffic of N workers of every job."""
    most = slot.data.sum(axis=0) + float((slot.traffic * slot.needed).sum())
    return np.repeat(most[:, None], slot.shape[1], axis=1)


def chord_egress(slot: Slot, price: Tiers) -> Slot:
    """The slot at the chord of tiered prices (R, R, L): a bound at the chord also holds for the tiered prices."""
    usd = np.ascontiguousarray(chord(price, most_moved(slot)))
    return replace(slot, move_usd=usd, traffic_usd=usd)


def choose_by_tiers(
    slot: Slot, price: Tiers, weights: tuple[float, float], choose: Callable[[Slot], Choice]
) -> tuple[Choice, Floats]:
    """The best decision found under tiered prices (R, R, L), and the unit prices (R, R) it was made at.

    `slot` has true prices; `choose` sees unit prices times the `weights` of data and traffic.
    """
    starts = [price.usd[:, :, 0], price.usd[:, :, -1]]
    best, found = (np.inf, np.inf), None  # (unplaced jobs, USD)
    for turn in range(len(starts) + ROUNDS):
        if turn < len(starts):
            unit = np.ascontiguousarray(starts[turn])
        else:
            assert found is not None
            unit = np.empty(slot.move_usd.shape)
            marginal(moved(replace(slot, move_usd=found[1]), *found[0]), price.usd, price.intercept, unit)
            if np.array_equal(unit, found[1]):
                break
        true = replace(slot, move_usd=unit, traffic_usd=unit)
        chosen = choose(replace(true, move_usd=weights[0] * unit, traffic_usd=weights[1] * unit))
        _, rent, deployed, _ = cost_parts(true, *chosen)
        usd = rent + deployed + bill(moved(true, *chosen), price.usd, price.intercept)
        rank = (float((chosen[1] < 0).sum()), usd)
        if rank < best:
            best, found = rank, (chosen, unit)
    assert found is not None
    return found
