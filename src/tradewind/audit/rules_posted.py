"""Payments recomputed from the posted price list and the audit's capacity ledger."""

from __future__ import annotations

from math import fsum, isclose, isfinite

from tradewind.audit.capacity import CapacityLedger
from tradewind.audit.record import Record
from tradewind.model.decision import Offer, Posted, Step
from tradewind.model.job import Dataset, Job
from tradewind.model.result import Violation
from tradewind.model.units import GB, UNLIMITED


def payment_adds_up(
    capacity: CapacityLedger, record: Record, offer: Offer, posted: Posted
) -> Violation | None:
    """payment = cost of the plan at the prices before the job: units * max(floor, gamma^share - 1) (Eris (6), (7)).

    Shares count what other jobs claim. Bandwidth is priced per GB: parameters of workers away from their server, and
    data, either once for the whole set (data_usd) or for each chunk that changes site.
    """
    job = record.job
    wrong = _fault(capacity, posted)
    if wrong:
        return Violation("market.posted", job.id, detail=wrong)
    total = fsum(_step_usd(capacity, job, step, posted) for step in offer.plan.steps)
    if posted.data_usd >= 0 and isinstance(job.work, Dataset):
        total += posted.data_usd * sum(n for _, n in job.work.chunks) * job.work.chunk_bytes / GB
    if isclose(total, offer.payment_usd, rel_tol=1e-9, abs_tol=1e-9):
        return None
    detail = f"at the posted prices the plan costs {total} USD, the payment is {offer.payment_usd}"
    return Violation("market.posted", job.id, amount=offer.payment_usd - total, detail=detail)


def _fault(capacity: CapacityLedger, posted: Posted) -> str:
    """What is wrong with a price list, or ""."""
    kinds = len(capacity.setup.resources)
    if len(posted.floor_usd) != kinds + 1 or not all(isfinite(f) and f >= 0 for f in posted.floor_usd):
        return f"the price list has floors {posted.floor_usd}; it needs {kinds + 1} finite numbers, none negative"
    if not (isfinite(posted.gamma) and posted.gamma >= 1):
        return f"the price list has gamma {posted.gamma}; it must be 1 or more"
    if not isfinite(posted.data_usd) or (posted.data_usd < 0 and posted.data_usd != -1):
        return f"the price list has {posted.data_usd} USD per GB of data; it must be 0 or more, or -1"
    return ""


def _step_usd(capacity: CapacityLedger, job: Job, step: Step, posted: Posted) -> float:
    """Cost of a step: workers and servers at their nodes, and bytes moved."""
    setup, total = capacity.setup, 0.0
    slot, kinds = step.from_us // setup.slot_us, len(setup.resources)
    for place, node in enumerate(step.nodes):
        servers = step.servers[place] if step.servers else 0
        for demand, count in ((job.worker, step.workers[place]), (job.server, servers)):
            for resource, milli in demand:
                price = _price(capacity, node * kinds + resource, slot, posted, resource)
                total += count * milli / 1000 * price
    away = sum(w for w, s in zip(step.workers, step.servers, strict=False) if s == 0)
    moved = away * job.traffic_bytes_per_worker_slot
    if posted.data_usd < 0:
        moved += sum(flow.bytes for flow in step.flows if flow.src != flow.dst)
    return total + moved / GB * _price(capacity, len(capacity.limit) - 1, slot, posted, kinds)


def _price(capacity: CapacityLedger, row: int, slot: int, posted: Posted, kind: int) -> float:
    """USD per unit and slot of one row of the ledger, before the job."""
    limit, floor = capacity.limit[row], posted.floor_usd[kind]
    if limit >= UNLIMITED:
        return floor
    used = capacity.open[row] + capacity.booked.get(row, {}).get(slot, 0)
    return max(floor, float(posted.gamma ** (used / max(limit, 1)) - 1.0))
