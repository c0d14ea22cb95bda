"""Events as JSON: what a session is told, complete in itself, to be sent, stored and replayed.

    {"at_us": 5000000, "kind": "arrived", "job": 3, "fact": {"type": "Job", "id": "a", …}}

An event needs nothing beside it to be read back: a job that arrives carries its whole public part.
"""

from __future__ import annotations

import types
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from tradewind.model.errors import InputError
from tradewind.model.job import Job
from tradewind.model.view import Change, Event, EventKind

KINDS = frozenset(get_args(EventKind))


def to_json(event: Event) -> dict[str, Any]:
    """An event as plain values; what equals its default is left out."""
    found: dict[str, Any] = {"at_us": event.at_us, "kind": event.kind}
    if event.job != -1:
        found["job"] = event.job
    if event.value:
        found["value"] = event.value
    if event.fact is not None:
        found["fact"] = _plain(event.fact)
    return found


def from_json(data: Any) -> Event:
    """The event that `to_json` wrote; raises InputError that says where something is wrong."""
    if not isinstance(data, Mapping):
        raise InputError(f"found {type(data).__name__}; an event is an object", where="event")
    if unknown := set(data) - {"at_us", "kind", "job", "value", "fact"}:
        raise InputError(f"unknown field {sorted(unknown)[0]!r}", where="event")
    kind: Any = data.get("kind")
    if kind not in KINDS:
        raise InputError(f"found {kind!r}; known kinds are {', '.join(sorted(KINDS))}", where="event.kind")
    at_us, job, value = (
        _read(int, data.get(name, default), f"event.{name}")
        for name, default in (("at_us", None), ("job", -1), ("value", 0))
    )
    expected = {"arrived": Job, "changed": Change, "data": tuple[tuple[int, int], ...]}.get(kind)
    if (expected is None) != (data.get("fact") is None):
        raise InputError("is missing" if expected else f"{kind} has none", where="event.fact")
    fact = None if expected is None else _read(expected, data["fact"], "event.fact")
    return Event(at_us, kind, job, value, fact)


def _plain(value: Any) -> Any:
    if is_dataclass(value):
        found = {"type": type(value).__name__}
        for field in fields(value):
            item = getattr(value, field.name)
            if field.default is MISSING or item != field.default:
                found[field.name] = _plain(item)
        return found
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return {"type": type(value).__name__} | {k: _plain(v) for k, v in value._asdict().items()}
    if isinstance(value, frozenset):
        return sorted(value)
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    return value


@cache
def _hints(kind: type) -> dict[str, Any]:
    return get_type_hints(kind)


def _read(kind: Any, value: Any, where: str) -> Any:
    """A value of a type from plain values."""
    origin, inner = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        return _read_union(inner, value, where)
    if origin is Literal:
        if value not in inner:
            raise InputError(f"found {value!r}; allowed are {', '.join(map(str, inner))}", where=where)
        return value
    if origin in (tuple, frozenset):
        if not isinstance(value, list):
            raise InputError(f"found {type(value).__name__}; it must be a list", where=where)
        if origin is frozenset or inner[-1] is ...:
            return origin(_read(inner[0], item, f"{where}[{i}]") for i, item in enumerate(value))
        if len(value) != len(inner):
            raise InputError(f"found {len(value)} values; it must have {len(inner)}", where=where)
        return tuple(
            _read(k, item, f"{where}[{i}]") for i, (k, item) in enumerate(zip(inner, value, strict=True))
        )
    if isinstance(kind, type) and (is_dataclass(kind) or hasattr(kind, "_fields")):
        return _read_object(kind, value, where)
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise InputError(f"found {value!r}; it must be of type {kind.__name__}", where=where)
    return value


def _read_union(kinds: tuple[Any, ...], value: Any, where: str) -> Any:
    if value is None and types.NoneType in kinds:
        return None
    rest = [kind for kind in kinds if kind is not types.NoneType]
    if len(rest) == 1:
        return _read(rest[0], value, where)
    named = {kind.__name__: kind for kind in rest}
    name = value.get("type") if isinstance(value, Mapping) else None
    if name not in named:
        raise InputError(f"found {name!r}; allowed are {', '.join(named)}", where=f"{where}.type")
    return _read_object(named[name], value, where)


def _read_object(kind: type, value: Any, where: str) -> Any:
    if not isinstance(value, Mapping) or value.get("type", kind.__name__) != kind.__name__:
        raise InputError(f"found {value!r:.60}; it must be a {kind.__name__}", where=where)
    hints = _hints(kind)
    given = {name: item for name, item in value.items() if name != "type"}
    if unknown := set(given) - set(hints):
        raise InputError(f"unknown field {sorted(unknown)[0]!r}", where=where)
    read = {name: _read(hints[name], item, f"{where}.{name}") for name, item in given.items()}
    try:
        return kind(**read)
    except TypeError:
        known = getattr(kind, "_field_defaults", {})
        needed = (
            [f.name for f in fields(kind) if f.default is MISSING]
            if is_dataclass(kind)
            else kind.__annotations__
        )
        missing = [name for name in needed if name not in read and name not in known]
        raise InputError(f"{missing[0]!r} is missing", where=where) from None
