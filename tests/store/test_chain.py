"""Whatever is done to the records of a store behind its back is noticed and named, on SQLite and on PostgreSQL."""

from __future__ import annotations

import pytest

from tests.store.postgres import alter
from tradewind.model.errors import StoreError
from tradewind.model.result import EndedJob
from tradewind.store import schema
from tradewind.store.chain import START, Head, checksum
from tradewind.store.store import Entry, Store

SWAP = (
    "update records set number = -4 where number = 4",
    "update records set number = 4 where number = 7",
    "update records set number = 7 where number = -4",
)
SWAP_WITHOUT_HASHES = (
    "create table other as select * from records where number in (4, 5)",
    "update records set body = (select body from other where number = 5) where number = 4",
    "update records set body = (select body from other where number = 4) where number = 5",
    "drop table other",
)
ADD = "insert into records values (11, 'instant', 11, '{}', '00')"
PLANTED = [
    (("delete from records where number = 4",), "record 4 is missing"),
    (("delete from records where number between 1 and 3",), "records 1 to 3 are missing"),
    (("delete from records where number = 10",), "record 10 is missing at the end"),
    (("delete from records where number > 7",), "records 8 to 10 are missing at the end"),
    (("delete from records",), "records 1 to 10 are missing at the end"),
    (
        ("update records set body = '{\"a\":9}' where number = 5",),
        r"record 5 \(instant at 5 us\) was changed",
    ),
    (("update records set at_us = 6 where number = 5",), r"record 5 \(instant at 6 us\) was changed"),
    (("update records set kind = 'alarm' where number = 5",), r"record 5 \(alarm at 5 us\) was changed"),
    (("update records set hash = '1' where number = 5",), "record 5 .* was changed"),
    (("update records set body = '{}' where number = 10",), "record 10 .* was changed"),
    (SWAP, "records 4 and 7 were swapped"),
    (SWAP_WITHOUT_HASHES, "record 4 .* was changed"),
    ((ADD,), "record 11 lies behind the head, which counts 10"),
    (("update head set number = 9",), "record 10 lies behind the head"),
    (("update head set number = 12",), "records 11 to 12 are missing at the end"),
    (("update head set hash = '1'",), "the head does not match the last record, 10"),
    (("delete from head",), "its head is missing"),
    (("update snapshots set state = 'b'",), "the snapshot of record 3 .* changed"),
    (("delete from snapshots",), "the snapshot of record 3 is missing"),
    (("insert into snapshots values (5, 'b')",), "the snapshot of record 5 was added"),
    (("delete from jobs where job = 8",), "the row of job 8, of record 8, is missing"),
    (
        ("update jobs set ended_us = 5 where job = 9",),
        "the row of job 9, of record 9, is missing or was changed",
    ),
    (
        ("update jobs set record = 3 where job = 8",),
        "the row of job 8, of record 8, is missing or was changed",
    ),
    (("update jobs set job = 3 where job = 9",), "the row of job 9, of record 9, is missing"),
    (("insert into jobs values (1, 2, 'x', '', 0, 0, 'finished', '{}')",), "the row of job 1 was added"),
]


def ten_records(place: str) -> None:
    with Store.open(place, write=True) as store:
        for number in (1, 2, 4, 5, 6, 7, 8, 9, 10):
            ended = [EndedJob(number, f"job-{number}", "", 0, number, "finished")] if number > 7 else []
            store.write([Entry("instant", {"a": number}, number, ended)])
            if number == 2:
                store.snapshot(b"state", at_us=3)


def test_every_planted_change_is_noticed_and_named(place: str, subtests: pytest.Subtests) -> None:
    """Each change is made to a fresh store in the same place."""
    for statements, message in PLANTED:
        with subtests.test(message):
            ten_records(place)
            with Store.open(place) as store:
                assert store.verify().number == 10
            alter(place, *statements)
            with pytest.raises(StoreError, match=message), Store.open(place) as store:
                store.verify()
        alter(place, *(f"drop table {name}" for name in (*schema.tables.tables, "alembic_version")))


def test_a_chain_made_anew_is_noticed_unless_the_head_is_made_anew_too(place: str) -> None:
    """Whoever can rewrite everything leaves no trace in the store itself: keep the head elsewhere."""
    ten_records(place)
    with Store.open(place) as store:
        kept, records = store.head, list(store.records())
    last, changes = START, []
    for record in records:
        body = '{"a":0}' if record.number == 5 else record.body
        last = checksum(last, *record[:3], body)
        changes.append(f"update records set body = '{body}', hash = '{last}' where number = {record.number}")
    alter(place, *changes)
    with pytest.raises(StoreError, match="the head does not match"), Store.open(place) as store:
        store.verify()
    alter(place, f"update head set hash = '{last}'")
    with Store.open(place) as store:
        assert store.verify() != kept
        for noted in (kept, Head(7, records[6].hash)):
            with pytest.raises(
                StoreError, match=f"record {noted.number} or one before it is not the one that was noted"
            ):
                store.verify(noted)
        assert store.verify(Head(4, records[3].hash)).number == 10
        with pytest.raises(StoreError, match="it has 10 records; it had 12"):
            store.verify(Head(12, kept.hash))


def test_recovery_checks_from_the_last_snapshot_on(place: str) -> None:
    ten_records(place)
    alter(place, "update records set body = '{}' where number = 1")
    with Store.open(place) as store:
        state, tail = store.recover()
        assert (state, [record.number for record in tail]) == (b"state", [*range(4, 11)])
    alter(place, "update records set body = '{}' where number = 6")
    with Store.open(place) as store, pytest.raises(StoreError, match=r"record 6 .* was changed"):
        store.recover()
    alter(
        place,
        "update snapshots set state = 'b'",
        "delete from records where number > 3",
        "update head set number = 3",
    )
    with Store.open(place) as store, pytest.raises(StoreError):
        store.recover()
