"""Which files carry out the flows of a step: data at a site is a store of records, and shards are parts of stores."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from tradewind.model.decision import Flow, Step
from tradewind.model.job import Data, Dataset, Job, Stream
from tradewind.model.setup import Setup


class Store(NamedTuple):
    """Data of a job that lies at a node: `records` records of its source from `first` on."""

    job: int
    node: int
    name: str
    first: int
    records: int
    planned_bytes: int


class Shard(NamedTuple):
    """A file of a job's data: `records` records of the store at src from `first` on, processed at dst.

    number         among all shards of the job
    from_us        start of the step to which it belongs; it is processed in the step
    planned_bytes  its part of the flow, in bytes of the scenario
    """

    job: int
    number: int
    from_us: int
    src: int
    dst: int
    planned_bytes: int
    store: str
    first: int
    records: int

    @property
    def name(self) -> str:
        """Name of the file."""
        return f"shard-{self.number:06d}"


def number_of(name: str) -> int:
    """Number of the shard with this name; -1: no shard has it."""
    digits = name.removeprefix("shard-")
    return int(digits) if digits.isascii() and digits.isdecimal() and name != digits else -1


class Piece(NamedTuple):
    """A part of a store: its share of the planned bytes, and its records."""

    planned_bytes: int
    first: int
    records: int


def records_of(data: Data, planned_bytes: int, scale: float) -> int:
    """Records that stand for so many bytes of the scenario."""
    return round(planned_bytes * scale / data.record_bytes)


def data_node(setup: Setup, job: Job, node: int) -> int:
    """Where the data of ranks at a node is: there, or at its site for jobs whose parts are moved to sites."""
    return setup.site_of[node] if job.parts else node


def moves(job: Job, setup: Setup, step: Step) -> list[Flow]:
    """The flows of a step; of jobs with parts also the part that is at its site already."""
    if not job.parts:
        return [flow for flow in step.flows if flow.bytes]
    site = setup.site_of[step.nodes[0]]
    local = [Flow(site, site, size) for node, size in job.parts if node == site and size]
    return [*local, *(flow for flow in step.flows if flow.bytes)]


class Stock:
    """What is left of a job's stores: chunks of a dataset are used once, in order, unless their step is cancelled."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self.stores: dict[int, Store] = {}
        work = job.work
        self._free = {node: list(range(n)) for node, n in work.chunks} if isinstance(work, Dataset) else {}

    def take(self, flows: Sequence[Flow]) -> list[tuple[Flow, list[Piece], list[int]]]:
        """For every flow the pieces that it carries, and the chunks that these are."""
        found = []
        taken: dict[int, int] = {}
        for flow in flows:
            store = self.stores[flow.src]
            if isinstance(self._job.work, Dataset):
                count = flow.bytes // self._job.work.chunk_bytes
                chunks, self._free[flow.src] = self._free[flow.src][:count], self._free[flow.src][count:]
                found.append((flow, [self._chunk(store, number) for number in chunks], chunks))
                continue
            begin = taken.get(flow.src, 0)
            if isinstance(self._job.work, Stream):
                taken[flow.src] = begin + flow.bytes
            cuts = [store.records * at // max(1, store.planned_bytes) for at in (begin, begin + flow.bytes)]
            found.append((flow, [Piece(flow.bytes, cuts[0], cuts[1] - cuts[0])], []))
        return found

    def give_back(self, chunks: Mapping[int, Sequence[int]]) -> None:
        """Let chunks be used again, by the node where they are stored."""
        for node, numbers in chunks.items():
            self._free[node] = sorted([*self._free[node], *numbers])

    def _chunk(self, store: Store, number: int) -> Piece:
        work = self._job.work
        assert isinstance(work, Dataset)
        count = dict(work.chunks)[store.node]
        begin, end = (store.records * at // count for at in (number, number + 1))
        return Piece(work.chunk_bytes, begin, end - begin)


def split(piece: Piece, count: int) -> Iterator[Piece]:
    """A piece in so many parts of nearly the same size."""
    for number in range(count):
        low, high = (piece.records * at // count for at in (number, number + 1))
        planned = piece.planned_bytes * (number + 1) // count - piece.planned_bytes * number // count
        yield Piece(planned, piece.first + low, high - low)


def parts_of(job: Job, piece: Piece, workers: int) -> int:
    """Number of shards of a piece: none is too large, and every worker at its site has one of a stream."""
    data = job.data
    assert data is not None
    least = workers if isinstance(job.work, Stream) else 1
    most = max(1, data.shard_bytes // data.record_bytes)
    return max(1, -(-piece.records // most), min(least, piece.records))
