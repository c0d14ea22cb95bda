"""What an audit saves of itself, and how it continues from it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from tradewind.audit.capacity import CapacityLedger, Claim
from tradewind.audit.costs import CostState
from tradewind.audit.record import NOT_RUN, Ran, Record
from tradewind.audit.results import Totals
from tradewind.audit.spend import Spent
from tradewind.model.decision import HeldQuote, Step
from tradewind.model.job import Job

DERIVED = ("customer", "job", "plain", "rules", "total")
"""Fields of a record that follow from the job and the script."""


Counts = tuple[tuple[int, int], ...]
"""(index, amount) pairs."""


class SavedRecord(NamedTuple):
    """A record. Claims follow from the steps; they are saved only where a finished job still holds some."""

    job: int
    state: str = "waiting"
    steps: tuple[Step, ...] = ()
    number: int = -1
    cancelled_slot: int = -1
    idle_slots: int = 0
    mark_us: int = -1
    mark_done: int = 0
    steps_run: int = 0
    claims: tuple[Claim, ...] = ()
    done: int = 0
    since_us: int = 0
    unbilled_us: int = 0
    start_us: int = -1
    finish_us: int = -1
    promise_us: int = -1
    paid: float | None = None
    chunks_done: Counts = ()
    cap_used: Counts = ()
    volumes: tuple[tuple[int, int], ...] = ()
    data_slot: int = -1
    comm_us: int = 0
    comm_span_us: int = 0
    last_end_us: int = -1
    last_nodes: frozenset[int] = frozenset()
    last_places: frozenset[tuple[int, int]] = frozenset()
    ran: Ran = NOT_RUN
    rented: Ran = NOT_RUN
    list_usd: float = 0.0
    starts: int = 0
    staged: frozenset[tuple[int, int]] = frozenset()
    served_slot: int = -1
    served_usd: float = 0.0


class AuditState(NamedTuple):
    """Everything that later checks and results depend on; what is booked follows from the records."""

    now_us: int
    next_arrival: int
    next_change: int
    found_changes: int
    next_slot: int
    timer_us: int
    slot_due_us: int
    decisions: int
    has_costs: bool
    awaited: dict[int, tuple[str, int]]
    first_slot: int
    limit: tuple[int, ...]
    down_nodes: frozenset[int]
    down_links: frozenset[int]
    used: tuple[int, ...]
    costs: CostState
    spent: tuple[Spent, ...]
    totals: Totals
    records: tuple[SavedRecord, ...]
    held: tuple[HeldQuote, ...]
    quotes: tuple[tuple[int, int, int], ...] = ()
    waiting: tuple[int, ...] = ()
    """Jobs whose records are as they were when they arrived; `records` are the others."""


COPIED = tuple(
    name for name in SavedRecord._fields if name not in ("job", "claims", "chunks_done", "cap_used")
)


def save_records(records: Iterable[Record]) -> tuple[tuple[SavedRecord, ...], tuple[int, ...]]:
    """Records as they are saved, and the jobs of those that need none."""
    rows = [save_record(record) for record in records]
    fresh = SavedRecord(0)[1:]
    return tuple(row for row in rows if row[1:] != fresh), tuple(row.job for row in rows if row[1:] == fresh)


def save_record(record: Record) -> SavedRecord:
    """A record as it is saved."""
    values = {name: getattr(record, name) for name in COPIED}
    return SavedRecord(
        job=record.job.index,
        claims=() if record.steps else tuple(record.claims),
        chunks_done=tuple(record.chunks_done.items()),
        cap_used=tuple(record.cap_used.items()),
        **values,
    )


def restore_records(
    state: AuditState,
    jobs: Mapping[int, Job],
    capacity: CapacityLedger,
    fresh: Callable[[Job], Record],
) -> dict[int, Record]:
    """The records, in order of arrival; their claims are entered again. `fresh` makes the record of a job that arrives."""
    order = [*state.waiting, *(row.job for row in state.records)]
    found = {job: fresh(jobs[job]) for job in (sorted(order) if state.waiting else order)}
    for row in state.records:
        record = found[row.job]
        for name in COPIED:
            setattr(record, name, getattr(row, name))
        record.chunks_done, record.cap_used = dict(row.chunks_done), dict(row.cap_used)
        record.claims = list(row.claims)
        for step in row.steps:
            record.claims += capacity.claims(record.job, step)
        capacity.add(record.claims)
    return found
