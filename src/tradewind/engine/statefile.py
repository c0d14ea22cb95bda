"""The journal on disk: append-only records, each with a checksum and flushed before the loop acts on it.

A line is `crc32 json`. A last line that a crash cut off is dropped; any other damaged line is an error.
"""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from tradewind.model.errors import RunFileError


class StateFile:
    """Append-only file of records; each is on disk when `append` returns."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        folder = os.open(path.parent, os.O_RDONLY)
        os.fsync(folder)
        os.close(folder)

    def append(self, kind: str, record: Mapping[str, Any]) -> None:
        """Write one record and wait until it is on disk."""
        text = json.dumps({"kind": kind, **record}, separators=(",", ":"), default=_plain).encode()
        data = b"%08x %s\n" % (zlib.crc32(text), text)
        while data:
            data = data[os.write(self._handle, data) :]
        os.fdatasync(self._handle)

    def read(self) -> list[dict[str, Any]]:
        """All records so far."""
        return read_records(self._path)

    def close(self) -> None:
        """Close the file."""
        os.close(self._handle)


def _plain(value: Any) -> Any:
    """Convert arrays, numpy numbers and mappings to JSON types."""
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{type(value).__name__} cannot be written to the journal")


def read_records(path: Path) -> list[dict[str, Any]]:
    """All records; an incomplete last line is removed from the file."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return []
    records: list[dict[str, Any]] = []
    at = 0
    while at < len(data):
        end = data.find(b"\n", at)
        line = data[at : end if end >= 0 else len(data)]
        if end < 0 or len(line) < 10 or line[:8] != b"%08x" % zlib.crc32(line[9:]):
            if b"\n" in data[at : len(data) - 1]:
                raise RunFileError(
                    f"{path}: line {len(records) + 1} is damaged and is not the last line, so the run cannot be continued. "
                    "Start with a new state directory."
                )
            os.truncate(path, at)
            break
        records.append(json.loads(line[9:]))
        at = end + 1
    return records


@cache
def _hints(kind: type) -> dict[str, Any]:
    return get_type_hints(kind)


def revive(kind: Any, value: Any) -> Any:
    """Rebuild a typed value from JSON: named tuples and tuples from lists, recursively."""
    origin = get_origin(kind)
    if origin in (Union, UnionType):
        if value is None:
            return None
        return revive(next(each for each in get_args(kind) if each is not NoneType), value)
    if origin is tuple:
        inner = get_args(kind)
        if len(inner) == 2 and inner[1] is ...:
            return tuple(revive(inner[0], each) for each in value)
        return tuple(revive(each, item) for each, item in zip(inner, value, strict=True))
    if isinstance(kind, type) and issubclass(kind, tuple) and hasattr(kind, "_fields"):
        hints = _hints(kind)
        return kind(*(revive(hints[name], item) for name, item in zip(kind._fields, value, strict=False)))
    return value
