"""Rules on jobs that rent machines: where they can run, that their data is there, and how often they start."""

from __future__ import annotations

from fractions import Fraction
from itertools import chain
from math import ceil

from tradewind.audit.record import Case
from tradewind.audit.work import step_times_us
from tradewind.model.decision import Step
from tradewind.model.result import Violation
from tradewind.model.units import OPEN


def machines_fit(case: Case) -> Violation | None:
    """A step is on the machines of one node, of a GPU type that the job has a speed for, in a number that its GPUs fill.

    m = ceil(n / GPUs per machine) for some n in job.gpus. A job with sync_every may be on two nodes, at two sites that hold
    parts of its data, its GPUs split by data.
    """
    job = case.record.job
    most = 2 if job.sync_every else 1
    for step in case.plan.steps:
        at_us, machines = step.from_us, [case.setup.nodes[node].machine for node in step.nodes]
        if not 1 <= len(machines) <= most or None in machines:
            detail = f"{len(machines)} nodes; {'one or two' if most > 1 else 'one'} with machines is required"
            return case.broken("workers.machine", detail, at_us=at_us)
        if not step_times_us(case.setup, job, step):
            named = " and ".join(
                f"{n} machines of {m.gpus} {m.gpu}" for n, m in zip(step.workers, machines, strict=True) if m
            )
            return case.broken(
                "workers.machines", f"{named}; the job cannot use them", node=step.nodes[0], at_us=at_us
            )
    return None


def data_is_there(case: Case) -> Violation | None:
    """All parts are where a step runs: stored there, copied or moved there before, or moved there by its flows.

    Of two sites the second needs its own part only; all others are at the first.
    What a step's flows bring is on its way since the plan was made: from_us - now >= 8 bytes / bandwidth of the link,
    or the time left of a copy that was on its way when the job arrived.
    """
    record, setup = case.record, case.setup
    staged = set(record.staged)
    for step in record.steps:
        if step.from_us < case.now_us:
            staged |= {(flow.src, flow.dst) for flow in step.flows}
    parts = {node: size for node, size in record.job.parts if size}
    there_us = {(a, b): record.job.arrive_us + left for a, b, left in record.job.copies}
    for step in case.plan.steps:
        site = setup.site_of[step.nodes[0]]
        brought = {flow.src: flow.bytes for flow in step.flows}
        if len(brought) != len(step.flows) or any(flow.dst != site for flow in step.flows):
            return case.broken(
                "data.parts", "flows go once from each part to the site of the step", at_us=step.from_us
            )
        for source, size in brought.items():
            if source == site or parts.get(source) != size or (source, site) in staged:
                detail = f"{size} bytes are moved that do not lie there, or that were moved before"
                return case.broken("data.parts", detail, node=source, at_us=step.from_us)
            bps = setup.direct_bps.get((source, site), 0)
            need = ceil(Fraction(8 * size * 10**6, bps)) if bps else step.until_us
            need = min(need, there_us.get((source, site), OPEN) - case.now_us)
            if step.from_us - case.now_us < need:
                late = (need - step.from_us + case.now_us) / 1e6
                detail = f"the step begins {late:g} s before its data has arrived"
                return case.broken("data.lead", detail, node=source, at_us=step.from_us, amount=late)
        staged |= {(source, site) for source in brought}
        missing = [
            source
            for source in parts
            if source not in (site, setup.site_of[step.nodes[-1]])
            and (source, site) not in staged
            and there_us.get((source, site), OPEN) > step.from_us
        ]
        if missing:
            detail = f"{parts[missing[0]]} bytes lie elsewhere and are not moved to the step's site"
            return case.broken(
                "data.missing", detail, node=missing[0], at_us=step.from_us, amount=parts[missing[0]]
            )
    return None


def restarts_are_few(case: Case) -> Violation | None:
    """It starts at most restarts + 1 times, always at the same nodes with as many workers; failures begin a new count."""
    record, most = case.record, case.record.job.restarts
    assert most is not None
    (until, places, _), starts = record.ran, record.starts
    for step in chain(_carried_out(case), case.plan.steps):
        here = tuple(zip(step.nodes, step.workers, strict=True))
        if places and here != places:
            return case.broken("plan.moves", "the job moves, which it may not", at_us=step.from_us)
        if not places or until != max(step.from_us, record.since_us):
            starts += 1
        if starts > most + 1:
            detail = f"the job starts {starts} times; it may start {most + 1} times"
            return case.broken("plan.restarts", detail, at_us=step.from_us, amount=starts - most - 1)
        until, places = step.until_us, here
    return None


def _carried_out(case: Case) -> list[Step]:
    """What the plan being replaced did since the record was settled."""
    since, now = case.record.since_us, case.now_us
    return [
        step._replace(until_us=min(step.until_us, now))
        for step in case.record.steps
        if step.from_us < now and step.until_us > since
    ]
