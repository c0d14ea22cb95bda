"""Small charts of the pages, as SVG in the colours of the style sheet."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

from markupsafe import Markup, escape

WIDTH, ROW, LEFT = 900.0, 22.0, 190.0
DOTS = 220.0
"""Height of a chart of prices."""


def gantt(jobs: Sequence[Mapping[str, Any]], now_s: float) -> Markup:
    """When jobs waited and ran; jobs: as people see them."""
    if not jobs:
        return Markup("")
    begin = min(job["submitted_s"] for job in jobs)
    end = max([job["ended_s"] or now_s for job in jobs] + [begin + 1.0])
    scale = (WIDTH - LEFT - 10) / (end - begin)
    parts = []
    for row, job in enumerate(jobs):
        y, last = 4 + row * ROW, job["ended_s"] or now_s
        start = job["started_s"] or last
        x = [LEFT + (at - begin) * scale for at in (job["submitted_s"], start, last)]
        parts.append(f'<text x="{LEFT - 8}" y="{y + 13}" text-anchor="end">{escape(job["id"][:26])}</text>')
        parts.append(_bar("waits", x[0], x[1], y))
        if job["started_s"]:
            parts.append(_bar(f"runs {job['status']}", x[1], x[2], y))
    height = 4 + len(jobs) * ROW + 20
    for at, place, anchor in ((begin, LEFT, "start"), (end, WIDTH - 10, "end")):
        clock = time.strftime("%H:%M:%S", time.gmtime(at))
        parts.append(f'<text class="axis" x="{place}" y="{height - 5}" text-anchor="{anchor}">{clock}</text>')
    return _svg(parts, height, "When jobs waited and ran")


def _bar(kind: str, begin: float, end: float, y: float) -> str:
    width = max(1.0, end - begin)
    return f'<rect class="{kind}" x="{begin:.1f}" y="{y}" width="{width:.1f}" height="15" rx="3"/>'


def prices(quotes: Sequence[Mapping[str, Any]]) -> Markup:
    """The lowest price of every quote over time, filled where it was taken."""
    rows = [
        (quote["made_s"], min(option["price_usd"] for option in quote["options"]), quote["status"])
        for quote in quotes
        if quote["options"]
    ]
    if len(rows) < 2:
        return Markup("")
    begin, end = min(r[0] for r in rows), max(r[0] for r in rows)
    most = max(r[1] for r in rows) or 1.0
    left, bottom = 70.0, DOTS - 30
    parts = [
        f'<line class="line" x1="{left}" y1="{bottom}" x2="{WIDTH - 10}" y2="{bottom}"/>',
        f'<text class="axis" x="{left - 8}" y="{bottom}" text-anchor="end">0</text>',
        f'<text class="axis" x="{left - 8}" y="20" text-anchor="end">{most:.2f}</text>',
    ]
    for at, usd, status in sorted(rows):
        x = left + 8 + (at - begin) / max(1e-9, end - begin) * (WIDTH - left - 30)
        y = bottom - usd / most * (bottom - 15)
        parts.append(f'<circle class="dot {status}" cx="{x:.1f}" cy="{y:.1f}" r="5"/>')
    for at, place, anchor in ((begin, left, "start"), (end, WIDTH - 10, "end")):
        clock = time.strftime("%F %H:%M", time.gmtime(at))
        parts.append(f'<text class="axis" x="{place}" y="{DOTS - 8}" text-anchor="{anchor}">{clock}</text>')
    return _svg(parts, DOTS, "Prices quoted over time, in USD")


def _svg(parts: Sequence[str], height: float, label: str) -> Markup:
    head = f'<svg class="chart" viewBox="0 0 {WIDTH:g} {height:g}" role="img" aria-label="{label}">'
    return Markup(head + "".join(parts) + "</svg>")
