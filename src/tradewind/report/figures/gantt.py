"""The Gantt chart: one row per job, coloured by where it ran."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from tradewind.model.arrays import Floats, Ints
from tradewind.model.units import US_PER_S
from tradewind.report import quantities
from tradewind.report.figures.bars import beside
from tradewind.report.figures.data import RunData
from tradewind.report.figures.theme import Theme, canvas, style_axes

MOST_ROWS = 120
MOST_BARS = 3000
MOST_NAMES = 60
"""Most rows that have the names of their jobs."""
SIZES = (1, 2, 4, 8, 16)


@dataclass(frozen=True, slots=True, kw_only=True)
class Gantt:
    """Bars ready to draw.

    jobs     job of each row, by arrival (J',);  total  number of jobs that had workers
    row, from_us, until_us, mix  of each bar (K,); mix is a row of `shares`
    shares   parts of a bar in each colour of `legend` (M, C); a job at several places has a band for each
    gap_us   pauses up to this length are not drawn
    by       meaning of a colour: node, site, rack or workers
    """

    jobs: Ints
    total: int
    row: Ints
    from_us: Ints
    until_us: Ints
    mix: Ints
    shares: Floats
    legend: tuple[str, ...]
    by: str
    gap_us: int


def gantt(data: RunData) -> Gantt:
    """The MOST_ROWS jobs with the most worker time, by arrival; bars separated by short pauses are joined."""
    spent = data.worker_seconds
    ran = np.flatnonzero(spent > 0)
    largest = ran[np.argsort(-spent[ran], kind="stable")[:MOST_ROWS]]
    jobs = np.sort(largest)
    row_of = np.full(len(spent), -1, dtype=np.int64)
    row_of[jobs] = np.arange(len(jobs))
    mix, shares, legend, by = _colours(data)
    busy = data.busy
    kept = np.flatnonzero(row_of[busy.job] >= 0)
    row, start = row_of[busy.job[kept]], busy.from_us[kept]
    order = np.lexsort((start, row))
    row, start, until, mix = row[order], start[order], busy.until_us[kept][order], mix[kept][order]
    gap = 0
    keep = _joined(row, start, until, mix, gap)
    while int(keep.sum()) > MOST_BARS:
        gap = max(data.shown_us // 2000, 2 * gap)
        keep = _joined(row, start, until, mix, gap)
    first = np.flatnonzero(keep)
    return Gantt(
        jobs=jobs, total=len(ran), row=row[first], from_us=start[first],
        until_us=np.maximum.reduceat(until, first) if len(first) else until,
        mix=mix[first], shares=shares, legend=legend, by=by, gap_us=gap,
    )  # fmt: skip


def _joined(row: Ints, start: Ints, until: Ints, mix: Ints, gap: int) -> Any:
    """Which intervals start a new bar, (K,): another job, a pause longer than `gap`, or other places.

    Stays at one place that are no longer than `gap` are joined too.
    """
    new = np.ones(len(row), dtype=bool)
    new[1:] = (row[1:] != row[:-1]) | (start[1:] - until[:-1] > gap)
    moved = mix[1:] != mix[:-1]
    new[1:] |= moved & (until[:-1] - start[:-1] > gap)
    return new


def _colours(data: RunData) -> tuple[Ints, Floats, tuple[str, ...], str]:
    """Mix of colours of each busy interval, the shares of each mix, names of the colours, and their meaning.

    By node if at most eight are used, else by rack or site, else by the number of workers.
    """
    usage, setup = data.usage, data.base.setup
    rows = np.flatnonzero(usage.workers > 0)
    parent = np.array([n.parent if n.parent >= 0 else i for i, n in enumerate(setup.nodes)], dtype=np.int64)
    busy = np.zeros(len(data.intervals.step), dtype=np.int64)
    busy[usage.interval[rows]] = 1
    count = int(busy.sum())
    at = (np.cumsum(busy) - 1)[usage.interval[rows]]
    node = usage.node[rows]
    for by, place in (("node", node), ("rack", parent[node]), ("site", np.asarray(setup.site_of)[node])):
        names = np.flatnonzero(np.bincount(place, minlength=1))
        if 1 < len(names) <= 8 or (by == "node" and len(names) == 1):
            code = np.searchsorted(names, place)
            held = np.zeros((count, len(names)))
            np.add.at(held, (at, code), usage.workers[rows])
            shares, mix = np.unique(
                np.round(held / held.sum(axis=1, keepdims=True), 2), axis=0, return_inverse=True
            )
            if by == "rack" and setup.nodes[int(names[0])].kind != "rack":
                by = setup.nodes[int(names[0])].kind
            return mix.reshape(-1), shares, tuple(setup.nodes[int(n)].name for n in names), by
    workers = np.bincount(at, usage.workers[rows], count).astype(np.int64)
    legend = tuple(f"{a}" if b == a + 1 else f"{a}–{b - 1}" for a, b in pairwise(SIZES))
    size = np.searchsorted(SIZES, workers, side="right") - 1
    return size, np.eye(len(SIZES)), (*legend, f"{SIZES[-1]} or more"), "workers"


def draw(chart: Gantt, data: RunData, theme: Theme, width: float) -> Any:
    """Draw a faint line while a job is in the system and bars while it has workers."""
    rows = len(chart.jobs)
    step = max(13.0 if rows <= MOST_NAMES else 4.6, min(20.0, 520 / max(rows, 1)))
    height = step * rows + 46
    labelled = step >= 13
    ids = [beside(data.base.scenario.jobs[int(j)].id, width) for j in chart.jobs]
    left = 14 + 7.0 * max(len(i) for i in ids) if labelled else 16.0
    figure = canvas(width, height)
    axes = figure.add_axes((left / width, 40 / height, 1 - (left + 14) / width, 1 - 46 / height))
    scale = quantities.time_scale(data.shown_us / US_PER_S)
    per_unit = scale.size * US_PER_S
    arrive, gone = data.base.arrive_us[chart.jobs] / per_unit, data.gone_us[chart.jobs] / per_unit
    middle = np.arange(rows, dtype=np.float64) + 0.5
    axes.add_patch(boxes(arrive, gone, middle, 0.08, theme.muted, 0.45))
    ends = np.cumsum(chart.shares, axis=1)
    for code in range(len(chart.legend)):
        mine = chart.shares[chart.mix, code] > 0
        if mine.any():
            x0, x1 = chart.from_us[mine] / per_unit, chart.until_us[mine] / per_unit
            x1 = np.maximum(x1, x0 + 1.2 * data.shown_us / per_unit / width)  # at least about a pixel
            share = chart.shares[chart.mix[mine], code]
            band = middle[chart.row[mine]] + 0.72 * (ends[chart.mix[mine], code] - share / 2 - 0.5)
            axes.add_patch(boxes(x0, x1, band, 0.36 * share, theme.policy(code), 1.0))
    first, last = float(arrive.min()), float(min(gone.max(), data.shown_us / per_unit))
    axes.set_xlim(first if first > 0.25 * last else 0.0, last)
    axes.set_ylim(rows, 0)
    style_axes(axes, theme, grid="x")
    if labelled:
        axes.set_yticks(middle, ids, fontsize=12)
    else:
        axes.set_yticks([])
    axes.grid(False, axis="y")
    axes.set_xlabel(scale.unit)
    return figure


def boxes(x0: Floats, x1: Floats, y: Floats, half: Floats | float, colour: str, alpha: float) -> Any:
    """All boxes of one colour as a single path, which keeps the file small."""
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path

    corners = np.stack(
        [
            np.stack((x, y + h), axis=1)
            for x, h in ((x0, -half), (x1, -half), (x1, half), (x0, half), (x0, -half))
        ],
        axis=1,
    )
    codes = np.tile([Path.MOVETO, Path.LINETO, Path.LINETO, Path.LINETO, Path.CLOSEPOLY], len(x0))
    path = Path(corners.reshape(-1, 2), codes)
    return PathPatch(path, facecolor=colour, linewidth=0, alpha=alpha)
