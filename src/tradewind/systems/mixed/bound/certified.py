"""The certified bound of a scenario's welfare: the prices of the whole scenario."""

from __future__ import annotations

from tradewind.model.result import Bound
from tradewind.model.scenario import Scenario
from tradewind.systems.mixed.bound.whole import uncovered, whole
from tradewind.systems.mixed.shared.prices import ROUNDS, find_prices

SAFE = 1e-9
"""Rounding of sums."""


def bound(scenario: Scenario) -> Bound | None:
    """No plan whose steps begin with slots has more welfare; None where `whole.uncovered` gives a reason.

    At any prices of capacity, a plan earns at most what its jobs gain alone at these prices plus the price of all that
    there is, because no more than that is used; rent at its chord is at most the true rent.
    """
    if uncovered(scenario):
        return None
    found = whole(scenario)
    value = find_prices(found.frame, found.asks, found.market, ROUNDS).bound if found.asks else 0.0
    return Bound(value=(value + found.sunk_usd) * (1.0 + SAFE), sense="max", kind="certified")
