"""Reads Parquet files that may be hostile: what a file decodes to is measured before memory is used for it.

Sizes come from the headers of the pages, which are what the decoder allocates by, not from the summary at the end of the
file. Texts are read as dictionaries, so a text that a million rows repeat is there once.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, Final

from tradewind.files.documents import most_rows
from tradewind.model.errors import InputError

BYTES_PER_ROW: Final = 256
"""Bytes of all columns for each row that a file of its size may have (documents.most_rows)."""
HEADER_BYTES: Final = 1 << 16
"""Most bytes of the header of a page."""
PREFIXED: Final = 7
"""Encoding in which each text repeats the beginning of the one before it: a few bytes decode to any amount."""
TEXTS: Final = (6, 7)
"""Physical types of texts: of any length, of a fixed length."""
REPEATED: Final = 2


def read_columns(path: Path, expected: int | None = None) -> dict[str, list[Any]]:
    """The columns of a Parquet file as plain values; InputError where it is unreadable or not as large as it should be."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        texts = _check(path, expected)
        table = pq.read_table(path, memory_map=False, use_threads=False, read_dictionary=texts)
        if len(set(table.column_names)) != len(table.column_names):
            raise InputError("two columns have the same name; rename one", where=str(path))
        most = BYTES_PER_ROW * most_rows(path)
        for name in texts:
            most -= sum(_text_bytes(chunk) for chunk in table.column(name).chunks)
            _require(
                path,
                most >= 0,
                f"the texts of column {name!r} decode to more bytes than a file of that size may",
            )
        return {name: _values(table.column(name)) for name in table.column_names}
    except InputError:
        raise
    except (
        pa.ArrowException,
        OSError,
        ValueError,
        LookupError,
        TypeError,
        AttributeError,
        OverflowError,
    ) as error:
        raise InputError(f"is not a readable Parquet file ({str(error)[:200]})", where=str(path)) from None


def _require(path: Path, fine: bool, what: str) -> None:
    if not fine:
        raise InputError(
            f"{what}; it has {path.stat().st_size:,} bytes. Write the table as CSV, or in several files.",
            where=str(path),
        )


def _check(path: Path, expected: int | None) -> list[str]:
    """Check rows, columns and pages; return the columns that hold texts."""
    with path.open("rb") as file:
        found = _footer(file)
        rows, most, names = found[3], most_rows(path), [element[4] for element in found[2][1:]]
        if expected is not None and rows != expected:
            raise InputError(f"has {rows} rows, not {expected}", where=path.name)
        _require(path, 0 <= rows <= most, f"claims {rows:,} rows; a file of that size may have {most:,}")
        nested = any(element.get(5) or element.get(3) == REPEATED for element in found[2][1:])
        _require(path, not nested, "it has nested columns")
        # texts of a fixed length are whole in every row, however short a dictionary of them is
        lengths = [element.get(2, 0) for element in found[2][1:] if element[1] == TEXTS[1]]
        decoded, claimed = rows * sum(lengths), 0
        fine = min(lengths, default=0) >= 0 and decoded <= BYTES_PER_ROW * most
        _require(path, fine, f"decodes to more than {decoded:,} bytes")
        for group in found[4]:
            claimed += group[3]
            chunks = [chunk[3] for chunk in group[1]]
            fine = [chunk[3] for chunk in chunks] == [[name] for name in names]
            fine = fine and all(chunk[5] == group[3] for chunk in chunks)
            _require(path, fine, "a row group has not one chunk per column with a value per row")
            for chunk in chunks:
                for size, encoding in _pages(file, chunk):
                    decoded += size
                    known = not (chunk[1] in TEXTS and encoding == PREFIXED)
                    _require(path, known, "its texts are delta-encoded; write it without")
                    _require(path, decoded <= BYTES_PER_ROW * most, f"decodes to more than {decoded:,} bytes")
    _require(path, claimed == rows, f"claims {rows:,} rows, but its row groups claim {claimed:,}")
    return [
        name.decode() for name, element in zip(names, found[2][1:], strict=True) if element[1] == TEXTS[0]
    ]


def _footer(file: BinaryIO) -> dict[int, Any]:
    """The summary at the end of a file (FileMetaData in the format's definition)."""
    end = file.seek(0, 2)
    file.seek(max(0, end - 8))
    size, mark = int.from_bytes(file.read(4), "little"), file.read(4)
    if mark != b"PAR1" or size > end - 8:
        raise ValueError("it does not end as a Parquet file does")
    file.seek(end - 8 - size)
    return _Thrift(file.read(size)).struct()


def _pages(file: BinaryIO, chunk: dict[int, Any]) -> Iterator[tuple[int, int]]:
    """(decoded bytes, encoding) of every page of a column chunk (ColumnMetaData)."""
    at = min(chunk[9], chunk.get(11) or chunk[9])
    end = at + chunk[7]
    while at < end and chunk[5]:  # a chunk without values is not read
        file.seek(at)
        header = _Thrift(file.read(HEADER_BYTES))
        page = header.struct()
        sizes = page[2], page[3]
        if min(sizes) < 0:
            raise ValueError("a page has a negative size")
        body = page.get(5) or page.get(8) or {}  # of a data page, first or second version
        yield sizes[0], body.get(2 if 5 in page else 4, 0)
        at += header.at + sizes[1]


class _Thrift:
    """Reads a structure in Thrift's compact protocol: field number -> value."""

    def __init__(self, data: bytes) -> None:
        self._data, self.at = data, 0

    def struct(self, depth: int = 0) -> dict[int, Any]:
        """The next structure."""
        if depth > 8:
            raise ValueError("a header is nested too deeply")
        found: dict[int, Any] = {}
        field = 0
        while byte := self._byte():
            field = field + (byte >> 4) if byte >> 4 else self._signed()
            found[field] = self._value(byte & 15, depth)
        return found

    def _value(self, kind: int, depth: int) -> Any:
        match kind:
            case 1 | 2:
                return kind == 1
            case 3:
                return self._byte()
            case 4 | 5 | 6:
                return self._signed()
            case 8:
                size = self._varint()
                begin, self.at = self.at, self.at + size
                return self._data[begin : self.at]
            case 9:
                head = self._byte()
                count = head >> 4 if head >> 4 < 15 else self._varint()
                return [self._value(head & 15, depth) for _ in range(count)]
            case 12:
                return self.struct(depth + 1)
        raise ValueError(f"a header has a field of type {kind}")

    def _byte(self) -> int:
        byte = self._data[self.at]
        self.at += 1
        return byte

    def _varint(self) -> int:
        value = shift = 0
        while True:
            byte = self._byte()
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128 or shift > 63:
                return value

    def _signed(self) -> int:
        value = self._varint()
        return (value >> 1) ^ -(value & 1)


def _text_bytes(chunk: Any) -> int:
    """Bytes of all texts of a dictionary-encoded chunk, each as often as it occurs."""
    import pyarrow.compute as pc

    lengths = pc.binary_length(chunk.dictionary)
    return int(pc.sum(pc.cast(lengths.take(chunk.indices), "int64")).as_py() or 0)


def _values(column: Any) -> list[Any]:
    """Plain values; equal texts of a chunk are one object."""
    import pyarrow as pa

    if not pa.types.is_dictionary(column.type):
        return list(column.to_pylist())
    found: list[Any] = []
    for chunk in column.chunks:
        words = [*chunk.dictionary.to_pylist(), None]
        found += [words[-1 if i is None else i] for i in chunk.indices.to_pylist()]
    return found
