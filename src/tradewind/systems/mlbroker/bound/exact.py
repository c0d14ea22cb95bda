"""Exact references for small scenarios: the offline optimum, and decisions that look a few slots ahead."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from tradewind.model.arrays import Bools, Ints
from tradewind.model.errors import Unsupported
from tradewind.model.scenario import Scenario
from tradewind.systems.mlbroker.bound.slots import SlotJobs, departure_us, slots_of
from tradewind.systems.mlbroker.kernels.costs import cost_parts
from tradewind.systems.mlbroker.kernels.milp import NEW, Cap, ExactResult, solve_exactly
from tradewind.systems.mlbroker.kernels.slot import Slot


def exact(scenario: Scenario, nodes: int = 200_000) -> ExactResult:
    """The offline optimum of a small scenario under all its limits, by one mixed-integer program over all slots."""
    if any(len(tariff.usd) > 1 for tariff in scenario.setup.egress.values()):
        raise Unsupported(
            "the exact program supports one price per GB between two sites; this scenario has tiers"
        )
    _check_whole_slots(scenario)
    rows = list(slots_of(scenario, first_only=False))
    return solve_exactly(*_chained(rows), nodes, caps=_caps(scenario, rows))


def look_ahead(scenario: Scenario, slots: int, nodes: int = 20_000, *, known: bool = True) -> float:
    """Cost in USD of a small scenario when each slot is decided by the exact program over it and the next `slots`.

    This is what a policy could do with a perfect forecast of arrivals and data for a few slots; or (known=False) with one
    that repeats what was seen last: the jobs of the present slot stay, with their data and prices of now.
    """
    _check_whole_slots(scenario)
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
        later = rows[t + 1 : t + 1 + slots]
        if not known:
            later = [(slot, jobs, number + k) for k in range(1, 1 + len(later))]
        window, follows = _chained([(now, jobs, number), *later])
        found = solve_exactly(window, follows, nodes)
        workers, server = found.workers[0], found.servers[0]
        total += sum(cost_parts(now, workers, server))
        present = workers > 0
        present[np.arange(len(jobs)), server] = True
        here, before = {job.index: present[i] for i, job in enumerate(jobs)}, number
    return total


def _check_whole_slots(scenario: Scenario) -> None:
    """Raise unless all jobs leave at the end of a slot: the program compares capacity and caps with full demands."""
    for job in scenario.jobs:
        if departure_us(scenario, job) % scenario.setup.slot_us:
            raise Unsupported(
                f"the exact program needs jobs that leave at the end of a slot; jobs[{job.id}] leaves within one"
            )


def _caps(scenario: Scenario, rows: Sequence[SlotJobs]) -> list[Cap]:
    """Spend caps of the program: one per tenant and slot, one per tenant."""
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


def _chained(rows: Sequence[SlotJobs]) -> tuple[list[Slot], list[Ints]]:
    """Slots, and the index of each job in the previous slot, or NEW."""
    follows: list[Ints] = []
    last: dict[int, int] = {}
    last_number = -2
    for _, jobs, number in rows:
        known = last if number == last_number + 1 else {}
        follows.append(np.array([known.get(job.index, NEW) for job in jobs], dtype=np.int64))
        last, last_number = {job.index: i for i, job in enumerate(jobs)}, number
    return [slot for slot, _, _ in rows], follows
