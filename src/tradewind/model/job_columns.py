"""Plain fixed jobs as columns: all that traces have, for a few bytes per job instead of an object of forty fields."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import MISSING, dataclass, fields
from functools import cached_property
from itertools import repeat
from operator import attrgetter
from typing import overload

import numpy as np

from tradewind.model.arrays import Ints
from tradewind.model.columns import Numbered, Texts, Words
from tradewind.model.job import DECLARED, MOST_RANKS, NO_PRIVATE_DATA, Customer, Demand, Fixed, Job
from tradewind.model.units import LARGEST

OWN = ("index", "id", "arrive_us", "work", "worker", "tenant", "workers_min", "workers_max")
"""Fields that differ between plain jobs; every other field has its default."""


@dataclass(frozen=True, kw_only=True, eq=False)
class JobColumns(Sequence[Job]):
    """Fixed jobs in order of arrival that need workers of one kind, all at once; reads like a tuple of jobs.

    workers  workers of each job; demand: what one worker of any job needs
    public   whether runtimes are public; private ones are the customers'

    A job becomes an object when it is asked for. Whoever goes through all of them gets them made once.
    """

    ids: Sequence[str]
    arrive_us: Ints
    runtime_us: Ints
    workers: Ints
    tenants: Words
    demand: Demand
    public: bool = True

    def __len__(self) -> int:
        return len(self.arrive_us)

    @overload
    def __getitem__(self, index: int) -> Job: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Job, ...]: ...
    def __getitem__(self, index: int | slice) -> Job | tuple[Job, ...]:
        if "objects" in self.__dict__:
            return self.objects[index]
        if isinstance(index, slice):
            first, end, step = index.indices(len(self))
            return tuple(self._made(first, end)) if step == 1 else self.objects[index]
        at = index + len(self) if index < 0 else int(index)
        if not 0 <= at < len(self):
            raise IndexError(f"job {index} of {len(self)}")
        return self._made(at, at + 1)[0]

    def __iter__(self) -> Iterator[Job]:
        return iter(self.objects)

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return self.objects == tuple(other) if isinstance(other, tuple | JobColumns) else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    @cached_property
    def objects(self) -> tuple[Job, ...]:
        """All jobs as objects."""
        return tuple(self._made(0, len(self)))

    @property
    def customers(self) -> CustomerColumns:
        """The private parts of the jobs."""
        return CustomerColumns(self)

    def are_sound(self, horizon_us: int) -> bool:
        """Whether ids differ, jobs are in order of arrival before the horizon, and all numbers are in range."""
        fine = (np.diff(self.arrive_us, prepend=0) >= 0) & (self.arrive_us < horizon_us)
        for column, most in ((self.runtime_us, LARGEST), (self.workers, MOST_RANKS)):
            fine &= (column > 0) & (column <= most)
        named = isinstance(self.ids, Numbered) or all(self.ids)
        return bool(fine.all()) and named and repeated(self.ids) is None

    def _made(self, first: int, end: int) -> list[Job]:
        """Jobs first to end - 1, set a field of all of them at a time: fewer than half the time of calling Job for each."""
        workers = self.workers[first:end]
        runtimes = self.runtime_us[first:end].tolist() if self.public else [None] * len(workers)
        works = {runtime: Fixed(runtime_us=runtime) for runtime in set(runtimes)}
        own: dict[str, Iterable[object]] = {
            "index": range(first, end),
            "id": self.ids[first:end],
            "arrive_us": self.arrive_us[first:end].tolist(),
            "work": map(works.__getitem__, runtimes),
            "worker": repeat(self.demand),
            "tenant": self.tenants[first:end],
            "workers_min": workers.tolist(),
            "workers_max": workers.tolist(),
        }
        jobs = [object.__new__(Job) for _ in runtimes]
        for field in fields(Job):
            column = own.get(field.name, repeat(field.default))
            deque(map(getattr(Job, field.name).__set__, jobs, column), maxlen=0)
        for row in np.flatnonzero((workers < 1) | (workers > MOST_RANKS)):
            jobs[row].__post_init__()  # says what is wrong
        return jobs


class CustomerColumns(Sequence[Customer]):
    """The customers of plain jobs: each has its runtime, where that is private, and nothing else."""

    def __init__(self, jobs: JobColumns) -> None:
        self._jobs = jobs

    def __len__(self) -> int:
        return len(self._jobs)

    @overload
    def __getitem__(self, index: int) -> Customer: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Customer, ...]: ...
    def __getitem__(self, index: int | slice) -> Customer | tuple[Customer, ...]:
        if isinstance(index, slice):
            return tuple(self[i] for i in range(*index.indices(len(self))))
        if "objects" in self.__dict__:
            return self.objects[index]
        return (
            NO_PRIVATE_DATA if self._jobs.public else Customer(runtime_us=int(self._jobs.runtime_us[index]))
        )

    def __iter__(self) -> Iterator[Customer]:
        return iter(self.objects)

    @cached_property
    def objects(self) -> tuple[Customer, ...]:
        """All customers; equal ones are the same object."""
        if self._jobs.public:
            return (NO_PRIVATE_DATA,) * len(self)
        runtimes = self._jobs.runtime_us.tolist()
        made = {runtime: Customer(runtime_us=runtime) for runtime in set(runtimes)}
        return tuple(map(made.__getitem__, runtimes))

    def __eq__(self, other: object) -> bool:
        return tuple(self) == tuple(other) if isinstance(other, tuple | CustomerColumns) else NotImplemented

    __hash__ = None  # type: ignore[assignment]


def columns_of(jobs: Sequence[Job], customers: Sequence[Customer]) -> JobColumns | str:
    """The jobs as columns, or why they cannot be: what one of them has that plain jobs have not."""
    if isinstance(jobs, JobColumns):
        return jobs
    if not jobs:
        return "there are no jobs"
    first = jobs[0]
    for field in fields(Job):
        column = list(map(attrgetter(field.name), jobs))
        if field.name in OWN or column.count(field.default) == len(column):
            continue
        assert field.default is not MISSING
        at = next(i for i, value in enumerate(column) if value != field.default)
        return f"job {jobs[at].id} has {field.name}"
    public = isinstance(first.work, Fixed) and first.work.runtime_us is not None
    runtimes = []
    for job, customer in zip(jobs, customers, strict=True):
        work = job.work
        if not isinstance(work, Fixed):
            return f"job {job.id} is of kind {job.kind}"
        if job.worker != first.worker:
            return f"workers of job {job.id} need other amounts than those of job {first.id}"
        if job.workers_min != job.workers_max:
            return f"job {job.id} has workers_min and workers_max that differ"
        if customer.budget_usd is not None or customer.valuation is not None:
            return f"the customer of job {job.id} has a budget or a valuation"
        if customer.pace_milli != DECLARED:
            return f"job {job.id} takes another time than it declares"
        if (work.runtime_us is not None) != public or (public and customer.runtime_us is not None):
            return f"the runtime of job {job.id} is {'private' if public else 'public'}, unlike that of job {first.id}"
        runtimes.append(work.runtime_us if public else customer.runtime_us)
    return JobColumns(
        ids=[job.id for job in jobs],
        arrive_us=np.array([job.arrive_us for job in jobs], np.int64),
        runtime_us=np.array(runtimes, np.int64),
        workers=np.array([job.workers_max for job in jobs], np.int64),
        tenants=Words.of([job.tenant for job in jobs]),
        demand=first.worker,
        public=public,
    )


def repeated(ids: Sequence[str]) -> str | None:
    """The first id that occurs twice; None where all differ."""
    if isinstance(ids, Numbered):
        ordered = np.sort(ids.numbers)
        if not (ordered[1:] == ordered[:-1]).any():
            return None
    if isinstance(ids, Texts) and len(ids.words().words) == len(ids):
        return None
    seen: set[str] = set()
    for each in ids:
        if each in seen:
            return each
        seen.add(each)
    return None
