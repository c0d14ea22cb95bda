"""The slots of a scenario as arrays."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType

import numpy as np

from tradewind.model.arrays import Floats
from tradewind.model.job import Job
from tradewind.model.scenario import Scenario
from tradewind.model.units import MILLI, OPEN, UNLIMITED
from tradewind.systems.mlbroker.kernels.egress import chord_egress
from tradewind.systems.mlbroker.kernels.sites import (
    Sites,
    SlotPrices,
    Weights,
    make_slot,
    read_sites,
    scaled,
)
from tradewind.systems.mlbroker.kernels.slot import Slot

SlotJobs = tuple[Slot, tuple[Job, ...], int]
"""Arrays, jobs and number of a slot."""
ALL_SERVED: Mapping[int, int] = MappingProxyType({})
"""No job is refused."""


def slots_of(
    scenario: Scenario,
    *,
    first_only: bool = True,
    chord: bool = False,
    served_until: Mapping[int, int] = ALL_SERVED,
) -> Iterator[SlotJobs]:
    """Every slot with jobs; a job is in from the first slot in which it has data.

    first_only    a job counts as deployed everywhere after its first slot, so that deployment is charged once
    chord         tiered prices between sites count at their chord, for bounds; else at their first tier
    served_until  job -> microsecond until which it is served

    Rent and traffic are billed for the part of a slot that a job stays, so its demand and traffic are scaled by it.
    """
    setup, sites = scenario.setup, read_sites(scenario.setup)
    volumes = _volumes(scenario)
    everywhere = tuple(range(len(sites.hosts)))
    begins = first_data_slot(scenario)
    for number in range(setup.slots):
        start = number * setup.slot_us
        jobs = tuple(
            job
            for job in scenario.jobs
            if begins.get(job.index, setup.slots) <= number
            and is_present(scenario, job, start)
            and start < served_until.get(job.index, OPEN)
        )
        if not jobs:
            continue
        before = [everywhere if first_only and begins[job.index] < number else () for job in jobs]
        data = [volumes.get((number, job.index), []) for job in jobs]
        prices, factor = _prices(scenario, sites, start)
        slot = make_slot(sites, prices, jobs, data, before, Weights())
        slot = _for_stay(slot, np.array([_stay_share(scenario, job, start) for job in jobs]))
        if chord and sites.egress is not None:
            slot = chord_egress(slot, scaled(sites.egress, factor))
        yield slot, jobs, number


def first_data_slot(scenario: Scenario) -> dict[int, int]:
    """Job -> the first slot in which it is present and has data; jobs without any are left out."""
    found: dict[int, int] = {}
    volumes, slot_us = scenario.volumes, scenario.setup.slot_us
    some = volumes.bytes > 0
    for job, slot in zip(volumes.job[some].tolist(), volumes.slot[some].tolist(), strict=True):  # by slot
        if job not in found and is_present(scenario, scenario.jobs[job], slot * slot_us):
            found[job] = slot
    return found


def is_present(scenario: Scenario, job: Job, start: int) -> bool:
    """Whether a stream job is present at the start of a slot."""
    return job.arrive_us <= start < departure_us(scenario, job)


def departure_us(scenario: Scenario, job: Job) -> int:
    """When a stream job leaves, or the end of the run if that is earlier."""
    stay = scenario.customers[job.index].runtime_us
    assert stay is not None
    return min(job.arrive_us + stay, scenario.setup.horizon_us)


def _volumes(scenario: Scenario) -> dict[tuple[int, int], list[tuple[int, int]]]:
    """(slot, job) -> (node, bytes)."""
    v = scenario.volumes
    found: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for job, slot, node, size in zip(v.job, v.slot, v.node, v.bytes, strict=True):
        found.setdefault((int(slot), int(job)), []).append((int(node), int(size)))
    return found


def _stay_share(scenario: Scenario, job: Job, start: int) -> float:
    """The part of the slot from `start` on that a stream job stays."""
    slot_us = scenario.setup.slot_us
    return min(departure_us(scenario, job) - start, slot_us) / slot_us


def _for_stay(slot: Slot, share: Floats) -> Slot:
    """The slot with demands and traffic scaled by the part (I,) of the slot that each job stays."""
    if (share >= 1.0).all():
        return slot
    return replace(
        slot,
        worker=slot.worker * share[:, None],
        server=slot.server * share[:, None],
        traffic=slot.traffic * share,
    )


def _prices(scenario: Scenario, sites: Sites, start: int) -> tuple[SlotPrices, Floats]:
    """Prices at the factors in force with the initial capacity of sites, and the egress factors (R, R)."""
    setup = scenario.setup
    shape = sites.tiers.usd.shape[:2]
    rent, egress = np.ones(shape), np.ones(sites.egress_usd.shape)
    place = {node: r for r, node in enumerate(sites.hosts)}
    for change in scenario.changes:
        if change.at_us > start:
            break
        if change.kind == "price" and change.a in place:
            rent[place[change.a], change.b] = change.factor
        elif change.kind == "egress" and change.a in place and change.b in place:
            egress[place[change.a], place[change.b]] = change.factor
    room = np.full(shape, np.inf)
    for r, node in enumerate(sites.hosts):
        for k, amount in enumerate(setup.nodes[node].capacity_milli):
            if amount < UNLIMITED:
                room[r, k] = amount / MILLI
    now = SlotPrices(tiers=scaled(sites.tiers, rent), egress_usd=sites.egress_usd * egress, room=room)
    return now, egress
