"""What a live run recorded of its jobs' data, against plans: every flow has its shards, processed in time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from tradewind.audit.record import Record
from tradewind.model.decision import Step
from tradewind.model.job import Job, Stream
from tradewind.model.result import Table, Violation
from tradewind.model.setup import Setup

Key = tuple[int, int]
"""(job, start of a step)."""


class ShardRow(NamedTuple):
    """A row of the table `shards`."""

    job: int
    number: int
    slot: int
    from_us: int
    src: int
    dst: int
    planned_bytes: int
    bytes: int
    sent_bytes: int
    arrived_us: int
    processed_us: int


class ShardLedger:
    """The shards of a run. `rows` is empty where no job has data, or the fleet could not move it."""

    def __init__(self, setup: Setup, tables: Mapping[str, Table]) -> None:
        self._setup = setup
        table: Any = tables.get("shards", {})
        self._rows = [
            ShardRow(*row) for row in zip(*(table.get(name, ()) for name in ShardRow._fields), strict=True)
        ]
        self._of_step: dict[Key, list[ShardRow]] = {}
        for row in self._rows:
            self._of_step.setdefault((row.job, row.from_us), []).append(row)
        self._planned: set[Key] = set()
        self._over: dict[Key, str] = {}  # steps of datasets that were carried out -> the job's name

    def form(self, jobs: Sequence[Job]) -> Iterator[Violation]:
        """Rows of a job are numbered; a shard is at a node where it may be, and is processed after it arrived there."""
        count: dict[int, int] = {}
        nodes, horizon_us = range(len(self._setup.nodes)), self._setup.horizon_us
        for row in self._rows:
            job = jobs[row.job] if 0 <= row.job < len(jobs) else None
            number = count[row.job] = count.get(row.job, -1) + 1
            carried = row.sent_bytes >= row.bytes if row.src != row.dst else row.sent_bytes == 0
            times = -1 <= row.arrived_us <= horizon_us and -1 <= row.processed_us <= horizon_us
            if (
                job is None or job.data is None or row.number != number or row.src not in nodes or row.dst not in nodes
                or min(row.planned_bytes, row.bytes, row.sent_bytes, row.from_us) < 0 or not times
                or row.slot != row.from_us // self._setup.slot_us
                or (row.arrived_us >= 0 and not (carried and row.from_us <= max(row.arrived_us, 0)) and not job.parts)
                or (row.processed_us >= 0 and not 0 <= row.arrived_us <= row.processed_us)
            ):  # fmt: skip
                yield Violation("shards.form", detail=f"shard {row.number} of job {row.job} is not possible")
            elif job.data_nodes is not None and row.dst not in job.data_nodes and row.arrived_us >= 0:
                name = self._setup.nodes[row.dst].name
                yield Violation(
                    "shards.residency", job.id, name, row.slot, row.bytes, "data is where it may not be"
                )

    def before(
        self, last_us: int, next_us: int, records: Iterable[Record], *, is_interrupted: bool
    ) -> Iterator[Violation]:
        """Check the plans in force from one instant until just before the next, in the state after the first.

        A run that was interrupted may not have come to order the shards of its last plans.
        """
        for record in records:
            if record.job.data is None or record.is_over:
                continue
            for step in record.steps:
                is_now = step.from_us <= last_us < step.until_us
                has_rows = (record.job.index, step.from_us) in self._of_step
                if (is_now and (has_rows or not is_interrupted)) or (
                    record.job.parts and step.from_us > last_us
                ):
                    yield from self._check(
                        record.job, step, is_now=is_now, is_complete=next_us >= step.until_us
                    )

    def _check(self, job: Job, step: Step, *, is_now: bool, is_complete: bool) -> Iterator[Violation]:
        key = (job.index, step.from_us)
        rows = self._of_step.get(key, [])
        if job.parts:
            self._planned.add(key)
            return
        if key not in self._planned and is_now:
            self._planned.add(key)
            flows, found = (
                _sums(each) for each in (((f.src, f.dst, f.bytes) for f in step.flows), _moves(rows))
            )
            if flows != found:
                detail = (
                    f"flows of {sum(flows.values())} bytes have shards of {sum(found.values())}, or elsewhere"
                )
                yield Violation(
                    "shards.plan", job.id, slot=step.from_us // self._setup.slot_us, detail=detail
                )
        if is_complete and isinstance(job.work, Stream):
            yield from self._late(job.id, rows, step.until_us)
        elif is_complete:
            self._over[key] = job.id

    def _late(self, job: str, rows: Sequence[ShardRow], end_us: int) -> Iterator[Violation]:
        late = [row for row in rows if not 0 <= row.processed_us <= end_us]
        if late:
            count, total = (sum(row.planned_bytes for row in some) for some in (late, rows))
            detail = f"{count} of {total} bytes of slot {late[0].slot} were not processed in time"
            yield Violation("shards.processed", job, slot=late[0].slot, amount=count, detail=detail)

    def close(self, *, is_interrupted: bool) -> Iterator[Violation]:
        """Shards of no plan, and data of a dataset that was never processed."""
        for key, rows in self._of_step.items():
            if key not in self._planned:
                detail = f"shard {rows[0].number} of job {key[0]} belongs to no plan"
                yield Violation("shards.plan", slot=rows[0].slot, detail=detail)
        for key, job in self._over.items() if not is_interrupted else ():
            yield from self._late(job, self._of_step.get(key, []), self._setup.horizon_us)


def _moves(rows: Iterable[ShardRow]) -> Iterator[tuple[int, int, int]]:
    return ((row.src, row.dst, row.planned_bytes) for row in rows)


def _sums(moves: Iterable[tuple[int, int, int]]) -> dict[tuple[int, int], int]:
    found: dict[tuple[int, int], int] = {}
    for src, dst, size in moves:
        found[src, dst] = found.get((src, dst), 0) + size
    return {ends: size for ends, size in found.items() if size}
