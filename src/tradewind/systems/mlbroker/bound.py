"""Offline yardsticks of the brokerage: a certified bound of the whole horizon, and the exact optimum of small ones.

The bound charges deployment once, in a job's first slot, where every site it uses is new; then the slots separate and
each is bounded by prices per job that the pooled tariff can never undercut (chord, then column generation).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

import numpy as np

from tradewind.model.arrays import Bools, Floats, Ints
from tradewind.model.errors import Unsupported
from tradewind.model.job import Job, Stream
from tradewind.model.result import Bound
from tradewind.model.scenario import Scenario
from tradewind.model.units import MILLI, OPEN, UNLIMITED
from tradewind.systems.mlbroker.kernels.bound import lower_bound
from tradewind.systems.mlbroker.kernels.costs import cost_parts
from tradewind.systems.mlbroker.kernels.egress import chord_egress
from tradewind.systems.mlbroker.kernels.limits import conflicts
from tradewind.systems.mlbroker.kernels.milp import Cap, ExactResult, solve_exactly
from tradewind.systems.mlbroker.kernels.sites import Sites, SlotPrices, Weights, make_slot, read_sites, scaled
from tradewind.systems.mlbroker.kernels.slot import Slot

ROUNDS, NODES = 30, 6000
ALL_SERVED: Mapping[int, int] = MappingProxyType({})
"""Nobody is served_until before their time."""


def bound(scenario: Scenario, served_until: Mapping[int, int] = ALL_SERVED) -> Bound | None:
    """Lower bound on the cost of any run that turns nobody away; None where there is none or prices are not covered.

    ``served_until``: jobs (index -> microseconds) that are served until then only, for runs that turn just these away then.
    In a slot without data a job counts nothing: to keep its server (8f) is the policies' choice, not the audit's law.
    """
    if not covered(scenario):
        return None
    value = 0.0
    for slot, _, _ in slots_of(scenario, chord=True, served_until=served_until):
        fed = slot.only(np.flatnonzero(slot.data.sum(axis=1)))
        if conflicts(fed):
            return None
        value += lower_bound(fed, ROUNDS, NODES).lower
    return Bound(value=value, sense="min", kind="certified")


def covered(scenario: Scenario) -> bool:
    """Whether the bound holds: stream jobs with one server site, concave prices, no failures.

    Residency, most workers and what of a job fits a site at all are in the bound; the capacity that jobs share and
    spend caps are left out, which can only lower it. It says nothing about runs that turn others away.
    """
    setup = scenario.setup
    if setup.objective != "cost_usd" or not scenario.jobs:
        return False
    if any(not isinstance(job.work, Stream) or job.servers < 1 for job in scenario.jobs):
        return False
    if any(not tariff.is_concave for tariff in (*setup.rent.values(), *setup.egress.values())):
        return False
    return all(change.kind in ("price", "egress") for change in scenario.changes)


def slots_of(
    scenario: Scenario,
    *,
    first_only: bool = True,
    chord: bool = False,
    served_until: Mapping[int, int] = ALL_SERVED,
) -> Iterator[tuple[Slot, tuple[Job, ...], int]]:
    """(slot arrays, jobs, number) of every slot with jobs; a job is in from the first slot that brings it data.

    ``first_only``: a job counts as deployed everywhere after that slot, so that deployment is charged once.
    ``chord``: tiered prices between sites count at their chord, for bounds; else at their first tier.
    ``served_until``: job -> microseconds from which it is not served any more.
    Rent and traffic are billed by the part of a slot that a job stays, so its demand and traffic are that part of them.
    """
    setup, sites = scenario.setup, read_sites(scenario.setup)
    volumes = scenario.volumes
    rows: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for job, slot, node, size in zip(volumes.job, volumes.slot, volumes.node, volumes.bytes, strict=True):
        rows.setdefault((int(slot), int(job)), []).append((int(node), int(size)))
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
        data = [rows.get((number, job.index), []) for job in jobs]
        prices, factor = _prices(scenario, sites, start)
        slot = make_slot(sites, prices, jobs, data, before, Weights())
        parts = np.array([_present_share(scenario, job, start) for job in jobs])
        if (parts < 1.0).any():
            slot = replace(
                slot,
                worker=slot.worker * parts[:, None],
                server=slot.server * parts[:, None],
                traffic=slot.traffic * parts,
            )
        if chord and sites.egress is not None:
            slot = chord_egress(slot, scaled(sites.egress, factor))
        yield slot, jobs, number


def first_data_slot(scenario: Scenario) -> dict[int, int]:
    """Job -> the first slot that brings it data while it is there; a job that never has any is left out."""
    found: dict[int, int] = {}
    volumes, slot_us = scenario.volumes, scenario.setup.slot_us
    some = volumes.bytes > 0
    for job, slot in zip(volumes.job[some].tolist(), volumes.slot[some].tolist(), strict=True):  # by slot
        if job not in found and is_present(scenario, scenario.jobs[job], slot * slot_us):
            found[job] = slot
    return found


def is_present(scenario: Scenario, job: Job, start: int) -> bool:
    """Whether a stream job is there at the start of a slot."""
    return job.arrive_us <= start < _departure_us(scenario, job)


def _departure_us(scenario: Scenario, job: Job) -> int:
    """When a stream job goes, in microseconds: by itself, or at the end of the run."""
    stay = scenario.customers[job.index].runtime_us
    assert stay is not None
    return min(job.arrive_us + stay, scenario.setup.horizon_us)


def _present_share(scenario: Scenario, job: Job, start: int) -> float:
    """The part of the slot that begins now for which a stream job stays."""
    slot_us = scenario.setup.slot_us
    return min(_departure_us(scenario, job) - start, slot_us) / slot_us


def _prices(scenario: Scenario, sites: Sites, start: int) -> tuple[SlotPrices, Floats]:
    """SlotPrices of a slot with the factors in force, the capacity that sites begin with; the egress factors (R, R)."""
    setup = scenario.setup
    shape = sites.tiers.usd.shape[:2]
    rent, egress = np.ones(shape), np.ones(sites.egress_usd.shape)
    place = {node: r for r, node in enumerate(sites.hosts)}
    for change in scenario.changes:
        if change.at_us > start:
            break
        if change.kind == "price" and change.a in place:
            rent[place[change.a], change.b] = change.value / 1000
        elif change.kind == "egress" and change.a in place and change.b in place:
            egress[place[change.a], place[change.b]] = change.value / 1000
    room = np.full(shape, np.inf)
    for r, node in enumerate(sites.hosts):
        for k, amount in enumerate(setup.nodes[node].capacity_milli):
            if amount < UNLIMITED:
                room[r, k] = amount / MILLI
    return SlotPrices(
        tiers=scaled(sites.tiers, rent), egress_usd=sites.egress_usd * egress, room=room
    ), egress


def exact(scenario: Scenario, nodes: int = 200_000) -> ExactResult:
    """The offline optimum of a small scenario by mixed-integer programming over all slots, with all its limits."""
    if any(len(tariff.usd) > 1 for tariff in scenario.setup.egress.values()):
        raise Unsupported("the exact program knows one price per GB between sites; this scenario has tiers")
    _whole_slots(scenario)
    rows = list(slots_of(scenario, first_only=False))
    return solve_exactly(*_chained(rows), nodes, caps=_caps(scenario, rows))


def _whole_slots(scenario: Scenario) -> None:
    """The exact program holds capacity and caps against whole demands, not against parts of them by time."""
    for job in scenario.jobs:
        if _departure_us(scenario, job) % scenario.setup.slot_us:
            raise Unsupported(
                f"the exact program knows whole slots; jobs[{job.id}] is there for a part of its last one"
            )


def _caps(scenario: Scenario, rows: Sequence[tuple[Slot, tuple[Job, ...], int]]) -> list[Cap]:
    """Spend caps as rows of the program: one per tenant and slot, one per tenant."""
    found: list[Cap] = []
    for tenant in sorted({job.tenant for job in scenario.jobs}):
        cap = scenario.setup.cap_of(tenant)
        if cap is None:
            continue
        mine = [
            [(t, i) for i, job in enumerate(jobs) if job.tenant == tenant]
            for t, (_, jobs, _) in enumerate(rows)
        ]
        if cap.slot_usd is not None:
            found += [(members, cap.slot_usd) for members in mine if members]
        if cap.total_usd is not None:
            found.append(([pair for members in mine for pair in members], cap.total_usd))
    return found


def _chained(rows: Sequence[tuple[Slot, tuple[Job, ...], int]]) -> tuple[list[Slot], list[Ints]]:
    """Slots, and for each job its place in the slot before (-1: it was not there)."""
    follows: list[Ints] = []
    last: dict[int, int] = {}
    last_number = -2
    for _, jobs, number in rows:
        known = last if number == last_number + 1 else {}
        follows.append(np.array([known.get(job.index, -1) for job in jobs], dtype=np.int64))
        last, last_number = {job.index: i for i, job in enumerate(jobs)}, number
    return [slot for slot, _, _ in rows], follows


def look_ahead(scenario: Scenario, slots: int, nodes: int = 20_000) -> float:
    """Cost in USD of deciding each slot by the exact program over it and the next ``slots``, for small scenarios.

    What a policy could do that were told the data of a few slots beforehand; who arrives in them is known too.
    """
    _whole_slots(scenario)
    rows = list(slots_of(scenario, first_only=False))
    here: dict[int, Bools] = {}
    before = -2
    total = 0.0
    for t, (slot, jobs, number) in enumerate(rows):
        if number != before + 1:
            here = {}
        nowhere = np.zeros(slot.shape[1], dtype=np.bool_)
        deployed = np.array([here.get(job.index, nowhere) for job in jobs])
        now = replace(slot, deployed=deployed)
        window, follows = _chained([(now, jobs, number), *rows[t + 1 : t + 1 + slots]])
        proof = solve_exactly(window, follows, nodes)
        workers, server = proof.workers[0], proof.servers[0]
        total += sum(cost_parts(now, workers, server))
        present = workers > 0
        present[np.arange(len(jobs)), server] = True
        here, before = {job.index: present[i] for i, job in enumerate(jobs)}, number
    return total
