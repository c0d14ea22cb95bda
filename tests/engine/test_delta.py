"""States of policies as records hold them."""

from __future__ import annotations

import json
from collections import deque

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tradewind.engine import delta
from tradewind.model.errors import RunFileError


def state(queue: deque[int], places: dict[int, list[int]]) -> bytes:
    """As schedulers save it."""
    return json.dumps({"places": places, "queues": [[0, list(queue)]]}, separators=(",", ":")).encode()


def test_a_long_queue_that_moves_takes_a_few_bytes() -> None:
    queue, places = deque(range(50_000)), {-number: [1, 2] for number in range(1, 100)}
    old = state(queue, places)
    for turn in range(5):
        places.pop(next(iter(places)))
        places[queue.popleft()] = [3, 4]
        queue.extend(range(50_000 + 10 * turn, 50_010 + 10 * turn))
        new = state(queue, places)
        found = json.loads(json.dumps(delta.pack(old, new)))
        assert len(json.dumps(found)) < 1000 < len(new) // 100
        assert delta.unpack(old, found) == new
        old = new


@given(st.lists(st.tuples(st.integers(0, 9999), st.integers(0, 9999), st.binary(max_size=40)), max_size=6))
def test_whatever_changes_is_read_again(cuts: list[tuple[int, int, bytes]]) -> None:
    old = bytes(number * number % 251 for number in range(9000))
    new = old
    for begin, end, text in cuts:
        new = new[:begin] + text + new[max(begin, end) :]
    assert delta.unpack(old, json.loads(json.dumps(delta.pack(old, new)))) == new


def test_another_old_state_is_refused() -> None:
    old = bytes(10_000)
    found = delta.pack(old, old + b"x")
    with pytest.raises(RunFileError, match="does not continue"):
        delta.unpack(b"y" + old, found)
