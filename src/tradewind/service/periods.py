"""Periods as people name them: a month, a day, or two instants; and where they are in the time of the run."""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime
from typing import NamedTuple

from tradewind.model.errors import InputError
from tradewind.store.board import Board

FORMS = "2026-11 (a month), 2026-11-18 (a day), or FROM..TO with times like 2026-11-18T09:30 or seconds since 1970, in UTC"


class Span(NamedTuple):
    """A period in seconds since 1970, and its name."""

    from_s: float
    to_s: float
    name: str


def span_of(text: str | None) -> Span:
    """The period of a text; this month where there is none."""
    text = text or time.strftime("%Y-%m", time.gmtime())
    if ".." in text:
        first, last = (_instant(part.strip()) for part in text.split("..", 1))
        begin, end = first if first is not None else 0.0, last if last is not None else time.time()
    else:
        begin, end = _named(text)
    if not begin < end:
        raise InputError(f"period is {text!r}, which ends before it begins")
    return Span(begin, end, text)


def _instant(text: str) -> float | None:
    if not text:
        return None
    try:
        return float(text)
    except ValueError:
        pass
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise InputError(f"period has {text!r}; write {FORMS}") from None
    return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()


def _named(text: str) -> tuple[float, float]:
    try:
        month = len(text) == 7
        begin = datetime.strptime(text, "%Y-%m" if month else "%Y-%m-%d").replace(tzinfo=UTC)
        if not month:
            return begin.timestamp(), begin.timestamp() + 86_400
        after = begin.replace(year=begin.year + begin.month // 12, month=begin.month % 12 + 1)
    except ValueError:  # also of the month after the last
        raise InputError(f"period is {text!r}; write {FORMS}") from None
    return begin.timestamp(), after.timestamp()


def us_at(board: Board, wall_s: float) -> int | None:
    """The first recorded instant at or after a time; None if there is none. Instants are in the order of time."""
    low, high, found = 0, board.last("records"), None
    while low < high:
        middle = (low + high) // 2
        rows = board.rows("records", after=middle, most=1, kind="instant")
        if not rows:
            high = middle
            continue
        data = json.loads(rows[0]["body"])
        if data["wall"] >= wall_s:
            high, found = middle, int(data["at_us"])
        else:
            low = int(rows[0]["number"])
    return found
