"""Checks of what was measured of jobs: whole, finite, positive and, where the world is simulated, true."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, cast

from tradewind.audit.record import Record
from tradewind.audit.work import WorkLedger
from tradewind.model.job import DECLARED
from tradewind.model.result import Violation
from tradewind.model.view import Event


def wrong_measurement(
    work: WorkLedger, record: Record, event: Event, *, is_measured: bool
) -> tuple[Violation, ...]:
    """What is wrong with an event `measured`: at most one violation. is_measured: the world is real."""
    rows: Sequence[Sequence[float]] = cast(Any, event.fact) or ()
    broken = ""
    if not rows or rows[0][0] != -1:
        broken = "the job as a whole must come first"
    for row in rows:
        _, iterations, seconds, error_s, declared_s = row[:5]
        if not (all(map(math.isfinite, row)) and iterations >= 0 and seconds > 0 and declared_s > 0):
            broken = f"{seconds} s in the place of {declared_s} s by {iterations} iterations"
        elif error_s < 0 and error_s != -1:
            broken = f"its standard error is {error_s} s"
    if not broken and not is_measured:
        pace, told = record.customer.pace_milli / DECLARED, rows[0][2] / rows[0][4]
        if not math.isclose(told, pace, rel_tol=1e-9):
            broken = f"{told:g} times the declared time; in this world it is {pace:g}"
        elif event.value != work.done_by(record, event.at_us):
            broken = (
                f"{event.value} is reported as done; by the steps it is {work.done_by(record, event.at_us)}"
            )
    return (Violation("work.measured", record.job.id, detail=f"measured: {broken}"),) if broken else ()


def is_bound(record: Record, *, is_measured: bool) -> bool:
    """Whether a promised completion binds: no failure, nothing measured, and the declaration was right."""
    return record.customer.pace_milli == DECLARED and record.cancelled_slot < 0 and not is_measured
