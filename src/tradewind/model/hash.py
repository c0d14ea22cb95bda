"""The hash of a scenario: of its content, whatever the file format."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import fields
from operator import attrgetter
from types import NoneType
from typing import Any, Final

import numpy as np

from tradewind.model.arrays import Ints
from tradewind.model.columns import CHUNK, Packed
from tradewind.model.job import Customer, Fixed, Job
from tradewind.model.job_columns import JobColumns
from tradewind.model.pool import Pool
from tradewind.model.scenario import Scenario
from tradewind.model.setup import Setup
from tradewind.model.tariff import Tariff
from tradewind.model.units import MILLI
from tradewind.model.utility import Utility

_ENCODE = json.JSONEncoder(ensure_ascii=True, allow_nan=False, separators=(",", ":")).encode

_READY: Final = {int, str, NoneType}
"""Types whose equal values have equal JSON."""


def scenario_hash(scenario: Scenario) -> str:
    """sha256 (64 hex digits) over setup, jobs, customers, changes and volumes; name and origin do not count.

    Equal scenarios have equal hashes. Columns that hold only a field's default are left out, so that adding a field
    does not change old hashes.
    """
    known: str | None = scenario.__dict__.get("_hash")
    if known is not None:
        return known
    digest = _digest(_parts(scenario))
    volumes = scenario.volumes
    for column in (volumes.job, volumes.slot, volumes.node, volumes.bytes):
        digest.update(column.astype("<i8").tobytes())
    object.__setattr__(scenario, "_hash", digest.hexdigest())  # a scenario is frozen, so its hash is constant
    return digest.hexdigest()


def setup_hash(setup: Setup) -> str:
    """sha256 (64 hex digits) over a setup alone."""
    return _digest(_setup_parts(setup)).hexdigest()


def _digest(parts: Iterable[Any]) -> hashlib._Hash:
    digest = hashlib.sha256()
    for part in parts:
        for piece in part if isinstance(part, Iterator) else (_ENCODE(part),):
            digest.update(piece.encode())
        digest.update(b"\n")
    return digest


def _parts(scenario: Scenario) -> Iterable[Any]:
    yield "tradewind scenario 1"
    yield from _setup_parts(scenario.setup)
    yield len(scenario.jobs)
    if isinstance(scenario.jobs, JobColumns):
        yield from _plain_jobs(scenario.jobs)
    else:
        yield from _columns(scenario.jobs, Job, skip=("index",))
        yield from _columns(scenario.customers, Customer)
    yield [
        [int(c.at_us), c.kind, int(c.a), int(c.b), int(c.value), *([] if c.of == MILLI else [int(c.of)])]
        for c in scenario.changes
    ]


def _setup_parts(setup: Setup) -> Iterable[Any]:
    yield list(setup.resources)
    yield [[n.name, n.kind, int(n.parent), [int(c) for c in n.capacity_milli]] for n in setup.nodes]
    yield [
        [
            int(k.a),
            int(k.b),
            int(k.ab_bps),
            int(k.ba_bps),
            bool(k.shared),
            int(k.latency_us),
            _real(k.usd_per_gb),
        ]
        for k in setup.links
    ]
    for tariffs in (setup.rent, setup.egress):
        yield [[int(a), int(b), _tariff(tariffs[a, b])] for a, b in sorted(tariffs)]
    limit = setup.transfer_bytes_per_slot
    yield [int(setup.slot_us), int(setup.horizon_us), setup.transport, setup.objective]
    yield None if limit is None else int(limit)
    yield [[key, _real(setup.forecast[key])] for key in sorted(setup.forecast)]
    if setup.spend_caps:  # left out if empty, so that older scenarios keep their hash
        yield ["caps", *([name, _plain(setup.spend_caps[name])] for name in sorted(setup.spend_caps))]
    machines = [
        [i, _plain(n.machine), _real(n.interruptions_per_hour)]
        for i, n in enumerate(setup.nodes)
        if n.machine
    ]
    if machines:
        yield ["machines", machines]
    if setup.pools:
        yield ["pools", [_pool(pool) for pool in setup.pools]]
    if setup.window_slots is not None:
        yield ["window", int(setup.window_slots)]


def _columns(items: Sequence[Any], kind: type, skip: tuple[str, ...] = ()) -> Iterable[list[Any]]:
    for field in fields(kind):
        column = list(map(attrgetter(field.name), items))
        if field.name in skip or column.count(field.default) == len(column):
            continue
        types = set(map(type, column))
        if types == {Fixed}:
            column = [["Fixed", work.runtime_us] for work in column]
        elif not types <= _READY:
            known: dict[Any, Any] = {}
            for value in column:
                if value not in known:
                    known[value] = _plain(value)
            column = [known[value] for value in column]
        yield [kind.__name__, field.name, column]


def _plain_jobs(jobs: JobColumns) -> Iterable[Iterator[str]]:
    """What `_columns` yields for plain jobs, as pieces of the JSON text."""
    yield _pieces("Job", "id", _texts(jobs.ids))
    yield _pieces("Job", "arrive_us", _whole(jobs.arrive_us))
    works = _whole(jobs.runtime_us, '["Fixed",', "]") if jobs.public else _same('["Fixed",null]', len(jobs))
    yield _pieces("Job", "work", works)
    yield _pieces("Job", "worker", _same(_ENCODE(_plain(jobs.demand)), len(jobs)))
    if any(jobs.tenants.words[code] for code in np.unique(jobs.tenants.codes).tolist()):
        yield _pieces("Job", "tenant", _texts(jobs.tenants))
    if (jobs.workers != 1).any():
        yield _pieces("Job", "workers_min", _whole(jobs.workers))
        yield _pieces("Job", "workers_max", _whole(jobs.workers))
    if not jobs.public:
        yield _pieces("Customer", "runtime_us", _whole(jobs.runtime_us))


def _pieces(kind: str, field: str, values: Iterable[str]) -> Iterator[str]:
    yield f'["{kind}","{field}",['
    between = ""
    for value in values:
        yield between
        yield value
        between = ","
    yield "]]"


def _texts(column: Sequence[str]) -> Iterator[str]:
    chunks = column.chunks() if isinstance(column, Packed) else (column,)
    return (_ENCODE(chunk)[1:-1] for chunk in chunks)


def _whole(column: Ints, before: str = "", after: str = "") -> Iterator[str]:
    for first in range(0, len(column), CHUNK):
        numbers = map(str, column[first : first + CHUNK].tolist())
        yield before + f"{after},{before}".join(numbers) + after


def _same(text: str, count: int) -> Iterator[str]:
    for first in range(0, count, CHUNK):
        yield ",".join([text] * min(CHUNK, count - first))


def _real(value: float) -> float:
    return float(value) + 0.0  # -0.0 becomes 0.0


def _tariff(tariff: Tariff) -> list[Any]:
    return [[_real(s) for s in tariff.starts], [_real(p) for p in tariff.usd], tariff.rule]


def _pool(pool: Pool) -> list[Any]:
    reals = [_real(pool.free_usd), _real(pool.carried_usd)]
    return [
        pool.name,
        _plain(pool.rent),
        _plain(pool.egress),
        int(pool.period_us),
        _tariff(pool.tariff),
        *reals,
    ]


def _plain(value: Any) -> Any:
    """A field's value as JSON data; equal numbers give equal text."""
    if value is None or isinstance(value, str | bool):
        return value
    if isinstance(value, int | float):
        return int(value) if value == int(value) else float(value)
    if isinstance(value, frozenset):
        return [int(each) for each in sorted(value)]
    if isinstance(value, tuple):
        return [_plain(each) for each in value]
    if isinstance(value, Utility):
        return [value.of, value.shape, [_plain(a) for a in value.args], value.from_zero]
    if hasattr(value, "__dataclass_fields__"):
        return [type(value).__name__, *(_plain(getattr(value, field.name)) for field in fields(value))]
    return _plain(value.item())
