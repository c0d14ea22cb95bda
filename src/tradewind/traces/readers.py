"""Readers of cluster traces: a CSV file becomes jobs, or an error that names file, line and column.

| format   | columns that are read                                                                                   |
|----------|---------------------------------------------------------------------------------------------------------|
| philly   | timestamp (YYYY-MM-DD HH:MM:SS), duration (s), num_gpus, cluster (the tenant)                            |
| tiresias | job_id, num_gpu, submit_time (s), duration (s)                                                           |
| openb    | name, cpu_milli, memory_mib, num_gpu, gpu_milli, creation_time, deletion_time, scheduled_time (s)        |
| google   | submit_s, start_s, end_s (s), user (the tenant); or the original job_events (traces/google.py)           |
| csv      | id, arrive_s, duration_s, gpus, and optionally tenant                                                    |

Files may be compressed (`.gz`), and lines above the header that begin with # are comments. Other columns are ignored.
Rows are sorted by arrival; rows with the same arrival keep their order. Rows without work (no GPU, no duration, no end)
are skipped and counted in `Trace.skipped`.
"""

from __future__ import annotations

import csv
import gzip
import io
import zlib
from array import array
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from textwrap import shorten
from typing import Protocol, TextIO

import numpy as np

from tradewind.model.arrays import Floats, Ints
from tradewind.model.columns import Numbered, Texts, Words, taken
from tradewind.model.errors import InputError, other_separator
from tradewind.model.job import Demand
from tradewind.model.units import LARGEST, MILLI, US_PER_S
from tradewind.traces.by_arrow import arrow_columns, arrow_numbers, arrow_seconds
from tradewind.traces.machines import Rows
from tradewind.traces.packed import Unpacked

NO_GPU, NO_TIME, NO_END = "without a GPU", "without a positive duration", "without an end"


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """Jobs in order of arrival, and the number of rows skipped per reason."""

    rows: Rows
    skipped: dict[str, int] = field(default_factory=dict)


@contextmanager
def opened(path: Path) -> Iterator[TextIO]:
    """A text file, decompressed where its name ends in .gz; what goes wrong becomes an error that names the file."""
    try:
        if path.suffix == ".gz":
            whole = io.BufferedReader(Unpacked(path))
            with io.TextIOWrapper(whole, encoding="utf-8-sig", newline="") as packed:
                yield packed
        else:
            with path.open(encoding="utf-8-sig", newline="") as file:
                yield file
    except (gzip.BadGzipFile, zlib.error, EOFError) as error:
        raise InputError(f"is not a whole gzip file: {error}", where=str(path)) from None
    except OSError as error:
        raise InputError(
            f"cannot be read: {error.strerror}; give the path of a CSV file", where=str(path)
        ) from None
    except (UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"is not a CSV file in UTF-8: {error}", where=str(path)) from None


class Table:
    """The columns of a CSV file (`.gz`: compressed) that are asked for, as text.

    Most files are read by Arrow. Whatever it does not take, or might take otherwise, is read row by row, which says where a
    mistake is.
    """

    def __init__(self, path: Path, needed: Sequence[str], optional: Sequence[str] = ()) -> None:
        self.path, self._wanted = path, (needed, optional)
        with opened(path):
            self._columns: Mapping[str, Sequence[str]] | None = arrow_columns(path, needed, optional)
        self._rows = -1 if self._columns is None else len(self._columns[needed[0]])
        if self._columns is None:
            self._columns, self._rows = self._read[0], len(self.lines)

    @cached_property
    def _read(self) -> tuple[dict[str, list[str]], array[int]]:
        """The columns and the line of every row, read row by row."""
        (needed, optional), path, lines = self._wanted, self.path, array("q")
        with opened(path) as file:
            reader = csv.reader(file, strict=True)
            heads = (row for row in reader if row and not row[0].startswith("#"))
            names = [name.strip() for name in next(heads, [])]
            there = shorten(", ".join(filter(None, names)), 200, placeholder=" …") or "no columns"
            at = f"{path}, line {max(1, reader.line_num)}"
            for name in needed:
                if name not in names:
                    raise InputError(
                        f"column {name!r} is missing; found {there}, but this format needs {', '.join(needed)}"
                        f"{other_separator(names)}",
                        where=at,
                    )
            for name in (*needed, *optional):
                if names.count(name) > 1:
                    raise InputError(
                        f"found {names.count(name)} columns {name!r}; it must be one. Rename or leave out the others",
                        where=at,
                    )
            kept = [(names.index(name), list[str]()) for name in (*needed, *optional) if name in names]
            for row in reader:
                if row:
                    if len(row) != len(names):
                        raise InputError(
                            f"found {len(row)} values; the header has {len(names)} columns",
                            where=f"{path}, line {reader.line_num}",
                        )
                    lines.append(reader.line_num)
                    for place, column in kept:
                        column.append(row[place])
        return {names[place]: column for place, column in kept}, lines

    @property
    def lines(self) -> array[int]:
        """The line of every row."""
        return self._read[1]

    def __len__(self) -> int:
        return self._rows

    def bad(self, row: int, column: str, found: object, allowed: str) -> InputError:
        """The error for one value."""
        return InputError(
            f"found {found!r}; it must be {allowed}",
            where=f"{self.path}, line {self.lines[row]}, column {column}",
        )

    def text(self, column: str) -> Sequence[str]:
        """A column as text; empty where the file has no such column or no rows."""
        assert self._columns is not None
        return self._columns.get(column, ())

    def numbers(self, column: str, *, gaps: bool = False) -> Floats:
        """A column of finite numbers; with `gaps`, an empty value becomes NaN."""
        values = self.text(column)
        if isinstance(values, Texts) and (quick := arrow_numbers(values, gaps=gaps)) is not None:
            return quick
        try:
            read = np.array([float(v) for v in values] if not gaps else [float(v or "nan") for v in values])
        except ValueError:
            row = next(i for i, v in enumerate(values) if not _is_number(v) and (v or not gaps))
            raise self.bad(row, column, values[row], "a number") from None
        wrong = np.flatnonzero(~np.isfinite(read))
        for row in wrong.tolist():
            if not (gaps and not values[row].strip()):
                raise self.bad(row, column, values[row], "a finite number")
        return read

    def counts(self, column: str) -> Ints:
        """A column of whole numbers from 0 to a million."""
        read = self.numbers(column)
        wrong = np.flatnonzero((read < 0) | (read > 1_000_000) | (read != np.floor(read)))
        if len(wrong):
            raise self.bad(
                int(wrong[0]), column, self.text(column)[wrong[0]], "a whole number from 0 to 1000000"
            )
        return read.astype(np.int64)

    def times_us(self, column: str, *, gaps: bool = False) -> Floats:
        """A column of seconds, converted to microseconds; NaN for a gap."""
        read = np.round(self.numbers(column, gaps=gaps) * US_PER_S)
        wrong = np.flatnonzero(np.abs(read) > LARGEST / 4)
        if len(wrong):
            raise self.bad(
                int(wrong[0]), column, self.text(column)[wrong[0]], "at most about 70 years, in seconds"
            )
        return read


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


class Source(Protocol):
    """Where jobs were read from."""

    path: Path

    def __len__(self) -> int: ...

    def bad(self, row: int, column: str, found: object, allowed: str) -> InputError: ...


@dataclass(slots=True, kw_only=True)
class Columns:
    """Jobs in file order, before rows are skipped and sorted; `table` is their source, for errors."""

    table: Source
    names: tuple[str, str] = ("id", "arrive_s")
    ids: Sequence[str]
    arrive_us: Floats
    runtime_us: Floats
    gpus: Ints
    workers: Ints | None = None
    tenants: Sequence[str] = ()
    demand: Sequence[Demand] | None = None

    def trace(self, *, from_zero: bool) -> Trace:
        """Skip rows without work, sort, check ids, and with `from_zero` shift the first arrival to 0."""
        reasons = (
            (NO_GPU, self.gpus == 0),
            (NO_END, np.isnan(self.runtime_us)),
            (NO_TIME, self.runtime_us <= 0),
        )
        keep, skipped = np.ones(len(self.table), np.bool_), {}
        for reason, hit in reasons:
            count = int((keep & hit).sum())
            if count:
                skipped[reason] = count
            keep &= ~hit
        rows = np.flatnonzero(keep)
        if not len(rows):
            raise InputError(
                f"has no job to run ({len(self.table)} rows, all skipped); give a trace with jobs",
                where=str(self.table.path),
            )
        order = rows[np.argsort(self.arrive_us[rows], kind="stable")]
        self._check(order, from_zero)
        arrive = self.arrive_us[order].astype(np.int64)
        return Trace(
            rows=Rows(
                ids=taken(self.ids, order),
                arrive_us=arrive - arrive[0] if from_zero else arrive,
                runtime_us=self.runtime_us[order].astype(np.int64),
                workers=(self.gpus if self.workers is None else self.workers)[order],
                tenants=taken(Words.of(self.tenants), order)
                if self.tenants
                else Words.all_equal("", len(order)),
                demand=[((0, MILLI),)] if self.demand is None else [self.demand[i] for i in order.tolist()],
            ),
            skipped=skipped,
        )

    def _check(self, order: Ints, from_zero: bool) -> None:
        if not from_zero and self.arrive_us[order[0]] < 0:
            seconds = float(self.arrive_us[order[0]]) / US_PER_S
            raise self.table.bad(int(order[0]), self.names[1], seconds, "a time of 0 or more")
        if isinstance(self.ids, Numbered):
            return
        seen: set[str] = set()
        for i in order.tolist():
            if self.ids[i] in seen or not self.ids[i]:
                raise self.table.bad(
                    i, self.names[0], self.ids[i], "a name that no other row has, and not empty"
                )
            seen.add(self.ids[i])


def read_philly(path: Path) -> Trace:
    """Microsoft's Philly trace: local timestamps; virtual clusters are tenants; row numbers are ids."""
    table = Table(path, ("timestamp", "duration", "num_gpus", "cluster"))
    stamps = table.text("timestamp")
    try:
        quick = arrow_seconds(stamps) if isinstance(stamps, Texts) else None
        seconds = np.array(stamps, dtype="datetime64[s]") if quick is None else quick
        if np.isnat(seconds).any():
            raise ValueError
    except ValueError:
        row = next(i for i, s in enumerate(stamps) if not _is_stamp(s))
        raise table.bad(row, "timestamp", stamps[row], "a time such as 2017-10-09 07:01:55") from None
    return Columns(
        table=table,
        ids=Numbered(np.arange(1, len(table) + 1)),
        arrive_us=seconds.astype(np.int64).astype(np.float64) * US_PER_S,
        runtime_us=table.times_us("duration"),
        gpus=table.counts("num_gpus"),
        tenants=table.text("cluster"),
    ).trace(from_zero=True)


def _is_stamp(text: str) -> bool:
    try:
        return not np.isnat(np.datetime64(text, "s"))
    except ValueError:
        return False


def read_tiresias(path: Path) -> Trace:
    """Traces published with the simulator of Tiresias."""
    table = Table(path, ("job_id", "num_gpu", "submit_time", "duration"))
    return Columns(
        table=table,
        names=("job_id", "submit_time"),
        ids=table.text("job_id"),
        arrive_us=table.times_us("submit_time"),
        runtime_us=table.times_us("duration"),
        gpus=table.counts("num_gpu"),
    ).trace(from_zero=False)


def read_csv(path: Path) -> Trace:
    """The plain format: id, arrive_s, duration_s, gpus, and optionally tenant."""
    table = Table(path, ("id", "arrive_s", "duration_s", "gpus"), ("tenant",))
    return Columns(
        table=table,
        ids=table.text("id"),
        arrive_us=table.times_us("arrive_s"),
        runtime_us=table.times_us("duration_s"),
        gpus=table.counts("gpus"),
        tenants=table.text("tenant"),
    ).trace(from_zero=False)


def read_openb(path: Path) -> Trace:
    """Alibaba's openb pod list: a pod is one worker with CPU, memory and whole or shared GPUs.

    It runs from its scheduled time (its creation where that is missing) until its deletion. A share of a GPU is an
    amount of `gpu` that is not tied to one card. gpu_spec, qos and pod_phase are ignored.
    """
    table = Table(
        path,
        (
            "name",
            "cpu_milli",
            "memory_mib",
            "num_gpu",
            "gpu_milli",
            "creation_time",
            "deletion_time",
            "scheduled_time",
        ),
    )
    created, gpus = table.times_us("creation_time"), table.counts("num_gpu")
    begun = table.times_us("scheduled_time", gaps=True)
    share, cpu, memory = (table.counts("gpu_milli"), table.counts("cpu_milli"), table.numbers("memory_mib"))
    wrong = np.flatnonzero((share > MILLI) | ((share == 0) & (gpus > 0)))
    if len(wrong):
        raise table.bad(
            int(wrong[0]), "gpu_milli", int(share[wrong[0]]), f"1 to {MILLI} thousandths of a GPU"
        )
    wrong = np.flatnonzero((memory < 0) | (memory > 1e9))
    if len(wrong):
        raise table.bad(int(wrong[0]), "memory_mib", float(memory[wrong[0]]), "0 to 1e9 MiB")
    mem_milli = np.ceil(memory * (2**20 / 1e6)).astype(np.int64)  # MiB -> thousandths of a GB
    columns = ((gpus * share).tolist(), cpu.tolist(), mem_milli.tolist())
    return Columns(
        table=table,
        names=("name", "creation_time"),
        ids=table.text("name"),
        arrive_us=created,
        runtime_us=table.times_us("deletion_time", gaps=True) - np.where(np.isnan(begun), created, begun),
        gpus=gpus,
        workers=np.ones(len(table), np.int64),
        demand=[
            tuple((r, milli) for r, milli in enumerate(row) if milli) for row in zip(*columns, strict=True)
        ],
    ).trace(from_zero=True)
