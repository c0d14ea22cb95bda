"""Typed values as plain JSON data and back: dataclasses, named tuples, tuples, frozensets, dicts, unions, literals.

Whatever `plain` writes, `read` returns equal for the same type; it raises InputError that says where something is wrong.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from itertools import repeat
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from tradewind.model.errors import InputError

Reader = Callable[[Any], Any]
_READY = frozenset((int, str, float, bool, types.NoneType))


class _Mismatch(Exception):
    """A value that does not fit; `path` grows on the way out, so that it costs nothing where all is well."""

    def __init__(self, message: str, path: str = "") -> None:
        super().__init__(message)
        self.path = path


def plain(value: Any) -> Any:
    """A value as JSON data. Objects name their type; fields that equal their default are left out."""
    kind: Any = type(value)
    if kind in _READY:
        return value
    if kind is tuple or kind is list:
        return [item if type(item) in _READY else plain(item) for item in value]
    if kind is frozenset:
        return sorted(value)
    if kind is dict or isinstance(value, Mapping):
        return [[plain(key), plain(item)] for key, item in value.items()]
    for base in (float, int, str):  # such as numpy's float
        if isinstance(value, base):
            return base(value)
    defaults = _defaults(kind)
    found: dict[str, Any] = {"type": kind.__name__}
    for name, default in defaults:
        item = getattr(value, name)
        if default is MISSING or item != default:
            found[name] = item if type(item) in _READY else plain(item)
    return found


def read(kind: Any, value: Any, where: str) -> Any:
    """A value of a type from JSON data; `where` begins the place that an error names."""
    try:
        return _reader(kind)(value)
    except _Mismatch as error:
        raise InputError(str(error), where=where + error.path) from None


@cache
def _defaults(kind: type) -> tuple[tuple[str, Any], ...]:
    """Fields of a dataclass or named tuple with their defaults."""
    if is_dataclass(kind):
        return tuple((field.name, field.default) for field in fields(kind) if field.init)
    known: Mapping[str, Any] = kind._field_defaults  # type: ignore[attr-defined]
    names: tuple[str, ...] = kind._fields  # type: ignore[attr-defined]
    return tuple((name, known.get(name, MISSING)) for name in names)


@cache
def _reader(kind: Any) -> Reader:
    """The function that reads values of a type."""
    origin, inner = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        return _union(inner)
    if origin is Literal:
        return _literal(inner)
    if origin in (tuple, frozenset):
        return _several(origin, inner)
    if origin in (dict, Mapping):
        return _pairs(inner)
    if isinstance(kind, type) and (is_dataclass(kind) or hasattr(kind, "_fields")):
        return _object(kind)
    return _scalar(kind)


def _scalar(kind: type) -> Reader:
    def read_scalar(value: Any) -> Any:
        if type(value) is kind:
            return value
        if kind is float and type(value) is int:
            return float(value)
        raise _Mismatch(f"found {value!r}; it must be of type {kind.__name__}")

    return read_scalar


def _literal(allowed: tuple[Any, ...]) -> Reader:
    def read_literal(value: Any) -> Any:
        if value in allowed:
            return value
        raise _Mismatch(f"found {value!r}; allowed are {', '.join(map(str, allowed))}")

    return read_literal


def _several(origin: type, inner: tuple[Any, ...]) -> Reader:
    """Tuples of one type and any length, tuples with a type for each place, and frozensets."""
    alike = origin is frozenset or inner[-1] is ...
    readers = [_reader(inner[0])] if alike else [_reader(kind) for kind in inner]

    def read_several(value: Any) -> Any:
        if not isinstance(value, list):
            raise _Mismatch(f"found {type(value).__name__}; it must be a list")
        if not alike and len(value) != len(readers):
            raise _Mismatch(f"found {len(value)} values; it must have {len(readers)}")
        found: list[Any] = []
        try:
            for reader, item in zip(repeat(readers[0]) if alike else readers, value, strict=False):
                found.append(reader(item))
        except _Mismatch as error:
            error.path = f"[{len(found)}]{error.path}"
            raise
        return origin(found)

    return read_several


def _pairs(inner: tuple[Any, ...]) -> Reader:
    pairs = _several(tuple, (tuple[inner[0], inner[1]], ...))  # type: ignore[valid-type]
    return lambda value: dict(pairs(value))


def _union(kinds: tuple[Any, ...]) -> Reader:
    """One type or None, or several types that the data names."""
    rest = [kind for kind in kinds if kind is not types.NoneType]
    optional = len(rest) < len(kinds)
    named = {kind.__name__: _reader(kind) for kind in rest}
    only = _reader(rest[0]) if len(rest) == 1 else None

    def read_union(value: Any) -> Any:
        if value is None and optional:
            return None
        if only is not None:
            return only(value)
        name = value.get("type") if isinstance(value, Mapping) else None
        if name not in named:
            raise _Mismatch(f"found {name!r}; allowed are {', '.join(named)}", ".type")
        return named[name](value)

    return read_union


def _object(kind: type) -> Reader:
    """A dataclass or named tuple."""
    hints = get_type_hints(kind)
    name_of, readers = kind.__name__, dict[str, Reader]()

    def read_object(value: Any) -> Any:
        if not isinstance(value, Mapping) or value.get("type", name_of) != name_of:
            raise _Mismatch(f"found {value!r:.60}; it must be a {name_of}")
        given = {}
        for name, item in value.items():
            if name == "type":
                continue
            if name not in readers:
                if name not in hints:
                    raise _Mismatch(f"unknown field {name!r}")
                readers[name] = _reader(hints[name])
            try:
                given[name] = readers[name](item)
            except _Mismatch as error:
                error.path = f".{name}{error.path}"
                raise
        try:
            return kind(**given)
        except TypeError:
            missing = [name for name, default in _defaults(kind) if default is MISSING and name not in given]
            raise _Mismatch(f"{missing[0]!r} is missing") from None

    return read_object
