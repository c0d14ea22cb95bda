"""A finished run slot by slot: the arrays of each slot's decision, and the decision."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from tradewind.model.arrays import Bools, Floats, Ints
from tradewind.model.job import Job
from tradewind.model.result import Run
from tradewind.model.scenario import Scenario
from tradewind.model.units import GB
from tradewind.systems.mlbroker.bound.slots import slots_of
from tradewind.systems.mlbroker.kernels.slot import NO_SITE, Slot


@dataclass(frozen=True, slots=True, kw_only=True)
class DecidedSlot:
    """One slot of a run: its arrays with the true state before, jobs, workers (I, R), server site (I,) or NO_SITE.

    Where prices between sites have tiers, the arrays have the average price that was paid, so that costs add up.
    """

    number: int
    slot: Slot
    jobs: tuple[Job, ...]
    workers: Ints
    server: Ints


def places_of(scenario: Scenario, run: Run) -> dict[tuple[int, int], list[tuple[int, int, int]]]:
    """(slot, job) -> (node, workers, servers) of the plans that were made."""
    plans, steps, places = run.tables["plans"], run.tables["steps"], run.tables["places"]
    owner = np.array(plans["job"], dtype=np.int64)[np.array(steps["plan"], dtype=np.int64)]
    number = np.array(steps["from_us"], dtype=np.int64) // scenario.setup.slot_us
    rows = np.array([places[name] for name in ("step", "node", "workers", "servers")], dtype=np.int64)
    found: dict[tuple[int, int], list[tuple[int, int, int]]] = {}
    for step, node, workers, servers in rows.T.tolist():
        key = (int(number[step]), int(owner[step]))
        found.setdefault(key, []).append((node, workers, servers))
    return found


def _paid_per_byte(scenario: Scenario, run: Run) -> Floats | None:
    """(T, R, R): average USD per byte between nodes of two sites, NaN where none moved; None where prices have one tier."""
    setup = scenario.setup
    if all(len(tariff.usd) == 1 for tariff in setup.egress.values()):
        return None
    sites, site_of = np.unique([setup.site_of[node] for node in setup.hosts], return_inverse=True)
    place = {int(site): r for r, site in enumerate(sites)}
    usd, size = np.zeros((2, setup.slots, len(sites), len(sites)))
    costs = run.tables["costs"]
    rows = zip(*(costs[name] for name in ("slot", "kind", "a", "b", "amount", "usd")), strict=True)
    for slot, kind, a, b, amount, paid in rows:
        if kind in ("transfer", "traffic"):
            at = (int(slot), place[int(a)], place[int(b)])
            usd[at] += float(paid)
            size[at] += float(amount) * GB
    with np.errstate(invalid="ignore"):
        average: Floats = (usd / size)[:, site_of][:, :, site_of]
    return average


def decided_slots(scenario: Scenario, run: Run) -> Iterator[DecidedSlot]:
    """Every slot with jobs, in order."""
    places, paid = places_of(scenario, run), _paid_per_byte(scenario, run)
    site = {node: r for r, node in enumerate(scenario.setup.hosts)}
    before: dict[int, Bools] = {}
    last = -2
    for slot, jobs, number in slots_of(scenario, first_only=False):
        workers = np.zeros((len(jobs), slot.shape[1]), dtype=np.int64)
        server = np.full(len(jobs), NO_SITE, dtype=np.int64)
        deployed = np.zeros(workers.shape, dtype=np.bool_)
        now = {}
        for i, job in enumerate(jobs):
            for node, w, s in places.get((number, job.index), ()):
                workers[i, site[node]] = w
                if s:
                    server[i] = site[node]
            if number == last + 1 and job.index in before:
                deployed[i] = before[job.index]
            here = workers[i] > 0
            if server[i] >= 0:
                here[server[i]] = True
            now[job.index] = here
        before, last = now, number
        slot = replace(slot, deployed=deployed)
        if paid is not None:
            unit = np.where(np.isnan(paid[number]), slot.move_usd, paid[number])
            slot = replace(slot, move_usd=unit, traffic_usd=unit)
        yield DecidedSlot(number=number, slot=slot, jobs=jobs, workers=workers, server=server)
