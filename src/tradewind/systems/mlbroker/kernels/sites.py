"""A setup's sites and a slot's jobs as arrays, for the policies and the offline bounds.

Data is counted in bytes, so that flows are whole; resources in units; prices in USD per unit and slot.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tradewind.model.arrays import Floats
from tradewind.model.errors import Unsupported
from tradewind.model.job import Job, Stream
from tradewind.model.setup import Setup
from tradewind.model.tariff import Tariff
from tradewind.model.units import GB, MILLI, US_PER_HOUR
from tradewind.systems.mlbroker.kernels.slot import Slot, Tiers, tiers


@dataclass(frozen=True, slots=True, kw_only=True)
class Weights:
    """Weights of the four costs of Eq. (8) in the decision; reported costs are never weighted."""

    transfer: float = 1.0
    rent: float = 1.0
    deploy: float = 1.0
    traffic: float = 1.0

    @staticmethod
    def names() -> tuple[str, ...]:
        """Names of the weights as policy parameters."""
        return ("weight_transfer", "weight_rent", "weight_deploy", "weight_traffic")

    @classmethod
    def read(cls, params: Mapping[str, Any]) -> Weights:
        """The weights in a policy's parameters."""
        return cls(**{name.removeprefix("weight_"): float(params[name]) for name in cls.names()})


@dataclass(frozen=True, slots=True)
class Sites:
    """The sites of a setup, before price factors.

    hosts       node of each site
    tiers       rent per unit and slot
    egress_usd  (R, R) USD per byte between sites, first tier
    egress      (R, R, L) all tiers per byte; None where no price has several
    """

    hosts: tuple[int, ...]
    tiers: Tiers
    egress_usd: Floats
    egress: Tiers | None = None


def read_sites(setup: Setup) -> Sites:
    """Rent and egress tariffs as arrays; a missing tariff costs nothing, short ones are padded with their last tier."""
    hosts = setup.hosts
    for node in hosts:
        top = setup.site_of[node]
        if top != node and any((top, k) in setup.rent for k in range(len(setup.resources))):
            raise Unsupported(
                f"site {setup.nodes[top].name!r} has one rent for several nodes; the mlBroker policies need one node "
                "per site, or rent given at each node"
            )
    rent = [[setup.rent.get((node, k)) for k in range(len(setup.resources))] for node in hosts]
    tops = [setup.site_of[node] for node in hosts]
    egress = [[setup.egress.get((a, b)) if a != b else None for b in tops] for a in tops]
    priced = _tiers(egress, 1.0 / GB, GB)
    several = any(len(tariff.usd) > 1 for row in egress for tariff in row if tariff is not None)
    first = np.ascontiguousarray(priced.usd[:, :, 0])
    return Sites(hosts, _tiers(rent, setup.slot_us / US_PER_HOUR, 1.0), first, priced if several else None)


def _tiers(tariffs: Sequence[Sequence[Tariff | None]], price: float, unit: float) -> Tiers:
    """Tariffs (R, K) as arrays: prices times `price`, starts times `unit`."""
    count = max((len(tariff.usd) for row in tariffs for tariff in row if tariff is not None), default=1)
    shape = (len(tariffs), len(tariffs[0]), count)
    start, usd = np.zeros(shape), np.zeros(shape)
    for r, row in enumerate(tariffs):
        for k, tariff in enumerate(row):
            for t in range(count):
                if tariff is not None and t < len(tariff.usd):
                    start[r, k, t], usd[r, k, t] = tariff.starts[t] * unit, tariff.usd[t] * price
                elif t:
                    start[r, k, t], usd[r, k, t] = start[r, k, t - 1] + 1.0, usd[r, k, t - 1]
    return tiers(start, usd)


def units(demand: Sequence[tuple[int, int]], kinds: int, times: int = 1) -> Floats:
    """Units of each resource (K,) in `times` times a demand."""
    out = np.zeros(kinds)
    for resource, milli in demand:
        out[resource] = milli * times / MILLI
    return out


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotPrices:
    """Prices and free capacity in one slot: egress_usd (R, R) per byte; room (R, K) units, infinite where unlimited."""

    tiers: Tiers
    egress_usd: Floats
    room: Floats


def scaled(price: Tiers, factor: Floats | float) -> Tiers:
    """Tiers with every unit price times a factor, a number or (R, K)."""
    scale = np.asarray(factor)[..., None]
    return Tiers(
        start=price.start,
        usd=np.ascontiguousarray(price.usd * scale),
        intercept=np.ascontiguousarray(price.intercept * scale),
    )


def make_slot(
    sites: Sites,
    now: SlotPrices,
    jobs: Sequence[Job],
    data: Sequence[Sequence[tuple[int, int]]],
    before: Sequence[Sequence[int]],
    weights: Weights,
) -> Slot:
    """A slot of stream jobs; `data`: each job's (node, bytes); `before`: the sites it had in the previous slot."""
    count, kinds = sites.tiers.usd.shape[:2]
    place = {node: r for r, node in enumerate(sites.hosts)}
    volumes = np.zeros((len(jobs), count))
    deployed = np.zeros((len(jobs), count), dtype=np.bool_)
    worker_ok = np.ones((len(jobs), count), dtype=np.bool_)
    server_ok = np.ones((len(jobs), count), dtype=np.bool_)
    chunk = np.ones(len(jobs))
    for i, job in enumerate(jobs):
        assert isinstance(job.work, Stream)
        chunk[i] = job.work.bytes_per_worker_slot
        for node, size in data[i]:
            volumes[i, place[node]] += size
        deployed[i, list(before[i])] = True
        if job.nodes is not None:
            server_ok[i] = [node in job.nodes for node in sites.hosts]
            worker_ok[i] = server_ok[i]
        if job.data_nodes is not None:
            worker_ok[i] &= [node in job.data_nodes for node in sites.hosts]
    return Slot(
        worker=np.array([units(job.worker, kinds) for job in jobs]).reshape(len(jobs), kinds),
        server=np.array([units(job.server, kinds, job.servers) for job in jobs]).reshape(len(jobs), kinds),
        chunk=chunk,
        traffic=np.array([float(job.traffic_bytes_per_worker_slot) for job in jobs]),
        deploy_usd=weights.deploy * np.array([job.deploy_usd for job in jobs]),
        data=volumes,
        move_usd=np.ascontiguousarray(weights.transfer * now.egress_usd),
        traffic_usd=np.ascontiguousarray(weights.traffic * now.egress_usd),
        deployed=deployed,
        tiers=scaled(now.tiers, weights.rent),
        worker_ok=worker_ok,
        server_ok=server_ok,
        least_workers=np.array([job.workers_min for job in jobs], dtype=np.int64),
        most_workers=np.array([job.workers_max for job in jobs], dtype=np.int64),
        capacity=now.room,
    )
