"""Studies: figures of a paper with its claims, our rows, and a verdict."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from tradewind.report.figures.theme import Theme
from tradewind.report.summary import estimate

Row = Mapping[str, str | float]
"""One row of a figure's data; all rows of a figure have the same keys."""
Word = Literal["reproduced", "partly reproduced", "not reproduced", "not tested"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Effort:
    """How much to compute: `quick` keeps a whole study within a minute or two; `seeds` is the number of evaluation seeds."""

    quick: bool
    seeds: int

    def pick(self, quick: Any, full: Any) -> Any:
        """One value for a quick study, another for a full one."""
        return quick if self.quick else full


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """Whether our rows reproduce the claim, and the reason with numbers."""

    word: Word
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """How to draw rows: y over x, one line or group of bars per value of `series`; low and high name interval columns."""

    x: str
    y: str
    series: str = ""
    kind: Literal["line", "bar"] = "line"
    low: str = ""
    high: str = ""
    x_label: str = ""
    y_label: str = ""
    log_x: bool = False
    log_y: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A part of a figure that is computed and saved separately; `rows` is a module-level function or a partial of one."""

    name: str
    rows: Callable[[Effort], list[Row]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pieces:
    """The parts of a figure, and how to join their rows (in the order of the parts)."""

    parts: Callable[[Effort], Sequence[Part]]
    join: Callable[[Effort, Sequence[Sequence[Row]]], list[Row]]


@dataclass(frozen=True, slots=True, kw_only=True)
class PaperFigure:
    """A figure or table of a paper.

    name    "fig-5", "table-4": also the stem of its files
    claim   what the paper reports, in our words, with its numbers
    rows    computes our data; equal effort gives equal rows
    judge   compares the rows with the claim
    pieces  if given, `rows` is computed in these parts, and an interruption loses at most one
    paint   if given, draws the rows instead of `chart`: (rows, theme, width in CSS pixels) -> figure
    """

    name: str
    title: str
    claim: str
    rows: Callable[[Effort], list[Row]]
    judge: Callable[[Sequence[Row]], Finding]
    chart: Chart
    pieces: Pieces | None = None
    paint: Callable[[Sequence[Row], Theme, float], Any] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Study:
    """All figures of one paper, and remarks that apply to all of them."""

    system: str
    title: str
    figures: tuple[PaperFigure, ...]
    remarks: tuple[str, ...] = ()


def spread(rows: Iterable[Row], by: Sequence[str], value: str) -> list[Row]:
    """Mean and 95% interval of `value`, grouped by the columns `by`: columns value, low, high, n."""
    groups: dict[tuple[str | float, ...], list[float]] = {}
    for row in rows:
        groups.setdefault(tuple(row[b] for b in by), []).append(float(row[value]))
    found: list[Row] = []
    for key, values in groups.items():
        e = estimate(values)
        half = e.half if math.isfinite(e.half) else 0.0
        found.append(
            {
                **dict(zip(by, key, strict=True)),
                value: e.mean,
                "low": e.mean - half,
                "high": e.mean + half,
                "n": e.n,
            }
        )
    return found
