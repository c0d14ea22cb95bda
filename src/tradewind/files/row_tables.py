"""Tables of jobs, changes, links, egress and volumes: rows, columns, or a CSV or Parquet file next to the scenario.

Columns are named after fields; a dot leads into an object (`work.runtime_us`, `worker.gpu`). An empty cell means that the
field is left out. In CSV, lists and objects are cells with JSON.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import repeat
from pathlib import Path, PurePosixPath
from typing import Any, Final

from tradewind.files import atomic, parquet
from tradewind.files.documents import check_file, parse_json, read_text
from tradewind.files.messages import shown
from tradewind.model.errors import InputError, ScenarioError, other_separator

Columns = dict[str, list[Any]]
LONGEST_CELL: Final = 10**7
MOST_ROWS: Final = 50_000_000
LABELS: Final = ("id", "tenant")
"""Columns in which numbers of a Parquet file are names."""
TEXT: Final = frozenset(
    (
        "id", "tenant", "architecture", "hold", "work.kind", "work.unit", "work.comm", "utility.of", "utility.shape",
        "private.valuation.of", "private.valuation.shape", "kind", "node", "resource", "link", "direction", "src",
        "dst", "a", "b", "job", "name", "parent",
    )
)  # fmt: skip
"""Columns whose CSV cells are always text."""


def rows_from_columns(columns: Mapping[str, Any], where: str) -> list[dict[str, Any]]:
    """Turn columns into rows; None leaves a field out, dotted names become nested objects."""
    check_columns(columns, where)
    count = len(next(iter(columns.values()))) if columns else 0
    rows: list[dict[str, Any]] = [{} for _ in range(count)]
    for name, column in columns.items():
        _fill(rows, name, column, where)
    return rows


def check_columns(columns: Mapping[str, Any], where: str) -> None:
    """Check that all columns are lists of the same length."""
    length = -1
    for name, column in columns.items():
        if not isinstance(column, list):
            raise ScenarioError(
                f"{where}.{name:.60} is {shown(column)}; a table given as an object needs one list per column"
            )
        if length not in (-1, len(column)):
            raise ScenarioError(
                f"{where}.{name:.60} has {len(column)} entries, but the column before it has {length}; "
                "all columns need the same number. Use null to leave a field out."
            )
        length = len(column)


def _fill(rows: list[dict[str, Any]], name: str, column: list[Any], where: str) -> None:
    parts = _split(name)
    if len(parts) == 1:
        for row, value in zip(rows, column, strict=True):
            if value is not None:
                row[name] = value
        return
    for number, (row, value) in enumerate(zip(rows, column, strict=True)):
        if value is None:
            continue
        at = row
        for part in parts[:-1]:
            at = at.setdefault(part, {})
            if not isinstance(at, dict):
                raise ScenarioError(
                    f"{where}[{number}].{part:.60} is {shown(at)}, but column {name:.60} makes it an object; keep one"
                )
        if parts[-1] in at:
            raise ScenarioError(f"{where}[{number}].{name:.60} is given twice; keep one column")
        at[parts[-1]] = value


def _split(name: str) -> list[str]:
    """Split `private.valuation.of` into three parts, `worker.a.b` into two (resource names may contain dots)."""
    head, dot, rest = name.partition(".")
    if not dot:
        return [name]
    if head in ("private", "work"):
        return [head, *_split(rest)]
    return [head, rest]


def table_path(folder: Path, name: str, where: str) -> Path:
    """The path of a file in the folder of the scenario; rejects any other."""
    pure = PurePosixPath(name)
    if pure.is_absolute() or ".." in pure.parts or "\\" in name or "\x00" in name:
        raise ScenarioError(
            f"{where} is {name!r}; it must be a file in the scenario's folder, given without a path"
        )
    if pure.suffix.lower() not in (".csv", ".parquet"):
        raise ScenarioError(f"{where} is {name!r}; it must end in .csv or .parquet")
    return folder / pure


def read_columns(path: Path) -> Columns:
    """The columns of a CSV or Parquet file."""
    return read_csv(path) if path.suffix.lower() == ".csv" else read_parquet(path)


def read_parquet(path: Path) -> Columns:
    """Columns of a Parquet file as plain Python values."""
    check_file(path)
    columns = parquet.read_columns(path)
    if any(len(column) > MOST_ROWS for column in columns.values()):
        raise InputError(f"has more than {MOST_ROWS:,} rows", where=str(path))
    try:
        return {name: _cells(name, column) for name, column in columns.items()}
    except InputError as error:
        raise InputError(str(error), where=str(path)) from None


FORMULA = tuple("=+-@\t\r")
"""How cells begin that spreadsheets compute."""


def csv_cell(cell: Any) -> Any:
    """A cell to be written: an apostrophe makes text of what a spreadsheet would compute; `read_csv` removes it."""
    if not isinstance(cell, str) or not cell.startswith((*FORMULA, "'")):
        return cell
    try:
        float(cell)
    except ValueError:
        return "'" + cell
    return cell


def write_csv(path: Path, names: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> None:
    """Write rows with these columns, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    text = io.StringIO()
    writer = csv.DictWriter(text, names)
    writer.writeheader()
    writer.writerows({name: csv_cell(cell) for name, cell in row.items()} for row in rows)
    atomic.write_text(path, text.getvalue())


def _as_meant(cell: str) -> str:
    return cell[1:] if cell.startswith("'") and cell[1:].startswith((*FORMULA, "'")) else cell


def read_csv(path: Path) -> Columns:
    """Columns of a CSV file with a header; cells become numbers, text or JSON values, depending on the column.

    Lines above the header that begin with # are comments.
    """
    text = read_text(path)
    previous = csv.field_size_limit(LONGEST_CELL)
    try:
        lines = list(csv.reader(io.StringIO(text, newline=""), strict=True))
    except csv.Error as error:
        raise InputError(f"is not a readable CSV file ({error})", where=str(path)) from None
    finally:
        csv.field_size_limit(previous)
    lines = [line for line in lines if line]
    while lines and lines[0][0].startswith("#"):
        del lines[0]
    if not lines:
        raise InputError("the file is empty; the first line must name the columns", where=str(path))
    header = [name.strip() for name in lines[0]]
    if len(set(header)) != len(header) or "" in header:
        raise InputError(
            "the first line must name every column; names must differ and not be empty", where=str(path)
        )
    if hint := other_separator(header):
        raise InputError(f"has the one column {header[0]:.60}{hint}", where=str(path))
    for number, line in enumerate(lines):
        if len(line) != len(header):
            raise InputError(
                f"row {number} has {len(line)} cells, but the first line names {len(header)} columns",
                where=str(path),
            )
    lines[1:] = [[_as_meant(cell) for cell in line] for line in lines[1:]]
    body = zip(*lines[1:], strict=True) if len(lines) > 1 else repeat((), len(header))
    try:
        return {name: _cells(name, cells) for name, cells in zip(header, body, strict=False)}
    except InputError as error:
        raise InputError(str(error), where=str(path)) from None


def _cells(name: str, cells: Iterable[Any]) -> list[Any]:
    """Convert text cells to numbers or JSON values, except in TEXT columns; keep other cells."""
    convert: Callable[[str], Any] = _text_cell if name in TEXT else _cell
    known: dict[str, Any] = {}
    result: list[Any] = []
    for cell in cells:
        if type(cell) is not str:
            result.append(str(cell) if type(cell) is int and name in LABELS else cell)
            continue
        if cell not in known:
            try:
                known[cell] = convert(cell)
            except InputError as error:
                raise InputError(f"column {name:.60}, row {len(result) + 1}: {error}") from None
        result.append(known[cell])
    return result


def _text_cell(text: str) -> str | None:
    return text or None


def _cell(text: str) -> Any:
    text = text.strip()
    if not text:
        return None
    if text[0] in "[{":
        return parse_json(text)
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    if len(text) < 40:
        for kind in (int, float):
            try:
                return kind(text)
            except ValueError:
                continue
    return text


def flatten(rows: Iterable[Mapping[str, Any]], deep: Collection[str]) -> Columns:
    """Turn rows into columns; objects named in `deep` get one column per entry."""
    columns: Columns = {}
    count = 0
    for row in rows:
        for name, value in row.items():
            if name in deep and isinstance(value, dict):
                for key, inner in value.items():
                    _put(columns, f"{name}.{key}", inner, count)
            else:
                _put(columns, name, value, count)
        count += 1
    for column in columns.values():
        column.extend(repeat(None, count - len(column)))
    return columns


def _put(columns: Columns, name: str, value: Any, row: int) -> None:
    column = columns.setdefault(name, [])
    column.extend(repeat(None, row - len(column)))
    column.append(value)
