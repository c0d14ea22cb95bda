"""Offline references: a certified upper bound on welfare for any size, and the exact optimum of tiny scenarios."""

from __future__ import annotations

from functools import reduce
from itertools import groupby

import numpy as np

from tradewind.model.arrays import Floats
from tradewind.model.job import Dataset, Job
from tradewind.model.result import Bound
from tradewind.model.scenario import Scenario
from tradewind.model.units import GB, MILLI, UNLIMITED
from tradewind.systems.eris.kernels.bound import BoundEffort, PooledBound, configuration_bound
from tradewind.systems.eris.kernels.column import Pooled
from tradewind.systems.eris.kernels.milp import Bidder, Proof, solve
from tradewind.systems.eris.kernels.pool import PLENTY, demand_vector, host_capacity, pool, worth_by_slot
from tradewind.systems.eris.kernels.task import Market, TrainingTask

WHOLE, FEW, LARGE = BoundEffort(rounds=60, cuts=8), BoundEffort(rounds=6), 2000
"""Beyond LARGE jobs only a FEW rounds of column generation and no cuts: a weaker bound that is still valid."""


def bound(scenario: Scenario) -> Bound | None:
    """Upper bound on welfare; None if the scenario is not covered (other work, rent, no bids)."""
    if not covered(scenario):
        return None
    return Bound(value=pooled_bound(scenario).bound, sense="max", kind="certified")


def covered(scenario: Scenario) -> bool:
    """Whether the bound applies: datasets with a utility of the delay, one server, no rent."""
    setup = scenario.setup
    if setup.objective != "welfare_usd" or setup.rent or setup.egress or not scenario.jobs:
        return False
    for job, customer in zip(scenario.jobs, scenario.customers, strict=True):
        worth = customer.valuation or job.utility
        if (
            not isinstance(job.work, Dataset)
            or job.servers != 1
            or worth is None
            or worth.of != "delay_slots"
        ):
            return False
        if job.deploy_usd:
            return False
    return True


def pooled_bound(scenario: Scenario, effort: BoundEffort = WHOLE) -> PooledBound:
    """The configuration LP over pooled sites."""
    jobs = pooled_jobs(scenario, scenario.setup.transfer_bytes_per_slot)
    return configuration_bound(jobs, scripted_capacity(scenario), FEW if len(jobs) > LARGE else effort)


def scripted_capacity(scenario: Scenario) -> Floats:
    """Units per slot of all sites together, and GB of bandwidth: (slots, K + 1)."""
    transfer = scenario.setup.transfer_bytes_per_slot
    gb = PLENTY if transfer is None else transfer / GB
    states = host_states(scenario)
    rows = np.array([[*hosts.sum(axis=0) / MILLI, gb] for hosts in states.values()])
    return np.repeat(rows, np.diff([*states, scenario.setup.slots]), axis=0)


def host_states(scenario: Scenario) -> dict[int, Floats]:
    """Milli-units (R, K) of the sites that run workers, by the first slot at whose end they are so.

    A step with data counts only if it runs to the end of its slot. Then it holds what it needs, and all that count hold
    it together: what there was before a change within the slot serves nobody.
    """
    setup, limits, down = scenario.setup, host_capacity(scenario.setup), set[int]()
    place = {host: row for row, host in enumerate(setup.hosts)}
    found = {0: limits.copy()}
    for slot, changes in groupby(scenario.changes, key=lambda change: change.at_us // setup.slot_us):
        for change in changes:
            if change.kind == "capacity" and change.a in place:
                limits[place[change.a], change.b] = PLENTY if change.value >= UNLIMITED else change.value
            elif change.kind == "node_down":
                down.add(change.a)
            elif change.kind == "node_up":
                down.discard(change.a)
        if slot < setup.slots:
            is_up = [[down.isdisjoint(setup.ancestry[host])] for host in setup.hosts]
            found[slot] = np.where(is_up, limits, 0.0)
    return found


def pooled_jobs(scenario: Scenario, transfer: int | None) -> list[Pooled]:
    """Jobs over pooled sites; a job that arrives within a slot may use all of it. transfer: see `pool`."""
    setup, jobs = scenario.setup, []
    hosts = reduce(np.maximum, host_states(scenario).values())  # the most that a site ever has
    for job in scenario.jobs:
        start = job.arrive_us // setup.slot_us
        if (found := pool(job, hosts, _worth(scenario, job), start, transfer)) is not None:
            jobs.append(found)
    return jobs


def _worth(scenario: Scenario, job: Job) -> Floats:
    """True utility (T,) of completing in each slot."""
    utility = scenario.customers[job.index].valuation or job.utility
    assert utility is not None
    return worth_by_slot(utility, job.arrive_us // scenario.setup.slot_us, scenario.setup.slots)


def exact(scenario: Scenario, nodes: int = 200_000) -> Proof:
    """The offline optimum (problem (2)) of a tiny scenario by mixed-integer programming."""
    setup = scenario.setup
    hosts = {node: r for r, node in enumerate(setup.hosts)}
    free = np.array([setup.nodes[h].capacity_milli for h in setup.hosts], dtype=np.int64)
    shape = (setup.slots, *free.shape)
    transfer = setup.transfer_bytes_per_slot
    market = Market(
        usd=np.zeros(shape),
        byte_usd=np.zeros(setup.slots),
        free=np.broadcast_to(np.minimum(free, 10**12), shape).copy(),
        room=np.full(setup.slots, 10**15 if transfer is None else transfer, dtype=np.int64),
    )
    bidders = []
    for job in scenario.jobs:
        work = job.work
        assert isinstance(work, Dataset)
        if job.unservable_reason:
            continue
        data = np.zeros(len(hosts), dtype=np.int64)
        for node, chunks in work.chunks:
            data[hosts[node]] = chunks
        task = TrainingTask(
            worker=demand_vector(job.worker, free.shape[1]).astype(np.int64),
            server=demand_vector(job.server, free.shape[1]).astype(np.int64),
            data=data,
            rate=work.chunk_epochs_per_worker_slot_milli,
            need=1000 * work.epochs,
            chunk_bytes=work.chunk_bytes,
            traffic_bytes=job.traffic_bytes_per_worker_slot,
            most=job.workers_max,
        )
        bidders.append(Bidder(task=task, start=job.arrive_us // setup.slot_us, worth=_worth(scenario, job)))
    return solve(market, bidders, nodes)
