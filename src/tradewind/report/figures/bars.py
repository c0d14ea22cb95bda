"""Bar charts: objective, ratio to bound and cost of each policy."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from tradewind.report import quantities
from tradewind.report.figures.labels import wrapped
from tradewind.report.figures.theme import Theme, canvas, style_axes, ticks
from tradewind.report.summary import Estimate, Group

ROW, LINE = 30, 15
"""Height of a bar with its gap, and of a line of its name, CSS pixels."""


class Bar(NamedTuple):
    """A bar: its length, the ends of its interval (nan: none), and its text."""

    mean: float
    low: float
    high: float
    text: str


def _names(axes: Any, groups: Sequence[Group], theme: Theme) -> None:
    axes.set_yticks(range(len(groups)), [named(g) for g in groups])
    axes.set_ylim(len(groups) - 0.45, -0.55)
    axes.tick_params(axis="y", labelcolor=theme.ink, labelsize=12)


def shorten(text: str, length: int) -> str:
    """The text, or its beginning with an ellipsis."""
    return text if len(text) <= length else text[: length - 1].rstrip() + "…"


def beside(name: str, width: float) -> str:
    """A name beside a row of a chart that is `width` CSS pixels wide."""
    return shorten(name, 28 if width > 600 else 12)


def named(group: Group) -> str:
    """The label in lines: settings of one policy differ at its end, so it is not cut there."""
    return wrapped(shorten(group.label, 80), 20)


def room_for(groups: Sequence[Group]) -> float:
    """Width of the longest line of a label, CSS pixels."""
    return 14 + 7.0 * max(len(line) for g in groups for line in named(g).split("\n"))


def height_of(groups: Sequence[Group]) -> float:
    """Height of a chart with one bar per group: that of the curves beside it, or of the bar where it is the only one."""
    row = max(ROW, 4 + LINE * max(named(g).count("\n") + 1 for g in groups))
    return 2 * row + 46.0 if len(groups) == 1 else max(246.0, row * len(groups) + 46)


def _thickness(groups: Sequence[Group]) -> float:
    """Height of a bar as a share of its row."""
    return min(0.6, 26 * len(groups) / (height_of(groups) - 46))


def _figure(groups: Sequence[Group], width: float, margin: float) -> tuple[Any, Any]:
    """A figure with axes for one bar per group; `margin` is the room for numbers at the right, CSS pixels."""
    height, left = height_of(groups), room_for(groups)
    figure = canvas(width, height)
    axes = figure.add_axes((left / width, 40 / height, 1 - (left + margin) / width, 1 - 46 / height))
    return figure, axes


def objective(groups: Sequence[Group], theme: Theme, width: float) -> Any:
    """Horizontal bars of the objective in the given order, with 95% intervals and the bound as a line."""
    figure, axes = _figure(groups, width, 88)
    draw_objective(axes, groups, theme)
    return figure


def draw_objective(axes: Any, groups: Sequence[Group], theme: Theme) -> float | None:
    """Draw the bars on the given axes; return the x position of the bound, if there is one."""
    metric = groups[0].objective
    bounds = [g.bound.mean for g in groups if g.bound.n]
    finite = [abs(g.value.mean) for g in groups if math.isfinite(g.value.mean)] + [abs(b) for b in bounds]
    scale = quantities.axis(metric, max(finite, default=1.0))
    bars = []
    for g in groups:
        value = g.value
        low, high = _ends(value, _within(g))
        bars.append(
            Bar(
                mean=value.mean / scale.size,
                low=low / scale.size,
                high=high / scale.size,
                text=quantities.measure(metric, value.mean) if math.isfinite(value.mean) else "no value",
            )
        )
    _bars(axes, groups, bars, theme)
    bound = float(np.mean(bounds)) / scale.size if bounds else None
    _finish(axes, groups, bound, theme)
    if is_cut(groups):
        axes.set_xlim(right=longest(groups) / scale.size)
    _ticks(axes)
    axes.set_xlabel(scale.unit)
    return bound


def _ends(value: Estimate, possible: tuple[float, float]) -> tuple[float, float]:
    """The ends of an interval, within what is possible; nan where there is none, as of a single seed."""
    if math.isnan(value.half):
        return math.nan, math.nan
    return max(possible[0], value.mean - value.half), min(possible[1], value.mean + value.half)


def _within(g: Group) -> tuple[float, float]:
    """Between what the objective can be: not below zero if it never was, nor beyond a certified bound of all runs."""
    least = 0.0 if all(run.metrics.get(g.objective, 0.0) >= 0 for run in g.runs) else -math.inf
    bounds = [run.bound for run in g.runs]
    known = [bound for bound in bounds if bound is not None and bound.kind == "certified"]
    if len(known) < len(bounds) or len({bound.value for bound in known}) != 1:
        return least, math.inf
    return (known[0].value, math.inf) if known[0].sense == "min" else (least, known[0].value)


def longest(groups: Sequence[Group]) -> float:
    """Where the axis of the objective ends at the latest: twice the largest mean or bound."""
    known = [g.value.mean for g in groups] + [g.bound.mean for g in groups if g.bound.n]
    return 2.0 * max((value for value in known if math.isfinite(value)), default=0.0)


def is_cut(groups: Sequence[Group]) -> bool:
    """Whether an interval is so wide that it leaves the chart; two or three seeds say little."""
    reach = [g.value.mean + g.value.half for g in groups]
    return 0.0 < longest(groups) < max((end for end in reach if math.isfinite(end)), default=0.0)


def ratio(groups: Sequence[Group], theme: Theme, width: float) -> Any:
    """Horizontal bars of objective / bound, per scenario, with 95% intervals; the bound is the line at 1."""
    figure, axes = _figure(groups, width, 58)
    draw_ratio(axes, groups, theme)
    return figure


def draw_ratio(axes: Any, groups: Sequence[Group], theme: Theme) -> None:
    """Draw the bars on the given axes; a policy without a bound (it did not serve all jobs) gets a note instead."""
    ratios = [g.ratio for g in groups]
    missing = "no bound: not all jobs served"
    bars = [
        Bar(
            found.mean, *_ends(found, possible), f"{found.mean:.3f}" if math.isfinite(found.mean) else missing
        )
        for found, possible in zip(ratios, map(_possible, groups), strict=True)
    ]
    _bars(axes, groups, bars, theme)
    _finish(axes, groups, 1.0, theme)
    _ticks(axes)
    axes.set_xlabel(f"{quantities.name(groups[0].objective)} / bound")


def _possible(g: Group) -> tuple[float, float]:
    """Between what a ratio to the bound can be; a certified bound is never on the wrong side."""
    bounds = [run.bound for run in g.runs if run.bound is not None]
    certified = all(bound.kind == "certified" for bound in bounds)
    least = 0.0 if all(bound.ratio >= 0 for bound in bounds) else -math.inf
    if not bounds or not certified:
        return least, math.inf
    return (1.0, math.inf) if bounds[0].sense == "min" else (least, 1.0)


def has_ratio(groups: Sequence[Group]) -> bool:
    """Whether any run has a bound."""
    return any(g.ratio.n and math.isfinite(g.ratio.mean) for g in groups)


def _bars(axes: Any, groups: Sequence[Group], bars: Sequence[Bar], theme: Theme) -> None:
    """One bar per group with its interval and text; only the text if there is no value."""
    for row, (g, bar) in enumerate(zip(groups, bars, strict=True)):
        if not math.isfinite(bar.mean):
            axes.text(0, row, f" {bar.text}", va="center", color=theme.muted, fontsize=12)
            continue
        axes.barh(row, bar.mean, height=_thickness(groups), color=theme.policy(g.number), linewidth=0)
        if bar.high > bar.low:
            axes.plot(
                [bar.low, bar.high], [row, row], color=theme.ink, linewidth=1.4, marker="|",
                markersize=8, solid_capstyle="butt",
            )  # fmt: skip
        _value(axes, row, bar.text, theme)


def _value(axes: Any, row: int, text: str, theme: Theme) -> None:
    """Write a number right of the axes, where no bar, interval or line crosses it."""
    axes.annotate(
        text, (1, row), xycoords=("axes fraction", "data"), xytext=(6, 0), textcoords="offset points", va="center",
        color=theme.ink, annotation_clip=False,
    )  # fmt: skip


def _ticks(axes: Any) -> None:
    """As many ticks as have room for their numbers."""
    axes.xaxis.set_major_locator(ticks(max(2, min(5, int(axes.get_window_extent().width / 48)))))


def _finish(axes: Any, groups: Sequence[Group], bound: float | None, theme: Theme) -> None:
    """Draw the bound, grid and names of the groups."""
    if bound is not None:
        axes.axvline(bound, color=theme.ink, linewidth=1.1, linestyle=(0, (4, 3)))
    style_axes(axes, theme, grid="x")
    axes.axvline(0, color=theme.muted, linewidth=0.8)
    _names(axes, groups, theme)


def costs(groups: Sequence[Group], theme: Theme, width: float) -> Any:
    """Stacked bars of rent, data transfer, training traffic and deployment in USD, mean over seeds.

    Discounts of pools are left of zero; the number is what is paid.
    """
    figure, axes = _figure(groups, width, 88)
    base = np.zeros(len(groups))
    for colour, cost in zip(theme.costs, quantities.COSTS, strict=True):
        amount = np.nan_to_num(np.array([g.metric(cost).mean for g in groups]))
        axes.barh(
            range(len(groups)), amount, left=base, height=_thickness(groups), color=colour, linewidth=1,
            edgecolor=theme.panel,
        )  # fmt: skip
        base += amount
    discount = np.nan_to_num(np.array([g.metric(quantities.DISCOUNT).mean for g in groups]))
    if discount.any():
        axes.barh(range(len(groups)), discount, height=_thickness(groups), color=theme.muted, linewidth=0)
    for row, total in enumerate(base + discount):
        _value(axes, row, quantities.measure("cost_usd", float(total)), theme)
    style_axes(axes, theme, grid="x")
    _names(axes, groups, theme)
    _ticks(axes)
    axes.set_xlabel("USD")
    return figure


def has_costs(groups: Sequence[Group]) -> bool:
    """Whether any run has costs."""
    return any(run.metrics.get(cost, 0.0) > 0 for g in groups for run in g.runs for cost in quantities.COSTS)
