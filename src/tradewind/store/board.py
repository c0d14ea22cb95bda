"""What people see of a service: rows that are written with the instants, and read without asking the engine."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from threading import BoundedSemaphore
from typing import Any, Self

import sqlalchemy as sql

from tradewind.model.errors import StoreError
from tradewind.store import schema
from tradewind.store.database import Address, connect, explained

Row = dict[str, Any]
MOST = 2**63 - 1
CONNECTIONS = 8
"""Connections that a board reads with at once; others wait for one. A database has a limit for all of its clients."""


class Board:
    """Reads a service's tables, from any thread; every call sees what is committed by then."""

    def __init__(self, given: str | Path) -> None:
        self._address, self._room = Address(given), BoundedSemaphore(CONNECTIONS)
        self._free: list[sql.Connection] = []
        self._is_closed = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections; those that are still read from are closed then."""
        self._is_closed = True
        while self._free:
            self._free.pop().close()

    @contextmanager
    def _reading(self) -> Iterator[sql.Connection]:
        with explained(self._address), self._room:
            try:
                connection = self._free.pop()
            except IndexError:
                connection = connect(self._address, write=False, threads=True)
            try:
                with connection.begin():
                    yield connection
            finally:
                if self._is_closed or connection.invalidated:
                    connection.close()
                else:
                    self._free.append(connection)

    def rows(
        self,
        name: str,
        /,
        *,
        after: int | None = None,
        before: int | None = None,
        most: int = 100,
        **equal: Any,
    ) -> list[Row]:
        """Rows of a table with these values, by number: rising from `after` on, else falling (below `before`)."""
        table = schema.tables.tables[name]
        query = sql.select(table).where(*_conditions(table, equal))
        if "number" in table.c:
            number = table.c["number"]
            if after is not None:
                query = query.where(number > _bounded(after)).order_by(number)
            else:
                query = query.where(number < _bounded(before)) if before is not None else query
                query = query.order_by(number.desc())
        with self._reading() as connection:
            return [dict(row._mapping) for row in connection.execute(query.limit(most))]

    def private(self) -> list[Row]:
        """`sealed`, `kind`, `index` and `status` of jobs that are not over and have something sealed or a quote."""
        jobs, asked = schema.board_jobs, schema.requests
        query = (
            sql.select(asked.c.sealed, asked.c.kind, jobs.c.job.label("index"), jobs.c.status)
            .join(asked, asked.c.number == jobs.c.number)
            .where(jobs.c.is_over == sql.false(), jobs.c.job.is_not(None))
            .where(asked.c.sealed.is_not(None) | (asked.c.kind == "quote"))
            .order_by(jobs.c.number)
        )
        with self._reading() as connection:
            return [dict(row._mapping) for row in connection.execute(query)]

    def row(self, name: str, /, **equal: Any) -> Row | None:
        """The row of a table with these values."""
        found = self.rows(name, most=1, **equal)
        return found[0] if found else None

    def count(self, name: str, /, *, before: int | None = None, **equal: Any) -> int:
        """Number of rows with these values, below number `before` where it is given."""
        table = schema.tables.tables[name]
        query = sql.select(sql.func.count()).select_from(table).where(*_conditions(table, equal))
        query = query if before is None else query.where(table.c["number"] < before)
        with self._reading() as connection:
            return int(connection.execute(query).scalar() or 0)

    def counts(self, name: str, column: str, /, **equal: Any) -> dict[str, int]:
        """Number of rows for each value of a column."""
        table = schema.tables.tables[name]
        query = sql.select(table.c[column], sql.func.count()).where(*_conditions(table, equal))
        with self._reading() as connection:
            return {str(value): int(n) for value, n in connection.execute(query.group_by(table.c[column]))}

    def last(self, name: str, /, **equal: Any) -> int:
        """The highest number of a table; 0 if it is empty."""
        table = schema.tables.tables[name]
        query = sql.select(sql.func.max(table.c["number"])).where(*_conditions(table, equal))
        with self._reading() as connection:
            return int(connection.execute(query).scalar() or 0)

    def text(self) -> Iterator[str]:
        """Every cell of every table as text, to search."""
        for table in schema.tables.sorted_tables:
            with self._reading() as connection:
                for row in connection.execute(sql.select(table)):
                    yield from (str(cell) for cell in row)


def _bounded(number: int) -> int:
    """A number that databases can compare."""
    return max(-MOST, min(MOST, number))


def _conditions(table: sql.Table, equal: Mapping[str, Any]) -> list[sql.ColumnElement[bool]]:
    found: list[sql.ColumnElement[bool]] = []
    for name, value in equal.items():
        if name not in table.c:
            raise StoreError(f"{table.name} has no column {name!r}")
        column = table.c[name]
        found.append(column.in_(value) if isinstance(value, list | tuple) else column == value)
    return found
