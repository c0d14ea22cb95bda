"""Plans of a whole scenario that know all arrivals and prices, with a certified bound."""

from __future__ import annotations

from tradewind.model.decision import Plan
from tradewind.model.errors import Unsupported
from tradewind.model.result import Offline
from tradewind.model.scenario import Scenario
from tradewind.systems.broker.bound.certified import Certified, Effort, solved
from tradewind.systems.broker.bound.problem import Whole, uncovered, whole
from tradewind.systems.broker.shared.steps import plan_of

EFFORTS = (Effort(), Effort(1_000, 4_000, 120, 200), Effort(4_000, 12_000, 200, 1_000))


def offline(scenario: Scenario, effort: int) -> Offline | None:
    """The best plans found; None for scenarios that the bound does not cover."""
    if uncovered(scenario):
        return None
    try:
        found = whole(scenario)
    except Unsupported:
        return None
    answer = solved(found, EFFORTS[min(effort, len(EFFORTS)) - 1])
    return Offline(plans=plans_of(found, answer), bound=answer.bound)


def plans_of(found: Whole, answer: Certified) -> dict[int, list[Plan]]:
    """Arrival -> the plans of the jobs that are served."""
    plans: dict[int, list[Plan]] = {}
    for j, request in enumerate(found.requests):
        plan = plan_of(found.market, found.problem, request, answer.books.plan[j], 0)
        if plan.steps:
            plans.setdefault(request.job.arrive_us, []).append(plan)
    return plans
