"""Reads what an isolated policy sends: JSON lists become the named tuples of the model, and every value is checked.

Numbers have 64 bits, text is valid Unicode, lists are as long as what they stand for. Anything else raises Unreadable, which
says where it is. No class is chosen by the sender and no code is run.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import cache
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

LEAST, MOST = -(1 << 63), (1 << 63) - 1
Reader = Callable[[Any], Any]


class Unreadable(ValueError):
    """A value that is not what it must be; `where` is its place, outermost first."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.where: list[str] = []

    def __str__(self) -> str:
        place = "".join(reversed(self.where)).lstrip(".")
        return f"{place}: {super().__str__()}" if place else super().__str__()


def decode(kind: Any, text: bytes) -> Any:
    """A value of the type `kind`, from JSON."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise Unreadable(f"it is not JSON ({error})") from None
    return reader(kind)(value)


def encode(value: Any) -> bytes:
    """JSON of a value: tuples become lists, numpy's numbers and arrays plain ones."""
    return json.dumps(value, separators=(",", ":"), default=_plain).encode()


def _plain(value: Any) -> Any:
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, frozenset | set):
        return sorted(value)
    raise TypeError(f"{type(value).__name__} cannot be sent")


def _found(value: Any, must: str) -> Unreadable:
    return Unreadable(f"found {value!r:.60}; it must be {must}")


@cache
def reader(kind: Any) -> Reader:
    """The function that reads values of a type."""
    if kind in _SIMPLE:
        return _SIMPLE[kind]
    origin, inner = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType) and len(inner) == 2 and NoneType in inner:
        return _optional(reader(next(each for each in inner if each is not NoneType)))
    if origin is Literal:
        return _literal(inner)
    if origin is tuple and inner[-1] is ...:
        return _many(reader(inner[0]))
    if origin is tuple:
        return _fixed(tuple, [(f"[{i}]", reader(each)) for i, each in enumerate(inner)], len(inner))
    if isinstance(kind, type) and issubclass(kind, tuple) and hasattr(kind, "_fields"):
        hints = get_type_hints(kind)
        names: tuple[str, ...] = kind._fields
        fields = [(f".{name}", reader(hints[name])) for name in names]
        return _fixed(lambda values: kind(*values), fields, len(names))
    raise TypeError(f"no reader for {kind}")


def _int(value: Any) -> int:
    if type(value) is not int or not LEAST <= value <= MOST:
        raise _found(value, "a whole number of 64 bits")
    return value


def _float(value: Any) -> float:
    if type(value) is float:
        return value
    return _int(value) if type(value) is int else _raise(value, "a number")


def _bool(value: Any) -> bool:
    return value if type(value) is bool else _raise(value, "true or false")


def _str(value: Any) -> str:
    if type(value) is not str:
        raise _found(value, "text")
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError:
            raise _found(value, "valid Unicode") from None
    return value


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if type(value) is dict else _raise(value, "an object")


def _raise(value: Any, must: str) -> Any:
    raise _found(value, must)


def _scalar(value: Any) -> bool | int | float | str:
    """A parameter's default."""
    for read in (_bool, _float, _str):
        try:
            return read(value)
        except Unreadable:
            continue
    raise _found(value, "a number, text, true or false")


def _optional(read: Reader) -> Reader:
    return lambda value: None if value is None else read(value)


_SIMPLE: dict[Any, Reader] = {
    None: _optional(lambda value: _raise(value, "null")),
    int: _int, float: _float, bool: _bool, str: _str, Mapping[str, Any]: _mapping, bool | int | float | str: _scalar,
}  # fmt: skip


def _literal(allowed: tuple[Any, ...]) -> Reader:
    words = ", ".join(map(str, allowed))
    return lambda value: (
        value if type(value) is str and value in allowed else _raise(value, f"one of {words}")
    )


def _many(read: Reader) -> Reader:
    def read_all(value: Any) -> Any:
        if type(value) is not list:
            raise _found(value, "a list")
        found: list[Any] = []
        try:
            for item in value:
                found.append(read(item))  # noqa: PERF401  its length says where an error is
        except Unreadable as error:
            error.where.append(f"[{len(found)}]")
            raise
        return tuple(found)

    return read_all


def _fixed(make: Callable[[list[Any]], Any], fields: list[tuple[str, Reader]], size: int) -> Reader:
    def read_fields(value: Any) -> Any:
        if type(value) is not list or len(value) != size:
            raise _found(value, f"a list of {size}")
        found = []
        for (name, read), item in zip(fields, value, strict=True):
            try:
                found.append(read(item))
            except Unreadable as error:
                error.where.append(name)
                raise
        return make(found)

    return read_fields
