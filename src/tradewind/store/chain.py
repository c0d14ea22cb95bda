"""Records and their chain: the checksum of a record covers its content and the checksum of the record before it.

A record that was deleted, edited, swapped, added or cut off therefore breaks the chain, and `check` says which one.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from hashlib import sha256
from typing import Any, NamedTuple

from tradewind.model.errors import StoreError

START = "0" * 64
"""What the first record has as the checksum before it."""


class Record(NamedTuple):
    """One record as it is stored; body is JSON text, hash the checksum of all of it."""

    number: int
    kind: str
    at_us: int
    body: str
    hash: str

    @property
    def data(self) -> dict[str, Any]:
        """The body as plain values."""
        found: dict[str, Any] = json.loads(self.body)
        return found


class Head(NamedTuple):
    """Number and checksum of the last record."""

    number: int = 0
    hash: str = START


def checksum(previous: str, number: int, kind: str, at_us: int, body: str) -> str:
    """SHA-256 of a record and the checksum of the record before it."""
    return sha256(f"{previous}\n{number}\n{kind}\n{at_us}\n{body}".encode()).hexdigest()


def chained(head: Head, kind: str, at_us: int, body: str) -> Record:
    """The record that follows `head`."""
    number = head.number + 1
    return Record(number, kind, at_us, body, checksum(head.hash, number, kind, at_us, body))


def check(records: Iterable[Record], after: Head, head: Head, where: str) -> Iterator[Record]:
    """Hand on the records that follow `after`, in order; raise StoreError that names the first one that is wrong."""
    last, rest = after, iter(records)
    for record in rest:
        if record.number > head.number:
            raise _damaged(
                where, f"record {record.number} lies behind the head, which counts {head.number} records"
            )
        if record.number != last.number + 1:
            raise _damaged(where, f"{_numbers(last.number + 1, record.number - 1)} missing")
        if record.hash != checksum(last.hash, *record[:4]):
            raise _damaged(where, _mismatch(record, last, rest))
        last = Head(record.number, record.hash)
        yield record
    if last.number < head.number:
        raise _damaged(where, f"{_numbers(last.number + 1, head.number)} missing at the end")
    if last.hash != head.hash:
        raise _damaged(
            where, f"the head does not match the last record, {last.number}: one of them was changed"
        )


def _mismatch(record: Record, last: Head, rest: Iterator[Record]) -> str:
    """What happened to a record whose checksum is wrong."""
    for other in rest:
        if other.hash == checksum(last.hash, record.number, *other[1:4]):
            return f"records {record.number} and {other.number} were swapped"
    return f"record {record.number} ({record.kind} at {record.at_us} us) was changed: its checksum does not match"


def _numbers(first: int, last: int) -> str:
    return f"record {first} is" if first == last else f"records {first} to {last} are"


def _damaged(where: str, what: str) -> StoreError:
    return StoreError(f"{what}. The store was altered or damaged; restore a backup.", where=where)
