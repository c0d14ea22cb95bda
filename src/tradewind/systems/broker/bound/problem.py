"""The planning problem of a whole scenario, future prices included, without interruptions."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tradewind.model.arrays import Floats
from tradewind.model.job import Job
from tradewind.model.scenario import Scenario
from tradewind.systems.broker.kernels.problem import SEGMENTS, Problem
from tradewind.systems.broker.shared.market import Market, accounts_of, rooms
from tradewind.systems.broker.shared.options import Prices, build
from tradewind.systems.broker.shared.ways import Request


class Whole(NamedTuple):
    """A scenario as one problem."""

    market: Market
    requests: list[Request]
    problem: Problem
    before: Floats


def whole(scenario: Scenario, *, every: bool = False) -> Whole:
    """All jobs, from their arrival on, at the prices of every slot; every: with options that no best plan uses."""
    setup = scenario.setup
    market, slots = Market(setup), setup.slots
    factor = _factors(scenario)[market.payer]
    requests = [
        Request(
            job=job,
            left=job.work.total or 0,
            staged=job.copied_by(job.arrive_us),
            ready=-(-job.arrive_us // setup.slot_us),
        )
        for job in scenario.jobs
    ]
    milli = scenario.jobs[0].worker[0][1] if scenario.jobs else 1000
    accounts = accounts_of(setup, 0, slots, {})
    room = rooms(setup, market.nodes, slots, milli)
    prices = Prices(slot=0, factor=factor, room=room, accounts=accounts, every=every)
    return Whole(market, requests, build(market, requests, prices), accounts.spent)


def _factors(scenario: Scenario) -> Floats:
    """Factor on the prices of each node in each slot, shape (nodes, T); the last row: no node."""
    setup = scenario.setup
    found = np.ones((len(setup.nodes) + 1, setup.slots))
    since = np.zeros(found.shape, dtype=np.int64)
    for change in scenario.changes:
        slot = change.at_us // setup.slot_us
        if change.kind == "price" and slot < setup.slots:
            found[change.a, slot], since[change.a, slot] = change.factor, slot
    filled: Floats = np.take_along_axis(found, np.maximum.accumulate(since, axis=1), axis=1)
    return filled


def uncovered(scenario: Scenario) -> str:
    """Why the bound does not hold for a scenario, or ""."""
    if not scenario.jobs or any(not job.gpus for job in scenario.jobs):
        return "all jobs must train on machines"
    if any(job.utility is None or job.utility.of != "delay_slots" for job in scenario.jobs):
        return "every job needs a bid that falls with delay"
    if any(job.restarts is None or job.restarts >= SEGMENTS for job in scenario.jobs):
        return "jobs must not move, and pause at most twice"
    if any(job.arrive_us % scenario.setup.slot_us for job in scenario.jobs):
        return "jobs must arrive at the start of a slot"
    if any(left_us for job in scenario.jobs for _, _, left_us in job.copies):
        return "no data must be on its way when a job arrives"
    if any(change.kind != "price" for change in scenario.changes):
        return "what is interrupted may go on elsewhere, which single offers do not bound"
    if len({job.worker for job in scenario.jobs}) > 1:
        return "all jobs must ask for the same machines"
    pools = scenario.setup.pools
    if any(pool.rent and pool.egress for pool in pools):
        return "a pool must not count rent and egress together"
    if any(job.sync_every for job in scenario.jobs) and (why := _across(scenario)):
        return why
    if any(job.deploy_usd or _is_partial(job) for job in scenario.jobs):
        return "jobs must not have deployment costs or transfer limits"
    return _mixed(scenario)


def _across(scenario: Scenario) -> str:
    """Why pools do not go together with jobs that train at two sites, or ""."""
    setup = scenario.setup
    for pool in setup.pools:
        sites = {setup.site_of[node] for node, _ in pool.rent}
        if len(sites) > 1 and pool.period_us == setup.slot_us:
            return "jobs that train at two sites need pools per slot of single sites"
        if pool.egress and pool.period_us < setup.horizon_us:
            return "jobs that train at two sites send all the time; periods of egress must not end before the run"
    return ""


def _is_partial(job: Job) -> bool:
    return bool(job.caps or job.servers)


def _mixed(scenario: Scenario) -> str:
    """Why pools, prices that change and pauses do not go together, or ""."""
    setup = scenario.setup
    varying = {change.a for change in scenario.changes}
    long = {key[0] for pool in setup.pools if pool.period_us > setup.slot_us for key in pool.rent}
    short = {key[0] for pool in setup.pools if pool.period_us == setup.slot_us for key in pool.rent}
    crossing = any(
        pool.rent and pool.period_us < setup.horizon_us
        for pool in setup.pools
        if pool.period_us > setup.slot_us
    )
    if varying & long:
        return "prices of nodes in a monthly pool must not change"
    if any(job.restarts for job in scenario.jobs) and (varying or short or crossing):
        return "jobs that may pause need constant prices and no pools per slot"
    return ""
