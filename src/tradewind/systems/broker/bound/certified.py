"""The certified bound of a scenario's bill: shares of discounts and prices of capacity (kernels/bound.py)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tradewind.model.arrays import Ints
from tradewind.model.errors import Unsupported
from tradewind.model.result import Bound
from tradewind.model.scenario import Scenario
from tradewind.systems.broker.bound.columns import Columns
from tradewind.systems.broker.bound.problem import Whole, uncovered, whole
from tradewind.systems.broker.kernels.bound import Dual, ascend, start_shares, sums
from tradewind.systems.broker.kernels.problem import post
from tradewind.systems.broker.kernels.search import Books, take
from tradewind.systems.broker.policy import planned
from tradewind.systems.broker.shared.plan import better, cost, first_plans, improve, settle
from tradewind.systems.broker.shared.plan import books as nobody


class Effort(NamedTuple):
    """Rounds of search for the plan, steps of the bound, turns of column generation, nodes of the choice among columns."""

    rounds: int = 400
    steps: int = 2_000
    turns: int = 60
    nodes: int = 50


DEFAULT = Effort()
ENOUGH = 1e-5
"""The gap at which everything stops."""
SHORT, STALLED = 0.1, 0.01
"""Steps end once they are short and a turn of them closes less than this part of the gap."""
STARTS, LENGTH = 8, 0.3
"""How often the replies of the jobs are tried as a plan on the way; the first length of steps."""
MANY = 500
"""Beyond so many jobs the program over their replies is left out: it takes longer than the steps and finds less."""
SAFE = 1.0 - 1e-9
"""Rounding of sums, and of a microsecond per pause."""


class Certified(NamedTuple):
    """A plan, its cost, the bound, and the shares and prices of capacity that prove it."""

    books: Books
    usd: float
    bound: float
    dual: Dual


def start_of(found: Whole, books: Books) -> Dual:
    """Shares as a plan spends; machines have no price yet."""
    p = found.problem
    spend, use = np.zeros((len(p.unserved), len(found.before))), np.zeros_like(p.price)
    for j in range(len(p.unserved)):
        post(p, j, books.plan[j], spend[j], use, 1.0)
    return Dual(start_shares(p, spend), np.zeros_like(p.price))


def solved(found: Whole, effort: Effort = DEFAULT) -> Certified:
    """A plan of a whole scenario and a bound on every plan. Each helps the other: replies at the bound's prices are plans,
    and a cheaper plan is what the bound aims at."""
    p, before = found.problem, found.before
    books = planned(found.market, p, before, effort.rounds)
    dual, length, bound = start_of(found, books), LENGTH, 0.0
    replies, order = np.zeros_like(books.plan), np.arange(len(p.unserved))
    for _ in range(STARTS):
        usd, last = cost(p, books), bound
        bound, length = ascend(p, dual, usd, effort.steps // STARTS, ENOUGH, length, replies)
        if bound >= usd * (1.0 - ENOUGH):
            break
        starts = [_served(found, replies, order)]
        if dual.toll.any():
            starts.append(first_plans(p, before, sums(dual.toll), lured=False))
        books = better(p, books, starts)
        if length < SHORT and bound - last < STALLED * (usd - bound):
            break
    if dual.toll.any() and len(order) <= MANY:
        columns = Columns(p, dual)
        bound = max(bound, columns.raise_bound(effort.turns))
        starts = [
            _served(found, columns.plan(effort.nodes), order),
            first_plans(p, before, sums(dual.toll), lured=False),
        ]
        books = better(p, books, starts)
    if cost(p, books) > bound * (1.0 + ENOUGH):
        books = improve(p, books, sums(dual.toll), effort.rounds)
    return Certified(books, cost(p, books), bound * SAFE, dual)


def _served(found: Whole, plan: Ints, order: Ints) -> Books:
    """A plan in which each job has what it was given as far as that fits; the rest is priced, and all settle."""
    p = found.problem
    served = nobody(p, found.before)
    for j in order.tolist():
        take(p, served, j, plan[j])
    settle(p, served, order)
    return served


def certify(scenario: Scenario, effort: Effort = DEFAULT) -> Certified:
    """A plan of the whole scenario and a bound on every plan."""
    return solved(whole(scenario), effort)


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
