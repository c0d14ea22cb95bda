"""Parameters of policies and workloads: text or values from a user, checked against their declarations."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tradewind.model.errors import InputError, LookupFailed
from tradewind.model.spec import Param

MOST_SEED = 2**53
MOST_BYTES = 1_000_000
"""Size of a file that a parameter may name."""


def resolve_params(owner: str, params: Mapping[str, Param], given: Mapping[str, Any]) -> dict[str, Any]:
    """All parameters of `owner`: given values, checked, and defaults for the rest."""
    for name in given:
        if name not in params:
            raise LookupFailed(f"parameter of {owner}", name, params)
    return {
        name: _read(f"{owner}.{name}", param, given[name]) if name in given else param.default
        for name, param in params.items()
    }


def recorded(params: Mapping[str, Param], values: Mapping[str, Any]) -> dict[str, Any]:
    """The values that a run file has."""
    return {
        name: value
        for name, value in values.items()
        if not (params[name].later and value == params[name].default)
    }


def check_seed(seed: int) -> None:
    """Refuse a seed that no generator of random numbers takes."""
    if type(seed) is not int or not 0 <= seed <= MOST_SEED:
        raise InputError(f"found {seed!r}; it must be a whole number from 0 to {MOST_SEED}", where="seed")


def _read(where: str, param: Param, value: Any) -> Any:
    kind = type(param.default)
    if param.file and value and "\n" not in str(value):
        path = Path(str(value))
        value = _text(where, path)
        if not value.strip():
            raise InputError(f"{path} is empty; leave the parameter out, or name another file", where=where)
    try:
        if kind is bool:
            read: Any = {"true": True, "1": True, "false": False, "0": False}[str(value).lower()]
        elif kind is int:
            read = int(value) if isinstance(value, str) else _whole(value)
        elif kind is float:
            read = float(value)
            if not math.isfinite(read):
                raise ValueError
        else:
            read = kind(value) if isinstance(value, str | int | float | kind) else value
    except (ValueError, TypeError, KeyError, OverflowError):
        nouns = {bool: "true or false", int: "a whole number", float: "a number"}
        raise InputError(f"found {value!r}; it must be {nouns.get(kind, 'text')}", where=where) from None
    if param.choices and read not in param.choices:
        raise InputError(f"found {value!r}; allowed are {', '.join(param.choices)}", where=where)
    if (param.least is not None and read < param.least) or (param.most is not None and read > param.most):
        raise InputError(f"found {value}; it must be {param.range}", where=where)
    return read


def _text(where: str, path: Path) -> str:
    """The text of a file."""
    try:
        with path.open("rb") as source:
            data = source.read(MOST_BYTES + 1)
        text = data.decode()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "it is not text"
        raise InputError(f"cannot read {str(path)!r}: {reason}", where=where) from None
    if len(data) > MOST_BYTES:
        raise InputError(f"{str(path)!r} is larger than {MOST_BYTES} bytes", where=where)
    return text if "\n" in text else text + "\n"


def _whole(value: Any) -> int:
    if isinstance(value, bool) or value != int(value):
        raise ValueError
    return int(value)
