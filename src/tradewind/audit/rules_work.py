"""Rules on work: worker-slots left, and caps over a job's lifetime."""

from __future__ import annotations

from math import ceil, floor

from tradewind.audit.record import Case
from tradewind.audit.work import speed
from tradewind.model.decision import Step
from tradewind.model.result import Violation
from tradewind.model.units import OPEN


def worker_slots_are_left(case: Case) -> Violation | None:
    """Planned worker-slots do not exceed what is left: sum_s y_s <= F - z (GADGET (11))."""
    record, slot_us = case.record, case.setup.slot_us
    if record.total is None:
        return None
    left = (record.total - record.done) * slot_us
    for step in record.steps:  # work done until now by the plan being replaced
        if step.from_us < case.now_us and step.until_us > record.since_us:
            begin, end = max(step.from_us, record.since_us), min(step.until_us, case.now_us)
            left -= sum(step.workers) * 10**6 * (end - begin)
    for step in case.plan.steps:
        if step.until_us != OPEN:
            left -= sum(step.workers) * 10**6 * (step.until_us - step.from_us)
            if left < 0:
                over = -left / slot_us / 1e6
                return case.broken(
                    "work.left",
                    f"the plan has {over:g} worker-slots more than are left",
                    at_us=step.from_us,
                    amount=over,
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
        for step, span in zip(case.plan.steps, _spans_us(case), strict=True):
            used += milli * sum(step.workers) * span
            if used > cap * slot_us:
                over = (used / slot_us - cap) / 1000
                name = case.setup.resources[resource]
                return case.broken(
                    "work.cap", f"{over:g} {name}-slots over the cap", at_us=step.from_us, amount=over
                )
    return None


def _spans_us(case: Case) -> list[int]:
    """Duration of each step of a plan; an open-ended one lasts until the work is done."""
    record, spans = case.record, []
    done = record.done + sum(_done(case, s, record.since_us, case.now_us) for s in record.steps)
    for step in case.plan.steps:
        span = step.until_us - step.from_us
        if step.until_us == OPEN:
            pace = speed(case.setup, record.job, step)
            left = (record.total or 0) - done
            span = max(0, ceil(left / pace)) if pace else 0
        done += _done(case, step, step.from_us, step.from_us + span)
        spans.append(span)
    return spans


def _done(case: Case, step: Step, begin_us: int, end_us: int) -> int:
    """Work that a step does between two instants."""
    span = min(step.until_us, end_us) - max(step.from_us, begin_us)
    return floor(max(0, span) * speed(case.setup, case.record.job, step))
