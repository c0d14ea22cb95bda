"""Where the records of a job's data come from: generators, and files that are read over and over again.

A generator gives every record number its own content for a seed, so that it need not be stored to be made again.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from itertools import accumulate
from pathlib import Path
from typing import NamedTuple, Protocol

import numpy as np

from tradewind.model.errors import InputError
from tradewind.model.job import Job

BLOCK = 256
"""Records that are generated at once."""
SIDE = 12
"""Height and width of a generated picture."""


class Source(Protocol):
    """A sequence of records without end."""

    def read(self, first: int, count: int) -> bytes:
        """Records first to first + count - 1."""


def _noise(rng: np.random.Generator, record_bytes: int) -> bytes:
    """Random bytes."""
    return rng.bytes(BLOCK * record_bytes)


def _shapes(rng: np.random.Generator, record_bytes: int) -> bytes:
    """Ten kinds of strokes and shapes at random positions in noise: a byte for the kind, then SIDE x SIDE pixels."""
    labels = rng.integers(10, size=BLOCK)
    shift = rng.integers(-2, 3, size=(2, BLOCK, 1, 1))
    y, x = np.mgrid[:SIDE, :SIDE] - SIDE // 2
    dy, dx = y - shift[0], x - shift[1]
    far, square = np.maximum(abs(dx), abs(dy)), dx * dx + dy * dy
    kinds = (
        dy == 0, dx == 0, dx == dy, dx == -dy, (dx == 0) | (dy == 0), (dx == dy) | (dx == -dy), far == 3, far == 1,
        (square >= 5) & (square <= 10), abs(dy) == 2,
    )  # fmt: skip
    drawn = np.choose(labels[:, None, None], kinds) & (far <= 3)
    pixels = 90.0 * drawn + rng.normal(80.0, 25.0, size=(BLOCK, SIDE, SIDE))
    records = np.empty((BLOCK, record_bytes), dtype=np.uint8)
    records[:, 0] = labels
    records[:, 1:] = np.clip(pixels, 0, 255).reshape(BLOCK, -1)
    return records.tobytes()


class _Generator(NamedTuple):
    """record_bytes: size of its records; 0: any."""

    make: Callable[[np.random.Generator, int], bytes]
    record_bytes: int


GENERATORS = {"noise": _Generator(_noise, 0), "shapes": _Generator(_shapes, 1 + SIDE * SIDE)}


class GeneratedRecords:
    """Records of a generator."""

    def __init__(self, name: str, record_bytes: int, seed: int) -> None:
        self._make, self._record_bytes, self._seed = GENERATORS[name].make, record_bytes, seed

    def read(self, first: int, count: int) -> bytes:
        """Records first to first + count - 1."""
        begin, end = first // BLOCK, -(-(first + count) // BLOCK)
        made = b"".join(
            self._make(np.random.default_rng((self._seed, block)), self._record_bytes)
            for block in range(begin, end)
        )
        skipped = (first - begin * BLOCK) * self._record_bytes
        return made[skipped : skipped + count * self._record_bytes]


class FileRecords:
    """Records of files, in the order of their names; after the last one the first follows."""

    def __init__(self, paths: list[Path], record_bytes: int) -> None:
        self._paths, self._record_bytes = paths, record_bytes
        self._ends = list(accumulate(path.stat().st_size // record_bytes for path in paths))
        self.records = self._ends[-1] if self._ends else 0

    def read(self, first: int, count: int) -> bytes:
        """Records first to first + count - 1."""
        found: list[bytes] = []
        while count > 0:
            at = first % self.records
            number = bisect_right(self._ends, at)
            some = min(count, self._ends[number] - at)
            begin = self._ends[number - 1] if number else 0
            with self._paths[number].open("rb") as file:
                file.seek((at - begin) * self._record_bytes)
                found.append(file.read(some * self._record_bytes))
            first, count = first + some, count - some
        return b"".join(found)


def open_source(job: Job) -> Source:
    """The source of a job's data; InputError where there is none."""
    data = job.data
    assert data is not None
    where = f"jobs[{job.id}].data"
    if data.source in GENERATORS:
        size = GENERATORS[data.source].record_bytes
        if size and size != data.record_bytes:
            raise InputError(
                f"record_bytes is {data.record_bytes}; records of {data.source} have {size}", where=where
            )
        return GeneratedRecords(data.source, data.record_bytes, job.seed)
    try:
        found = FileRecords(_files(Path(data.source)), data.record_bytes)
    except OSError as error:
        known = ", ".join(GENERATORS)
        raise InputError(
            f"source is {data.source!r}, which is no generator ({known}) and cannot be read: {error.strerror}",
            where=where,
        ) from None
    if not found.records:
        raise InputError(f"source {data.source!r} has no record of {data.record_bytes} bytes", where=where)
    return found


def _files(path: Path) -> list[Path]:
    if not path.is_dir():
        path.stat()
        return [path]
    return sorted(each for each in path.iterdir() if each.is_file() and not each.name.startswith("."))
