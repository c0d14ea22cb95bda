"""Charts of the pages, with the chart code of the reports. They are drawn in a process of their own (`Service.painter`)."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tradewind.report.charts import ChartSpec
from tradewind.report.figures.bars import beside
from tradewind.report.figures.curves import marks, single
from tradewind.report.figures.gantt import boxes
from tradewind.report.figures.places import Graph, draw_graph, layout
from tradewind.report.figures.theme import (
    THEMED,
    Theme,
    axes_title,
    canvas,
    draw_curves,
    style,
    style_axes,
)
from tradewind.report.html import full

BAR = {"waits": ("waited", "var(--muted)"), "runs": ("runs", "var(--c0)"), "good": ("finished", "var(--c2)"),
       "bad": ("failed or cancelled", "var(--c7)")}  # fmt: skip
HALVES = ("units", "quoted", "acceptance", "listed")
"""Charts that stand side by side."""
STEPS_S = (
    1,
    2,
    5,
    10,
    15,
    30,
    60,
    120,
    300,
    600,
    900,
    1800,
    *(3600 * n for n in (1, 2, 3, 6, 12, 24, 48, 168, 720)),
)
"""Seconds between ticks of a clock."""
CLASSES = 6
"""Classes of prices in the chart of acceptance."""


def paint(name: str, data: str) -> str:
    """A chart as HTML for a page whose policy forbids styles in elements; data: JSON; "": nothing to draw."""
    with style():
        spec = MAKERS[name](json.loads(data))
        return "" if spec is None else _without_styles(full(spec.half() if name in HALVES else spec.whole()))


def _without_styles(html: str) -> str:
    """Styles of SVG elements as attributes, of legends as classes."""
    html = re.sub(r'<i style="background: var\(--([a-z0-9]+)\)">', r'<i class="is-\1">', html)

    def attributes(found: re.Match[str]) -> str:
        pairs = (part.split(":", 1) for part in found[1].split(";") if ":" in part)
        return " ".join(f'{key.strip()}="{value.strip()}"' for key, value in pairs)

    return re.sub(r'style="([^"]*)"', attributes, html)


# ---------------------------------------------------------------------- sites and flows
def topology(data: Any) -> ChartSpec | None:
    """Sites with what is in use, links, and flows of jobs that run at several sites. data: sites, links, flows."""
    sites = data["sites"]
    if not sites:
        return None
    place = {site["name"]: number for number, site in enumerate(sites)}
    links = np.array([[place[a], place[b]] for a, b in data["links"]], dtype=np.int64).reshape(-1, 2)
    arcs = np.array([[place[a], place[b]] for a, b, _ in data["flows"]], dtype=np.int64).reshape(-1, 2)
    names = tuple(f"{site['name']} {site['use']}".strip() for site in sites)
    graph = Graph(
        xy=layout(len(sites), links) if len(sites) > 1 else np.zeros((1, 2)),
        names=names,
        busy=np.array([site["capacity"] for site in sites], dtype=np.float64),
        share=np.array([site["share"] for site in sites], dtype=np.float64),
        serves=np.array([site["servers"] for site in sites], dtype=np.float64),
        links=links,
        link_bps=np.array(data["bps"], dtype=np.float64),
        arcs=arcs,
        arc_bytes=np.array([weight for _, _, weight in data["flows"]], dtype=np.float64),
        arc_is_traffic=np.ones(len(arcs), dtype=bool),
        arcs_left=0,
    )
    words = "The larger a disc the more there is; the stronger its colour the more of it is in use."
    words += " Orange circles: parameter servers." if 0 < sum(graph.serves > 0) < len(sites) else ""
    words += " Violet arrows: what workers exchange with others elsewhere." if len(arcs) else ""
    listed = ", ".join(f"{site['name']} {site['share']:.0%} in use" for site in sites)
    return ChartSpec(
        name="topology", heading="", label=f"Sites: {listed}", caption=words,
        draw=lambda width: draw_graph(graph, THEMED, width, height=270, scale=2.4 if len(sites) <= 12 else 1.0),
    )  # fmt: skip


# ---------------------------------------------------------------------- jobs
def gantt(data: Any) -> ChartSpec | None:
    """When jobs waited and ran. data: now_s, jobs with id, submitted_s, started_s, ended_s, kind."""
    jobs = data["jobs"]
    if not jobs:
        return None
    used = [kind for kind in BAR if kind == "waits" or any(job["kind"] == kind for job in jobs)]
    return ChartSpec(
        name="gantt", heading="", label=f"When {len(jobs)} jobs waited and ran", entries=[BAR[kind] for kind in used],
        draw=lambda width: _gantt(jobs, data["now_s"], THEMED, width), caption="Times are UTC.",
    )  # fmt: skip


def _gantt(jobs: Sequence[Any], now_s: float, theme: Theme, width: float) -> Any:
    colours = {"waits": theme.muted, "runs": theme.series[0], "good": theme.series[2], "bad": theme.series[7]}
    ids = [beside(re.sub("-[0-9a-f]{16}$", "", job["id"]), width) for job in jobs]
    left, height = 14 + 7.0 * max(len(each) for each in ids), 19.0 * len(jobs) + 40
    figure = canvas(width, height)
    axes = figure.add_axes((left / width, 34 / height, 1 - (left + 18) / width, 1 - 38 / height))
    first = min(job["submitted_s"] for job in jobs)
    last = max([first + 1.0, *(job["ended_s"] or now_s for job in jobs)])
    middle = np.arange(len(jobs), dtype=np.float64) + 0.5
    for row, job in enumerate(jobs):
        until, end = job["started_s"] or job["ended_s"] or now_s, job["ended_s"] or now_s
        parts = [("waits", job["submitted_s"], until, 0.10)]
        parts += [(job["kind"], job["started_s"], end, 0.34)] if job["started_s"] else []
        for kind, begin, stop, half in parts:
            span = np.array([begin, max(stop, begin + (last - first) / width)]) - first
            axes.add_patch(
                boxes(
                    span[:1], span[1:], middle[row : row + 1], half, colours[kind], 1.0 if half > 0.2 else 0.6
                )
            )
    _clock(axes, first, last, width)
    axes.set_xlim(0, last - first)
    axes.set_ylim(len(jobs), 0)
    style_axes(axes, theme, grid="x")
    axes.set_yticks(middle, ids, fontsize=12)
    axes.grid(False, axis="y")
    return figure


def _clock(axes: Any, first: float, last: float, width: float) -> None:
    """Times of the day on the x axis, which counts seconds from `first` on."""
    form = "%H:%M:%S" if last - first < 7200 else "%H:%M" if last - first < 2 * 86_400 else "%d %b"
    most = 6 if width > 600 else 3
    step = next((each for each in STEPS_S if (last - first) / each <= most), STEPS_S[-1])
    axes.set_xticks(np.arange(np.ceil(first / step) * step, last + 1e-6, step) - first)
    axes.xaxis.set_major_formatter(lambda at, _: time.strftime(form, time.gmtime(first + at)))


# ---------------------------------------------------------------------- the market
def quoted(data: Any) -> ChartSpec | None:
    """The lowest price of every quote over time. data: rows of time, price, taken."""
    rows = data["rows"]
    if len(rows) < 2:
        return None

    def draw(width: float) -> Any:
        figure, axes = single(width, 230)
        at, usd, taken = (np.array(column, dtype=np.float64) for column in zip(*rows, strict=True))
        marks(axes, (at - at.min(), usd, taken > 0), THEMED.series[0], THEMED)
        axes.set_ylim(bottom=-0.04 * float(usd.max()))  # room for marks near 0
        _clock(axes, float(at.min()), float(at.max()), width)
        style_axes(axes, THEMED)
        axes_title(axes, "USD", THEMED)
        return figure

    return ChartSpec(
        name="quoted", heading="Prices quoted", label=f"Lowest prices of {len(rows)} quotes over time", draw=draw,
        entries=[("taken", "dot"), ("not taken", "open")],
    )  # fmt: skip


def _stairs(curves: Sequence[tuple[str, Any]], first: float, last: float) -> list[tuple[Any, Any, str]]:
    """Values that hold until the next, as curves with their colours."""
    found = []
    for number, (_, points) in enumerate(curves):
        at = [*[at for at, _ in points for _ in (0, 1)][1:], last]
        usd = [usd for _, usd in points for _ in (0, 1)]
        found.append((np.array(at) - first, np.array(usd), THEMED.series[number]))
    return found


def units(data: Any) -> ChartSpec | None:
    """Posted prices of a unit of every resource over time. data: curves of resource, [(time, USD)]."""
    curves = [(name, points) for name, points in data["curves"] if len(points) > 1][:8]
    if not curves:
        return None
    first, last = (end(at for _, points in curves for at, _ in points) for end in (min, max))

    def draw(width: float) -> Any:
        figure, axes = single(width, 230)
        draw_curves(axes, _stairs(curves, first, last), linewidth=1.6)
        axes.set_ylim(bottom=0)
        _clock(axes, first, max(last, first + 1.0), width)
        style_axes(axes, THEMED)
        axes_title(axes, "USD per unit", THEMED)
        return figure

    return ChartSpec(
        name="units", heading="Posted prices", label="Posted prices of a unit over time by resource", draw=draw,
        entries=[(name, f"var(--c{number})") for number, (name, _) in enumerate(curves)],
    )  # fmt: skip


def acceptance(data: Any) -> ChartSpec | None:
    """Share of quotes that were taken, by price. data: rows of time, price, taken."""
    rows = sorted(data["rows"], key=lambda row: float(row[1]))
    if len(rows) < 4:
        return None
    parts = [
        part
        for part in np.array_split(np.array(rows, dtype=np.float64), min(CLASSES, len(rows) // 2))
        if len(part)
    ]

    def draw(width: float) -> Any:
        figure, axes = single(width, 230)
        prices, share = (
            [float(part[:, 1].mean()) for part in parts],
            [100 * float((part[:, 2] > 0).mean()) for part in parts],
        )
        axes.plot(prices, share, color=THEMED.series[0], marker="o", markersize=5)
        axes.set_ylim(-3, 103)
        axes.set_xlabel("price in USD")
        style_axes(axes, THEMED)
        axes_title(axes, "% taken", THEMED)
        return figure

    return ChartSpec(
        name="acceptance", heading="Acceptance by price", label="Share of quotes that were taken by price", draw=draw,
        caption=f"{len(rows)} answered quotes in {len(parts)} classes of equal size.",
    )  # fmt: skip


def listed(data: Any) -> ChartSpec | None:
    """List prices over time, one curve per site and resource. data: first_s, last_s, curves of name, [(time, USD)]."""
    curves = [(name, points) for name, points in data["curves"] if points][:8]
    if not curves:
        return None

    def draw(width: float) -> Any:
        figure, axes = single(width, 230)
        draw_curves(axes, _stairs(curves, data["first_s"], data["last_s"]))
        axes.set_ylim(bottom=0)
        _clock(axes, data["first_s"], data["last_s"], width)
        style_axes(axes, THEMED)
        axes_title(axes, "USD per unit-hour", THEMED)
        return figure

    return ChartSpec(
        name="listed", heading="List prices", label="List prices over time by site and resource", draw=draw,
        entries=[(name, f"var(--c{number})") for number, (name, _) in enumerate(curves)],
    )  # fmt: skip


# ---------------------------------------------------------------------- one job
def iterations(data: Any) -> ChartSpec | None:
    """Time of every iteration, measured, beside what the model predicts. data: measured, predicted: [(iteration, s)]."""
    if not data["measured"]:
        return None

    def draw(width: float) -> Any:
        figure, axes = single(width, 230)
        x, y = (np.array(column, dtype=np.float64) for column in zip(*data["measured"], strict=True))
        axes.plot(x, y, color=THEMED.series[0], linewidth=1.4)
        if data["predicted"]:
            axes.plot(
                *zip(*data["predicted"], strict=True), color=THEMED.ink, linestyle=(0, (5, 4)), linewidth=1.2
            )
        axes.set_ylim(bottom=0)
        axes.set_xlabel("iteration")
        style_axes(axes, THEMED)
        axes_title(axes, "seconds", THEMED)
        return figure

    ratio = ""
    if data["predicted"]:
        measured = float(np.median([s for _, s in data["measured"]]))
        ratio = f"Median measured {measured:.3g} s, predicted {data['predicted'][-1][1]:.3g} s for this placement."
    ratio = " ".join(filter(None, (ratio, data.get("said", ""))))
    return ChartSpec(
        name="iterations", heading="Time of iterations", label="Time of iterations, measured and predicted", draw=draw,
        caption=ratio,
        entries=[("measured", "var(--c0)"), *([("predicted", "dash")] if data["predicted"] else [])],
    )  # fmt: skip


MAKERS: dict[str, Callable[[Any], ChartSpec | None]] = {
    "topology": topology, "gantt": gantt, "units": units, "quoted": quoted, "acceptance": acceptance, "listed": listed,
    "iterations": iterations,
}  # fmt: skip
