"""Promises that are dropped: a job that paid and was interrupted is left without a plan although it could be finished."""

from __future__ import annotations

from tradewind.audit.capacity import CapacityLedger
from tradewind.audit.record import Record
from tradewind.model.job import Dataset
from tradewind.model.result import Violation

PATIENCE = 3
"""Slots in a row that begin without a plan for the job, before this counts as dropped."""


def note_idle(capacity: CapacityLedger, record: Record, now_us: int) -> None:
    """Count the slots in a row at whose start an interrupted job could be finished but has no plan.

    From PATIENCE on only a plan sets the count back: that it is too late in the end is no excuse.
    """
    if any(step.until_us > now_us for step in record.steps):
        record.idle_slots = 0
    elif could_finish(capacity, record, now_us):
        record.idle_slots += 1
    elif record.idle_slots < PATIENCE:
        record.idle_slots = 0


def is_served(record: Record) -> Violation | None:
    """A customer who paid is served, or refused by a verdict: never left without a plan, PATIENCE slots in a row and at
    the end of the run, while what was free would have finished its job in the simplest way (`could_finish`)."""
    if record.idle_slots < PATIENCE:
        return None
    detail = (
        f"it paid, a failure cancelled its plan, and it was left without one in "
        f"{record.idle_slots} slots in which what was free would have finished it"
    )
    return Violation("market.dropped", record.job.id, slot=record.cancelled_slot, detail=detail)


def could_finish(capacity: CapacityLedger, record: Record, now_us: int) -> bool:
    """Whether the chunks left can be trained in what is free of the slots that may be planned now: in each slot at one
    site, with the server beside the workers, nothing moved. Sufficient, not necessary: a doubt is no accusation."""
    setup, job, work = capacity.setup, record.job, record.job.work
    if not isinstance(work, Dataset) or job.servers != 1 or job.restart_us or job.caps:
        return False
    left = _left(record, work, now_us)
    usable = [
        node
        for node in left
        if not capacity.down_nodes.intersection(setup.ancestry[node])
        and (job.nodes is None or node in job.nodes)
        and (job.data_nodes is None or node in job.data_nodes)
    ]
    now_slot = now_us // setup.slot_us
    end = min(now_slot + setup.slots_ahead(now_slot), setup.horizon_us // setup.slot_us)
    for slot in range(-(-now_us // setup.slot_us), end):
        best, trained = -1, 0
        for node in usable:
            workers = min(_workers(capacity, record, node, slot), job.workers_max)
            chunks = workers * work.chunk_epochs_per_worker_slot_milli // (1000 * work.epochs)
            if workers >= job.workers_min and min(chunks, left[node]) > trained:
                best, trained = node, min(chunks, left[node])
        if trained:
            left[best] -= trained
    return not any(left.values())


def _left(record: Record, work: Dataset, now_us: int) -> dict[int, int]:
    """Chunks left at each node."""
    left = dict(work.chunks)
    for node, chunks in record.chunks_done.items():
        left[node] -= chunks
    for step in record.steps:
        if record.since_us < step.until_us <= now_us:
            for flow in step.flows:
                left[flow.src] -= flow.bytes // work.chunk_bytes
    return left


def _workers(capacity: CapacityLedger, record: Record, node: int, slot: int) -> int:
    """Workers that fit beside the server at a node in what is free of a slot."""
    job, width, found = record.job, len(capacity.setup.resources), record.job.workers_max
    server = dict(job.server)
    worker = dict(job.worker)
    for above in capacity.setup.lineage[node]:
        for resource in {*server, *worker}:
            free = capacity.free(above * width + resource, slot) - server.get(resource, 0)
            if free < 0:
                return 0
            if worker.get(resource, 0) > 0:
                found = min(found, free // worker[resource])
    return found
