"""Curves: utilisation and queue over time, completion times, prices."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tradewind.engine.intervals import floats, ints, taken_offers
from tradewind.model.arrays import Floats, Ints
from tradewind.model.units import US_PER_S
from tradewind.report import quantities
from tradewind.report.figures.data import Facts, bins
from tradewind.report.figures.theme import Theme, canvas, dress, head, ticks
from tradewind.report.summary import Group

POINTS = 360
"""Bins of a curve over time; an SVG of a dozen curves stays small and still has more than a bin per two pixels."""

CLOCK = (
    *((10.0**k, f"{1000 * 10.0**k:g} ms") for k in (-3, -2, -1)),
    (1.0, "1 s"), (10.0, "10 s"), (60.0, "1 min"), (600.0, "10 min"), (3600.0, "1 h"), (36000.0, "10 h"),
    (86400.0, "1 d"), (864000.0, "10 d"), (8640000.0, "100 d"),
)  # fmt: skip
"""Seconds and name of the marks on a logarithmic axis of time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawn:
    """A group with the facts of its first run."""

    group: Group
    facts: Facts

    @property
    def number(self) -> int:
        return self.group.number


def span_us(drawn: Sequence[Drawn]) -> int:
    """How far curves over time go: to the end of the longest run, or to the begin of its thin tail."""
    return max(d.facts.shown_us for d in drawn)


def cut_note(drawn: Sequence[Drawn]) -> str:
    """Says where curves are cut; empty where they are not."""
    last = max(d.facts.end_us for d in drawn)
    if span_us(drawn) >= last:
        return ""
    return f"Cut where only a few long jobs are left; the last one ends after {quantities.duration(last / US_PER_S)}."


def time_axis(axes: Any, end: int) -> float:
    """Labels the x axis with time in a fitting unit; returns microseconds per unit."""
    scale = quantities.time_scale(end / US_PER_S)
    per_unit = scale.size * US_PER_S
    axes.set_xlim(0, end / per_unit)
    axes.set_xlabel(scale.unit)
    return per_unit


def _stairs(axes: Any, edges: Floats, values: Floats, colour: str) -> None:
    """A step curve; repeated values cost no points."""
    keep = np.ones(len(values), dtype=bool)
    keep[1:-1] = (values[1:-1] != values[:-2]) | (values[1:-1] != values[2:])
    x = np.repeat(edges, 2)[1:-1]
    axes.plot(x[np.repeat(keep, 2)], np.repeat(values, 2)[np.repeat(keep, 2)], color=colour, linewidth=1.3)


def used_kinds(drawn: Sequence[Drawn]) -> list[int]:
    """Kinds of resources that any run used."""
    edges = np.array([0.0, float(span_us(drawn))])
    used = sum(d.facts.used(edges)[:, 0] for d in drawn)
    return [int(k) for k in np.flatnonzero(np.asarray(used) > 0)]


def utilisation(drawn: Sequence[Drawn], theme: Theme, width: float) -> Any:
    """One panel per kind of resource: share in use over time (units where it is unlimited), one line per policy."""
    which = used_kinds(drawn)
    end = span_us(drawn)
    edges = bins(end, POINTS)
    land = drawn[0].facts.land
    capacity = land.capacity(edges)
    height = {1: 190, 2: 126}.get(len(which), 112) * len(which) + 56
    figure = canvas(width, height)
    panels = figure.subplots(len(which), 1, sharex=True, squeeze=False)[:, 0]
    used = [d.facts.used(edges) for d in drawn]
    for axes, kind in zip(panels, which, strict=True):
        cap = capacity[kind]
        bounded = bool(np.isfinite(cap).all() and (cap > 0).any())
        per_unit = time_axis(axes, end)
        for d, u in zip(drawn, used, strict=True):
            share = np.divide(u[kind], cap, out=np.zeros_like(cap), where=cap > 0) if bounded else u[kind]
            _stairs(axes, edges / per_unit, 100 * share if bounded else share, theme.policy(d.number))
        top = max(float(line.get_ydata().max()) for line in axes.lines)
        axes.set_ylim(0, 104.0 if bounded and top > 40 else 1.1 * top)
        axes.yaxis.set_major_locator(ticks(3))
        if bounded:
            axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}%" if value else "0")
        dress(axes, theme)
        head(axes, land.kinds.names[kind] + ("" if bounded else ", units in use"), theme)
        if axes is not panels[-1]:
            axes.set_xlabel("")
    figure.subplots_adjust(
        left=42 / width, right=1 - 14 / width, top=1 - 24 / height, bottom=40 / height, hspace=0.42
    )
    return figure


def queue(drawn: Sequence[Drawn], theme: Theme, width: float) -> Any:
    """Jobs that wait without workers over time, one line per policy."""
    figure, axes = single(width)
    draw_queue(axes, drawn, theme)
    return figure


def draw_queue(axes: Any, drawn: Sequence[Drawn], theme: Theme) -> None:
    """Fills axes with the curves."""
    end = span_us(drawn)
    edges = bins(end, POINTS)
    per_unit = time_axis(axes, end)
    for d in drawn:
        _stairs(axes, edges / per_unit, d.facts.queue(edges), theme.policy(d.number))
    axes.margins(y=0.05)
    axes.set_ylim(bottom=0)
    axes.yaxis.set_major_locator(ticks(5, whole=True))
    axes.yaxis.set_major_formatter(lambda value, _: quantities.number(value))
    dress(axes, theme)
    head(axes, "jobs waiting", theme)


def has_queue(drawn: Sequence[Drawn]) -> bool:
    """Whether any job ever waited."""
    edges = bins(span_us(drawn), POINTS)
    return any(float(d.facts.queue(edges).max(initial=0.0)) > 1e-3 for d in drawn)


def single(width: float, height: float = 246) -> tuple[Any, Any]:
    """A figure with one set of axes."""
    figure = canvas(width, height)
    axes = figure.add_axes((46 / width, 40 / height, 1 - 60 / width, 1 - 64 / height))
    return figure, axes


def completion(drawn: Sequence[Drawn], theme: Theme, width: float) -> Any:
    """Share of all jobs that arrived and are completed within a time; a curve that ends below 100% left jobs out."""
    figure, axes = single(width)
    draw_completion(axes, drawn, theme)
    return figure


def draw_completion(axes: Any, drawn: Sequence[Drawn], theme: Theme) -> None:
    """Fills axes with the curves."""
    times = [d.facts.completion_s for d in drawn]
    longest = max(float(t[-1]) for t in times if len(t))
    shortest = max(min(float(t[len(t) // 100]) for t in times if len(t)), longest * 1e-6)
    logarithmic = longest / shortest > 100
    scale = quantities.time_scale(longest)
    for d, t in zip(drawn, times, strict=True):
        if not len(t):
            continue
        rank = np.unique(np.linspace(0, len(t) - 1, min(len(t), POINTS)).round().astype(np.int64))
        share = 100 * (rank + 1) / len(d.facts.arrived)
        x, y = t[rank] / scale.size, share
        if len(t) <= POINTS:
            x, y = np.repeat(x, 2), np.repeat(np.concatenate(([0.0], y)), 2)[1:-1]
        axes.plot(x, y, color=theme.policy(d.number))
    axes.set_xlabel("from arrival to completion" + ("" if logarithmic else f", {scale.unit}"))
    if logarithmic:
        axes.set_xscale("log")
        _log_time(axes, shortest / scale.size, longest / scale.size, scale.size)
    else:
        axes.set_xlim(0, 1.02 * longest / scale.size)
    axes.set_ylim(0, 103)
    axes.set_yticks([0, 25, 50, 75, 100], ["0", "25%", "50%", "75%", "100%"])
    dress(axes, theme)
    head(axes, "share of all jobs", theme)


def _log_time(axes: Any, least: float, most: float, unit_s: float) -> None:
    """A logarithmic axis of time, from least to most units of unit_s seconds, with the marks of a clock."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    axes.set_xlim(least * 0.8, most * 1.15)
    marks = [
        (seconds / unit_s, text) for seconds, text in CLOCK if least * 0.8 <= seconds / unit_s <= most * 1.15
    ]
    if len(marks) > 6:
        marks = marks[len(marks) % 2 :: 2]
    names = dict(marks)
    axes.xaxis.set_major_locator(FixedLocator(list(names)))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda v, _: names.get(v, "")))


def has_offers(drawn: Sequence[Drawn]) -> bool:
    """Whether any policy made an offer."""
    return any(len(ints(d.facts.run, "offers", "job")) for d in drawn)


def prices(drawn: Sequence[Drawn], theme: Theme, width: float) -> Any:
    """What policies asked over time, one panel each: unit prices by kind of resource, or payments of lump sums.

    A filled mark is an offer that was taken, an open one was not.
    """
    shown = [d for d in drawn if len(ints(d.facts.run, "offers", "job"))]
    height = (190 if len(shown) == 1 else 140) * len(shown) + 56
    figure = canvas(width, height)
    panels = figure.subplots(len(shown), 1, sharex=True, squeeze=False)[:, 0]
    end = span_us(drawn)
    for axes, d in zip(panels, shown, strict=True):
        per_unit = time_axis(axes, end)
        _price_panel(axes, d, theme, per_unit)
        dress(axes, theme)
        head(axes, f"{d.group.label}, {_price_unit(d)}", theme)
        if axes is not panels[-1]:
            axes.set_xlabel("")
    figure.subplots_adjust(
        left=54 / width, right=1 - 14 / width, top=1 - 24 / height, bottom=40 / height, hspace=0.36
    )
    return figure


def _price_unit(d: Drawn) -> str:
    return "USD per unit" if len(ints(d.facts.run, "prices", "offer")) else "payment in USD"


def _price_panel(axes: Any, d: Drawn, theme: Theme, per_unit: float) -> None:
    run = d.facts.run
    at, taken = ints(run, "offers", "at_us"), taken_offers(run)
    offer, resource = ints(run, "prices", "offer"), ints(run, "prices", "resource")
    if not len(offer):
        _marks(
            axes, (at / per_unit, floats(run, "offers", "payment_usd"), taken), theme.policy(d.number), theme
        )
        axes.set_ylim(bottom=0)
        return
    usd, of = floats(run, "prices", "usd"), np.asarray(d.facts.land.kinds.of)[resource]
    for kind in np.unique(of[of >= 0]):
        rows = np.flatnonzero(of == kind)
        points = (at[offer[rows]] / per_unit, usd[rows], taken[offer[rows]])
        _marks(axes, points, theme.series[int(kind) % len(theme.series)], theme)
    axes.set_ylim(bottom=0)


def price_kinds(drawn: Sequence[Drawn]) -> list[int]:
    """Kinds of resources with unit prices; empty where all offers are lump sums."""
    found: set[int] = set()
    for d in drawn:
        resource = np.unique(ints(d.facts.run, "prices", "resource"))
        found |= {d.facts.land.kinds.of[int(r)] for r in resource}
    return sorted(k for k in found if k >= 0)


def _marks(axes: Any, points: tuple[Floats, Floats, Any], colour: str, theme: Theme) -> None:
    """At most 400 marks of each sort, evenly chosen."""
    x, y, taken = points
    for sort in (False, True):
        rows = np.flatnonzero(taken == sort)
        rows = (
            rows[np.unique(np.linspace(0, len(rows) - 1, min(len(rows), 400)).astype(np.int64))]
            if len(rows)
            else rows
        )
        axes.plot(
            x[rows], y[rows], linestyle="none", marker="o", markersize=4.2 if sort else 3.8, markeredgewidth=0.9,
            markeredgecolor=colour, markerfacecolor=colour if sort else "none", alpha=0.9 if sort else 0.55,
        )  # fmt: skip


def finished(drawn: Sequence[Drawn]) -> bool:
    """Whether any job finished."""
    return any(len(d.facts.completion_s) for d in drawn)


def starts(facts: Facts) -> Ints:
    """First instant with workers of each job, (J,); -1 where it never had any."""
    first = np.full(len(facts.land.scenario.jobs), np.iinfo(np.int64).max, dtype=np.int64)
    np.minimum.at(first, facts.busy.job, facts.busy.from_us)
    return np.where(first == np.iinfo(np.int64).max, -1, first)
