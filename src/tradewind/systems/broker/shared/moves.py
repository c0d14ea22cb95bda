"""Jobs that run: how much work is left, and whether moving one pays."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import exp

import numpy as np

from tradewind.model.decision import Step
from tradewind.model.job import Job
from tradewind.model.progress import machine_rate
from tradewind.model.setup import Setup
from tradewind.model.units import GB, MICRO, US_PER_HOUR
from tradewind.systems.broker.kernels.problem import PLAN
from tradewind.systems.broker.shared.market import Market
from tradewind.systems.broker.shared.options import Prices, build, hours_lost
from tradewind.systems.broker.shared.plan import cost, selfish, with_plans
from tradewind.systems.broker.shared.steps import plan_of
from tradewind.systems.broker.shared.ways import Request, alone

GAIN = 0.02
"""Part of what staying costs that a move has to save: prices do not stay as they are."""
LEADS = 3
"""Numbers of slots of running on, while data is moved, that are tried."""


@dataclass
class Tracked:
    """A job that is not over.

    left        work left at since_us, when its steps began or were last changed; warm_us: when the first of them does work
    settled_us  until when its spend is counted; list_usd: what it spent by then at list price
    sync_gb     what its steps at two sites exchange per slot and direction
    """

    left: int
    steps: tuple[Step, ...] = ()
    staged: frozenset[tuple[int, int]] = frozenset()
    settled_us: int = 0
    since_us: int = 0
    warm_us: int = 0
    list_usd: float = 0.0
    sync_gb: float = 0.0

    def begin(self, setup: Setup, job: Job, steps: tuple[Step, ...]) -> None:
        """Take a plan of a job that does not run."""
        self.steps = steps
        if steps:
            self.since_us = steps[0].from_us
            self.warm_us = self.since_us + job.warmup_us
            self.sync_gb = _sync_gb(setup, job, steps[-1])

    def left_at(self, setup: Setup, job: Job, at_us: int) -> int:
        """Work left at a later instant of its first step."""
        done, us = machine_rate(setup, job, self.steps[0])
        return max(0, self.left - max(0, at_us - max(self.warm_us, self.since_us)) * done // us)


def _sync_gb(setup: Setup, job: Job, step: Step) -> float:
    if len(step.nodes) < 2:
        return 0.0
    done, us = machine_rate(setup, job, step)
    return job.model_bytes / GB * setup.slot_us * done / (us * MICRO * job.sync_every)


def moved(market: Market, job: Job, tracked: Tracked, prices: Prices) -> tuple[Step, ...]:
    """New steps of a running job if that saves more than moving costs, and enters them; none: it stays.

    It runs on where it is until the data it needs elsewhere has arrived.
    """
    setup, (step,) = market.setup, tracked.steps
    slot_us, now_us = setup.slot_us, prices.slot * setup.slot_us
    stay, rent = _staying(market, job, tracked, prices)
    offers = [market.nodes.index(node) for node in step.nodes]
    list_usd = sum(float(market.list_usd[o]) * n for o, n in zip(offers, step.workers, strict=True))
    best, steps = stay * (1.0 - GAIN), tuple[Step, ...]()
    staged = tracked.staged | {(flow.src, flow.dst) for flow in step.flows}
    ways = alone(market, Request(job=job, left=1, staged=staged), spot=prices.spot)
    leads = sorted({0, *(int(each) for each in ways.earliest if each < prices.factor.shape[1])})
    for lead in leads[:LEADS]:
        left = tracked.left_at(setup, job, now_us + lead * slot_us)
        spent_usd = tracked.list_usd + lead * list_usd
        request = Request(job=job, left=left, staged=staged, spent_usd=spent_usd)
        p = build(market, [request], prices)
        p = p._replace(earliest=np.maximum(p.earliest, lead), segments=np.ones(1, dtype=np.int64))
        books = selfish(p, prices.accounts.spent)
        usd = cost(p, books) + lead * rent
        plan = plan_of(market, p, request, books.plan[0], prices.slot)
        if plan.steps and usd < best and plan.steps[0].nodes != step.nodes:
            on = (step._replace(from_us=now_us, until_us=now_us + lead * slot_us, flows=()),) if lead else ()
            best, steps = usd, (*on, *plan.steps)
    if steps:
        tracked.left, tracked.staged = tracked.left_at(setup, job, now_us), staged
        warm_us = tracked.warm_us
        tracked.begin(setup, job, steps)
        if steps[0].nodes == step.nodes:
            tracked.warm_us = warm_us
    return steps


def _staying(market: Market, job: Job, tracked: Tracked, prices: Prices) -> tuple[float, float]:
    """(what it costs to stay until the end, lost value included; rent of a slot); both with expected interruptions."""
    setup, step = market.setup, tracked.steps[0]
    now_us = prices.slot * setup.slot_us
    here = replace(job, nodes=frozenset(step.nodes), warmup_us=0, spend_cap_usd=None)
    left = tracked.left_at(setup, job, now_us + max(0, tracked.warm_us - now_us))
    sure = replace(prices, careful=False)
    p = build(
        market,
        [Request(job=here, left=left, staged=tracked.staged | {(f.src, f.dst) for f in step.flows})],
        sure,
    )
    offers = [market.nodes.index(node) for node in step.nodes]
    other, others = (offers[1], step.workers[1]) if len(offers) > 1 else (-1, 0)
    rows = np.flatnonzero(
        (p.offer == offers[0]) & (p.machines == step.workers[0]) & (p.other == other) & (p.others == others)
    )
    rate = sum(float(market.spot[o]) for o in offers)
    risk = 1.0 + rate * hours_lost(market, job)
    rent = risk * sum(
        float(market.list_usd[o] * prices.factor[o, 0]) * m for o, m in zip(offers, step.workers, strict=True)
    )
    if not len(rows):
        return float(p.unserved[0]), rent
    row, plan = int(rows[0]), np.zeros((1, PLAN), dtype=np.int64)
    slots = int(p.need[row, 0])
    plan[0, :4] = row, 1, 0, slots
    late = int(p.latest[row]) + 1 - slots < 1 + 0.1 * slots  # an interruption would be too late
    if not late:
        p = p._replace(risk=np.full_like(p.risk, risk))
    usd = cost(p, with_plans(p, prices.accounts.spent, plan))
    if late:
        usd += (1.0 - exp(-rate * slots * setup.slot_us / US_PER_HOUR)) * float(p.unserved[0])
    return usd, rent
