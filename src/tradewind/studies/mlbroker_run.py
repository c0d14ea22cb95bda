"""A finished brokerage run slot by slot: the arrays that were decided on, and the decision."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from tradewind.maths.broker_slot import Ints, Slot
from tradewind.model.job import Job
from tradewind.model.result import Run
from tradewind.model.scenario import Scenario
from tradewind.optimum.mlbroker import slots_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Decided:
    """One slot of a run: its arrays (with the true state before), jobs, workers (I, R), server site (I,) or -1."""

    number: int
    slot: Slot
    jobs: tuple[Job, ...]
    workers: Ints
    server: Ints


def places_of(scenario: Scenario, run: Run) -> dict[tuple[int, int], list[tuple[int, int, int]]]:
    """(slot, job) -> (node, workers, servers) rows of the plans that were made."""
    plans, steps, places = run.tables["plans"], run.tables["steps"], run.tables["places"]
    owner = np.array(plans["job"], dtype=np.int64)[np.array(steps["plan"], dtype=np.int64)]
    number = np.array(steps["from_us"], dtype=np.int64) // scenario.setup.slot_us
    rows = np.array([places[name] for name in ("step", "node", "workers", "servers")], dtype=np.int64)
    found: dict[tuple[int, int], list[tuple[int, int, int]]] = {}
    for step, node, workers, servers in rows.T.tolist():
        key = (int(number[step]), int(owner[step]))
        found.setdefault(key, []).append((node, workers, servers))
    return found


def decided_slots(scenario: Scenario, run: Run) -> Iterator[Decided]:
    """Every slot with jobs, in order."""
    places = places_of(scenario, run)
    site = {node: r for r, node in enumerate(scenario.setup.hosts)}
    before: dict[int, np.ndarray[tuple[int], np.dtype[np.bool_]]] = {}
    last = -2
    for slot, jobs, number in slots_of(scenario, first_only=False):
        count = slot.shape[1]
        workers = np.zeros((len(jobs), count), dtype=np.int64)
        server = np.full(len(jobs), -1, dtype=np.int64)
        deployed = np.zeros((len(jobs), count), dtype=np.bool_)
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
        yield Decided(
            number=number, slot=replace(slot, deployed=deployed), jobs=jobs, workers=workers, server=server
        )
