"""Scalar types of the file schemas, each with its unit, range and error message."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Annotated, Any, Final

from pydantic import PlainValidator, WithJsonSchema
from pydantic_core import PydanticCustomError

from tradewind.model import units
from tradewind.model.errors import ScenarioError
from tradewind.model.job import MOST_RANKS
from tradewind.model.units import LARGEST, MILLI

MOST_UNITS: Final = 10**12
"""Largest resource amount in a file, in natural units; up to here thousandths are exact in a JSON number."""
MOST_USD: Final = 10**15
LONGEST_NAME: Final = 200
DEEPEST: Final = 64
"""Deepest nesting of free-form values (origin, params, certificates)."""


def natural(milli: int) -> int | float:
    """Convert milli-units to the natural units of a file."""
    if milli > MOST_UNITS * MILLI:
        raise ScenarioError(
            f"an amount of {milli / MILLI:g} cannot be written to a file; the limit is {MOST_UNITS:,}"
        )
    return int(milli) // MILLI if milli % MILLI == 0 else int(milli) / MILLI


def rule(text: str) -> PydanticCustomError:
    """An error that says what is allowed; `messages.sentence` adds where and what was found."""
    return PydanticCustomError("tradewind", "{text}", {"text": text})


def _whole(
    low: int,
    what: str,
    parse: Callable[[str], int] | None = None,
    example: str = "",
    high: int = LARGEST,
) -> Callable[[Any], int]:
    allowed = f"it must be a whole number{what} from {low} to {high}"
    if parse is not None:
        allowed += f", or text with a unit such as {example!r}"

    def check(value: Any) -> int:
        if type(value) is int:
            if low <= value <= high:
                return value
        elif type(value) is float:
            if low <= value <= high and value.is_integer():
                return int(value)
        elif type(value) is str and parse is not None:
            try:
                number = parse(value)
            except ValueError as error:
                raise rule(f"{allowed} ({error})" if len(value) <= 60 else allowed) from None
            if number >= low:
                return number
        raise rule(allowed)

    return check


def _number(value: Any) -> float:
    if type(value) in (int, float) and abs(value) <= 1e300:
        return float(value) + 0.0  # -0.0 becomes 0.0
    raise rule("it must be a finite number")


def _money(value: Any) -> float:
    if type(value) in (int, float) and 0 <= value <= MOST_USD:
        return float(value) + 0.0
    raise rule(f"it must be a number of US dollars from 0 to {MOST_USD:,}")


def _thousandths(value: Any) -> int:
    if type(value) is int and 0 <= value <= MOST_UNITS:
        return value * MILLI
    if type(value) is float and 0 <= value <= MOST_UNITS:
        try:
            return units.to_milli(value)
        except ValueError:
            pass
    raise rule(f"it must be a number from 0 to {MOST_UNITS:,} with at most three decimals")


def _name(value: Any) -> str:
    if (
        type(value) is str
        and 0 < len(value) <= LONGEST_NAME
        and value.isprintable()
        and value.strip() == value
    ):
        return value
    raise rule(
        f"it must be text of 1 to {LONGEST_NAME} printable characters without leading or trailing spaces"
        + (". Put it in quotes." if isinstance(value, int | float) else "")
    )


def _text(value: Any) -> str:
    if type(value) is str and "\x00" not in value:
        try:
            value.encode()
        except UnicodeEncodeError:
            raise rule("it must be valid Unicode text") from None
        return value
    raise rule("it must be text")


def _tenant(value: Any) -> str:
    return "" if value == "" and type(value) is str else _name(value)


def _flag(value: Any) -> bool:
    if type(value) is bool:
        return value
    raise rule("it must be true or false")


def _whole_any(value: Any) -> int:
    if type(value) is int and -(2**63) <= value < 2**63:
        return value
    raise rule("it must be a whole number that fits in 64 bits")


def plain(value: Any) -> Any:
    """Check a free-form JSON value: finite numbers, Unicode text, at most DEEPEST levels."""
    pending: list[tuple[Any, int]] = [(value, 0)]
    while pending:
        item, depth = pending.pop()
        if depth > DEEPEST:
            raise rule(f"it must be nested at most {DEEPEST} levels deep")
        if isinstance(item, dict):
            for key in item:
                _text(key)
            pending.extend((each, depth + 1) for each in item.values())
        elif isinstance(item, list):
            pending.extend((each, depth + 1) for each in item)
        elif isinstance(item, str):
            _text(item)
        elif isinstance(item, float) and not math.isfinite(item):
            raise rule("it contains a number that is not finite")
        elif not isinstance(item, int | float | None):
            raise rule("it may contain only text, numbers, true, false, null, lists and objects")
    return value


def _mapping(value: Any) -> Any:
    if not isinstance(value, dict):
        raise rule("it must be an object")
    return plain(value)


def _measure(value: Any) -> float:
    if value is None:
        return math.nan
    if value in ("inf", "-inf") and type(value) is str:
        return float(value)
    return _number(value)


def _integer_schema(low: int, units_text: str = "", high: int = LARGEST) -> WithJsonSchema:
    whole = {"type": "integer", "minimum": low, "maximum": high}
    if not units_text:
        return WithJsonSchema(whole)
    return WithJsonSchema({"anyOf": [whole, {"type": "string", "pattern": units_text}]})


_DIGITS = r"^\s*[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?\s*"
_TIME = _DIGITS + r"(us|ms|s|min|h|d)\s*$"
_DATA = _DIGITS + r"(B|kB|MB|GB|TB|KiB|MiB|GiB)\s*$"
_RATE = _DIGITS + r"(bit/s|kbit/s|Mbit/s|Gbit/s|Tbit/s)\s*$"

TimeUs = Annotated[
    int,
    PlainValidator(_whole(0, " of microseconds", units.parse_time_us, "5 min")),
    _integer_schema(0, _TIME),
]
InstantUs = Annotated[
    int,
    PlainValidator(_whole(-LARGEST, " of microseconds", units.parse_time_us, "5 min")),
    _integer_schema(-LARGEST, _TIME),
]
SpanUs = Annotated[
    int,
    PlainValidator(_whole(1, " of microseconds", units.parse_time_us, "5 min")),
    _integer_schema(1, _TIME),
]
Bytes = Annotated[
    int, PlainValidator(_whole(0, " of bytes", units.parse_bytes, "92 MB")), _integer_schema(0, _DATA)
]
SomeBytes = Annotated[
    int, PlainValidator(_whole(1, " of bytes", units.parse_bytes, "92 MB")), _integer_schema(1, _DATA)
]
Bps = Annotated[
    int, PlainValidator(_whole(0, " of bit/s", units.parse_bps, "5 Gbit/s")), _integer_schema(0, _RATE)
]
Count = Annotated[int, PlainValidator(_whole(0, "")), _integer_schema(0)]
Some = Annotated[int, PlainValidator(_whole(1, "")), _integer_schema(1)]
Ranks = Annotated[int, PlainValidator(_whole(0, "", high=MOST_RANKS)), _integer_schema(0, high=MOST_RANKS)]
SomeRanks = Annotated[
    int, PlainValidator(_whole(1, "", high=MOST_RANKS)), _integer_schema(1, high=MOST_RANKS)
]
Whole = Annotated[
    int,
    PlainValidator(_whole_any),
    WithJsonSchema({"type": "integer", "minimum": -(2**63), "maximum": 2**63 - 1}),
]
Milli = Annotated[
    int,
    PlainValidator(_thousandths),
    WithJsonSchema({"type": "number", "minimum": 0, "maximum": MOST_UNITS}),
]
Number = Annotated[float, PlainValidator(_number), WithJsonSchema({"type": "number"})]
Usd = Annotated[
    float, PlainValidator(_money), WithJsonSchema({"type": "number", "minimum": 0, "maximum": MOST_USD})
]
Name = Annotated[
    str,
    PlainValidator(_name),
    WithJsonSchema({"type": "string", "minLength": 1, "maxLength": LONGEST_NAME}),
]
Tenant = Annotated[
    str, PlainValidator(_tenant), WithJsonSchema({"type": "string", "maxLength": LONGEST_NAME})
]
Text = Annotated[str, PlainValidator(_text), WithJsonSchema({"type": "string"})]
Flag = Annotated[bool, PlainValidator(_flag), WithJsonSchema({"type": "boolean"})]
PlainObject = Annotated[dict[str, Any], PlainValidator(_mapping), WithJsonSchema({"type": "object"})]
Measure = Annotated[
    float,
    PlainValidator(_measure),
    WithJsonSchema({"anyOf": [{"type": "number"}, {"type": "null"}, {"enum": ["inf", "-inf"]}]}),
]
