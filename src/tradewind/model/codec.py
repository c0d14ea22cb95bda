"""Typed values as JSON and back: dataclasses, named tuples, tuples, frozensets, dicts, unions, literals.

Whatever `plain` or `compact` writes, `read` returns equal for the same type; it raises InputError that says where something
is wrong. No class is chosen by the data and no code is run, so that data of others can be read.
"""

from __future__ import annotations

import json
import types
from collections.abc import Callable, Iterable, Mapping
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


def compact(value: Any) -> str:
    """A value as short JSON text: named tuples become lists, numpy's numbers and arrays plain ones."""
    return json.dumps(value, separators=(",", ":"), default=_converted)


def _converted(value: Any) -> Any:
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, frozenset | set):
        return sorted(value)
    raise TypeError(f"{type(value).__name__} cannot be written as JSON")


def read(kind: Any, value: Any, where: str) -> Any:
    """A value of a type from JSON data; `where` begins the place that an error names."""
    try:
        return _reader(kind)(value)
    except _Mismatch as error:
        raise InputError(str(error), where=(where + error.path).lstrip(".")) from None


@cache
def _defaults(kind: Any) -> tuple[tuple[str, Any], ...]:
    """Fields of a dataclass or named tuple with their defaults."""
    if is_dataclass(kind):
        return tuple((field.name, field.default) for field in fields(kind) if field.init)
    return tuple((name, kind._field_defaults.get(name, MISSING)) for name in kind._fields)


@cache
def _reader(kind: Any) -> Reader:
    """The function that reads values of a type."""
    origin, inner = get_origin(kind), get_args(kind)
    if kind is Any:
        return lambda value: value
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
        if type(value) is kind or (kind is float and type(value) is int):
            return value
        raise _Mismatch(f"found {value!r:.60}; it must be of type {kind.__name__}")

    return _text if kind is str else read_scalar


def _text(value: Any) -> str:
    if type(value) is not str:
        raise _Mismatch(f"found {value!r:.60}; it must be of type str")
    if not value.isascii() and any("\ud800" <= sign <= "\udfff" for sign in value):
        raise _Mismatch(f"found {value!r:.60}; it must be valid Unicode")
    return value


def _literal(allowed: tuple[Any, ...]) -> Reader:
    def read_literal(value: Any) -> Any:
        if value in allowed:
            return value
        raise _Mismatch(f"found {value!r:.60}; allowed are {', '.join(map(str, allowed))}")

    return read_literal


def _several(origin: type, inner: tuple[Any, ...]) -> Reader:
    """Tuples of one type and any length, tuples with a type for each place, and frozensets."""
    alike = origin is frozenset or inner[-1] is ...
    readers = [_reader(inner[0])] if alike else [_reader(kind) for kind in inner]
    plain_kind = {inner[0]} if alike and inner[0] in _READY else None

    def read_several(value: Any) -> Any:
        if not isinstance(value, list):
            raise _Mismatch(f"found {type(value).__name__}; it must be a list")
        if not value and alike:
            return origin()
        if {*map(type, value)} == plain_kind and (str not in plain_kind or all(map(str.isascii, value))):
            return origin(value)
        if not alike and len(value) != len(readers):
            raise _Mismatch(f"found {len(value)} values; it must have {len(readers)}")
        return origin(_each(repeat(readers[0]) if alike else readers, value))

    return read_several


def _each(readers: Iterable[Reader], value: list[Any]) -> list[Any]:
    """The values of a list, each by its reader."""
    found: list[Any] = []
    try:
        for reader, item in zip(readers, value, strict=False):
            found.append(reader(item))
    except _Mismatch as error:
        error.path = f"[{len(found)}]{error.path}"
        raise
    return found


def _pairs(inner: tuple[Any, ...]) -> Reader:
    """A mapping: a list of pairs, or an object where its keys are text."""
    key, item = map(_reader, inner)
    pair = _several(tuple, inner)

    def read_pairs(value: Any) -> Any:
        if isinstance(value, dict):
            return dict(
                zip(_each(repeat(key), [*value]), _each(repeat(item), [*value.values()]), strict=True)
            )
        if not isinstance(value, list):
            raise _Mismatch(f"found {value!r:.60}; it must be a list of pairs or an object")
        return dict(_each(repeat(pair), value))

    return read_pairs


def _union(kinds: tuple[Any, ...]) -> Reader:
    """One type or None, one of several types of plain values, or several types that the data names."""
    rest = [kind for kind in kinds if kind is not types.NoneType]
    optional = len(rest) < len(kinds)
    if len(rest) > 1 and _READY.issuperset(rest):
        return _plain_value(frozenset(kinds))
    named = {kind.__name__: _reader(kind) for kind in rest} if len(rest) > 1 else {}
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


def _plain_value(kinds: frozenset[type]) -> Reader:
    def read_plain_value(value: Any) -> Any:
        if type(value) not in kinds:
            raise _Mismatch(
                f"found {value!r:.60}; it must be of type {', '.join(sorted(k.__name__ for k in kinds))}"
            )
        return _text(value) if type(value) is str else value

    return read_plain_value


def _object(kind: type) -> Reader:
    """A dataclass or named tuple: an object with its fields; of a named tuple also a list of them in order."""
    hints, names = get_type_hints(kind), [name for name, _ in _defaults(kind)]
    listed = not is_dataclass(kind)
    readers = dict[str, Reader]()
    plain_kinds = {name: hints[name] for name in names if hints[name] in _READY}  # most values need no reader

    def reader_of(name: str) -> Reader:
        if name not in readers:  # made when it is needed: types may contain themselves
            if name not in names:
                raise _Mismatch(f"unknown field {name!r}")
            readers[name] = _reader(hints[name])
        return readers[name]

    def read_object(value: Any) -> Any:
        if listed and type(value) is list:
            if len(value) > len(names):
                raise _Mismatch(f"found {len(value)} values; a {kind.__name__} has {len(names)}")
            value = dict(zip(names, value, strict=False))
        elif not isinstance(value, Mapping) or value.get("type", kind.__name__) != kind.__name__:
            raise _Mismatch(f"found {value!r:.60}; it must be a {kind.__name__}")
        given, name = {}, ""
        try:
            for name, item in value.items():
                if (kind_of := type(item)) is plain_kinds.get(name) and (
                    kind_of is not str or item.isascii()
                ):
                    given[name] = item
                elif name != "type":
                    given[name] = reader_of(name)(item)
        except _Mismatch as error:
            error.path = f".{name}{error.path}" if name in names else error.path
            raise
        try:
            return kind(**given)
        except TypeError:
            missing = [name for name, default in _defaults(kind) if default is MISSING and name not in given]
            raise _Mismatch(f"{missing[0]!r} is missing") from None

    return read_object
