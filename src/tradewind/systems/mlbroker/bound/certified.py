"""A certified lower bound on the cost of the whole horizon.

It charges deployment once, in a job's first slot, where every site that it uses is new. Then the slots separate, and
each is bounded by prices per job that the pooled tariff never undercuts (`kernels.bound`).
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tradewind.model.job import Stream
from tradewind.model.result import Bound
from tradewind.model.scenario import Scenario
from tradewind.systems.mlbroker.bound.slots import ALL_SERVED, slots_of
from tradewind.systems.mlbroker.kernels.bound import lower_bound
from tradewind.systems.mlbroker.kernels.limits import conflicts

ROUNDS, NODES = 30, 6000
"""Effort per slot: rounds of column generation, and nodes of branch and bound per job."""


def bound(scenario: Scenario, served_until: Mapping[int, int] = ALL_SERVED) -> Bound | None:
    """Lower bound on the cost of any run that refuses no job; None where it does not apply or a job cannot be served.

    served_until  job -> microsecond until which it is served, for runs that refuse just these jobs then

    A job without data in a slot counts nothing: keeping its server (8f) is what the policies do, not a rule of the audit.
    """
    if not covered(scenario):
        return None
    value = 0.0
    for slot, _, _ in slots_of(scenario, chord=True, served_until=served_until):
        with_data = slot.only(np.flatnonzero(slot.data.sum(axis=1)))
        if conflicts(with_data):
            return None
        value += lower_bound(with_data, ROUNDS, NODES).lower
    return Bound(value=value, sense="min", kind="certified")


def covered(scenario: Scenario) -> bool:
    """Whether the bound applies: stream jobs with a parameter server, concave prices, no failures.

    It includes residency, `workers_max` and what of a single job fits a site. It leaves out spend caps and the capacity
    that jobs share, which can only lower it.
    """
    setup = scenario.setup
    if setup.objective != "cost_usd" or not scenario.jobs:
        return False
    if any(not isinstance(job.work, Stream) or job.servers < 1 for job in scenario.jobs):
        return False
    if any(not tariff.is_concave for tariff in (*setup.rent.values(), *setup.egress.values())):
        return False
    return all(change.kind in ("price", "egress") for change in scenario.changes)
