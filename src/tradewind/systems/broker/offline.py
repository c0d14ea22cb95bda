"""Plans of a whole scenario that know all arrivals and prices, with a certified bound."""

from __future__ import annotations

from tradewind.model.decision import Plan
from tradewind.model.errors import Unsupported
from tradewind.model.result import Offline
from tradewind.model.scenario import Scenario
from tradewind.systems.broker.bound.certified import dual_of
from tradewind.systems.broker.bound.problem import uncovered, whole
from tradewind.systems.broker.kernels.bound import sums
from tradewind.systems.broker.policy import planned
from tradewind.systems.broker.shared.plan import better, cost, first_plans, improve
from tradewind.systems.broker.shared.steps import plan_of

ROUNDS, STEPS = (200, 1_000, 4_000), (200, 600, 2_000)
"""Rounds of ruin and recreate and steps of the bound, by effort."""


def offline(scenario: Scenario, effort: int) -> Offline | None:
    """The best plans found; None for scenarios that the bound does not cover."""
    level = min(effort, len(ROUNDS)) - 1
    if uncovered(scenario):
        return None
    try:
        found = whole(scenario)
    except Unsupported:
        return None
    p, before = found.problem, found.before
    books = planned(found.market, p, before, ROUNDS[level] // 4)
    bound, dual = dual_of(found, books, STEPS[level])
    toll = sums(dual.toll)
    if dual.toll.any():
        books = better(p, first_plans(p, before, toll, lured=False), [books])
    if cost(p, books) > bound * (1.0 + 1e-4):
        books = improve(p, books, toll, ROUNDS[level])
    plans: dict[int, list[Plan]] = {}
    for j, request in enumerate(found.requests):
        plan = plan_of(found.market, p, request, books.plan[j], 0)
        if plan.steps:
            plans.setdefault(request.job.arrive_us, []).append(plan)
    return Offline(plans=plans, bound=bound)
