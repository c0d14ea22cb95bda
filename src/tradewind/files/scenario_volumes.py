"""Data of stream jobs: what arrives where in which slot, from the file's rows or from the rates of its jobs."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tradewind.files.messages import find, shown
from tradewind.files.schemas_scenario import ScenarioFile, StreamWork, VolumesFile
from tradewind.model.errors import InputWarning, ScenarioError
from tradewind.model.job import Customer, Job
from tradewind.model.scenario import Volumes
from tradewind.model.setup import Setup
from tradewind.model.units import parse_bytes, time_text


def build_volumes(
    setup: Setup, jobs: Sequence[Job], customers: Sequence[Customer], file: ScenarioFile
) -> Volumes:
    """The volumes of a file: its rows, and for jobs with a rate the same bytes in every slot of their stay."""
    listed = _listed(setup, jobs, file.volumes)
    _warn_of_rows_outside(setup, jobs, customers, listed)
    rates = np.array(list(_rates(setup, jobs, customers, file)), dtype=np.int64).reshape(-1, 4)
    if both := np.intersect1d(listed.job, rates[:, 0]).tolist():
        raise ScenarioError(
            f"jobs[{jobs[both[0]].id}] has work.bytes_per_slot, and volumes has rows for it; keep one of them"
        )
    if not len(rates):
        return listed
    columns = (listed.job, listed.slot, listed.node, listed.bytes)
    job, slot, node, size = (np.concatenate((old, new)) for old, new in zip(columns, rates.T, strict=True))
    return Volumes(job=job, slot=slot, node=node, bytes=size)


def _warn_of_rows_outside(
    setup: Setup, jobs: Sequence[Job], customers: Sequence[Customer], listed: Volumes
) -> None:
    """Rows before a job arrives or after it left are never processed: probably slots were counted from its arrival."""
    come = np.array([job.arrive_us for job in jobs], dtype=np.int64)
    stays = np.array([each.runtime_us or setup.horizon_us for each in customers], dtype=np.int64)
    known = np.flatnonzero((listed.job >= 0) & (listed.job < len(jobs)) & (listed.slot < setup.slots))
    job, slot = listed.job[known], listed.slot[known]
    first, end = come[job] // setup.slot_us, -(-(come[job] + stays[job]) // setup.slot_us)
    outside = np.flatnonzero((slot < first) | (slot >= end))
    if len(outside):
        row = int(outside[0])
        warnings.warn(
            f"volumes: {len(outside)} rows are outside the stay of their jobs and are not processed, such as slot "
            f"{slot[row]} of jobs[{jobs[job[row]].id}], which is there in slots {first[row]} to {end[row] - 1}; slots count "
            "from the begin of the scenario",
            InputWarning,
            stacklevel=2,
        )


def _rates(
    setup: Setup, jobs: Sequence[Job], customers: Sequence[Customer], file: ScenarioFile
) -> Iterator[tuple[int, int, int, int]]:
    """(job, slot, node, bytes) of jobs with a rate, in the whole slots of their stay."""
    for row, job, customer in zip(file.jobs, jobs, customers, strict=True):
        if not isinstance(row.work, StreamWork) or not row.work.bytes_per_slot:
            continue
        where = f"jobs[{job.id}].work.bytes_per_slot"
        if (customer.runtime_us or 0) < setup.slot_us:
            raise ScenarioError(
                f"{where}: no whole slot of {time_text(setup.slot_us)} fits in its stay of "
                f"{time_text(customer.runtime_us or 0)}; make work.stay_us longer (a number without a unit counts "
                "microseconds)"
            )
        first, leaves = -(-job.arrive_us // setup.slot_us), job.arrive_us + (customer.runtime_us or 0)
        last = min(setup.slots, leaves // setup.slot_us)
        for name, size in row.work.bytes_per_slot.items():
            node = find(setup.node_index, name, "node", where)
            yield from ((job.index, slot, node, size) for slot in range(first, last) if size)


def _listed(setup: Setup, jobs: Sequence[Job], file: VolumesFile) -> Volumes:
    counts = {name: len(getattr(file, name)) for name in VolumesFile.model_fields}
    if len(set(counts.values())) != 1:
        text = ", ".join(f"{name} {count}" for name, count in counts.items())
        raise ScenarioError(
            f"the columns of volumes have different lengths ({text}); each row needs all four"
        )
    if not file.job:
        return Volumes()
    ids = {job.id: job.index for job in jobs} if str in set(map(type, file.job)) else {}
    return Volumes(
        job=_whole_column(file.job, "job", ids),
        slot=_whole_column(file.slot, "slot", {}),
        node=_whole_column(file.node, "node", setup.node_index),
        bytes=_whole_column(file.bytes, "bytes", {}),
    )


def _whole_column(values: list[Any], name: str, index: Mapping[str, int]) -> NDArray[np.int64]:
    """A column of numbers; names become indices."""
    kinds = set(map(type, values))
    if kinds == {str} and index:
        try:
            return np.fromiter(map(index.__getitem__, values), dtype=np.int64, count=len(values))
        except KeyError:
            pass
    if kinds != {int}:
        values = [
            value if type(value) is int else _named(value, row, name, index)
            for row, value in enumerate(values)
        ]
    try:
        return np.array(values, dtype=np.int64)
    except OverflowError:
        raise ScenarioError(f"volumes.{name} contains a number that does not fit in 64 bits") from None


def _named(value: Any, row: int, name: str, index: Mapping[str, int]) -> int:
    if type(value) is str and name in ("job", "node"):
        if value not in index and value.isdecimal() and len(value) < 16:
            return int(value)  # CSV cells are text
        return find(index, value[:200], name, f"volumes.{name}[{row}]")
    if type(value) is str and name == "bytes":
        try:
            return int(value) if value.isdecimal() else parse_bytes(value)
        except ValueError:
            raise ScenarioError(
                f"volumes.bytes[{row}] is {shown(value)}; it must be a whole number of bytes, or text with a unit such as "
                "'400 GB'"
            ) from None
    raise ScenarioError(f"volumes.{name}[{row}] is {shown(value)}; it must be a whole number")
