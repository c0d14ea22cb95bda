"""What streams are worth by the slots that were served."""

from __future__ import annotations

from tradewind.engine.intervals import EventKinds, Intervals, ints
from tradewind.model.result import Run
from tradewind.model.scenario import Scenario
from tradewind.model.units import GB


def served_usd(scenario: Scenario, run: Run, intervals: Intervals) -> dict[int, float]:
    """Stream -> sum over its slots with data of its worth: at the slot's GB where a step ran to the end, else at 0.

    A slot that the job leaves ends then; one in which it is refused or cancelled, or the run ends, counts for nothing.
    """
    if not len(scenario.volumes):
        return {}
    worths = {
        job.index: worth
        for job, customer in zip(scenario.jobs, scenario.customers, strict=True)
        if (worth := customer.valuation or job.utility) is not None and worth.of == "served"
    }
    if not worths:
        return {}
    slot_us, volumes = scenario.setup.slot_us, scenario.volumes
    size: dict[tuple[int, int], int] = {}
    for job, slot, amount in zip(
        *(x.tolist() for x in (volumes.job, volumes.slot, volumes.bytes)), strict=True
    ):
        size[job, slot] = size.get((job, slot), 0) + amount
    kinds, jobs, times = EventKinds(run), ints(run, "events", "job"), ints(run, "events", "at_us")
    closed = {int(jobs[i]): int(times[i]) for i in kinds.are("left").nonzero()[0]}
    gone = {int(jobs[i]): int(times[i]) for i in kinds.are("refused", "cancelled", "ended").nonzero()[0]}
    rows = zip(intervals.job.tolist(), intervals.from_us.tolist(), intervals.until_us.tolist(), strict=True)
    ran = {(job, begin): until for job, begin, until in rows if job in worths}
    found = dict.fromkeys(worths, 0.0)
    slots = ints(run, "events", "value")
    for i in kinds.are("data").nonzero()[0]:
        job, slot = int(jobs[i]), int(slots[i])
        end = (slot + 1) * slot_us
        amount = size.get((job, slot), 0)
        if job not in worths or not amount or gone.get(job, end) < end:
            continue
        whole = ran.get((job, slot * slot_us), -1) >= min(end, closed.get(job, end))
        found[job] += worths[job].value(amount / GB if whole else 0.0)
    return found
