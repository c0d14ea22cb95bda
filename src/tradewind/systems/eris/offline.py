"""The offline optimum of tiny Eris scenarios as plans: problem (2) by mixed-integer programming."""

from __future__ import annotations

from tradewind.model.decision import Plan
from tradewind.model.result import Offline
from tradewind.model.scenario import Scenario
from tradewind.systems.eris.bound import covered, exact
from tradewind.systems.eris.shared.market import CapacityLedger, plan_of

NODES = (200, 2_000, 20_000)
"""Nodes of branch and bound, by effort."""
LARGEST = (200, 400, 1_600)
"""Jobs times slots times sites that are tried, by effort."""


def offline(scenario: Scenario, effort: int) -> Offline | None:
    """Plans and bound; None for scenarios that are too large or that the program does not cover."""
    effort = min(effort, len(NODES)) - 1
    setup = scenario.setup
    if len(scenario.jobs) * setup.slots * len(setup.hosts) > LARGEST[effort] or not covered(scenario):
        return None
    if (
        scenario.changes
        or setup.window_slots is not None
        or any(job.nodes is not None for job in scenario.jobs)
    ):
        return None
    proof = exact(scenario, NODES[effort])
    bidders = [job for job in scenario.jobs if not job.unservable_reason]
    ledger = CapacityLedger(setup)
    plans: dict[int, list[Plan]] = {}
    for job, found in zip(bidders, proof.schedules, strict=False):
        if found is not None:
            plans.setdefault(job.arrive_us, []).append(plan_of(ledger, job, found, 0))
    return Offline(plans=plans, bound=proof.bound)
