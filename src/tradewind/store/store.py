"""The store of a run: records in a chain, snapshots, and the one writer.

    with Store.open("postgresql://host/db", write=True) as store:
        store.append("instant", {"at_us": 5, …})       # one transaction, on disk when it returns
        store.write([Entry("instant", {…}), …])        # several records in one transaction
        store.recover()                                # the last snapshot and the records after it, checked

Nothing of a transaction that did not end is left: that is the database's work. That nothing was taken away or changed
afterwards is shown by the chain (`verify`).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

import sqlalchemy as sql

from tradewind.model.codec import compact
from tradewind.model.errors import StoreError
from tradewind.model.result import EndedJob
from tradewind.store import chain, schema
from tradewind.store.chain import Head, Record
from tradewind.store.database import Address, Lock, connect, explained, take_turns
from tradewind.store.rows import Put, put

BATCH = 10_000
SNAPSHOT = "snapshot"
"""Kind of the record that holds the checksum of a snapshot."""
ENDED = "ended"
"""Field of a record's body: job -> checksum of its row in the table of jobs."""


class Entry(NamedTuple):
    """A record to be written; data are plain values; ended: jobs that ended with it."""

    kind: str
    data: Mapping[str, Any]
    at_us: int = 0
    ended: Sequence[EndedJob] = ()


class Recovered(NamedTuple):
    """What a run continues from: the last snapshot, if there is one, and the records after it."""

    state: bytes | None
    tail: list[Record]


class Store:
    """One open store. `head` is the number of records and the last checksum."""

    def __init__(self, address: Address, connection: sql.Connection, lock: Lock | None) -> None:
        self._address, self._connection, self._lock = address, connection, lock
        self.name, self.address = address.name, address.given
        with self._transaction():
            self.head = self._read_head()

    @classmethod
    def open(cls, given: str | Path, *, write: bool = False) -> Self:
        """Open a store: a file, its directory or a URL. A writer creates it where there is none; there is one writer."""
        address = Address(given)
        with explained(address):
            if not write:
                return cls._open_to_read(address)
            lock = Lock(address, None)
            try:
                connection = connect(address, write=True)
                try:
                    lock = lock if address.path is not None else Lock(address, connection)
                    _upgrade(address, connection)
                    return cls(address, connection, lock)
                except BaseException:
                    connection.close()
                    raise
            except BaseException:
                lock.release()
                raise

    @classmethod
    def _open_to_read(cls, address: Address) -> Self:
        connection = connect(address, write=False)
        try:
            found = schema.version(connection)
            schema.check(found, address.name)
            if not found:
                raise StoreError("it is a database without a store; name a store", where=address.name)
            connection.rollback()
            if found == schema.VERSIONS[-1]:
                return cls(address, connection, None)
        except BaseException:
            connection.close()
            raise
        connection.close()
        cls.open(address.given, write=True).close()  # brings it to this version
        return cls._open_to_read(address)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the store and let another writer in."""
        with explained(self._address):
            self._connection.close()
        if self._lock is not None:
            self._lock.release()

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        with explained(self._address), self._connection.begin():
            yield

    # ------------------------------------------------------------------ writing
    def append(self, kind: str, record: Mapping[str, Any], ended: Sequence[EndedJob] = ()) -> None:
        """Write one record, with the jobs that ended with it; it is on disk when this returns."""
        self.write([Entry(kind, record, record.get("at_us", 0), ended)])

    def read(self) -> list[dict[str, Any]]:
        """All records, checked, each with its `kind`."""
        return [{**record.data, "kind": record.kind} for record in self.records()]

    def write(self, entries: Sequence[Entry], rows: Sequence[Put] = ()) -> None:
        """Write records, and rows for people, in one transaction: all of them are on disk when this returns, or none.

        A job that finished and is then ended with the run, while it still held resources, keeps its first row.
        """
        self._commit(entries, None, rows)

    def snapshot(
        self, state: bytes, *, at_us: int, before: Sequence[Entry] = (), rows: Sequence[Put] = ()
    ) -> None:
        """Write the state of a session, from which `recover` goes on; with records before it and rows, all or nothing."""
        self._commit([*before, Entry(SNAPSHOT, {"sha256": _sum(state)}, at_us)], state, rows)

    def _commit(self, entries: Sequence[Entry], state: bytes | None, board: Sequence[Put] = ()) -> None:
        if self._lock is None:
            raise StoreError("it was opened to be read", where=self.name)
        before, rows = self.head, list[Put]()
        head = before
        for entry in entries:
            ended = [each for each in entry.ended if each.how != "ended" or self.job(each.job) is None]
            sums = {ENDED: {str(each.job): _sum_of_row(each) for each in ended}} if ended else {}
            record = chain.chained(head, entry.kind, entry.at_us, compact({**entry.data, **sums}))
            rows.append(Put("records", record._asdict()))
            rows += [Put("jobs", {**each._asdict(), "record": record.number}) for each in ended]
            head = Head(record.number, record.hash)
        with self._transaction():
            self._move_head(before, head)
            put(self._connection, rows)
            if state is not None:
                row = {"record": head.number, "state": state}
                self._connection.execute(schema.snapshots.insert(), row)
            if board:
                take_turns(self._connection)  # last: others wait until this is on disk
                put(self._connection, board)
        self.head = head

    def _move_head(self, before: Head, after: Head) -> None:
        """Move the head, unless somebody else did."""
        here = schema.head.c
        statement = schema.head.update().where(here.number == before.number, here.hash == before.hash)
        if self._connection.execute(statement.values(number=after.number, hash=after.hash)).rowcount != 1:
            raise StoreError(
                "another program wrote to it meanwhile, so nothing was written; open it again",
                where=self.name,
            )

    # ------------------------------------------------------------------ reading
    def records(self, after: int = 0) -> Iterator[Record]:
        """The records after number `after`; each is checked before it is handed on, the head at the end."""
        with self._transaction():
            head = self._read_head()
            yield from chain.check(self._rows(after), self._head_at(after), head, self.name)

    def first(self) -> Record | None:
        """The first record, checked, if there is one."""
        with self._transaction():
            query = sql.select(schema.records).where(schema.records.c.number == 1)
            row = self._connection.execute(query).first()
        if row is None:
            return None
        found = Record(*row)
        return next(chain.check([found], Head(), Head(1, found.hash), self.name))

    def recover(self) -> Recovered:
        """The last snapshot and the records after it; only these are checked."""
        with self._transaction():
            self.head = self._read_head()
            last = self._connection.execute(
                sql.select(schema.snapshots).order_by(schema.snapshots.c.record.desc()).limit(1)
            ).first()
            number = last.record if last is not None else 0
            start = self._head_at(max(0, number - 1))
            records = list(chain.check(self._rows(start.number), start, self.head, self.name))
        if last is None:
            return Recovered(None, records)
        if not records or records[0].data.get("sha256") != _sum(last.state):
            raise self._altered(f"the snapshot of record {number} was changed: its checksum does not match")
        return Recovered(bytes(last.state), records[1:])

    def job(self, index: int) -> EndedJob | None:
        """The row of a job that is over."""
        with self._transaction():
            row = self._connection.execute(sql.select(*_ROW).where(schema.jobs.c.job == index)).first()
        return None if row is None else EndedJob(*row)

    def verify(self, known: Head | None = None) -> Head:
        """Check every record, snapshot, row of a job and the head; return the head.

        known: a head that was noted down earlier and must still be part of the chain.
        Raises StoreError that names what is wrong.
        """
        with self._transaction():
            self.head = self._read_head()
            if known is not None and known.number > self.head.number:
                raise self._altered(
                    f"it has {self.head.number} records; it had {known.number} when the head was noted"
                )
            states, jobs = self._snapshot_sums(), self._job_sums()
            for record in chain.check(self._rows(0), Head(), self.head, self.name):
                if known is not None and record.number == known.number and record.hash != known.hash:
                    raise self._altered(
                        f"record {record.number} or one before it is not the one that was noted"
                    )
                if record.kind == SNAPSHOT and states.pop(record.number, "") != record.data["sha256"]:
                    raise self._altered(f"the snapshot of record {record.number} is missing or was changed")
                for index, expected in (
                    record.data.get(ENDED, {}).items() if f'"{ENDED}"' in record.body else ()
                ):
                    if jobs.pop(int(index), None) != (record.number, expected):
                        raise self._altered(
                            f"the row of job {index}, of record {record.number}, is missing or was changed"
                        )
        for what, rest in (("snapshot of record", states), ("row of job", jobs)):
            if rest:
                raise self._altered(f"the {what} {min(rest)} was added: no record names it")
        return self.head

    def _altered(self, what: str) -> StoreError:
        return StoreError(f"{what}. The store was altered or damaged; restore a backup.", where=self.name)

    def _snapshot_sums(self) -> dict[int, str]:
        """Record -> checksum of the snapshot's bytes."""
        rows = self._connection.execute(sql.select(schema.snapshots), execution_options={"yield_per": 1})
        return {row.record: _sum(row.state) for row in rows}

    def _job_sums(self) -> dict[int, tuple[int, str]]:
        """Job -> number of its record, and checksum of its row."""
        query = sql.select(*_ROW, schema.jobs.c.record)
        rows = self._connection.execute(query, execution_options={"yield_per": BATCH})
        return {row.job: (row.record, _sum_of_row(row[:-1])) for row in rows}

    def _rows(self, after: int) -> Iterator[Record]:
        query = (
            sql.select(schema.records)
            .where(schema.records.c.number > after)
            .order_by(schema.records.c.number)
        )
        for row in self._connection.execute(query, execution_options={"yield_per": BATCH}):
            yield Record(*row)

    def _read_head(self) -> Head:
        row = self._connection.execute(sql.select(schema.head.c.number, schema.head.c.hash)).first()
        if row is None or not isinstance(row[0], int):
            raise self._altered("its head is missing")
        return Head(*row)

    def _head_at(self, number: int) -> Head:
        """The head as it was after a record."""
        if number == 0:
            return Head()
        query = sql.select(schema.records.c.hash).where(schema.records.c.number == number)
        found = self._connection.execute(query).scalar()
        if found is None:
            raise self._altered(f"record {number} is missing")
        return Head(number, found)


_ROW = [schema.jobs.c[name] for name in EndedJob._fields]


def _sum_of_row(row: Sequence[Any]) -> str:
    return sha256(json.dumps(tuple(row)).encode()).hexdigest()


def _sum(state: bytes | str) -> str:
    """The checksum of a snapshot; of text only where somebody put it there."""
    return sha256(state.encode() if isinstance(state, str) else state).hexdigest()


def _upgrade(address: Address, connection: sql.Connection) -> None:
    """Create the tables, or bring an older store to this version."""
    found = schema.version(connection)
    schema.check(found, address.name)
    if not found and (others := sql.inspect(connection).get_table_names()):
        raise StoreError(
            f"the database has other tables ({', '.join(sorted(others)[:3])}) and no store; use an empty one",
            where=address.name,
        )
    connection.rollback()
    if found != schema.VERSIONS[-1]:
        with connection.begin():
            schema.upgrade(connection)
