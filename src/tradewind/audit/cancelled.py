"""Plans that a change of capacity or a failure cancels, by the audit's own ledger."""

from __future__ import annotations

from collections.abc import Iterable

from tradewind.audit import rules_form
from tradewind.audit.capacity import CapacityLedger
from tradewind.audit.record import Case, Record
from tradewind.model.decision import Plan


def cancelled_plans(
    capacity: CapacityLedger, case: Case, records: Iterable[Record], now_us: int
) -> dict[int, bool]:
    """Job -> whether a node or link failed, for every plan that must be cancelled.

    A plan that uses a failed node or link is cancelled. The others are entered again, oldest first, and those that no
    longer fit are cancelled: sum of what is kept <= limit in every row and slot.
    """
    fresh = CapacityLedger(capacity.setup)
    fresh.limit, fresh.now_slot = capacity.limit, capacity.now_slot
    found: dict[int, bool] = {}
    holders = [record for record in records if record.steps and not record.is_over]
    for record in sorted(holders, key=lambda r: (r.number, r.job.index)):
        ahead = tuple(step for step in record.steps if step.until_us > now_us)
        if not ahead:
            continue
        if rules_form.nodes_are_up(case.of(record, Plan(record.job.index, ahead), now_us)) is not None:
            found[record.job.index] = True
            continue
        claims = [
            claim
            for step in ahead
            for claim in fresh.claims(record.job, step)
            if claim[1] < 0 or claim[1] >= fresh.now_slot
        ]
        fresh.add(claims)
        if fresh.exceeded(claims) is not None:
            fresh.remove(claims)
            found[record.job.index] = False
    return found
