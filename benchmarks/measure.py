"""Runs one benchmark; a module of its own, so that other processes find it."""

from __future__ import annotations

import importlib
import time
from collections.abc import Sequence
from statistics import median
from typing import Any

Row = dict[str, Any]
REPEATS = 3


def repeated(several: Sequence[list[Row]]) -> list[Row]:
    """Merge the rows of several runs of a benchmark: the median, and the range if a row has no spread of its own."""
    found = []
    for row in several[0]:
        values = [
            r["measured"]
            for rows in several
            for r in rows
            if r["name"] == row["name"] and r["measured"] is not None
        ]
        if len(values) < 2:
            found.append(row)
            continue
        own = row.get("spread")
        found.append(
            {**row, "measured": median(values), "spread": max(values) - min(values) if own is None else own}
        )
    return found


def measure(name: str, again_s: float) -> list[Row]:
    """Run a benchmark; repeat it if it is cheap."""
    module = importlib.import_module(f"benchmarks.{name}")
    begin = time.process_time()
    several = [module.rows()]
    if time.process_time() - begin < again_s:
        several += [module.rows() for _ in range(REPEATS - 1)]
    return repeated(several)
