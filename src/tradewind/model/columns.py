"""Columns held as arrays: they read like lists of plain values, and take a few bytes per row instead of an object."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from tradewind.model.arrays import Ints

CHUNK = 1 << 18
"""Rows that are turned into plain values at once."""


class Packed(Sequence[Any]):
    """A column that reads like a list: plain values by row, in order, and equal to a list of the same values."""

    @overload
    def __getitem__(self, row: int) -> Any: ...
    @overload
    def __getitem__(self, row: slice) -> list[Any]: ...
    def __getitem__(self, row: int | slice) -> Any:
        if isinstance(row, slice):
            first, end, step = row.indices(len(self))
            return self.plain(first, end) if step == 1 else [self[i] for i in range(first, end, step)]
        at = row + len(self) if row < 0 else row
        if not 0 <= at < len(self):
            raise IndexError(f"row {row} of {len(self)}")
        return self.plain(at, at + 1)[0]

    def __iter__(self) -> Iterator[Any]:
        for chunk in self.chunks():
            yield from chunk

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, list | tuple | Packed):
            return NotImplemented
        return len(self) == len(other) and all(a == b for a, b in zip(self, other, strict=True))

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.plain(0, 6)!r}, {len(self)} rows)"

    def plain(self, first: int, end: int) -> list[Any]:
        """Rows first to end - 1 as plain values."""
        raise NotImplementedError

    def chunks(self) -> Iterator[list[Any]]:
        """All rows as plain values, a chunk at a time."""
        for first in range(0, len(self), CHUNK):
            yield self.plain(first, min(first + CHUNK, len(self)))

    def tolist(self) -> list[Any]:
        """All rows as plain values."""
        return self.plain(0, len(self))


class Numbers(Packed):
    """Whole numbers or floats."""

    def __init__(self, array: NDArray[Any]) -> None:
        self.array = array

    def __len__(self) -> int:
        return len(self.array)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return np.array(self.array, dtype=dtype, copy=copy)

    def plain(self, first: int, end: int) -> list[Any]:
        """Rows first to end - 1 as ints or floats."""
        found: list[Any] = self.array[first:end].tolist()
        return found

    @classmethod
    def all_equal(cls, value: int | float, rows: int) -> Numbers:
        """The same number in every row, stored once."""
        return cls(np.broadcast_to(np.array(value), (rows,)))


class Words(Packed):
    """Texts of which there are few: each row is the number of one of `words`."""

    def __init__(self, codes: NDArray[Any], words: Sequence[str]) -> None:
        self.codes, self.words = codes, tuple(words)

    def __len__(self) -> int:
        return len(self.codes)

    def plain(self, first: int, end: int) -> list[str]:
        """Rows first to end - 1 as texts."""
        return list(map(self.words.__getitem__, self.codes[first:end].tolist()))

    @classmethod
    def of(cls, texts: Sequence[Any]) -> Words:
        """Texts, coded in the order in which they occur."""
        if isinstance(texts, Words):
            return texts
        if isinstance(texts, Texts):
            return texts.words()
        known = {text: code for code, text in enumerate(dict.fromkeys(texts))}
        codes = np.fromiter(map(known.__getitem__, texts), np.int32, len(texts))
        return cls(codes, tuple(known))

    @classmethod
    def all_equal(cls, word: str, rows: int) -> Words:
        """The same text in every row."""
        return cls(np.broadcast_to(np.zeros(1, np.int8), (rows,)), (word,))

    def take(self, rows: Ints | slice) -> Words:
        """Some rows."""
        return Words(self.codes[rows], self.words)


class Texts(Packed):
    """Texts that differ from row to row: all of them in UTF-8, one after the other, and where each begins."""

    def __init__(self, begins: NDArray[Any], data: NDArray[np.uint8]) -> None:
        self.begins, self.data = begins, data

    def __len__(self) -> int:
        return len(self.begins) - 1

    @classmethod
    def of(cls, array: Any) -> Texts:
        """The texts of an array of Arrow, which has no gaps; no copy."""
        _, begins, data = array.buffers()
        wide = np.int64 if str(array.type).startswith("large") else np.int32
        at = np.frombuffer(begins, wide)[array.offset : array.offset + len(array) + 1]
        return cls(at, np.frombuffer(data, np.uint8) if data is not None else np.zeros(0, np.uint8))

    def arrow(self) -> Any:
        """The texts as an array of Arrow; no copy."""
        import pyarrow as pa

        if self.begins.dtype == np.int32:
            return pa.StringArray.from_buffers(len(self), pa.py_buffer(self.begins), pa.py_buffer(self.data))
        return pa.LargeStringArray.from_buffers(len(self), pa.py_buffer(self.begins), pa.py_buffer(self.data))

    def words(self) -> Words:
        """The same texts, each stored once."""
        coded = self.arrow().dictionary_encode()
        return Words(coded.indices.to_numpy(), coded.dictionary.to_pylist())

    def take(self, rows: Ints) -> Texts:
        """Some rows."""
        begin, size = self.begins[rows], self.begins[rows + 1] - self.begins[rows]
        begins = np.append(0, np.cumsum(size))
        return Texts(begins, self.data[np.repeat(begin - begins[:-1], size) + np.arange(begins[-1])])

    def plain(self, first: int, end: int) -> list[str]:
        """Rows first to end - 1 as texts."""
        at = self.begins[first : end + 1].tolist()
        if not at:
            return []
        piece, base = self.data[at[0] : at[-1]].tobytes(), at[0]
        if piece.isascii():
            text = piece.decode("ascii")
            return [text[a - base : b - base] for a, b in pairwise(at)]
        return [piece[a - base : b - base].decode() for a, b in pairwise(at)]


class Numbered(Packed):
    """Names made of a prefix and a number with at least `digits` digits, such as job-0042."""

    def __init__(self, numbers: NDArray[Any], prefix: str = "", digits: int = 1) -> None:
        self.numbers, self.prefix, self.digits = numbers, prefix, digits

    def __len__(self) -> int:
        return len(self.numbers)

    def take(self, rows: Ints) -> Numbered:
        """Some rows."""
        return Numbered(self.numbers[rows], self.prefix, self.digits)

    def plain(self, first: int, end: int) -> list[str]:
        """Rows first to end - 1 as texts."""
        name = f"{self.prefix}{{:0{self.digits}d}}".format if self.digits > 1 or self.prefix else str
        return list(map(name, self.numbers[first:end].tolist()))


def taken(column: Sequence[str], rows: Ints) -> Sequence[str]:
    """Some rows of texts."""
    if isinstance(column, Words | Texts | Numbered):
        return column.take(rows)
    return [column[row] for row in rows.tolist()]


def whole(column: Sequence[Any]) -> Ints:
    """A column of whole numbers as an array; no copy where it is one of 64 bits."""
    return np.asarray(column.array if isinstance(column, Numbers) else column, dtype=np.int64)
