"""What a study is: figures with the paper's claim, our rows, and a verdict."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from tradewind.studies.figures_theme import Theme, canvas, dress, ticks
from tradewind.studies.summary import estimate

Row = Mapping[str, str | float]
"""One line of a figure's data; all rows of a figure have the same keys."""
Word = Literal["reproduced", "partly reproduced", "not reproduced", "not tested"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Effort:
    """How much to compute: quick keeps a whole study within a minute or two; seeds are those of the evaluation."""

    quick: bool
    seeds: int

    def pick(self, quick: Any, full: Any) -> Any:
        """One value for a quick study, another for a full one."""
        return quick if self.quick else full


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """Whether our rows reproduce the claim, and why or why not, with the numbers."""

    word: Word
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """How to draw rows: y over x, one line or group of bars per value of `series`; low and high are interval columns."""

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
class PaperFigure:
    """A figure or table of a paper.

    name   "fig-5", "table-4": also the stem of its files
    claim  what the paper says, in our words, with its numbers
    rows   makes our data; the same effort gives the same rows
    judge  compares them with the claim
    """

    name: str
    title: str
    claim: str
    rows: Callable[[Effort], list[Row]]
    judge: Callable[[Sequence[Row]], Finding]
    chart: Chart


@dataclass(frozen=True, slots=True, kw_only=True)
class Study:
    """All figures of one paper, and remarks that hold for all of them (which relaxation a ratio uses, …)."""

    system: str
    title: str
    figures: tuple[PaperFigure, ...]
    remarks: tuple[str, ...] = ()


def spread(rows: Iterable[Row], by: Sequence[str], value: str) -> list[Row]:
    """Mean and 95% interval of `value` over the rows that agree in `by`: columns value, low, high, n."""
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


def draw(chart: Chart, rows: Sequence[Row], theme: Theme) -> Any:
    """The chart of a figure; call within figures_theme.style."""
    figure = canvas(760, 360)
    figure.set_facecolor(theme.panel)
    axes = figure.add_axes((0.1, 0.16, 0.66, 0.74))
    dress(axes, theme)
    labels = list(dict.fromkeys(str(row[chart.series]) for row in rows)) if chart.series else [""]
    places = list(dict.fromkeys(row[chart.x] for row in rows))
    for number, label in enumerate(labels):
        mine = [row for row in rows if not chart.series or str(row[chart.series]) == label]
        _series(axes, chart, mine, places, (number, len(labels)), label, theme)
    _finish(axes, chart, places, theme)
    if labels != [""]:
        axes.legend(loc="upper left", bbox_to_anchor=(1.02, 1.0), frameon=False, labelcolor=theme.ink)
    return figure


def _series(
    axes: Any,
    chart: Chart,
    rows: Sequence[Row],
    places: Sequence[str | float],
    which: tuple[int, int],
    label: str,
    theme: Theme,
) -> None:
    number, count = which
    colour = theme.policy(number)
    y = [float(row[chart.y]) for row in rows]
    error = None
    if chart.low and chart.high:
        error = [
            [max(0.0, v - float(row[chart.low])) for v, row in zip(y, rows, strict=True)],
            [max(0.0, float(row[chart.high]) - v) for v, row in zip(y, rows, strict=True)],
        ]
    style = {"ecolor": theme.ink, "capsize": 2, "label": label or None}
    if chart.kind == "bar" or any(isinstance(p, str) for p in places):
        width = 0.8 / count
        x = [places.index(row[chart.x]) + (number - (count - 1) / 2) * width for row in rows]
        axes.bar(x, y, width * 0.92, color=colour, yerr=error, **style)
    else:
        order = sorted(range(len(rows)), key=lambda i: float(rows[i][chart.x]))
        bars = None if error is None else [[side[i] for i in order] for side in error]
        axes.errorbar(
            [float(rows[i][chart.x]) for i in order], [y[i] for i in order], yerr=bars, color=colour, marker="o",
            markersize=3.5, linewidth=1.6, **style,
        )  # fmt: skip


def _finish(axes: Any, chart: Chart, places: Sequence[str | float], theme: Theme) -> None:
    if chart.kind == "bar" or any(isinstance(p, str) for p in places):
        axes.set_xticks(range(len(places)), [str(p) for p in places], rotation=0 if len(places) < 8 else 30)
    elif chart.log_x:
        axes.set_xscale("log")
    if chart.log_y:
        axes.set_yscale("log")
    else:
        axes.yaxis.set_major_locator(ticks(6))
        if chart.kind == "bar":
            axes.set_ylim(bottom=min(0.0, axes.get_ylim()[0]))
    axes.set_xlabel(chart.x_label or chart.x)
    axes.set_ylabel(chart.y_label or chart.y)
