"""Engine and API write to the same tables: what is numbered is seen in the order of the numbers, on both databases."""

from __future__ import annotations

import time
from threading import Event, Thread

from tradewind.store.board import Board
from tradewind.store.desk import Desk, Writing
from tradewind.store.rows import Put
from tradewind.store.store import Entry, Store

REQUEST = {
    "kind": "resume",
    "job": "a",
    "tenant": "t",
    "actor": "x",
    "at_s": 0.0,
    "body": "{}",
    "sealed": None,
}


def event(name: str) -> dict[str, object]:
    return {"id": name, "tenant": "t", "at_s": 0.0, "kind": "told", "body": "{}"}


def test_an_event_is_never_seen_before_one_with_a_lower_number(place: str) -> None:
    inside, go = Event(), Event()

    def slow(writing: Writing) -> None:
        writing.insert("board_events", **event("first"))
        writing.flush()
        inside.set()
        go.wait(60)

    with Store.open(place, write=True):
        pass
    with Desk(place) as desk, Board(place) as board:
        done = desk.do(slow)
        assert inside.wait(60)

        def write() -> None:
            with Store.open(place, write=True) as store:
                store.write([Entry("told", {})], [Put("board_events", event("second"))])

        other = Thread(target=write)
        other.start()
        end = time.monotonic() + 0.5
        while time.monotonic() < end and not board.rows("board_events"):
            time.sleep(0.01)
        assert not board.rows("board_events")  # a reader would go on after the second and miss the first
        go.set()
        done.result(60)
        other.join(60)
        assert [row["id"] for row in board.rows("board_events", after=0)] == ["first", "second"]


def test_requests_of_the_engine_are_numbered_after_those_of_people(place: str) -> None:
    with Store.open(place, write=True) as store, Desk(place) as desk, Board(place) as board:
        for _ in range(2):
            desk.do(lambda writing: writing.insert("requests", **REQUEST)).result(60)
        store.write([Entry("policy", {})], [Put("requests", REQUEST)] * 2)
        desk.do(lambda writing: writing.insert("requests", **REQUEST)).result(60)
        assert [row["number"] for row in board.rows("requests", after=0)] == [1, 2, 3, 4, 5]
