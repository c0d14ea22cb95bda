"""The loop's part in moving data: which shards the plans in force need, where they are, and what was processed.

Everything is recorded in the journal before it counts, so that a loop that is restarted knows the same.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from tradewind.model.codec import plain, read
from tradewind.model.decision import Step
from tradewind.model.job import Dataset, Job, Stream
from tradewind.model.result import Violation
from tradewind.model.setup import Setup
from tradewind.model.view import Event
from tradewind.worlds.data.depot import Arrived, Depot, JobFiles
from tradewind.worlds.data.shards import (
    Shard,
    Stock,
    Store,
    data_node,
    moves,
    number_of,
    parts_of,
    records_of,
    split,
)

KIND = "data"
"""Kind of its records in the journal."""
BUSY_S = 0.05
"""While data moves, it is looked for this often."""


class Planned(Protocol):
    """What is known of an active job."""

    steps: tuple[Step, ...]


@dataclass(slots=True)
class Order:
    """The shards of a step. chunks: of a dataset, by the node where they are stored."""

    step: Step
    shards: list[Shard]
    chunks: dict[int, list[int]]
    is_over: bool = False
    is_cancelled: bool = False


@dataclass(slots=True)
class ShardState:
    """A shard and what became of it; -1: it did not."""

    shard: Shard
    bytes: int
    sent_bytes: int = 0
    arrived_us: int = -1
    processed_us: int = -1


@dataclass(slots=True)
class JobData:
    """The data of a job."""

    job: Job
    stock: Stock
    next_record: int = 0
    orders: dict[int, Order] = field(default_factory=dict)  # by the start of their step
    shards: list[ShardState] = field(default_factory=list)
    staged: set[tuple[int, int]] = field(default_factory=set)  # of jobs with parts: (src, dst) carried before

    def late(self, order: Order) -> list[ShardState]:
        """Shards of an order that were not processed, or not in time: a stream's in its slot, a dataset's ever."""
        if self.job.parts or order.is_cancelled or not order.is_over:
            return []
        end_us = order.step.until_us if isinstance(self.job.work, Stream) else float("inf")
        states = (self.shards[shard.number] for shard in order.shards)
        return [each for each in states if not 0 <= each.processed_us <= end_us]


class DataKeeper:
    """The data of all jobs that have any.

    depot   where the files are; None: this fleet has no data
    record  appends to the journal
    alarm   (job, text) tells the operator
    """

    def __init__(
        self, setup: Setup, depot: Depot | None, record: Callable[[str, dict[str, Any]], None],
        alarm: Callable[[int, str], None],
    ) -> None:  # fmt: skip
        self._setup, self.depot = setup, depot
        self._record, self._alarm = record, alarm
        self.jobs: dict[int, JobData] = {}
        self._told: dict[int, JobFiles] = {}

    # ------------------------------------------------------------------ what happens
    def take(self, events: Sequence[Event]) -> None:
        """Take in jobs that arrive and data that appears; also when they are replayed."""
        for event in events if self.depot is not None else ():
            if isinstance(event.fact, Job) and event.fact.data is not None:
                self._arrive(event.fact)
            elif event.kind == "data" and event.job in self.jobs:
                self._appear(self.jobs[event.job], event)

    def _arrive(self, job: Job) -> None:
        mine = self.jobs[job.index] = JobData(job, Stock(job))
        work = job.work
        sizes = (
            [(node, n * work.chunk_bytes) for node, n in work.chunks]
            if isinstance(work, Dataset)
            else job.parts
        )
        for node, size in sizes:
            mine.stock.stores[node] = self._store(mine, node, "all", size)

    def _appear(self, mine: JobData, event: Event) -> None:
        """New data of a stream replaces what is left of the slot before."""
        sizes: dict[int, int] = {}
        volumes: Any = event.fact
        for node, size in volumes:
            sizes[node] = sizes.get(node, 0) + size
        mine.stock.stores = {
            node: self._store(mine, node, f"slot-{event.value}", size) for node, size in sizes.items() if size
        }

    def _store(self, mine: JobData, node: int, name: str, size: int) -> Store:
        assert mine.job.data is not None
        assert self.depot is not None
        count, first = records_of(mine.job.data, size, self.depot.scale), mine.next_record
        mine.next_record += count
        return Store(mine.job.index, node, name, first, count, size)

    # ------------------------------------------------------------------ what should be there
    def update(
        self, active: Mapping[int, Planned], running: Collection[int], now_us: int, at_us: int
    ) -> None:
        """Order the shards of plans in force, and tell the depot. running: jobs with ranks; at_us: when it is recorded."""
        if self.depot is None:
            return
        for index, mine in self.jobs.items():
            steps = active[index].steps if index in active else ()
            self._close(mine, steps, now_us, at_us)
            for step in self._due(mine, steps, now_us):
                self._note(index, at_us, "ordered", step=plain(step))
                self._order(mine, step)
        wanted = {
            index: self._files(mine, active, now_us)
            for index, mine in self.jobs.items()
            if index in active or index in running
        }
        if wanted != self._told:
            self.depot.reconcile(wanted.values())
            self._told = wanted

    def _due(self, mine: JobData, steps: Sequence[Step], now_us: int) -> Iterator[Step]:
        """Steps whose shards are not ordered: the one in force; of jobs with parts also later ones."""
        for step in steps:
            is_due = step.until_us > now_us and (step.from_us <= now_us or mine.job.parts)
            if is_due and step.from_us not in mine.orders and moves(mine.job, self._setup, step):
                yield step

    def _order(self, mine: JobData, step: Step) -> None:
        """Cut what the flows of a step carry into shards."""
        job, workers = mine.job, dict(zip(step.nodes, step.workers, strict=True))
        order = mine.orders[step.from_us] = Order(step, [], {})
        flows = [flow for flow in moves(job, self._setup, step) if (flow.src, flow.dst) not in mine.staged]
        assert job.data is not None
        for flow, pieces, chunks in mine.stock.take(flows):
            if job.parts:
                mine.staged.add((flow.src, flow.dst))
            if chunks:
                order.chunks.setdefault(flow.src, []).extend(chunks)
            store = mine.stock.stores[flow.src]
            for piece in pieces:
                for part in split(piece, parts_of(job, piece, workers.get(flow.dst, 1))):
                    number = len(mine.shards)
                    shard = Shard(
                        job.index, number, step.from_us, flow.src, flow.dst, part.planned_bytes, store.name, part.first,
                        part.records,
                    )  # fmt: skip
                    mine.shards.append(ShardState(shard, part.records * job.data.record_bytes))
                    order.shards.append(shard)

    def _close(self, mine: JobData, steps: Sequence[Step], now_us: int, at_us: int) -> None:
        """Close orders whose step has passed, and those whose step is no longer planned."""
        for from_us, order in mine.orders.items():
            if order.is_over or order.is_cancelled:
                continue
            if order.step.until_us <= now_us:
                self._note(mine.job.index, at_us, "over", from_us=from_us)
                order.is_over = True
                if isinstance(mine.job.work, Stream) and (late := mine.late(order)):
                    self._alarm(mine.job.index, self._unprocessed(order, late))
            elif order.step not in steps and not mine.job.parts:
                self._note(mine.job.index, at_us, "cancelled", from_us=from_us)
                self._cancel(mine, order)

    @staticmethod
    def _cancel(mine: JobData, order: Order) -> None:
        order.is_cancelled = True
        mine.stock.give_back(order.chunks)

    def _files(self, mine: JobData, active: Mapping[int, Planned], now_us: int) -> JobFiles:
        job = mine.job
        steps = active[job.index].steps if job.index in active else ()
        nodes = {
            data_node(self._setup, job, node)
            for step in steps
            if step.from_us <= now_us < step.until_us
            for node, workers in zip(step.nodes, step.workers, strict=True)
            if workers
        }
        shards = tuple(
            shard
            for order in mine.orders.values()
            if not order.is_cancelled and not (order.is_over and isinstance(job.work, Stream))
            for shard in order.shards
            if job.parts or not order.is_over or mine.shards[shard.number].processed_us < 0
        )
        processed = frozenset(
            s.number for s in shards if mine.shards[s.number].processed_us >= 0 and not job.parts
        )
        stores = tuple(mine.stock.stores.values())
        return JobFiles(job, now_us // self._setup.slot_us, stores, shards, tuple(sorted(nodes)), processed)

    # ------------------------------------------------------------------ what became of it
    def look(self, at_us: int) -> None:
        """Take in what the depot did."""
        arrived: dict[int, list[tuple[int, int]]] = {}
        for each in self.depot.news() if self.depot is not None else ():
            if not isinstance(each, Arrived):
                self._alarm(each.job, each.text)
            elif self.jobs[each.job].shards[each.number].arrived_us < 0:
                arrived.setdefault(each.job, []).append((each.number, each.sent_bytes))
        for job, shards in arrived.items():
            self._note(job, at_us, "arrived", shards=shards)
            self._arrived(self.jobs[job], shards, at_us)

    @staticmethod
    def _arrived(mine: JobData, shards: Collection[tuple[int, int]], at_us: int) -> None:
        for number, sent_bytes in shards:
            mine.shards[number].sent_bytes, mine.shards[number].arrived_us = sent_bytes, at_us

    def report(self, job: int, said: Iterable[tuple[int, Collection[str]]], at_us: int) -> None:
        """Take in what ranks at nodes say that they processed; only what is there counts."""
        mine = self.jobs.get(job)
        if mine is None:
            return
        found = {
            number
            for node, names in said
            for name in names
            if self._is_new(mine, node, number := number_of(name))
        }
        if found:
            self._note(job, at_us, "processed", shards=sorted(found))
            self._processed(mine, found, at_us)

    def _is_new(self, mine: JobData, node: int, number: int) -> bool:
        """Whether a shard is at a node and was not processed before."""
        state = mine.shards[number] if 0 <= number < len(mine.shards) else None
        here = data_node(self._setup, mine.job, node)
        return state is not None and state.processed_us < 0 <= state.arrived_us and state.shard.dst == here

    @staticmethod
    def _processed(mine: JobData, numbers: Iterable[int], at_us: int) -> None:
        for number in numbers:
            mine.shards[number].processed_us = at_us

    def is_waiting(self, job: int) -> bool:
        """Whether a job has nothing to do until more data is there."""
        mine = self.jobs.get(job)
        return (
            mine is not None
            and not mine.job.parts
            and not any(
                mine.shards[shard.number].processed_us < 0 <= mine.shards[shard.number].arrived_us
                for order in mine.orders.values()
                if not order.is_cancelled and not (order.is_over and isinstance(mine.job.work, Stream))
                for shard in order.shards
            )
        )

    @property
    def is_busy(self) -> bool:
        """Whether data is on its way."""
        return self.depot is not None and self.depot.is_busy

    def violations(self, *, is_interrupted: bool) -> Iterator[Violation]:
        """Data of steps that were carried out, and that was not processed in time."""
        for mine in self.jobs.values():
            for order in mine.orders.values():
                late = [] if is_interrupted and not isinstance(mine.job.work, Stream) else mine.late(order)
                if late:
                    yield Violation(
                        "shards.processed", mine.job.id, slot=order.step.from_us // self._setup.slot_us,
                        amount=sum(each.shard.planned_bytes for each in late), detail=self._unprocessed(order, late),
                    )  # fmt: skip

    def _unprocessed(self, order: Order, late: Sequence[ShardState]) -> str:
        slot = order.step.from_us // self._setup.slot_us
        count, total = (
            sum(each.planned_bytes for each in some) for some in ([s.shard for s in late], order.shards)
        )
        absent = sum(each.arrived_us < 0 for each in late)
        where = f", {absent} of {len(late)} shards had not arrived" if absent else ""
        return f"{count} of {total} bytes of slot {slot} were not processed in time{where}"

    def rows(self) -> list[tuple[int, ...]]:
        """Rows of the table `shards`."""
        return [
            (
                each.shard.job, each.shard.number, each.shard.from_us // self._setup.slot_us, each.shard.from_us,
                each.shard.src, each.shard.dst, each.shard.planned_bytes, each.bytes, each.sent_bytes, each.arrived_us,
                each.processed_us,
            )
            for _, mine in sorted(self.jobs.items())
            for each in mine.shards
        ]  # fmt: skip

    # ------------------------------------------------------------------ recovery
    def _note(self, job: int, at_us: int, what: str, **more: Any) -> None:
        self._record(KIND, {"job": job, "at_us": at_us, "what": what, **more})

    def replay(self, record: Mapping[str, Any]) -> None:
        """Replay a record of the journal."""
        mine = self.jobs.get(record["job"])
        if mine is None:  # this loop moves no data
            return
        match record["what"]:
            case "ordered":
                self._order(mine, read(Step, record["step"], "data.step"))
            case "over":
                mine.orders[record["from_us"]].is_over = True
            case "cancelled":
                self._cancel(mine, mine.orders[record["from_us"]])
            case "arrived":
                self._arrived(mine, record["shards"], record["at_us"])
            case "processed":
                self._processed(mine, record["shards"], record["at_us"])
