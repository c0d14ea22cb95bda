"""Offers of the past and their answers, from which a seller can learn before it makes its first offer."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator
from typing import NamedTuple

from tradewind.model.errors import InputError, other_separator
from tradewind.model.setup import Setup
from tradewind.systems.dps.shared.order import Kinds

COLUMNS = ("worker", "workers", "server", "servers", "hours", "price_usd", "accepted")
ANSWERS = {"yes": True, "true": True, "1": True, "no": False, "false": False, "0": False}


class Past(NamedTuple):
    """An offer for a bundle: resources and numbers of its workers and servers, runtime, price, and the answer."""

    worker: int
    workers: int
    server: int
    servers: int
    hours: float
    price_usd: float
    accepted: bool


def read_history(text: str, setup: Setup, where: str) -> Iterator[Past]:
    """The rows of a CSV table with the columns `COLUMNS`, the oldest first; lines that begin with # are comments."""
    if not text.strip():
        return
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    kinds, rows = Kinds(setup), csv.DictReader(lines)
    missing = [name for name in COLUMNS if name not in (rows.fieldnames or ())]
    if missing:
        found = ", ".join(rows.fieldnames or ()) or "nothing"
        raise InputError(
            f"the first line has {found}; {missing[0]} is missing. It must name {', '.join(COLUMNS)}"
            f"{other_separator(rows.fieldnames or ())}",
            where=where,
        )
    for row in rows:
        at = f"{where}, row {rows.line_num - 1}"
        worker, server = _resource(row, "worker", setup, at), _resource(row, "server", setup, at)
        if worker not in kinds.row_k or server not in kinds.row_m:
            raise InputError(
                f"found worker {row['worker']!r} and server {row['server']!r}; names of servers begin with ps, those of "
                "workers do not",
                where=at,
            )
        answer = str(row["accepted"]).strip().lower()
        if answer not in ANSWERS:
            raise InputError(f"accepted is {row['accepted']!r}; it must be yes or no", where=at)
        yield Past(
            worker, int(_number(row, "workers", at)), server, int(_number(row, "servers", at)),
            _number(row, "hours", at), _number(row, "price_usd", at), ANSWERS[answer],
        )  # fmt: skip


def _resource(row: dict[str, str], column: str, setup: Setup, at: str) -> int:
    name = str(row[column]).strip()
    if name not in setup.resources:
        raise InputError(f"{column} is {name!r}; the scenario has {', '.join(setup.resources)}", where=at)
    return setup.resource(name)


def _number(row: dict[str, str], column: str, at: str) -> float:
    try:
        value = float(row[column])
    except (TypeError, ValueError):
        value = math.nan
    whole = column in ("workers", "servers")
    if not 0 < value < 1e12 or (whole and value != int(value)):
        wanted = "a whole number above 0" if whole else "a number above 0"
        raise InputError(f"{column} is {row[column]!r}; it must be {wanted}", where=at)
    return value
