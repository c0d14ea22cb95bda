"""Rivals of the broker: every job alone, all in one site, and a rule as SkyPilot's optimizer places single tasks."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tradewind.model.arrays import Floats
from tradewind.model.job import Job
from tradewind.model.utility import Utility
from tradewind.systems.broker.kernels.problem import Problem
from tradewind.systems.broker.kernels.search import Books, load
from tradewind.systems.broker.shared.market import Market
from tradewind.systems.broker.shared.plan import books, central, selfish
from tradewind.systems.broker.shared.policy import broker_spec


def _asked(job: Job) -> Job:
    """A task as the rule sees it: a quarter of its largest number of GPUs, and no deadline."""
    asked = max((n for n in job.gpus if 4 * n <= job.gpus[-1]), default=job.gpus[0])
    return replace(job, gpus=(asked,), utility=Utility(of="delay_slots", shape="linear", args=(1e12, 0.0)))


def skypilot(market: Market, p: Problem, before: Floats) -> Books:
    """Our model of SkyPilot's rule, not its code: every task alone and at once, cheapest list rent and egress.

    It asks for one number of GPUs, knows no discount, no deadline and no risk of spot, and takes the next offer if one is
    full.
    """
    del market
    found = books(p, before)
    usd = (
        (p.need[:, 0] - 1 + p.part[:, 0]) * p.machines * p.price[p.offer, 0] + p.own + p.moved_usd.sum(axis=1)
    )
    use = np.zeros_like(p.price)
    plan = found.plan.copy()
    for j in range(len(p.unserved)):
        rows = np.arange(p.first[j], p.first[j + 1])
        rows = rows[p.other[rows] < 0]
        for i in rows[np.argsort(usd[rows], kind="stable")].tolist():
            o, at, end = p.offer[i], p.earliest[i], p.earliest[i] + p.need[i, 0]
            if end > p.price.shape[1] or (use[o, at:end] + p.machines[i] > p.room[o, at:end]).any():
                continue
            use[o, at:end] += p.machines[i]
            plan[j, :4] = i, 1, at, p.need[i, 0]
            break
    load(p, found, plan)
    return found


SELFISH = broker_spec(
    name="broker-selfish",
    summary="Every job at the lowest bill of its own, as if nobody else rented anything",
    choose=lambda params: lambda market, p, before: selfish(p, before),
)
CENTRAL = broker_spec(
    name="broker-central",
    summary="All jobs of a slot in the one site where they cost least together",
    choose=lambda params: lambda market, p, before: central(p, before, market.site),
)
SKYPILOT = broker_spec(
    name="skypilot-rule",
    summary="Our model of SkyPilot's optimizer: every task alone, at once, at the cheapest list price with egress",
    choose=lambda params: skypilot,
    reading=_asked,
)
