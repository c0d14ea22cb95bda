"""Reads CSV text with `# key: value` lines above the header; every error names the line and the column."""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Final

from tradewind.model.errors import InputError, LookupFailed, other_separator

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9 _.:+/()\-]*")
_DATE = re.compile(r"(\d{4})(?:-(\d{2}))?(?:-(\d{2}))?")
LONGEST_NAME: Final = 120


@dataclass(frozen=True, slots=True)
class Row:
    """A row of a table; reads its cells or raises an error that names line and column."""

    where: str
    line: int
    cells: Mapping[str, str]

    def error(self, column: str, allowed: str) -> InputError:
        """What a cell holds and what it may hold."""
        found = repr(self.cells.get(column, ""))
        found = "an empty cell" if found == "''" else found if len(found) <= 60 else found[:57] + "…"
        return InputError(f"line {self.line}, column {column}: found {found}; {allowed}", where=self.where)

    def text(self, column: str) -> str:
        """A cell as it is; empty where it or its column is missing."""
        return self.cells.get(column, "").strip()

    def name(self, column: str) -> str:
        """A cell that must be a name."""
        text = self.text(column)
        if len(text) > LONGEST_NAME or not _NAME.fullmatch(text):
            raise self.error(
                column, f"it must be a name of letters, digits and - _ . : + / (at most {LONGEST_NAME})"
            )
        return text

    def number(self, column: str, most: float, *, zero: bool = False) -> float:
        """A cell that must be a number above 0 (or 0)."""
        found = self.maybe(column, most, zero=zero)
        if found is None:
            raise self.error(column, _allowed(most, zero))
        return found

    def maybe(self, column: str, most: float, *, zero: bool = False) -> float | None:
        """The same where the cell may be empty."""
        text = self.text(column)
        if not text:
            return None
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if 0 < value <= most or (zero and value == 0):
            return value + 0.0  # -0.0 becomes 0.0
        raise self.error(column, _allowed(most, zero))


def _allowed(most: float, zero: bool) -> str:
    return (
        f"it must be a number {'from' if zero else 'above'} 0 {'to' if zero else 'and at most'} {most:,.0f}"
    )


@dataclass(frozen=True, slots=True)
class Sheet:
    """A table and the `# key: value` lines above it."""

    where: str
    about: tuple[tuple[str, str], ...]
    rows: tuple[Row, ...]

    def all(self, key: str) -> tuple[str, ...]:
        """The values of a key."""
        return tuple(value for name, value in self.about if name == key)

    def date(self, given: str) -> str:
        """Its date: the one given, else that of its `# date:` line."""
        found = given or "".join(self.all("date")[:1])
        if not found:
            raise InputError(
                "has no date; add a line `# date: 2026-08-31` above the header",
                where=self.where,
            )
        first_day(found, self.where)
        return found


def first_day(text: str, where: str) -> date:
    """The first day of `2026`, `2026-08` or `2026-08-31`."""
    match = _DATE.fullmatch(text)
    try:
        if match is None:
            raise ValueError
        return date(*(int(part or 1) for part in match.groups()))
    except ValueError:
        raise InputError(
            f"the date is {text!r:.40}; write a year, month or day: 2026, 2026-08, 2026-08-31", where=where
        ) from None


def read_sheet(text: str, where: str, required: Sequence[str], optional: Sequence[str] | None) -> Sheet:
    """The table of a CSV text; optional None: other columns are ignored."""
    lines = text.splitlines(keepends=True)
    head = 0
    about: list[tuple[str, str]] = []
    while head < len(lines) and (lines[head].startswith("#") or not lines[head].strip()):
        key, sign, value = lines[head].lstrip("# ").partition(":")
        if sign:
            about.append((key.strip(), value.strip()))
        head += 1
    try:
        found = list(_lines("".join(lines[head:]), head))
    except csv.Error as error:
        raise InputError(f"is not a readable CSV file ({error})", where=where) from None
    if not found:
        raise InputError("has no table; the first line must name the columns", where=where)
    (_, header), *body = found
    header = [name.strip() for name in header]
    _check_header(header, where, required, optional)
    rows = []
    for line, cells in body:
        if len(cells) != len(header):
            raise InputError(
                f"line {line} has {len(cells)} cells, but the header names {len(header)} columns", where=where
            )
        rows.append(Row(where, line, dict(zip(header, cells, strict=True))))
    if not rows:
        raise InputError("has a header but no rows; add at least one", where=where)
    return Sheet(where, tuple(about), tuple(rows))


def _lines(text: str, before: int) -> Iterator[tuple[int, list[str]]]:
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    for cells in reader:
        if cells:
            yield before + reader.line_num, cells


def _check_header(
    header: Sequence[str], where: str, required: Sequence[str], optional: Sequence[str] | None
) -> None:
    missing = [name for name in required if name not in header]
    if missing:
        raise InputError(
            f"has no column {missing[0]}; it needs {', '.join(required)}. Found: {', '.join(header)[:200]}"
            f"{other_separator(header)}",
            where=where,
        )
    if len(set(header)) != len(header):
        twice = next(name for name in header if header.count(name) > 1)
        raise InputError(f"has the column {twice!r:.40} twice; keep one", where=where)
    for name in header if optional is not None else ():
        if name not in required and name not in (optional or ()):
            try:
                raise LookupFailed("column", name[:60], (*required, *(optional or ())))
            except LookupFailed as error:
                raise InputError(str(error), where=where) from None
