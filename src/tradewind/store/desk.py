"""Writes what people ask of a service. Requests that come together share a transaction, on disk before each is answered."""

from __future__ import annotations

import queue
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from pathlib import Path
from threading import Thread
from typing import Any, Self, TypeVar, cast

import sqlalchemy as sql

from tradewind.model.errors import TradewindError
from tradewind.store import schema
from tradewind.store.board import last_request
from tradewind.store.database import Address, connect, explained, take_turns

T = TypeVar("T")
Row = dict[str, Any]
MOST = 500
"""Tasks that share a transaction, at most."""


class Rejected(TradewindError):
    """A task that was not carried out, and why; others of its transaction are."""

    def __init__(self, code: str, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.code, self.data = code, data


class Writing:
    """What a task may do inside the transaction. It must check before it writes: nothing of it is taken back.

    New rows of all tasks are kept until something has to see them, and written together, a statement per table.
    """

    def __init__(self, connection: sql.Connection) -> None:
        self._connection = connection
        self._rows: dict[str, dict[tuple[Any, ...], Row]] = {}  # table -> key -> row that is not written yet
        self._last: int | None = None

    def insert(self, name: str, /, **values: Any) -> int:
        """Add a row; return its number, of a request: whoever writes them takes turns."""
        number = 0
        if name == "requests":
            number = values["number"] = self._next()
        rows = self._rows.setdefault(name, {})
        rows[_key(name, values) or (len(rows),)] = values
        return number

    def _next(self) -> int:
        """The number of the next request."""
        if self._last is None:
            self._last = last_request(self._connection)
        self._last += 1
        return self._last

    def update(self, name: str, key: Mapping[str, Any], /, **values: Any) -> int:
        """Change rows with these values; return how many."""
        self.flush()
        table = schema.tables.tables[name]
        where = [table.c[column] == value for column, value in key.items()]
        return int(self._connection.execute(table.update().where(*where).values(**values)).rowcount)

    def row(self, name: str, /, **key: Any) -> Row | None:
        """The row with these values."""
        rows, found = self._rows.get(name, {}), _key(name, key)
        if rows and len(found) == len(key):
            if found in rows:
                return rows[found]
        elif rows:
            self.flush()
        table = schema.tables.tables[name]
        query = sql.select(table).where(*(table.c[column] == value for column, value in key.items()))
        first = self._connection.execute(query.limit(1)).first()
        return None if first is None else dict(first._mapping)

    def flush(self) -> None:
        """Write the new rows."""
        for name, rows in self._rows.items():
            self._connection.execute(schema.tables.tables[name].insert(), list(rows.values()))
        self._rows = {}


def _key(name: str, values: Mapping[str, Any]) -> tuple[Any, ...]:
    """The primary key of a row; empty where the database numbers it."""
    columns = KEYS[name]
    return tuple(values[column] for column in columns) if all(column in values for column in columns) else ()


KEYS = {
    name: tuple(column.name for column in table.primary_key) for name, table in schema.tables.tables.items()
}
Task = Callable[[Writing], T]


class Desk:
    """The one writer of requests, tokens and actions, in a thread of its own. The store must exist."""

    def __init__(self, given: str | Path) -> None:
        self._address = Address(given)
        self._tasks: queue.SimpleQueue[tuple[Task[Any], Future[Any]] | None] = queue.SimpleQueue()
        with explained(self._address):
            self._connection = connect(self._address, write=True, threads=True)
        self._thread = Thread(target=self._work, name="desk", daemon=True)
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Finish what was handed in, then close."""
        self._tasks.put(None)
        self._thread.join()
        self._connection.close()

    def do(self, task: Task[T]) -> Future[T]:
        """Carry out a task; its result is there when its transaction is on disk."""
        future: Future[T] = Future()
        future.set_running_or_notify_cancel()  # whoever asked may go away; what it asked for is done
        self._tasks.put((task, future))
        return future

    def _work(self) -> None:
        while True:
            first = self._tasks.get()
            if first is None:
                return
            batch, over = [first], False
            while len(batch) < MOST and not self._tasks.empty():
                item = self._tasks.get()
                if item is None:
                    over = True
                    break
                batch.append(item)
            self._commit(batch)
            if over:
                return

    def _commit(self, batch: list[tuple[Task[Any], Future[Any]]]) -> None:
        done: list[tuple[Future[Any], Any]] = []
        try:
            with explained(self._address), self._connection.begin():
                take_turns(self._connection)
                writing = Writing(self._connection)
                for task, future in batch:
                    try:
                        done.append((future, task(writing)))
                    except Rejected as error:
                        done.append((future, error))
                writing.flush()
        except Exception as error:  # the disk, the database: nothing of the batch was written
            for _, future in batch:
                future.set_exception(error)
            return
        for future, result in done:
            if isinstance(result, Rejected):
                future.set_exception(cast(Exception, result))
            else:
                future.set_result(result)
