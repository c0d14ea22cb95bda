"""A scenario with its whole future as a market and its jobs, or why the bound does not cover it."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from tradewind.model.job import Customer, Fixed, Job, Rounds, Stream
from tradewind.model.scenario import Scenario
from tradewind.model.units import MILLI, UNLIMITED
from tradewind.systems.mixed.kernels.market import Market
from tradewind.systems.mixed.shared.frame import FAR, Frame, Known, Supply
from tradewind.systems.mixed.shared.oracles import ask_of, unpriceable
from tradewind.systems.mixed.shared.oracles.ask import Ask


class Whole(NamedTuple):
    """Jobs that have a worth, what there is, and the value that is there without any plan."""

    frame: Frame
    asks: list[Ask]
    supply: Supply
    market: Market
    sunk_usd: float


def uncovered(scenario: Scenario) -> str:
    """Why the bound does not cover a scenario, or ""."""
    setup = scenario.setup
    if setup.pools or not all(t.is_concave for t in (*setup.rent.values(), *setup.egress.values())):
        return "pools and retroactive tariffs"
    if any(len(t.usd) > 1 for t in setup.egress.values()):
        return "tiers of egress"
    if any(c.kind == "egress" or c.at_us % setup.slot_us for c in scenario.changes):
        return "egress that changes, or changes within a slot"
    for job, customer in zip(scenario.jobs, scenario.customers, strict=True):
        if why := unpriceable(job) or _unaligned(job, customer, setup.slot_us):
            return f"jobs[{job.id}]: {why}"
    return ""


def _unaligned(job: Job, customer: Customer, slot_us: int) -> str:
    worth, work = customer.valuation or job.utility, job.work
    if job.arrive_us % slot_us or (customer.runtime_us or 0) % slot_us:
        return "it does not begin and end with slots"
    if isinstance(work, Fixed) and (work.runtime_us or 0) % slot_us:
        return "its runtime is no number of slots"
    if isinstance(work, Rounds) and (work.unit != "worker-slot" or work.comm != "none"):
        return "only rounds in worker-slots without communication are covered"
    if worth is not None and worth.of == "payment":
        return "its worth depends on payments"
    if worth is not None and worth.of == "progress" and not isinstance(work, Rounds):
        return "progress is worth something for rounds only"
    return ""


def whole(scenario: Scenario) -> Whole:
    """The market of all slots; a job without a worth adds none and is left out."""
    setup = scenario.setup
    frame, slots = Frame(setup), setup.slots
    supply = _supply(scenario, frame, slots)
    volumes: dict[tuple[int, int], list[tuple[int, int]]] = {}
    rows = scenario.volumes
    for j, slot, node, size in zip(
        *(x.tolist() for x in (rows.job, rows.slot, rows.node, rows.bytes)), strict=True
    ):
        volumes.setdefault((j, slot), []).append((node, size))
    asks, sunk = [], 0.0
    for job, customer in zip(scenario.jobs, scenario.customers, strict=True):
        worth = customer.valuation or job.utility
        if worth is None:
            continue
        known, work = Known(), job.work
        if isinstance(work, Fixed) and work.runtime_us is None:
            work = Fixed(runtime_us=customer.runtime_us)
        if isinstance(work, Stream):
            begin, end = (
                job.arrive_us // setup.slot_us,
                (job.arrive_us + (customer.runtime_us or 0)) // setup.slot_us,
            )
            known.volumes = tuple(
                tuple(volumes.get((job.index, t), ())) if begin <= t < end else () for t in range(slots)
            )
            sunk += max(0.0, worth.value(0.0)) * sum(any(n for _, n in slot) for slot in known.volumes)
        if worth.of == "progress":
            sunk += worth.value(0.0)
        asks.append(ask_of(frame, replace(job, utility=worth, work=work), known, supply, 0.0))
    return Whole(frame, asks, supply, frame.market(supply), sunk)


def _supply(scenario: Scenario, frame: Frame, slots: int) -> Supply:
    """Limits and prices of every slot; changes come with slots."""
    setup = scenario.setup
    now, factor, down = frame.limits(), np.ones(len(frame.payers)), set[int]()
    units, factors = np.empty((slots, *now.shape)), np.empty((slots, len(factor)))
    changes = list(scenario.changes)
    for t in range(slots):
        while changes and changes[0].at_us <= t * setup.slot_us:
            change = changes.pop(0)
            if change.kind == "capacity":
                now[change.a, change.b] = FAR if change.value >= UNLIMITED else change.value / MILLI
            elif change.kind == "price" and (change.a, change.b) in frame.payers:
                factor[frame.payers.index((change.a, change.b))] = change.factor
            elif change.kind == "node_down":
                down.add(change.a)
            elif change.kind == "node_up":
                down.discard(change.a)
        units[t], factors[t] = now, factor
        for node, above in enumerate(setup.ancestry):
            if down.intersection(above):
                units[t, node] = 0.0
    return Supply(
        first=0, units=units, gb=np.full(slots, frame.gb_limit()), factor=factors, egress=frame.egress()
    )
