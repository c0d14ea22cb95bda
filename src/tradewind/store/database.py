"""Connections to SQLite and PostgreSQL: addresses, the lock of the one writer, and errors in plain words."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from zlib import crc32

import sqlalchemy as sql
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, NoSuchModuleError, OperationalError

from tradewind.model.errors import StoreError

FILE = "store.db"
"""Name of the store in a state directory."""
CONNECT_S = 10
LEASE = {"options": "-c tcp_keepalives_idle=3 -c tcp_keepalives_interval=1 -c tcp_keepalives_count=3"}
"""The server notices within seconds that the machine of a writer is gone, and lets another one write."""
_CAUSES = (
    ("password authentication failed", "the server refused user or password; correct the URL"),
    (
        "no password supplied",
        "the server asks for a password; write postgresql://USER:PASSWORD@HOST/DATABASE",
    ),
    ("does not exist", "the server has no such database or user; create it or correct the URL"),
    ("permission denied", "the user may not do that; grant it the right to create and write tables"),
    ("not a database", "it is not a store; name a store.db, its directory, or postgresql://…"),
    ("disk is full", "the disk is full, so nothing was written. Free some space and start again"),
    ("No space left", "the server's disk is full, so nothing was written. Free some space and start again"),
    ("readonly", "it is read-only, so nothing was written. Change its permissions or copy it"),
    ("read-only", "the server is read-only, so nothing was written. Connect to the one that takes writes"),
    ("malformed", "the file is damaged or was cut. Restore a backup"),
    ("disk I/O error", "the disk failed or the file was cut, so nothing was written. Restore a backup"),
    ("unable to open database file", "the file cannot be opened; check path and permissions"),
    ("database is locked", "another program holds the file; stop it and start again"),
)


class Address:
    """Where a store is: a file of SQLite, or a database of PostgreSQL."""

    def __init__(self, given: str | Path) -> None:
        text = self.given = str(given)
        try:
            self.url = (
                make_url(text) if "://" in text else URL.create("sqlite", database=str(_file(Path(text))))
            )
        except (ArgumentError, ValueError):
            raise StoreError(
                "it is no address of a store; write a path or postgresql://…", where=text
            ) from None
        if self.url.get_backend_name() == "postgresql":
            self.url = self.url.set(drivername="postgresql+psycopg")
        elif self.url.get_backend_name() != "sqlite" or not self.url.database:
            raise StoreError("stores are SQLite files or PostgreSQL databases", where=self.name)

    @property
    def path(self) -> Path | None:
        """The file, of SQLite."""
        return Path(str(self.url.database)) if self.url.get_backend_name() == "sqlite" else None

    @property
    def name(self) -> str:
        """For people, without the password."""
        if self.url.get_backend_name() == "sqlite" and self.url.database:
            return self.url.database
        return self.url.set(drivername=self.url.get_backend_name()).render_as_string(hide_password=True)


def _file(path: Path) -> Path:
    return path / FILE if path.is_dir() else path


def connect(address: Address, *, write: bool, threads: bool = False) -> sql.Connection:
    """Open one connection; a reader never creates a file. threads: it may be used, and closed, by another thread."""
    if address.path is None:
        try:
            engine = sql.create_engine(
                address.url, poolclass=sql.NullPool,
                connect_args={"connect_timeout": CONNECT_S, **({} if "options" in address.url.query else LEASE)},
                isolation_level="READ COMMITTED" if write else "REPEATABLE READ", json_serializer=_json,
            )  # fmt: skip
        except (ImportError, NoSuchModuleError):
            raise StoreError(
                "PostgreSQL needs a driver: pip install 'tradewind[postgres]'", where=address.name
            ) from None
        return engine.connect()
    if not write and not address.path.is_file():
        raise StoreError(
            "there is no store; name a store.db, its directory, or postgresql://…", where=address.name
        )
    if write:
        os.close(os.open(address.path, os.O_RDWR | os.O_CREAT, 0o600))  # private, as are the files beside it
    mode = "rw" if write else _reading(address.path)
    engine = sql.create_engine(
        URL.create("sqlite", database=f"file:{_quoted(address.path)}", query={"mode": mode, "uri": "true"}
                   if mode != "immutable" else {"immutable": "1", "uri": "true"}),
        poolclass=sql.NullPool, connect_args={"check_same_thread": not threads},
    )  # fmt: skip
    sql.event.listen(engine, "connect", _durable if write else _explicit)
    sql.event.listen(engine, "begin", _begin_to_write if write else _begin)
    return engine.connect()


def _json(rows: Any) -> str:
    """Rows in one value, bytes as the server reads them."""
    return json.dumps(rows, default=lambda found: f"\\x{found.hex()}")


def _quoted(path: Path) -> str:
    return str(path.absolute()).replace("%", "%25").replace("?", "%3f").replace("#", "%23")


def _reading(path: Path) -> str:
    """A file in a directory where nothing can be written is read as it is: nobody else can write it either."""
    return (
        "ro"
        if os.access(path.parent, os.W_OK) or path.with_name(f"{path.name}-wal").exists()
        else "immutable"
    )


def _explicit(connection: Any, _record: object) -> None:
    """Leave the beginning of transactions to SQLAlchemy, so that they contain changes of the schema too."""
    connection.isolation_level = None


def _durable(connection: Any, record: object) -> None:
    """A commit is on disk when it returns."""
    _explicit(connection, record)
    for line in ("journal_mode=WAL", "synchronous=FULL", "busy_timeout=5000"):
        connection.execute(f"PRAGMA {line}")


def _begin(connection: sql.Connection) -> None:
    connection.exec_driver_sql("BEGIN")


def _begin_to_write(connection: sql.Connection) -> None:
    connection.exec_driver_sql("BEGIN IMMEDIATE")


def take_turns(connection: sql.Connection) -> None:
    """Let transactions that write wait for each other from here on, as SQLite's do: what the database numbers is then seen
    in the order of the numbers, and who reads on after a number misses nothing."""
    if connection.dialect.name == "postgresql":
        connection.execute(_TURN)


_TURN = sql.text("select pg_advisory_xact_lock(hashtext('tradewind turns ' || current_schema()))")


@contextmanager
def explained(address: Address) -> Iterator[None]:
    """Errors of the database as StoreError: where, what, what to do."""
    try:
        yield
    except OSError as error:
        raise StoreError(f"cannot be opened: {error.strerror}", where=address.name) from None
    except DBAPIError as error:
        text = str(error.orig)
        line = " ".join(text.split())
        why = next((why for sign, why in _CAUSES if sign in text), "")
        if not why and address.path is None and isinstance(error, OperationalError):
            lost = error.connection_invalidated
            why = "the connection was lost; start again" if lost else "the server cannot be reached"
        raise StoreError(f"{why or 'the database failed'} ({line:.200})", where=address.name) from None


class Lock:
    """The right to write to a store. It ends with the process or, on a server, with its connection."""

    def __init__(self, address: Address, connection: sql.Connection | None) -> None:
        self._handle = -1
        if address.path is not None:
            self._handle = os.open(f"{address.path}.lock", os.O_RDWR | os.O_CREAT, 0o600)
            try:
                fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                self.release()
                raise _taken(address) from None
        elif connection is not None:
            schema = connection.execute(sql.text("select current_schema()")).scalar()
            key = crc32(f"tradewind store {schema}".encode())
            got = connection.execute(sql.text("select pg_try_advisory_lock(:key)"), {"key": key}).scalar()
            connection.commit()
            if not got:
                raise _taken(address)

    def release(self) -> None:
        """Let another writer in; on a server, closing the connection does."""
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1


def _taken(address: Address) -> StoreError:
    return StoreError("another program writes to this store; stop it first", where=address.name)
