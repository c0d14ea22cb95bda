"""A store keeps what was committed and nothing else, has one writer, and says in plain words what is wrong."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from tests.store.postgres import Server, alter
from tradewind.model.errors import StoreError
from tradewind.model.result import EndedJob
from tradewind.store import chain, schema
from tradewind.store.chain import Head
from tradewind.store.database import Address, connect
from tradewind.store.store import Entry, Store

KILLED = """
import os, signal, sys
from tradewind.store import chain, schema
from tradewind.store.store import Store
store = Store.open(sys.argv[1], write=True)
store.append("instant", {"a": 1})
connection = store._connection
connection.begin()
record = chain.chained(store.head, "instant", 2, "{}")
connection.execute(schema.records.insert(), record._asdict())
if sys.argv[2] == "with head":
    connection.execute(schema.head.update().values(number=2, hash=record.hash))
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_records_come_back_as_they_were_written(place: str) -> None:
    texts = ["", "Grüße", "\x00\ud800", "'; drop table head; --", "%(a)s :b"]
    with Store.open(place, write=True) as store:
        store.write([Entry("instant", {"text": text, "n": 2**60}, n) for n, text in enumerate(texts)])
    with Store.open(place) as store:
        assert [(r.data["text"], r.data["n"], r.at_us) for r in store.records()] == [
            (text, 2**60, n) for n, text in enumerate(texts)
        ]
        assert list(store.records(after=len(texts))) == []


def test_a_transaction_is_written_whole_or_not_at_all(place: str) -> None:
    with Store.open(place, write=True) as store:
        store.append("header", {})
        before = store.head
        with pytest.raises(TypeError, match="cannot be written"):
            store.write([Entry("instant", {}), Entry("instant", {"x": object()})])
        assert store.verify() == before
        alter(place, "insert into records values (3, 'x', 0, '{}', 'x')")
        with pytest.raises(StoreError, match="the database failed"):
            store.write([Entry("instant", {}), Entry("instant", {})])
        alter(place, "delete from records where number = 3")
        assert store.verify() == before
        store.append("instant", {})
        assert store.verify().number == 2


@pytest.mark.parametrize("how", ["with head", "without"])
def test_a_record_without_its_commit_is_dropped(place: str, how: str) -> None:
    done = subprocess.run([sys.executable, "-c", KILLED, place, how], check=False, env=os.environ)
    assert done.returncode == -signal.SIGKILL
    with Store.open(place, write=True) as store:
        assert store.verify().number == 1
        store.append("instant", {"a": 2})
        assert [record.data["a"] for record in store.records()] == [1, 2]


def test_a_server_that_crashes_keeps_what_was_committed(postgres: Server) -> None:
    place = postgres.database()
    store = Store.open(place, write=True)
    store.append("instant", {"a": 1})
    postgres.stop(signal.SIGQUIT)
    try:
        with pytest.raises(StoreError, match=r"lost|cannot be reached"):
            store.append("instant", {"a": 2})
        with pytest.raises(StoreError, match="cannot be reached"):
            Store.open(place)
    finally:
        postgres.start()
    with Store.open(place, write=True) as again:
        again.append("instant", {"a": 2})
        assert again.verify().number == 2


def test_what_a_power_cut_leaves_of_the_log_is_dropped(tmp_path: Path) -> None:
    """Of the write-ahead log any part may be lost: whole transactions stay, in order, and the rest is gone."""
    path = tmp_path / "store.db"
    store = Store.open(path, write=True)
    for number in range(8):
        store.append("instant", {"a": number, "padding": "x" * 300})
    log = Path(f"{path}-wal").read_bytes()
    counts = []
    for part in (*range(0, len(log), 997), len(log)):
        copy = tmp_path / f"{part}" / "store.db"
        copy.parent.mkdir()
        shutil.copy(path, copy)
        Path(f"{copy}-wal").write_bytes(log[:part])
        with Store.open(copy, write=True) as cut:
            counts.append(cut.verify().number)
            cut.append("instant", {})
            cut.verify()
    assert counts == sorted(counts)
    assert set(range(9)) == set(counts)
    store.close()


def test_a_file_that_was_cut_is_named(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    with Store.open(path, write=True) as store:
        store.write([Entry("instant", {"padding": "x" * 1000}) for _ in range(200)])
    data = path.read_bytes()
    for part in (100, len(data) // 2, len(data) - 5000):
        path.write_bytes(data[:part])
        with (
            pytest.raises(StoreError, match=r"store.db: .*(damaged|not a store|cut|missing)"),
            Store.open(path) as cut,
        ):
            cut.verify()


def test_a_second_writer_is_told_and_readers_are_not_held_up(place: str) -> None:
    with Store.open(place, write=True) as store:
        store.append("header", {})
        with pytest.raises(StoreError, match="another program writes to this store"):
            Store.open(place, write=True)
        with Store.open(place) as reader:
            assert reader.verify().number == 1
            with pytest.raises(StoreError, match="opened to be read"):
                reader.append("instant", {})
        store.append("instant", {})
    with Store.open(place, write=True) as store:
        store.append("instant", {})


def test_a_writer_whose_lock_was_lost_writes_nothing(place: str) -> None:
    with Store.open(place, write=True) as store:
        store.append("header", {})
        alter(place, "update head set number = 5")  # as if another one had written
        with pytest.raises(StoreError, match="wrote to it meanwhile, so nothing was written"):
            store.append("instant", {})
    alter(place, "update head set number = 1")
    with Store.open(place) as store:
        assert store.verify().number == 1


def test_a_store_of_a_newer_version_is_refused(place: str) -> None:
    with Store.open(place, write=True) as store:
        store.append("header", {})
    alter(place, "update alembic_version set version_num = '0999'")
    for write in (False, True):
        with pytest.raises(StoreError, match=r"newer version of tradewind \(schema 0999"):
            Store.open(place, write=write)


@pytest.mark.parametrize("write", [True, False])
def test_a_store_of_the_first_version_is_brought_to_this_one(place: str, write: bool) -> None:
    record = chain.chained(Head(), "instant", 7, '{"a":1}')
    with connect(Address(place), write=True) as connection, connection.begin():
        schema.upgrade(connection, "0001")
        connection.execute(schema.records.insert(), record._asdict())
        connection.execute(schema.head.update().values(number=1, hash=record.hash))
    with connect(Address(place), write=True) as connection:
        assert schema.version(connection) == "0001"
    with Store.open(place, write=write) as store:
        assert store.verify() == (1, record.hash)
        assert [each.data for each in store.records()] == [{"a": 1}]
        if write:
            store.write([Entry("instant", {}, 8, [EndedJob(0, "a", "t", 1, 2, "finished")])])
            assert store.verify().number == 2
            assert store.job(0) == (0, "a", "t", 1, 2, "finished", "{}")
            assert store.job(1) is None
    with connect(Address(place), write=False) as connection:
        assert schema.version(connection) == schema.VERSIONS[-1]


def test_the_migrations_make_the_tables_that_the_code_uses(place: str) -> None:
    from alembic.autogenerate import compare_metadata
    from alembic.migration import MigrationContext

    Store.open(place, write=True).close()
    with connect(Address(place), write=False) as connection:
        assert compare_metadata(MigrationContext.configure(connection), schema.tables) == []


def test_errors_of_files_say_what_is_wrong(tmp_path: Path) -> None:
    other, text = tmp_path / "other.db", tmp_path / "text.db"
    sqlite3.connect(other).execute("create table mine (a)").connection.close()
    text.write_text("something else, long enough to be looked at " * 30)
    for path, message in [
        (tmp_path / "none.db", "there is no store"),
        (tmp_path, "there is no store"),
        (other, "a database without a store"),
        (text, "it is not a store"),
    ]:
        with pytest.raises(StoreError, match=message):
            Store.open(path)
    with pytest.raises(StoreError, match=r"other tables \(mine\) and no store"):
        Store.open(other, write=True)
    with pytest.raises(StoreError, match="it is not a store"):
        Store.open(text, write=True)
    for address, message in [
        ("mysql://a/b", "SQLite files or PostgreSQL"),
        ("a://b:c:d", "no address|SQLite files"),
    ]:
        with pytest.raises(StoreError, match=message):
            Store.open(address)


def test_errors_of_servers_say_what_is_wrong_and_hide_the_password(postgres: Server, tmp_path: Path) -> None:
    for url, message in [
        (postgres.url("postgres", "wrong-word"), "refused user or password"),
        (postgres.url("nowhere"), "no such database"),
        (postgres.url("postgres").replace(str(postgres.folder), str(tmp_path)), "cannot be reached"),
        ("postgresql://a:wrong-word@127.0.0.1:1/b", "cannot be reached"),
        (postgres.database(), "without a store"),
    ]:
        with pytest.raises(StoreError, match=message) as error:
            Store.open(url)
        assert "wrong-word" not in str(error.value)


def test_a_full_disk_loses_nothing_that_was_committed(tmp_path: Path) -> None:
    """SQLite's own limit on pages takes the place of a small disk."""
    with Store.open(tmp_path / "store.db", write=True) as store:
        store.append("header", {})
        store._connection.exec_driver_sql("PRAGMA max_page_count = 10")
        store._connection.rollback()
        with pytest.raises(StoreError, match="the disk is full, so nothing was written"):
            store.append("instant", {"padding": "x" * 100_000})
        assert store.verify().number == 1


def test_a_store_that_may_only_be_read_says_so(postgres: Server) -> None:
    place = postgres.database()
    Store.open(place, write=True).close()
    with Store.open(place, write=True) as store:
        alter(place, f"alter database {Address(place).url.database} set default_transaction_read_only = on")
        store.append("header", {})
    with Store.open(place, write=True) as store, pytest.raises(StoreError, match="the server is read-only"):
        store.append("instant", {})
    with Store.open(place) as store:
        assert store.verify().number == 1
