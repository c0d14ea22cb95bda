"""Measured bandwidth between regions: a dated table, and errors that name a pair that was not measured."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date as Day
from functools import cache, cached_property
from typing import Final, NamedTuple

from tradewind.model.errors import InputError, LookupFailed
from tradewind.prices.builtin import CATALOGUE, built_in
from tradewind.prices.cells import read_sheet
from tradewind.prices.listing import aged
from tradewind.prices.table import PAIR_COLUMNS, about, csv_text, pair_of

STALE_DAYS: Final = 365
"""A table older than this is worth a warning."""
MOST_GBPS: Final = 100_000.0
MOST_RTT_MS: Final = 100_000.0


class Path(NamedTuple):
    """What was measured from one region to another; rtt_ms None: not measured."""

    gbps: float
    rtt_ms: float | None


@dataclass(frozen=True, kw_only=True)
class Wan:
    """A dated table of measured paths between regions."""

    name: str
    date: str
    source: str
    notes: tuple[str, ...] = ()
    paths: Mapping[tuple[str, str], Path]

    @cached_property
    def hash(self) -> str:
        """sha256 (64 hex digits) over all paths; names, dates and order do not count."""
        rows = sorted((*pair, *path) for pair, path in self.paths.items())
        return hashlib.sha256(json.dumps(rows, allow_nan=False).encode()).hexdigest()

    @cached_property
    def places(self) -> tuple[str, ...]:
        """All regions of the table, sorted."""
        return tuple(sorted({place for pair in self.paths for place in pair}))

    def path(self, src: str, dst: str) -> Path:
        """The path between two regions; raises an error that names a pair that is not in the table."""
        found = self.paths.get((src, dst))
        if found is None:
            raise InputError(
                f"no bandwidth is known from {src} to {dst}; measure it and add the pair to a CSV file with the columns "
                "src, dst, gbps (and rtt_ms)",
                where=self.name,
            )
        return found

    def full_name(self, word: str) -> str:
        """`aws:us-east-1` for itself or for `us-east-1`."""
        found = [place for place in self.places if word in (place, place.partition(":")[2])]
        if len(found) != 1:
            raise LookupFailed("region of the bandwidth table", word, found or self.places)
        return found[0]

    def stale(self, today: Day, after_days: int = STALE_DAYS) -> tuple[str, ...]:
        """A sentence if the table is older than `after_days` or dated in the future."""
        advice = "measure those that matter to you"
        return aged(f"bandwidths of {self.name}", self.date, advice, today, after_days)

    def csv(self) -> str:
        """The table as CSV text, which `read_wan` reads."""
        rows = ((*pair, *self.paths[pair]) for pair in sorted(self.paths))
        return csv_text(about(self.date, self.source, self.notes), ("src", "dst", "gbps", "rtt_ms"), rows)


def read_wan(text: str, where: str, *, day: str = "", name: str = "") -> Wan:
    """A table from CSV text with the columns src, dst, gbps and, where known, rtt_ms."""
    sheet = read_sheet(text, where, ("src", "dst", "gbps"), PAIR_COLUMNS)
    paths: dict[tuple[str, str], Path] = {}
    for row in sheet.rows:
        pair = pair_of(row)
        if pair in paths:
            raise InputError(f"line {row.line} lists {pair[0]} to {pair[1]} again; keep one row", where=where)
        paths[pair] = Path(row.number("gbps", MOST_GBPS), row.maybe("rtt_ms", MOST_RTT_MS, zero=True))
    source = "; ".join(sheet.all("source")) or where
    return Wan(name=name or where, date=sheet.date(day), source=source, notes=sheet.all("note"), paths=paths)


@cache
def measured() -> Wan:
    """The built-in table."""
    return read_wan(built_in("pairs.csv"), "pairs.csv", name=CATALOGUE)
