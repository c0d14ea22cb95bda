"""Bar charts: objective, ratio to bound and cost of each policy."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from tradewind.report import quantities
from tradewind.report.figures.theme import Theme, canvas, style_axes, ticks
from tradewind.report.summary import Group

ROW = 30
"""Height of a bar with its gap, CSS pixels."""


def _names(axes: Any, groups: Sequence[Group], theme: Theme) -> None:
    axes.set_yticks(range(len(groups)), [shorten(g.label, 20) for g in groups])
    axes.set_ylim(len(groups) - 0.45, -0.55)
    axes.tick_params(axis="y", labelcolor=theme.ink, labelsize=11)


def shorten(text: str, length: int) -> str:
    """The text, or its beginning with an ellipsis."""
    return text if len(text) <= length else text[: length - 1].rstrip() + "…"


def room_for(groups: Sequence[Group]) -> float:
    """Width of the longest label, CSS pixels."""
    return 14 + 6.6 * max(len(shorten(g.label, 20)) for g in groups)


def height_of(groups: Sequence[Group]) -> float:
    """Height of a chart with one bar per group."""
    return max(246.0, ROW * len(groups) + 46)


def _thickness(groups: Sequence[Group]) -> float:
    """Height of a bar as a share of its row."""
    return min(0.6, 26 * len(groups) / (height_of(groups) - 46))


def objective(groups: Sequence[Group], theme: Theme, width: float) -> Any:
    """Horizontal bars of the objective in the given order, with 95% intervals and the bound as a line."""
    height = height_of(groups)
    figure = canvas(width, height)
    axes = figure.add_axes(
        (room_for(groups) / width, 40 / height, 1 - (room_for(groups) + 84) / width, 1 - 46 / height)
    )
    draw_objective(axes, groups, theme)
    return figure


def draw_objective(axes: Any, groups: Sequence[Group], theme: Theme) -> float | None:
    """Draw the bars on the given axes; return the x position of the bound, if there is one."""
    metric = groups[0].objective
    values = [g.value for g in groups]
    bounds = [g.bound.mean for g in groups if g.bound.n]
    finite = [abs(v.mean) for v in values if math.isfinite(v.mean)] + [abs(b) for b in bounds]
    scale = quantities.axis(metric, max(finite, default=1.0))
    for row, (g, v) in enumerate(zip(groups, values, strict=True)):
        if not math.isfinite(v.mean):
            axes.text(0, row, " no value", va="center", color=theme.muted, fontsize=10)
            continue
        axes.barh(
            row, v.mean / scale.size, height=_thickness(groups), color=theme.policy(g.number), linewidth=0
        )
        half = v.half / scale.size if math.isfinite(v.half) else 0.0
        if half > 0:
            axes.plot(
                [v.mean / scale.size - half, v.mean / scale.size + half], [row, row],
                color=theme.ink, linewidth=1.4, marker="|", markersize=8, solid_capstyle="butt",
            )  # fmt: skip
        end = max(0.0, v.mean / scale.size + half)
        axes.annotate(
            quantities.measure(metric, v.mean), (end, row), xytext=(6, 0), textcoords="offset points",
            va="center", color=theme.ink, fontsize=10.5, annotation_clip=False,
        )  # fmt: skip
    bound = float(np.mean(bounds)) / scale.size if bounds else None
    if bound is not None:
        axes.axvline(bound, color=theme.ink, linewidth=1.1, linestyle=(0, (4, 3)))
    style_axes(axes, theme, grid="x")
    axes.axvline(0, color=theme.muted, linewidth=0.8)
    _names(axes, groups, theme)
    axes.xaxis.set_major_locator(ticks(5))
    axes.set_xlabel(scale.unit)
    return bound


def ratio(groups: Sequence[Group], theme: Theme, width: float) -> Any:
    """Horizontal bars of objective / bound, per scenario, with 95% intervals; the bound is the line at 1."""
    height = height_of(groups)
    figure = canvas(width, height)
    axes = figure.add_axes(
        (room_for(groups) / width, 40 / height, 1 - (room_for(groups) + 52) / width, 1 - 46 / height)
    )
    draw_ratio(axes, groups, theme)
    return figure


def draw_ratio(axes: Any, groups: Sequence[Group], theme: Theme) -> None:
    """Draw the bars on the given axes; a policy without a bound (it did not serve all jobs) gets a note instead."""
    for row, g in enumerate(groups):
        found = g.ratio
        if not found.n or not math.isfinite(found.mean):
            axes.text(0, row, " no bound: not all jobs served", va="center", color=theme.muted, fontsize=10)
            continue
        colour = theme.policy(g.number)
        axes.barh(row, found.mean, height=_thickness(groups), color=colour, linewidth=0)
        half = found.half if math.isfinite(found.half) else 0.0
        if half > 0:
            axes.plot(
                [found.mean - half, found.mean + half], [row, row], color=theme.ink, linewidth=1.4, marker="|",
                markersize=8, solid_capstyle="butt",
            )  # fmt: skip
        axes.annotate(
            f"{found.mean:.3f}", (max(0.0, found.mean + half), row), xytext=(6, 0), textcoords="offset points",
            va="center", color=theme.ink, fontsize=10.5, annotation_clip=False,
        )  # fmt: skip
    axes.axvline(1.0, color=theme.ink, linewidth=1.1, linestyle=(0, (4, 3)))
    style_axes(axes, theme, grid="x")
    axes.axvline(0, color=theme.muted, linewidth=0.8)
    _names(axes, groups, theme)
    axes.xaxis.set_major_locator(ticks(4))
    axes.set_xlabel(f"{quantities.name(groups[0].objective)} / bound")


def has_ratio(groups: Sequence[Group]) -> bool:
    """Whether any run has a bound."""
    return any(g.ratio.n and math.isfinite(g.ratio.mean) for g in groups)


def costs(groups: Sequence[Group], theme: Theme, width: float) -> Any:
    """Stacked bars of rent, data transfer, training traffic and deployment in USD, mean over seeds."""
    height = height_of(groups)
    figure = canvas(width, height)
    axes = figure.add_axes(
        (room_for(groups) / width, 40 / height, 1 - (room_for(groups) + 84) / width, 1 - 46 / height)
    )
    base = np.zeros(len(groups))
    for colour, cost in zip(theme.costs, quantities.COSTS, strict=True):
        amount = np.nan_to_num(np.array([g.metric(cost).mean for g in groups]))
        axes.barh(
            range(len(groups)),
            amount,
            left=base,
            height=_thickness(groups),
            color=colour,
            linewidth=1,
            edgecolor=theme.panel,
        )
        base += amount
    for row, total in enumerate(base):
        axes.annotate(
            quantities.measure("cost_usd", float(total)), (total, row), xytext=(6, 0),
            textcoords="offset points", va="center", color=theme.ink, fontsize=10.5, annotation_clip=False,
        )  # fmt: skip
    style_axes(axes, theme, grid="x")
    _names(axes, groups, theme)
    axes.xaxis.set_major_locator(ticks(5))
    axes.set_xlabel("USD")
    return figure


def has_costs(groups: Sequence[Group]) -> bool:
    """Whether any run has costs."""
    return any(run.metrics.get(cost, 0.0) > 0 for g in groups for run in g.runs for cost in quantities.COSTS)
