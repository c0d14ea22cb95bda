"""The certified bound of a scenario's bill: shares of discounts and prices of capacity (kernels/bound.py)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tradewind.model.arrays import Floats
from tradewind.model.errors import Unsupported
from tradewind.model.result import Bound
from tradewind.model.scenario import Scenario
from tradewind.systems.broker.bound.problem import Whole, uncovered, whole
from tradewind.systems.broker.kernels.bound import Dual, ascend, start_shares
from tradewind.systems.broker.kernels.problem import post
from tradewind.systems.broker.kernels.search import Books
from tradewind.systems.broker.policy import planned
from tradewind.systems.broker.shared.plan import cost

ROUNDS, STEPS, ENOUGH = 200, 400, 1e-5
"""Rounds of search for the plan, steps of the bound, and the gap at which it stops."""
SAFE = 1.0 - 1e-9
"""Rounding of sums, and of a microsecond per pause."""


class Certified(NamedTuple):
    """A plan, its cost, the bound, and the prices of capacity that prove it."""

    books: Books
    usd: float
    bound: float
    toll: Floats


def dual_of(found: Whole, books: Books, steps: int) -> tuple[float, Dual]:
    """The bound after so many steps from a plan, and its point."""
    p = found.problem
    spend, use = np.zeros((len(p.unserved), len(found.before))), np.zeros_like(p.price)
    for j in range(len(p.unserved)):
        post(p, j, books.plan[j], spend[j], use, 1.0)
    dual = Dual(start_shares(p, spend), np.zeros_like(p.price))
    return float(ascend(p, dual, cost(p, books), steps, ENOUGH)) * SAFE, dual


def certify(scenario: Scenario, rounds: int = ROUNDS, steps: int = STEPS) -> Certified:
    """A plan of the whole scenario and a bound on every plan."""
    found = whole(scenario)
    books = planned(found.market, found.problem, found.before, rounds)
    bound, dual = dual_of(found, books, steps)
    return Certified(books, cost(found.problem, books), bound, dual.toll)


def bound(scenario: Scenario) -> Bound | None:
    """The certified bound of `total_usd`; None where schedules exist that it does not cover (`problem.uncovered`).

    It holds for every schedule that the audit accepts: a job that may not move has one offer and number of machines, and
    its cheapest runs at given shares and prices are computed exactly, runs that begin within a slot included.
    """
    if uncovered(scenario):
        return None
    try:
        return Bound(value=certify(scenario).bound, sense="min", kind="certified")
    except Unsupported:
        return None
