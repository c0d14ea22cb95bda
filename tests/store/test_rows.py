"""Rows written together are those that were given, on both databases, in a few statements however many there are."""

from __future__ import annotations

import json
from threading import Event
from typing import Any

import pytest
import sqlalchemy as sql

from tradewind.store.board import Board, Row
from tradewind.store.desk import Desk, Once, Rejected, Writing
from tradewind.store.rows import Put
from tradewind.store.store import Entry, Store

FLOATS = (0.1, 1e-300, 1.7976931348623157e308, 1763526338.123457)
TEXT = "ü \\u0000 \\ \" ' % :name 🚀 \n"


def request(number: int, **more: Any) -> Row:
    given = {
        "kind": "submit",
        "job": "a",
        "tenant": "t",
        "actor": "x",
        "at_s": 0.5,
        "body": "{}",
        "sealed": None,
    }
    return {"number": number, **given, **more}


def job(number: int) -> Row:
    return {
        "number": number, "id": f"job-{number}", "job": None, "tenant": "t", "status": "submitted", "is_over": False,
        "submitted_s": 0.0, "started_s": None, "ended_s": None, "price_usd": None, "reason": "", "places": "{}",
        "body": TEXT,
    }  # fmt: skip


def test_every_value_comes_back_as_it_was(place: str) -> None:
    rows = [request(n, at_s=value, body=TEXT, sealed=bytes(range(256))) for n, value in enumerate(FLOATS, 1)]
    rows.append(request(2**62))
    with Store.open(place, write=True) as store, Board(place) as board:
        store.write([Entry("told", {})], [Put("requests", row) for row in rows])
        found = board.rows("requests", after=0)
    assert found == rows


def test_new_values_hold_in_their_order_whatever_they_are_written_with(place: str) -> None:
    rows = [
        Put("board_jobs", {"status": "waiting", "is_over": False}, {"number": 2}),
        Put("board_jobs", job(1)),
        Put("board_jobs", {"job": 7}, {"number": 1}),
        Put("board_jobs", {"status": "running", "is_over": False}, {"number": 1}),
        Put("board_jobs", job(2)),
        Put("board_jobs", {"status": "finished", "is_over": True}, {"number": 1}),
        Put("board_jobs", {"status": "lost"}, {"id": "job-2", "status": "submitted"}),
    ]
    with Store.open(place, write=True) as store, Board(place) as board:
        store.write([Entry("told", {})], rows)
        one, two = board.rows("board_jobs", after=0)
    assert one == {**job(1), "job": 7, "status": "finished", "is_over": True}
    assert two == {**job(2), "status": "waiting"}


def test_requests_that_come_together_share_a_few_statements(place: str) -> None:
    with Store.open(place, write=True):
        pass
    said: list[str] = []

    def task(writing: Writing) -> int:
        number = writing.insert("requests", **{k: v for k, v in request(0).items() if k != "number"})
        writing.insert("board_jobs", **job(number))
        writing.insert("board_events", id="a", tenant="t", at_s=0.0, kind="submitted", body="{}")
        return number

    with Desk(place) as desk, Board(place) as board:
        sql.event.listen(desk._connection, "before_cursor_execute", lambda *each: said.append(each[2]))
        begun, asked_all = Event(), Event()

        def wait(_: Writing) -> bool:
            begun.set()
            return asked_all.wait(60)

        waits = desk.do(wait)
        assert begun.wait(60)  # the others come meanwhile
        asked = [desk.do(task, Once("t", f"key {n}", "same")) for n in range(100)]
        asked_all.set()
        numbers = [each.result(60) for each in asked]
        assert waits.result(60)
        assert numbers == list(range(1, 101))
        assert board.count("requests") == board.count("board_jobs") == board.count("replies") == 100
        most = 2 + 2 + 4 if desk._connection.dialect.name == "sqlite" else 2 + 3 + 1
        assert len(said) <= most, said


def test_a_key_gives_its_answer_again_and_refuses_another_request(place: str) -> None:
    with Store.open(place, write=True):
        pass
    with Desk(place) as desk, Board(place) as board:
        done: list[int] = []

        def task(writing: Writing) -> dict[str, int]:
            done.append(1)
            return {"answer": len(done)}

        first = [desk.do(task, Once("t", "key", "one")) for _ in range(20)]
        assert [each.result(60) for each in first] == [{"answer": 1}] * 20
        assert desk.do(task, Once("t", "key", "one")).result(60) == {"answer": 1}
        assert desk.do(task, Once("other", "key", "two")).result(60) == {"answer": 2}
        with pytest.raises(Rejected, match="another request"):
            desk.do(task, Once("t", "key", "two")).result(60)
        kept = board.rows("replies", tenant="t")
        assert [(row["key"], json.loads(row["body"])) for row in kept] == [("key", {"answer": 1})]
