"""Writes what people ask of a service. Requests that come together share a transaction, on disk before each is answered."""

from __future__ import annotations

import json
import queue
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path
from threading import Thread
from typing import Any, NamedTuple, Self, TypeVar, cast

import sqlalchemy as sql

from tradewind.model.errors import TradewindError
from tradewind.store import schema
from tradewind.store.board import Row
from tradewind.store.database import Address, connect, explained, take_turns
from tradewind.store.rows import Put, last_request, put

T = TypeVar("T")
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
        self._rows: list[Put] = []
        self._last: int | None = None

    def insert(self, name: str, /, **values: Any) -> int:
        """Add a row; return its number, of a request: whoever writes them takes turns."""
        number = 0
        if name == "requests":
            number = values["number"] = self._next()
        self._rows.append(Put(name, values))
        return number

    def _next(self) -> int:
        """The number of the next request."""
        if self._last is None:
            self._last = last_request(self._connection)
        self._last += 1
        return self._last

    def update(self, name: str, key: Mapping[str, Any], /, **values: Any) -> None:
        """Change rows with these values."""
        self._rows.append(Put(name, values, key))

    def flush(self) -> None:
        """Write what was kept."""
        rows, self._rows = self._rows, []
        put(self._connection, rows)


Task = Callable[[Writing], T]


class Once(NamedTuple):
    """Whose key a request has, and what tells it from others: the answer is kept with it, and given again."""

    tenant: str
    key: str
    request: str


class Asked(NamedTuple):
    """A task, and where its result goes."""

    task: Task[Any]
    once: Once | None
    future: Future[Any]


class Desk:
    """The one writer of requests, tokens and actions, in a thread of its own. The store must exist."""

    def __init__(self, given: str | Path) -> None:
        self._address = Address(given)
        self._tasks: queue.SimpleQueue[Asked | None] = queue.SimpleQueue()
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

    def do(self, task: Task[T], once: Once | None = None) -> Future[T]:
        """Carry out a task; its result (with a key: JSON) is there when its transaction is on disk."""
        future: Future[T] = Future()
        future.set_running_or_notify_cancel()  # whoever asked may go away; what it asked for is done
        self._tasks.put(Asked(task, once, future))
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

    def _commit(self, batch: list[Asked]) -> None:
        done: list[tuple[Future[Any], Any]] = []
        try:
            with explained(self._address), self._connection.begin():
                answered = self._answered([once for _, once, _ in batch if once is not None])
                take_turns(self._connection)
                writing = Writing(self._connection)
                for task, once, future in batch:
                    try:
                        done.append((future, _result(task, once, writing, answered)))
                    except Rejected as error:
                        done.append((future, error))
                writing.flush()
        except Exception as error:  # the disk, the database: nothing of the batch was written
            for each in batch:
                each.future.set_exception(error)
            return
        for future, result in done:
            if isinstance(result, Rejected):
                future.set_exception(cast(Exception, result))
            else:
                future.set_result(result)

    def _answered(self, asked: Sequence[Once]) -> dict[tuple[str, str], Row]:
        """Those of the keys that were answered before; (tenant, key) -> row."""
        if not asked:
            return {}
        given = {"tenants": [once.tenant for once in asked], "keys": [once.key for once in asked]}
        found = (dict(row._mapping) for row in self._connection.execute(_REPLIES, given))
        return {(row["tenant"], row["key"]): row for row in found}


_REPLIES = sql.select(schema.replies).where(
    schema.replies.c.tenant.in_(sql.bindparam("tenants", expanding=True)),
    schema.replies.c.key.in_(sql.bindparam("keys", expanding=True)),
)


def _result(task: Task[T], once: Once | None, writing: Writing, answered: dict[tuple[str, str], Row]) -> T:
    """What a task returns, or returned when it was asked with this key before."""
    if once is None:
        return task(writing)
    if (old := answered.get((once.tenant, once.key))) is None:
        result = task(writing)
        row = answered[once.tenant, once.key] = {**once._asdict(), "body": json.dumps(result)}
        writing.insert("replies", **row)
        return result
    if old["request"] != once.request:
        raise Rejected(
            "conflict", f"Idempotency-Key {once.key[:60]!r} was used for another request; use a new one"
        )
    return cast(T, json.loads(old["body"]))
