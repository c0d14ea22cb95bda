"""Draws the rows of a study: lines or bars with intervals, our policies thick, bounds dashed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Any

from tradewind.lab.study import Chart, Row
from tradewind.registry import systems
from tradewind.report.figures.theme import Theme, axes_title, canvas, make_logarithmic, style_axes, ticks

LETTER = 6.1
"""Mean width of a letter in CSS pixels at the size of tick labels."""
LINE, LONGEST, NUMBER = 14.0, 29, 30.0
"""Height of a line, CSS pixels; letters of the longest name that is drawn beside others; room of a number in its place."""
MOST_TICKS = 8
"""Most values of a logarithmic axis that are all written at it."""


@cache
def our_policies() -> frozenset[str]:
    """This project's own policies, as the systems declare them; they are drawn with thicker lines."""
    return frozenset(name for system in systems().values() for name in system.ours)


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """How a series is drawn."""

    label: str
    colour: str
    dashed: bool
    width: float


def looks(chart: Chart, rows: Sequence[Row], theme: Theme) -> list[Look]:
    """One look per series; a series named bound is a dashed line in the colour of text."""
    labels = list(dict.fromkeys(str(row[chart.series]) for row in rows)) if chart.series else [""]
    found, number = [], 0
    for label in labels:
        bound = "bound" in label.lower()
        colour = theme.ink if bound else theme.policy(number)
        ours = label.split(",")[0] in our_policies()
        dashed = bound or number >= len(theme.series)
        found.append(Look(label=label, colour=colour, dashed=dashed, width=2.6 if ours else 1.5))
        number += not bound
    return found


@dataclass(slots=True)
class _Frame:
    """A chart being drawn: axes, values of the x axis, whether they are categories, whether values are many settings'."""

    axes: Any
    chart: Chart
    theme: Theme
    places: list[str | float]
    named: bool
    many: bool

    def error(self, rows: Sequence[Row]) -> list[list[float]] | None:
        """Lengths of the interval below and above each value."""
        if not self.chart.low or not self.chart.high:
            return None
        y = [float(row[self.chart.y]) for row in rows]
        return [
            [max(0.0, v - float(row[self.chart.low])) for v, row in zip(y, rows, strict=True)],
            [max(0.0, float(row[self.chart.high]) - v) for v, row in zip(y, rows, strict=True)],
        ]


def many_settings(chart: Chart, rows: Sequence[Row]) -> bool:
    """Whether a series has several values at one x: those of settings, which are drawn as points."""
    points = [(row[chart.x], row[chart.series] if chart.series else "") for row in rows]
    return len(set(points)) < len(points)


def draw(chart: Chart, rows: Sequence[Row], theme: Theme, width: float = 760, *, legend: bool = True) -> Any:
    """The chart of a figure, `width` CSS pixels wide; call within `theme.style`."""
    places = list(dict.fromkeys(row[chart.x] for row in rows))
    many = many_settings(chart, rows)
    named = many or chart.kind == "bar" or any(isinstance(p, str) for p in places)
    look = looks(chart, rows, theme)
    keys = legend and look[0].label != ""
    side = 18 + LETTER * max(len(each.label) for each in look) + 34 if keys else 16
    left = 70 if chart.log_y else 58
    room = width - left - side
    names = [_short(p) for p in places] if named else []
    each_room = room / (len(names) + 0.2)
    numbered = named and (each_room < LINE or max(map(len, names)) > LONGEST)
    if numbered:
        step = math.ceil(NUMBER / each_room)
        names = [str(i + 1) if i % step == 0 else "" for i in range(len(names))]
    crowded = not numbered and any(
        LETTER * (len(a) + len(b)) / 2 + 10 > each_room for a, b in pairwise(names)
    )
    below = 30 + (min(130.0, 0.72 * LETTER * max(map(len, names))) if crowded else 16) if named else 46
    below += 16 if named and (chart.x_label or many or numbered) else 0
    height = (300 if width > 500 else 250) + max(0.0, below - 46)
    figure = canvas(width, height)
    figure.set_facecolor(theme.panel)
    axes = figure.add_axes((left / width, below / height, room / width, 1 - (below + 34) / height))
    style_axes(axes, theme)
    frame = _Frame(axes, chart, theme, places, named, many)
    for number, each in enumerate(look):
        mine = [row for row in rows if not chart.series or str(row[chart.series]) == each.label]
        _series(frame, mine, each, (number, len(look)))
    _finish(frame, names, crowded)
    if numbered:
        axes.set_xlabel(f"{chart.x_label or chart.x}, 1 to {len(names)} in the order of the numbers")
    if not chart.log_y:
        _cut(axes, [float(row[chart.y]) for row in rows])
    if keys:
        axes.legend(
            loc="upper left", bbox_to_anchor=(1.01, 1.03), frameon=False, labelcolor=theme.ink, fontsize=10.5
        )
    return figure


def _short(place: str | float) -> str:
    return place if isinstance(place, str) else f"{place:g}"


def _series(frame: _Frame, rows: Sequence[Row], look: Look, which: tuple[int, int]) -> None:
    chart, axes = frame.chart, frame.axes
    number, count = which
    y = [float(row[chart.y]) for row in rows]
    error = frame.error(rows)
    label = look.label or None
    if frame.named:
        width = 0.82 / count
        x = [frame.places.index(row[chart.x]) + (number - (count - 1) / 2) * width for row in rows]
        if frame.many:
            fill = "none" if look.dashed else look.colour
            axes.plot(
                x, y, "o", color=look.colour, markerfacecolor=fill, markersize=4.2, alpha=0.75, label=label
            )
            return
        bars = (
            {"facecolor": "none", "edgecolor": look.colour, "linestyle": "--"}
            if look.dashed
            else {"color": look.colour}
        )
        marks = {"ecolor": frame.theme.ink, "capsize": 2 if count < 5 else 1, "error_kw": {"elinewidth": 0.9}}
        axes.bar(x, y, width * 0.9, yerr=error, label=label, **bars, **marks)
        return
    order = sorted(range(len(rows)), key=lambda i: float(rows[i][chart.x]))
    whiskers = None if error is None else [[side[i] for i in order] for side in error]
    axes.errorbar(
        [float(rows[i][chart.x]) for i in order], [y[i] for i in order], yerr=whiskers, color=look.colour, label=label,
        marker="" if look.dashed else "o", markersize=3.8, linewidth=look.width, elinewidth=0.9, capsize=2,
        linestyle="--" if look.dashed else "-",
    )  # fmt: skip


def _finish(frame: _Frame, names: Sequence[str], crowded: bool) -> None:
    axes, chart = frame.axes, frame.chart
    if frame.named:
        turn = {"rotation": 38, "ha": "right", "rotation_mode": "anchor"} if crowded else {}
        axes.set_xticks(range(len(names)), names, **turn)
        axes.set_xlim(-0.6, len(names) - 0.4)
    elif chart.log_x:
        make_logarithmic(axes, "x")
        if len(frame.places) <= MOST_TICKS:
            axes.set_xticks([float(p) for p in frame.places], [f"{float(p):,g}" for p in frame.places])
            axes.set_xticks([], minor=True)
    if chart.log_y:
        make_logarithmic(axes, "y")
    else:
        axes.yaxis.set_major_locator(ticks(6))
        if chart.kind == "bar" and not frame.many:
            axes.set_ylim(bottom=min(0.0, axes.get_ylim()[0]))
    axes.set_xlabel(chart.x_label or ("" if frame.named and not frame.many else chart.x))
    axes_title(axes, chart.y_label or chart.y, frame.theme)


def _cut(axes: Any, values: Sequence[float]) -> None:
    """Limit the y axis, so that very long whiskers do not hide differences between values."""
    finite = [v for v in values if math.isfinite(v)]
    if not finite:
        return
    low, high = min(finite), max(finite)
    room = 0.6 * (high - low) or 0.6 * abs(high) or 1.0
    bottom, top = axes.get_ylim()
    axes.set_ylim(max(bottom, min(low - room, 0.0) if bottom == 0.0 else low - room), min(top, high + room))


HEAT_LABEL = 10.2


def heat_table(cells: Sequence[tuple[str, str, float]], theme: Theme, width: float) -> Any:
    """A heat map of (row, column, share): the stronger the colour, the nearer to 1; nan is shown as a dot."""
    rows = list(dict.fromkeys(r for r, _, _ in cells))
    columns = list(dict.fromkeys(c for _, c, _ in cells))
    turn = 48 if width > 500 else 90
    left, top, side = (
        12 + LETTER * max(map(len, rows)),
        8 + (0.75 if turn < 90 else 1.0) * LETTER * max(map(len, columns)),
        10.0,
    )
    cell = (width - left - side) / len(columns)
    high = 21.0
    height = top + high * len(rows) + 12
    figure = canvas(width, height)
    figure.set_facecolor(theme.panel)
    axes = figure.add_axes(
        (left / width, 12 / height, cell * len(columns) / width, high * len(rows) / height)
    )
    for row, column, share in cells:
        x, y = columns.index(column), rows.index(row)
        known = not math.isnan(share)
        strength = 0.08 + 0.8 * min(max(share, 0.0), 1.0) ** 2 if known else 0.0
        axes.bar(x, 0.9, 0.94, bottom=y - 0.45, color=theme.heat, alpha=strength)
        text = f"{share:.2f}" if known and cell > 24 else "" if known else "·"
        axes.text(
            x,
            y,
            text,
            ha="center",
            va="center",
            color=theme.ink if known else theme.muted,
            fontsize=HEAT_LABEL,
        )
    style_axes(axes, theme, grid="")
    axes.set_xlim(-0.5, len(columns) - 0.5)
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.spines["bottom"].set_visible(False)
    axes.xaxis.tick_top()
    axes.set_xticks(
        range(len(columns)), columns, rotation=turn, ha="left", rotation_mode="anchor", fontsize=HEAT_LABEL
    )
    axes.set_yticks(range(len(rows)), rows, fontsize=HEAT_LABEL)
    return figure
