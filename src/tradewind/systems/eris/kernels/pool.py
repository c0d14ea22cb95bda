"""Jobs over pooled sites, for the bound and for reserve prices from its dual prices."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import astuple
from typing import Any, NamedTuple

import numpy as np

from tradewind.model.arrays import Floats
from tradewind.model.job import Dataset, Demand, Job
from tradewind.model.setup import Setup
from tradewind.model.units import GB, MILLI, UNLIMITED
from tradewind.model.utility import Utility
from tradewind.systems.eris.kernels.bound import BoundEffort, configuration_bound
from tradewind.systems.eris.kernels.column import Pooled

PLENTY = 1e12
"""Stands for unlimited capacity."""
SPREAD = 0.3
"""Standard deviations above the mean in reserve prices; chosen on seeds 101 to 120."""


def demand_vector(demand: Demand, kinds: int) -> Floats:
    """Milli-units (K,) of a demand."""
    vector = np.zeros(kinds)
    for k, milli in demand:
        vector[k] = milli
    return vector


def host_capacity(setup: Setup) -> Floats:
    """Milli-units (R, K) of the sites that run workers."""
    hosts = np.array([setup.nodes[h].capacity_milli for h in setup.hosts], dtype=np.float64)
    return np.where(hosts >= UNLIMITED, PLENTY, hosts)


def pooled_capacity(setup: Setup, slots: int) -> Floats:
    """Units per slot of all sites together, and GB of bandwidth: (slots, K + 1)."""
    transfer = setup.transfer_bytes_per_slot
    row = np.append(host_capacity(setup).sum(axis=0) / MILLI, PLENTY if transfer is None else transfer / GB)
    return np.tile(row, (slots, 1))


def worth_by_slot(utility: Utility, arrived: int, slots: int) -> Floats:
    """Utility (slots,) of completing in each slot, 0 before `arrived`; never rising, since a job may finish late."""
    values = [utility.value(t - arrived) if t >= arrived else 0.0 for t in range(slots)]
    worth: Floats = np.maximum(np.array(values), 0.0)
    worth[arrived:] = np.maximum.accumulate(worth[arrived:][::-1])[::-1]
    return worth


def pool(job: Job, hosts: Floats, worth: Floats, start: int, transfer: int | None = None) -> Pooled | None:
    """A job over pooled sites (R, K) that may begin in slot `start`; None if it cannot be served.

    transfer: bytes per slot, which limit the workers away from the server; None: no limit.
    """
    kinds = hosts.shape[1]
    worker, server = demand_vector(job.worker, kinds), demand_vector(job.server, kinds)
    fit, serves = _most(hosts, worker), (hosts >= server).all(axis=1)
    near = _most(hosts - server, worker)[serves]
    if not len(near) or fit.sum() < 1 or job.unservable_reason:
        return None
    work, traffic = job.work, job.traffic_bytes_per_worker_slot
    assert isinstance(work, Dataset)
    together = fit.sum() + (near - fit[serves]).max()  # a server takes its part of a site
    beside, widest = int(min(near.max(), 1e9)), int(min(together, job.workers_max))
    if transfer is not None and traffic > 0:
        widest = min(widest, beside + transfer // traffic)
    if widest < 1:
        return None
    return Pooled(
        use=np.append(worker / MILLI, traffic / GB),
        server=server / MILLI,
        beside=beside,
        widest=widest,
        units=math.ceil(work.total * 1000 * work.epochs / work.chunk_epochs_per_worker_slot_milli),
        start=start,
        worth=worth,
    )


def _most(free: Floats, worker: Floats) -> Floats:
    """Workers (R,) that fit in free capacity (R, K)."""
    needs = worker > 0
    if not needs.any():
        return np.full(len(free), 1e9)
    most: Floats = np.floor((free[:, needs] / worker[needs]).min(axis=1))
    return most


class PastBid(NamedTuple):
    """A bid as it is remembered when its job is over: the job over pooled sites, whose worth follows from its utility."""

    job: Pooled
    utility: Utility

    def within(self, begin: int, slots: int) -> PastBid:
        """The bid with its start and worth counted from slot `begin` on, over `slots` slots."""
        start = self.job.start - begin
        job = self.job._replace(start=start, worth=worth_by_slot(self.utility, start, slots))
        return self._replace(job=job)

    def by_delay(self, setup: Setup) -> PastBid:
        """The bid with its worth by slots of delay; what the horizon cuts off is worth nothing."""
        worth = worth_by_slot(self.utility, 0, setup.slots_ahead(0))
        worth[max(0, setup.horizon_us // setup.slot_us - self.job.start) :] = 0.0
        return self._replace(job=self.job._replace(worth=worth))

    def save(self) -> list[Any]:
        """Plain data."""
        use, server, *rest, _ = self.job
        return [use.tolist(), server.tolist(), *rest, *astuple(self.utility)]

    @classmethod
    def read(cls, row: list[Any]) -> PastBid:
        """The bid that `save` wrote."""
        use, server, beside, widest, units, start, of, shape, args, from_zero = row
        job = Pooled(np.array(use), np.array(server), beside, widest, units, start, np.zeros(0))
        return cls(job, Utility(of=of, shape=shape, args=tuple(args), from_zero=from_zero))


def past_bid(job: Job, hosts: Floats, slot_us: int, transfer: int | None = None) -> PastBid | None:
    """What is remembered of a bid; None if it has no utility of the delay or cannot be served over these sites."""
    if job.utility is None or job.utility.of != "delay_slots":
        return None
    found = pool(job, hosts, np.zeros(0), job.arrive_us // slot_us, transfer)
    return None if found is None else PastBid(found, job.utility)


def scarcity_prices(setup: Setup, bids: Sequence[PastBid], first: int, slots: int, busy: int) -> Floats:
    """Dual prices (busy, K + 1) of the pooled LP of these bids over slots from `first` on, in the first `busy` of them.

    USD per unit and slot of each resource, the last per GB of bandwidth.
    """
    found = [bid.within(first, slots).job for bid in bids if first <= bid.job.start < first + slots]
    if not found:
        return np.zeros((busy, len(setup.resources) + 1))
    effort = BoundEffort(rounds=20, gap=5e-3)
    return configuration_bound(found, pooled_capacity(setup, slots), effort).price[:busy]


def reserve_prices(prices: Floats) -> Floats:
    """Mean plus SPREAD standard deviations of prices (slots, K + 1): bursts make a resource worth more than its mean."""
    reserve: Floats = prices.mean(axis=0) + SPREAD * prices.std(axis=0)
    return reserve
