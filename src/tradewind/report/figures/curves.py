"""Curves: utilisation and queue over time, completion times, prices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tradewind.engine.intervals import floats, ints, taken_offers
from tradewind.model.arrays import Floats
from tradewind.model.units import US_PER_S
from tradewind.report import quantities
from tradewind.report.figures.data import Series, bins
from tradewind.report.figures.theme import Theme, axes_title, canvas, draw_curves, style_axes, ticks

POINTS = 360
"""Most points of a curve over time: few enough for a small SVG, more than one per two pixels."""

CLEAR = 8.0
"""Distance of the numbers of a time axis, so that its zero is clear of the other axis'."""

CROWDED = 0.1
"""Share of a logarithmic time axis between two numbers; closer ones would touch, as 10 h and 1 d."""

CLOCK = (
    *((10.0**k, f"{1000 * 10.0**k:g} ms") for k in (-3, -2, -1)),
    (1.0, "1 s"), (10.0, "10 s"), (60.0, "1 min"), (600.0, "10 min"), (3600.0, "1 h"), (36000.0, "10 h"),
    (86400.0, "1 d"), (864000.0, "10 d"), (8640000.0, "100 d"),
)  # fmt: skip
"""Seconds and label of each tick of a logarithmic time axis."""


def span_us(series: Sequence[Series]) -> int:
    """Where curves over time end: at the end of the longest run, or where its thin tail begins."""
    return max(s.data.shown_us for s in series)


def cut_note(series: Sequence[Series]) -> str:
    """Caption that says where curves are cut; empty if they are not."""
    last = max(s.data.end_us for s in series)
    if span_us(series) >= last:
        return ""
    return f"Cut where only a few long jobs remain; the last one ends after {quantities.duration(last / US_PER_S)}."


def time_axis(axes: Any, end: int) -> float:
    """Label the x axis with time in a suitable unit; return microseconds per unit."""
    scale = quantities.time_scale(end / US_PER_S)
    per_unit = scale.size * US_PER_S
    axes.set_xlim(0, end / per_unit)
    axes.set_xlabel(scale.unit)
    axes.tick_params(axis="x", pad=CLEAR)
    return per_unit


def _stairs(edges: Floats, values: Floats) -> tuple[Floats, Floats]:
    """The points of a step curve; those between equal values are left out."""
    keep = np.ones(len(values), dtype=bool)
    keep[1:-1] = (values[1:-1] != values[:-2]) | (values[1:-1] != values[2:])
    kept = np.repeat(keep, 2)
    return np.repeat(edges, 2)[1:-1][kept], np.repeat(values, 2)[kept]


def edges_of(series: Sequence[Series]) -> Floats:
    """Instants at which the curves of runs may change, or equal bins where there are too many of them."""
    end = span_us(series)
    changes = np.unique(np.concatenate([s.data.changes_us for s in series]))
    inside = changes[(changes > 0) & (changes < end)]
    return np.concatenate(([0.0], inside, [float(end)])) if len(inside) < POINTS else bins(end, POINTS)


def used_kinds(series: Sequence[Series]) -> list[int]:
    """Kinds of resources that at least one run used."""
    edges = np.array([0.0, float(span_us(series))])
    used = sum(s.data.used(edges)[:, 0] for s in series)
    return [int(k) for k in np.flatnonzero(np.asarray(used) > 0)]


def utilisation(series: Sequence[Series], theme: Theme, width: float) -> Any:
    """Share of each resource kind in use over time (units if it is unlimited): one panel per kind, one line per policy."""
    which = used_kinds(series)
    end = span_us(series)
    edges = edges_of(series)
    base = series[0].data.base
    capacity = base.capacity(edges)
    height = {1: 190, 2: 126}.get(len(which), 112) * len(which) + 56
    figure = canvas(width, height)
    panels = figure.subplots(len(which), 1, sharex=True, squeeze=False)[:, 0]
    used = [s.data.used(edges) for s in series]
    for axes, kind in zip(panels, which, strict=True):
        cap = capacity[kind]
        bounded = bool(np.isfinite(cap).all() and (cap > 0).any())
        per_unit = time_axis(axes, end)
        lines = []
        for s, u in zip(series, used, strict=True):
            share = np.divide(u[kind], cap, out=np.zeros_like(cap), where=cap > 0) if bounded else u[kind]
            points = _stairs(edges / per_unit, 100 * share if bounded else share)
            lines.append((*points, theme.policy(s.number)))
        draw_curves(axes, lines, linewidth=1.3)
        top = max(float(line.get_ydata().max()) for line in axes.lines)
        axes.set_ylim(0, 104.0 if bounded and top > 40 else 1.1 * top)
        whole = not bounded and all((u[kind] == np.floor(u[kind])).all() for u in used)
        axes.yaxis.set_major_locator(ticks(3, whole))
        if bounded:
            axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}%" if value else "0")
        else:
            axes.yaxis.set_major_formatter(lambda value, _: quantities.number(value))
        style_axes(axes, theme)
        axes_title(axes, base.kinds.names[kind] + ("" if bounded else ", units in use"), theme)
        if axes is not panels[-1]:
            axes.set_xlabel("")
    figure.subplots_adjust(
        left=42 / width, right=1 - 14 / width, top=1 - 24 / height, bottom=40 / height, hspace=0.42
    )
    return figure


def queue(series: Sequence[Series], theme: Theme, width: float) -> Any:
    """Number of jobs waiting for workers over time, one line per policy."""
    figure, axes = single(width)
    draw_queue(axes, series, theme)
    return figure


def draw_queue(axes: Any, series: Sequence[Series], theme: Theme) -> None:
    """Draw the queue curves on the given axes."""
    end = span_us(series)
    edges = edges_of(series)
    per_unit = time_axis(axes, end)
    lines = [(*_stairs(edges / per_unit, s.data.queue(edges)), theme.policy(s.number)) for s in series]
    draw_curves(axes, lines, linewidth=1.3)
    axes.margins(y=0.05)
    axes.set_ylim(bottom=0)
    axes.yaxis.set_major_locator(ticks(5, whole=True))
    axes.yaxis.set_major_formatter(lambda value, _: quantities.number(value))
    style_axes(axes, theme)
    axes_title(axes, "jobs waiting", theme)


def has_queue(series: Sequence[Series]) -> bool:
    """Whether any job had to wait."""
    edges = bins(span_us(series), POINTS)
    return any(float(s.data.queue(edges).max(initial=0.0)) > 1e-3 for s in series)


def single(width: float, height: float = 246) -> tuple[Any, Any]:
    """A figure with one set of axes."""
    figure = canvas(width, height)
    axes = figure.add_axes((46 / width, 40 / height, 1 - 60 / width, 1 - 64 / height))
    return figure, axes


def completion(series: Sequence[Series], theme: Theme, width: float) -> Any:
    """Share of arrived jobs completed within a given time; a curve that ends below 100% left jobs unfinished."""
    figure, axes = single(width)
    draw_completion(axes, series, theme)
    return figure


def draw_completion(axes: Any, series: Sequence[Series], theme: Theme) -> None:
    """Draw the completion curves on the given axes."""
    times = [s.data.completion_s for s in series]
    longest = max(float(t[-1]) for t in times if len(t))
    shortest = max(min(float(t[len(t) // 100]) for t in times if len(t)), longest * 1e-6)
    logarithmic = longest / shortest > 100
    scale = quantities.time_scale(longest)
    lines = []
    for s, t in zip(series, times, strict=True):
        if not len(t):
            continue
        rank = np.unique(np.linspace(0, len(t) - 1, min(len(t), POINTS)).round().astype(np.int64))
        share = 100 * (rank + 1) / len(s.data.arrived)
        x, y = t[rank] / scale.size, share
        if len(t) <= POINTS:
            x, y = np.repeat(x, 2), np.repeat(np.concatenate(([0.0], y)), 2)[1:-1]
        lines.append((x, y, theme.policy(s.number)))
    draw_curves(axes, lines)
    axes.set_xlabel("from arrival to completion" + ("" if logarithmic else f", {scale.unit}"))
    if logarithmic:
        axes.set_xscale("log")
        _log_time(axes, shortest / scale.size, longest / scale.size, scale.size)
    else:
        axes.set_xlim(0, 1.02 * longest / scale.size)
    axes.tick_params(axis="x", pad=CLEAR)
    axes.set_ylim(0, 103)
    axes.set_yticks([0, 25, 50, 75, 100], ["0", "25%", "50%", "75%", "100%"])
    style_axes(axes, theme)
    axes_title(axes, "share of all jobs", theme)


def _log_time(axes: Any, least: float, most: float, unit_s: float) -> None:
    """Logarithmic time axis from `least` to `most` units of `unit_s` seconds, with ticks at round times."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    axes.set_xlim(least * 0.8, most * 1.15)
    marks = [
        (seconds / unit_s, text) for seconds, text in CLOCK if least * 0.8 <= seconds / unit_s <= most * 1.15
    ]
    if len(marks) > 6:
        marks = marks[len(marks) % 2 :: 2]
    apart = (most * 1.15 / (least * 0.8)) ** CROWDED
    names: dict[float, str] = {}
    for at, text in marks:
        if not names or at > apart * max(names):
            names[at] = text
    axes.xaxis.set_major_locator(FixedLocator(list(names)))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda v, _: names.get(v, "")))


def has_offers(series: Sequence[Series]) -> bool:
    """Whether any policy made an offer."""
    return any(len(ints(s.data.run, "offers", "job")) for s in series)


def prices(series: Sequence[Series], theme: Theme, width: float) -> Any:
    """Prices that policies offered over time, one panel per policy: unit prices by resource kind, or total payments.

    Filled markers are accepted offers, open markers are not.
    """
    shown = [s for s in series if len(ints(s.data.run, "offers", "job"))]
    height = (190 if len(shown) == 1 else 140) * len(shown) + 56
    figure = canvas(width, height)
    panels = figure.subplots(len(shown), 1, sharex=True, squeeze=False)[:, 0]
    end = span_us(series)
    highest: dict[str, float] = {}  # one scale per unit, so that policies can be compared
    for s in shown:
        highest[_price_unit(s)] = max(highest.get(_price_unit(s), 0.0), _highest_price(s))
    for axes, s in zip(panels, shown, strict=True):
        per_unit = time_axis(axes, end)
        _price_panel(axes, s, theme, per_unit)
        axes.set_xlim(-0.012 * end / per_unit, 1.012 * end / per_unit)  # whole markers at both ends
        top = highest[_price_unit(s)] or 1.0
        axes.set_ylim(-0.06 * top, 1.08 * top)
        style_axes(axes, theme)
        axes_title(axes, f"{s.group.label}, {_price_unit(s)}", theme)
        if axes is not panels[-1]:
            axes.set_xlabel("")
    figure.subplots_adjust(
        left=54 / width, right=1 - 14 / width, top=1 - 24 / height, bottom=40 / height, hspace=0.36
    )
    return figure


def _price_unit(s: Series) -> str:
    return "USD per unit" if len(ints(s.data.run, "prices", "offer")) else "payment in USD"


def _highest_price(s: Series) -> float:
    """The highest price of a run's offers, in the unit of its panel."""
    run = s.data.run
    usd = floats(run, "prices", "usd")
    return float((usd if len(usd) else floats(run, "offers", "payment_usd")).max(initial=0.0))


def _price_panel(axes: Any, s: Series, theme: Theme, per_unit: float) -> None:
    run = s.data.run
    at, taken = ints(run, "offers", "at_us"), taken_offers(run)
    offer, resource = ints(run, "prices", "offer"), ints(run, "prices", "resource")
    if not len(offer):
        marks(
            axes, (at / per_unit, floats(run, "offers", "payment_usd"), taken), theme.policy(s.number), theme
        )
        return
    usd, of = floats(run, "prices", "usd"), np.asarray(s.data.base.kinds.of)[resource]
    for kind in np.unique(of[of >= 0]):
        rows = np.flatnonzero(of == kind)
        points = (at[offer[rows]] / per_unit, usd[rows], taken[offer[rows]])
        marks(axes, points, theme.series[int(kind) % len(theme.series)], theme)


def price_kinds(series: Sequence[Series]) -> list[int]:
    """Kinds of resources with unit prices; empty if all offers are total payments."""
    found: set[int] = set()
    for s in series:
        resource = np.unique(ints(s.data.run, "prices", "resource"))
        found |= {s.data.base.kinds.of[int(r)] for r in resource}
    return sorted(k for k in found if k >= 0)


def marks(axes: Any, points: tuple[Floats, Floats, Any], colour: str, theme: Theme) -> None:
    """Plot at most 400 markers for accepted offers and 400 for the others, evenly sampled; few are large."""
    x, y, taken = points
    size, faint = (7.0, 0.9) if len(x) <= 40 else (4.2, 0.55)
    for sort in (False, True):
        rows = np.flatnonzero(taken == sort)
        rows = (
            rows[np.unique(np.linspace(0, len(rows) - 1, min(len(rows), 400)).astype(np.int64))]
            if len(rows)
            else rows
        )
        axes.plot(
            x[rows], y[rows], linestyle="none", marker="o", markersize=size, markeredgewidth=size / 4.5,
            markeredgecolor=colour, markerfacecolor=colour if sort else "none", alpha=0.9 if sort else faint,
        )  # fmt: skip


def finished(series: Sequence[Series]) -> bool:
    """Whether any job finished that is not there for a given time, as streams are."""
    jobs = series[0].data.base.scenario.jobs
    return any(job.kind != "stream" for job in jobs) and any(len(s.data.completion_s) for s in series)
