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
from tradewind.store.database import Address, connect, explained

T = TypeVar("T")
MOST = 500
"""Tasks that share a transaction, at most."""


class Rejected(TradewindError):
    """A task that was not carried out, and why; others of its transaction are."""

    def __init__(self, code: str, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.code, self.data = code, data


class Writing:
    """What a task may do inside the transaction. It must check before it writes: nothing of it is taken back."""

    def __init__(self, connection: sql.Connection) -> None:
        self._connection = connection

    def insert(self, name: str, /, **values: Any) -> int:
        """Add a row; return its number where the table has one."""
        table = schema.tables.tables[name]
        found = self._connection.execute(table.insert(), values)
        return int(found.inserted_primary_key[0]) if "number" in table.c and found.inserted_primary_key else 0

    def update(self, name: str, key: Mapping[str, Any], /, **values: Any) -> int:
        """Change rows with these values; return how many."""
        table = schema.tables.tables[name]
        where = [table.c[column] == value for column, value in key.items()]
        return int(self._connection.execute(table.update().where(*where).values(**values)).rowcount)

    def row(self, name: str, /, **key: Any) -> dict[str, Any] | None:
        """The row with these values."""
        table = schema.tables.tables[name]
        query = sql.select(table).where(*(table.c[column] == value for column, value in key.items()))
        found = self._connection.execute(query.limit(1)).first()
        return None if found is None else dict(found._mapping)


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
                writing = Writing(self._connection)
                for task, future in batch:
                    try:
                        done.append((future, task(writing)))
                    except Rejected as error:
                        done.append((future, error))
        except Exception as error:  # the disk, the database: nothing of the batch was written
            for _, future in batch:
                future.set_exception(error)
            return
        for future, result in done:
            if isinstance(result, Rejected):
                future.set_exception(cast(Exception, result))
            else:
                future.set_result(result)
