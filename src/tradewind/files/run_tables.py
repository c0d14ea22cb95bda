"""The tables of a run file: types, checksums, references between rows, Parquet."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, get_args

import numpy as np

from tradewind.files.messages import shown
from tradewind.files.parquet import read_columns
from tradewind.model.columns import Numbers, Packed, Words
from tradewind.model.decision import Duplex
from tradewind.model.errors import InputError, RunFileError, nearest
from tradewind.model.result import Column, Table
from tradewind.model.tables import TABLES, ColumnType
from tradewind.model.view import EventKind

INLINE_ROWS: Final = 20_000
"""Most rows in total for which a run keeps its tables in the header."""

GROUP_ROWS: Final = 1 << 20
"""Rows of a row group of a Parquet file."""

STEP: Final = 1 << 14
"""Rows whose bytes are hashed at once."""

LINKS: Final[dict[tuple[str, str], tuple[str, int]]] = {
    ("verdicts", "decision"): ("decisions", 0),
    ("plans", "decision"): ("decisions", -1),
    ("steps", "plan"): ("plans", 0),
    ("places", "step"): ("steps", 0),
    ("flows", "step"): ("steps", 0),
    ("routes", "step"): ("steps", 0),
    ("offers", "plan"): ("plans", 0),
    ("prices", "offer"): ("offers", 0),
}
"""(table, column) -> (table whose row number it holds, least value; -1 means no row)."""

WORDS: Final[dict[tuple[str, str], frozenset[str]]] = {
    ("events", "kind"): frozenset(get_args(EventKind)),
    ("routes", "duplex"): frozenset(get_args(Duplex)),
    ("costs", "kind"): frozenset(("rent", "transfer", "traffic", "deploy", "discount")),
    ("outcomes", "state"): frozenset(("finished", "left", "refused", "declined", "cancelled", "unfinished")),
    ("bills", "kind"): frozenset(("alone", "pooled")),
}
"""Columns with a fixed set of values."""


def columns_of(table: str) -> dict[str, ColumnType]:
    """Columns of a table with their types, in order."""
    return {name: kind for name, (kind, _) in TABLES[table].items()}


def normal(table: str, content: Mapping[str, Any]) -> dict[str, Column]:
    """The columns as lists of plain ints, floats or strings, or packed; raises if a value has another type."""
    if table not in TABLES:
        raise RunFileError(f"tables.{table:.60} is not a known table.{nearest(table, TABLES)}")
    wanted = columns_of(table)
    for name in content:
        if name not in wanted:
            raise RunFileError(
                f"tables.{table}.{name:.60} is not a known column.{nearest(str(name), wanted)}"
            )
    result: dict[str, Column] = {}
    length = -1
    for name, kind in wanted.items():
        if name not in content:
            raise RunFileError(
                f"tables.{table}.{name} is missing; the table needs the columns {', '.join(wanted)}"
            )
        result[name] = _typed(content[name], kind, f"tables.{table}.{name}")
        if length not in (-1, len(result[name])):
            raise RunFileError(
                f"tables.{table}.{name} has {len(result[name])} rows, but the column before it has {length}"
            )
        length = len(result[name])
    return result


def _typed(values: Any, kind: ColumnType, where: str) -> Column:
    """A column of one plain type."""
    if (
        isinstance(values, Numbers)
        and values.array.dtype.kind == ("i" if kind == "int" else "f")
        and kind != "str"
    ):
        if kind == "float" and not np.isfinite(values.array).all():
            row = int(np.flatnonzero(~np.isfinite(values.array))[0])
            raise RunFileError(f"{where}[{row}] is {values[row]}; it must be a finite number")
        return values
    if isinstance(values, Words) and kind == "str":
        _typed(list(values.words), kind, where)
        return values
    if hasattr(values, "tolist"):
        values = values.tolist()
    found = set(map(type, values))
    match kind:
        case "int":
            return _whole(values, found, where)
        case "float":
            return _real(values, found, where)
    for row, value in enumerate(values if found - {str} else ()):
        if type(value) is not str:
            raise RunFileError(f"{where}[{row}] is {shown(value)}; it must be text")
    try:
        "".join(values).encode()
    except UnicodeEncodeError:
        raise RunFileError(f"{where} contains text that is not valid Unicode") from None
    return list(values)


def _whole(values: Iterable[Any], found: set[type], where: str) -> list[int]:
    if not found <= {int}:
        plain = []
        for row, value in enumerate(values):
            if type(value) is bool or not isinstance(value, int | np.integer):
                raise RunFileError(f"{where}[{row}] is {shown(value)}; it must be a whole number")
            plain.append(int(value))
        values = plain
    result = list(values)
    if result and (max(result) >= 2**63 or min(result) < -(2**63)):
        raise RunFileError(f"{where} contains a number that does not fit in 64 bits")
    return result


def _real(values: Iterable[Any], found: set[type], where: str) -> list[float]:
    plain = list(values)
    if not found <= {float}:
        for row, value in enumerate(plain):
            fine = isinstance(value, int | float | np.number) and type(value) is not bool
            if not fine or not abs(value) <= 1e300:
                raise RunFileError(f"{where}[{row}] is {shown(value)}; it must be a finite number")
            plain[row] = float(value)
    if plain and not np.isfinite(np.array(plain)).all():
        row = int(np.flatnonzero(~np.isfinite(np.array(plain)))[0])
        raise RunFileError(f"{where}[{row}] is {plain[row]}; it must be a finite number")
    return plain


def checksum(table: str, content: Table) -> str:
    """SHA-256 of a table, the same whether it is stored as JSON or as Parquet.

    For each column in order: the line `name:type` with a newline in UTF-8; then for int the values as 64-bit
    little-endian two's complement, for float as little-endian IEEE-754 doubles, for str the lengths in bytes
    like an int column followed by all texts in UTF-8, one after the other.
    """
    digest = hashlib.sha256()
    for name, kind in columns_of(table).items():
        values = content[name]
        digest.update(f"{name}:{kind}\n".encode())
        if isinstance(values, Packed):
            for piece in _pieces(values, kind):
                digest.update(piece)
        elif kind == "str":
            encoded = [str(value).encode() for value in values]
            digest.update(np.array([len(each) for each in encoded], dtype="<i8").tobytes())
            digest.update(b"".join(encoded))
        else:
            digest.update(np.array(values, dtype="<i8" if kind == "int" else "<f8").tobytes())
    return digest.hexdigest()


def _pieces(column: Packed, kind: ColumnType) -> Iterator[bytes]:
    """The bytes of a packed column, as `checksum` counts them."""
    if isinstance(column, Numbers):
        for first in range(0, len(column), STEP):
            yield column.array[first : first + STEP].astype("<i8" if kind == "int" else "<f8").tobytes()
    elif isinstance(column, Words):
        words = [word.encode() for word in column.words]
        lengths = np.array([len(word) for word in words], "<i8")
        for first in range(0, len(column), STEP):
            yield lengths[column.codes[first : first + STEP]].tobytes()
        if lengths.any():
            for first in range(0, len(column), STEP):
                yield b"".join(map(words.__getitem__, column.codes[first : first + STEP].tolist()))


def _extent(values: Any) -> tuple[int, int]:
    """The least and the largest number of a column that is not empty."""
    if isinstance(values, Numbers):
        return int(values.array.min()), int(values.array.max())
    return min(values), max(values)


def check_links(tables: Mapping[str, Table]) -> None:
    """Check that row numbers exist, that words are known and that paths are numbered."""
    for (table, column), (target, low) in LINKS.items():
        values: Any = tables.get(table, {}).get(column, [])
        high = rows(tables[target]) if target in tables else 0
        if not len(values):
            continue
        least, most = _extent(values)
        if least < low or most >= high:
            row = next(i for i, v in enumerate(values) if not low <= v < high)
            raise RunFileError(
                f"tables.{table}.{column}[{row}] is {values[row]}; row numbers of {target} are {low} to {high - 1}"
            )
    for (table, column), words in WORDS.items():
        values = tables.get(table, {}).get(column, [])
        used = (
            {values.words[c] for c in np.unique(values.codes)}
            if isinstance(values, Words)
            else set(map(str, values))
        )
        wrong = used - words
        if wrong:
            raise RunFileError(
                f"tables.{table}.{column} contains {shown(min(wrong))}; it must be one of {', '.join(sorted(words))}"
            )
    _check_paths(tables.get("paths", {}), tables.get("routes", {}))


def _check_paths(paths: Table, routes: Table) -> None:
    """Check that paths are numbered in ascending order; a number without links is the empty path from a node to itself."""
    numbers: Any = paths.get("path", [])
    if numbers and (numbers[0] < 0 or any(b < a for a, b in pairwise(numbers))):
        raise RunFileError("tables.paths.path must be in ascending order, from 0")
    known = set(numbers)
    ends = zip(*(routes.get(name, []) for name in ("path", "src", "dst")), strict=True)
    for row, (path, src, dst) in enumerate(ends):
        if path not in known and (src != dst or int(path) < 0):
            raise RunFileError(
                f"tables.routes.path[{row}] is {path}, which is not in tables.paths; "
                "only a route from a node to itself may have no links"
            )


def rows(table: Table) -> int:
    """Number of rows."""
    return len(next(iter(table.values()))) if table else 0


def write_parquet(table: str, content: Table, path: Path) -> None:
    """Write a table; equal contents give equal bytes."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    types = {"int": pa.int64(), "float": pa.float64(), "str": pa.string()}
    schema = pa.schema(
        [pa.field(name, types[kind], nullable=False) for name, kind in columns_of(table).items()]
    )
    count = rows(content)
    texts = [
        name for name, kind in columns_of(table).items() if kind == "str"
    ]  # tables of numbers only cost memory
    with pq.ParquetWriter(
        path, schema, compression="zstd", compression_level=3, version="2.6", write_statistics=False, store_schema=False,
        use_dictionary=texts,
    ) as writer:  # fmt: skip
        for first in range(0, max(1, count), GROUP_ROWS):
            arrays = [_arrow(content[field.name], first, field.type) for field in schema]
            writer.write_table(pa.Table.from_arrays(arrays, schema=schema), GROUP_ROWS)


def _arrow(column: Any, first: int, kind: Any) -> Any:
    """Some rows of a column as an array of Arrow."""
    import pyarrow as pa

    if isinstance(column, Numbers):
        return pa.array(column.array[first : first + GROUP_ROWS].astype(kind.to_pandas_dtype(), copy=False))
    if isinstance(column, Words):
        codes = pa.array(np.ascontiguousarray(column.codes[first : first + GROUP_ROWS]))
        return pa.DictionaryArray.from_arrays(codes, pa.array(column.words, pa.string())).cast(kind)
    return pa.array(column[first : first + GROUP_ROWS], type=kind)


def read_parquet(table: str, path: Path, expected: int) -> dict[str, list[Any]]:
    """The columns of a Parquet file, which must have `expected` rows."""
    try:
        return read_columns(path, expected)
    except InputError as error:
        raise RunFileError(f"tables.{table}: {error}") from None
