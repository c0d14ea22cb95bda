"""Events as JSON: what a session is told, complete in itself, to be sent, stored and replayed.

    {"at_us": 5000000, "kind": "arrived", "job": 3, "fact": {"type": "Job", "id": "a", …}}

An event needs nothing beside it to be read back: a job that arrives carries its whole public part.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, get_args

from tradewind.model.codec import plain, read
from tradewind.model.errors import InputError
from tradewind.model.estimate import Measured
from tradewind.model.job import Job
from tradewind.model.view import Change, Event, EventKind

KINDS = frozenset(get_args(EventKind))
FIELDS = frozenset(("at_us", "kind", "job", "value", "fact"))
FACTS: Mapping[str, Any] = {
    "arrived": Job,
    "changed": Change,
    "data": tuple[tuple[int, int], ...],
    "answered": int,
    "measured": tuple[Measured, ...],
}
"""Kind of an event -> type of its fact, where it has one."""


def to_json(event: Event) -> dict[str, Any]:
    """An event as plain values; what equals its default is left out."""
    found: dict[str, Any] = {"at_us": event.at_us, "kind": event.kind}
    if event.job != -1:
        found["job"] = event.job
    if event.value:
        found["value"] = event.value
    if event.fact is not None:
        found["fact"] = plain(event.fact)
    return found


def from_json(data: Any) -> Event:
    """The event that `to_json` wrote; raises InputError that says where something is wrong."""
    if not isinstance(data, Mapping):
        raise InputError(f"found {type(data).__name__}; an event is an object", where="event")
    if not data.keys() <= FIELDS:
        raise InputError(f"unknown field {sorted(data.keys() - FIELDS)[0]!r}", where="event")
    kind: Any = data.get("kind")
    if kind not in KINDS:
        raise InputError(f"found {kind!r}; known kinds are {', '.join(sorted(KINDS))}", where="event.kind")
    at_us: Any = data.get("at_us")
    job, value = data.get("job", -1), data.get("value", 0)
    for name, number in (("at_us", at_us), ("job", job), ("value", value)):
        if type(number) is not int:
            read(int, number, f"event.{name}")
    expected = FACTS.get(kind)
    if (expected is None) != (data.get("fact") is None):
        raise InputError("is missing" if expected else f"{kind} has none", where="event.fact")
    fact = None if expected is None else read(expected, data["fact"], "event.fact")
    return Event(at_us, kind, job, value, fact)
