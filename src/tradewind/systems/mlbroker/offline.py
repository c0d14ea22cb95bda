"""The offline optimum of small mlBroker scenarios as plans: one mixed-integer program over all slots."""

from __future__ import annotations

from tradewind.model.decision import Plan
from tradewind.model.errors import Unsupported
from tradewind.model.result import Offline
from tradewind.model.scenario import Scenario
from tradewind.systems.mlbroker.bound.certified import covered
from tradewind.systems.mlbroker.bound.exact import exact
from tradewind.systems.mlbroker.bound.slots import slots_of
from tradewind.systems.mlbroker.kernels.sites import read_sites
from tradewind.systems.mlbroker.shared.arrays import plan_of

NODES = (1_000, 10_000, 100_000)
"""Nodes of branch and bound, by effort."""
LARGEST = (600, 3_000, 12_000)
"""Jobs times slots times the square of the sites that are tried, by effort."""


def offline(scenario: Scenario, effort: int) -> Offline | None:
    """Plans and bound; None for scenarios that are too large or that the program does not cover.

    The program keeps a server in slots without data, which the audit does not ask for, so its bound counts only where
    every job has data in all its slots.
    """
    effort = min(effort, len(NODES)) - 1
    if not covered(scenario):
        return None
    rows = list(slots_of(scenario, first_only=False))
    if sum(slot.shape[0] * slot.shape[1] ** 2 for slot, _, _ in rows) > LARGEST[effort]:
        return None
    try:
        found = exact(scenario, NODES[effort])
    except Unsupported:
        return None
    fed = all((slot.data.sum(axis=1) > 0).all() for slot, _, _ in rows)
    sites, slot_us = read_sites(scenario.setup), scenario.setup.slot_us
    plans: dict[int, list[Plan]] = {}
    for (slot, jobs, number), workers, servers in zip(rows, found.workers, found.servers, strict=False):
        span_us = (number * slot_us, (number + 1) * slot_us)
        plans[span_us[0]] = [
            plan_of(span_us, sites, slot, i, job, (workers[i], int(servers[i]))) for i, job in enumerate(jobs)
        ]
    return Offline(plans=plans, bound=found.bound if fed else None)
