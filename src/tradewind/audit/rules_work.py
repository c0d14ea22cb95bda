"""Rules of work: caps over a job's life, and what is left after a failure."""

from __future__ import annotations

from tradewind.audit.bills import Bills
from tradewind.audit.record import Case, Record
from tradewind.audit.work import WorkBook
from tradewind.model.result import Violation
from tradewind.model.setup import Setup
from tradewind.model.units import OPEN
from tradewind.model.view import Event


def worker_slots_are_left(case: Case) -> Violation | None:
    """Planned worker-slots do not exceed what is left: sum_s y_s <= F - z (GADGET (11))."""
    record, slot_us = case.record, case.setup.slot_us
    if record.total is None:
        return None
    left = (record.total - record.done) * slot_us
    for step in record.steps:  # the plan that is being replaced has worked until now
        if step.from_us < case.now_us and step.until_us > record.since_us:
            begin, end = max(step.from_us, record.since_us), min(step.until_us, case.now_us)
            left -= sum(step.workers) * 10**6 * (end - begin)
    for step in case.plan.steps:
        if step.until_us != OPEN:
            left -= sum(step.workers) * 10**6 * (step.until_us - step.from_us)
            if left < 0:
                over = -left / slot_us / 1e6
                return case.broken(
                    "work.left", f"{over:g} worker-slots more than are left", at_us=step.from_us, amount=over
                )
    return None


def caps_are_kept(case: Case) -> Violation | None:
    """sum_t l_r * sum_s y_s[t] <= F_r for every capped resource (GADGET (3)); amounts in milli-unit-slots."""
    record, slot_us = case.record, case.setup.slot_us
    for resource, cap in record.job.caps:
        milli = dict(record.job.worker).get(resource, 0)
        used = record.cap_used.get(resource, 0)
        for step in record.steps:
            begin, end = max(step.from_us, record.since_us), min(step.until_us, case.now_us)
            used += milli * sum(step.workers) * max(0, end - begin)
        for step in case.plan.steps:
            if step.until_us != OPEN:
                used += milli * sum(step.workers) * (step.until_us - step.from_us)
            if used > cap * slot_us:
                over = (used / slot_us - cap) / 1000
                name = case.setup.resources[resource]
                return case.broken(
                    "work.cap", f"{over:g} {name}-slots over the cap", at_us=step.from_us, amount=over
                )
    return None


def settle_void(
    setup: Setup, work: WorkBook, bills: Bills, record: Record, event: Event, found: list[Violation]
) -> None:
    """A cancelled plan keeps the work of the last slot boundary (failure) or all of it (capacity shrank)."""
    boundary = event.at_us - event.at_us % setup.slot_us
    if boundary > record.since_us:
        work.accrue(record, boundary)
    least = record.done
    work.accrue(record, event.at_us)
    bills.post(record, event.at_us)
    if event.value != least and abs(event.value - record.done) > 1:
        detail = (
            f"work kept is {event.value}; the last checkpoint had {least}, until now {record.done} was done"
        )
        found.append(Violation("work.kept", record.job.id, detail=detail))
    record.done = event.value
    record.state = "voided"
