"""The unit system: amounts are integers, so sums never drift and equality is exact.

| quantity  | unit                     | name ends in  |
|-----------|--------------------------|---------------|
| time      | microsecond              | `_us`         |
| data      | byte (1 GB = 10^9)       | `_bytes`      |
| bandwidth | bit per second           | `_bps`        |
| resources | milli-unit (1 gpu = 1000)| `_milli`      |
| money     | US dollar (float)        | `_usd`        |
"""

from __future__ import annotations

import math
import re
from typing import Final

US_PER_S: Final = 1_000_000
US_PER_HOUR: Final = 3600 * US_PER_S
MILLI: Final = 1000
GB: Final = 10**9
MICRO: Final = 1_000_000
"""Work is counted in millionths of a round or of a worker-slot."""

UNLIMITED: Final = 2**62
"""Capacity if none is given."""
OPEN: Final = 2**62
"""End of a step that lasts until the job finishes or a new plan replaces it."""
LARGEST: Final = 2**53
"""Largest quantity allowed in a file; larger JSON numbers are not exact."""

_TIME = {"us": 1, "ms": 1000, "s": US_PER_S, "min": 60 * US_PER_S, "h": US_PER_HOUR, "d": 24 * US_PER_HOUR}
_DATA = {
    "B": 1,
    "kB": 10**3,
    "MB": 10**6,
    "GB": 10**9,
    "TB": 10**12,
    "KiB": 2**10,
    "MiB": 2**20,
    "GiB": 2**30,
}
_RATE = {"bit/s": 1, "kbit/s": 10**3, "Mbit/s": 10**6, "Gbit/s": 10**9, "Tbit/s": 10**12}
_QUANTITY = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)\s*([A-Za-z/]+)\s*")


def dollars(usd: float) -> str:
    """An amount of money for people: cents, or four digits of less than a dollar."""
    if 1e-4 <= abs(usd) < 1:
        whole, _, part = f"{usd:.4g}".partition(".")
        return f"{whole}.{part:0<2}"
    return f"{usd + 0.0:,.2f}"


def _parse(text: str, table: dict[str, int], what: str) -> int:
    match = _QUANTITY.fullmatch(text)
    if match is None or match.group(2) not in table:
        raise ValueError(f"{text!r} is not a {what}; write a number and one of {', '.join(table)}")
    value = float(match.group(1)) * table[match.group(2)]
    if not math.isfinite(value) or value > LARGEST:
        raise ValueError(f"{text!r} is too large; at most {LARGEST} in the smallest unit")
    return round(value)


def parse_time_us(text: str) -> int:
    """`"5 min"` -> 300000000 microseconds."""
    return _parse(text, _TIME, "duration")


def time_text(us: int) -> str:
    """`5400000000` -> 90 min: what `parse_time_us` reads, in the largest unit that leaves a whole number."""
    unit = next(unit for unit in reversed(_TIME) if us % _TIME[unit] == 0) if us else "s"
    return f"{us // _TIME[unit]} {unit}"


def clock(at_us: int) -> str:
    """`93784000000` -> 1 d 02:03:04."""
    seconds, part = divmod(at_us, 1_000_000)
    days, seconds = divmod(seconds, 86_400)
    text = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
    text += f".{part:06}".rstrip("0") if part else ""
    return f"{days} d {text}" if days else text


def parse_bytes(text: str) -> int:
    """`"92 MB"` -> 92000000 bytes."""
    return _parse(text, _DATA, "data size")


def parse_bps(text: str) -> int:
    """`"5 Gbit/s"` -> 5000000000 bit/s."""
    return _parse(text, _RATE, "bandwidth")


def to_milli(units: float) -> int:
    """Resource amount in units -> milli-units; raises ValueError beyond three decimals."""
    milli = round(units * MILLI)
    if not math.isclose(milli, units * MILLI, rel_tol=1e-12, abs_tol=1e-6):
        raise ValueError(f"{units!r} has more than three decimals; resources are counted in thousandths")
    return milli
