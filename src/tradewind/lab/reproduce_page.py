"""The page of `tradewind reproduce`: claim, verdict with its reason, chart and numbers of every figure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

from tradewind.files import atomic
from tradewind.lab.drawing import draw, looks, our_policies
from tradewind.lab.reproduce_times import total, words
from tradewind.lab.study import Effort, Finding, PaperFigure, Row
from tradewind.registry import studies
from tradewind.report.figures.theme import LIGHT, THEMED, Theme, save, style, svg, variables
from tradewind.report.html import Cell, Chart, collapsible, full, section, stylesheet, table, template
from tradewind.version import __version__

MOST_ROWS = 60
"""Most rows of a figure's data on the page; the CSV has all."""
OPEN_ROWS = 14
"""Most rows of a table of numbers that is not collapsed."""
MOST_COLUMNS = 9
WIDE, NARROW = 920.0, 360.0
WORDS = ("reproduced", "partly reproduced", "not reproduced", "not tested")
_CSS = {colour: f"var({name})" for name, colour in variables(THEMED).items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """A figure with our rows and the verdict on its claim."""

    system: str
    figure: PaperFigure
    rows: list[Row]
    finding: Finding
    failed: bool = False


def write(out: Path, systems: Sequence[str], results: Sequence[Result], effort: Effort) -> None:
    """Write index.html and the pictures of all figures; equal results give equal bytes."""
    parts = [_overview(results)]
    for system in systems:
        study = studies.find(system)
        mine = [r for r in results if r.system == system]
        notes = "".join(f'<p class="note">{escape(remark)}</p>' for remark in study.remarks)
        parts.append(section(study.title, notes, *[_part(out, r) for r in mine]))
    kind = "quick" if effort.quick else "full"
    page = template("report.html").substitute(
        title="Reproduction of the papers",
        kind=f"{kind} reproduction",
        version=escape(__version__),
        facts=escape(f"{len(results)} figures and tables. Intervals are 95% intervals over seeds."),
        css=stylesheet(),
        body="".join(parts),
        footer=_footer(systems, effort),
    )
    atomic.write_text(out / "index.html", page)


def _footer(systems: Sequence[str], effort: Effort) -> str:
    every = [(s, f.name) for s in systems for f in studies.find(s).figures]
    times = []
    for kind, quick in (("quick", True), ("full", False)):
        seconds, known = total(every, Effort(quick=quick, seeds=effort.seeds))
        how = "measured" if known > 0.99 else f"{known:.0%} measured, the rest estimated"
        times.append(f"the {kind} version takes about {words(seconds)} of CPU time ({how})")
    name = "all" if len(systems) > 1 else " ".join(systems)
    return (
        f"<code>tradewind reproduce {escape(name)}{' --quick' if effort.quick else ''}</code> with "
        f"{effort.seeds} seeds; {escape(', '.join(times))}."
    )


def _overview(results: Sequence[Result]) -> str:
    """Number of figures per verdict, and a table of all figures with links."""
    counts = [(word, sum(r.finding.word == word for r in results)) for word in WORDS]
    tally = "".join(f"<li>{_badge(word)} {n}</li>" for word, n in counts if n)
    rows = []
    for r in results:
        link = f'<a href="#{_anchor(r)}">{escape(r.figure.title)}</a>'
        rows.append(("", [f"{link} <small>{escape(r.system)}</small>", _mark(r), escape(r.finding.reason)]))
    cover = table(["figure", "verdict", "reason"], rows, "Verdicts", "panel prose")
    return section("Verdicts", f'<ul class="tally">{tally}</ul>', cover)


def _anchor(r: Result) -> str:
    return f"{r.system}-{r.figure.name}"


def _badge(word: str) -> str:
    kind = {"reproduced": "yes", "partly reproduced": "partly", "not reproduced": "no", "failed": "no"}.get(
        word, "open"
    )
    return f'<b class="badge {kind}">{escape(word)}</b>'


def _mark(r: Result) -> str:
    return _badge("failed" if r.failed else r.finding.word)


def _part(out: Path, r: Result) -> str:
    """HTML of one figure: claim, verdict, chart, numbers; also writes the picture files."""
    paper = r.figure
    verdict = (
        f'<dl class="claim"><dt>Claim</dt><dd>{escape(paper.claim)}</dd>'
        f"<dt>{_mark(r)}</dt><dd>{escape(r.finding.reason)}</dd></dl>"
    )
    head = f'<h3 class="figure" id="{_anchor(r)}">{escape(paper.title)}</h3>'
    return f"{head}{verdict}{_chart(out, r) if r.rows else ''}{_numbers(r) if r.rows else ''}"


def _drawing(r: Result, theme: Theme, width: float, *, legend: bool) -> object:
    paper = r.figure
    return (
        paper.paint(r.rows, theme, width)
        if paper.paint
        else draw(paper.chart, r.rows, theme, width, legend=legend)
    )


def _chart(out: Path, r: Result) -> str:
    paper = r.figure
    label = f"{paper.title}: {r.finding.word}"
    with style():
        wide = svg(_drawing(r, THEMED, WIDE, legend=False), f"{_anchor(r)}-w", label)
        narrow = svg(_drawing(r, THEMED, NARROW, legend=False), f"{_anchor(r)}-n", label)
        save(_drawing(r, LIGHT, 760, legend=True), out / r.system / paper.name, label)
    entries = []
    if paper.chart.series and not paper.paint:
        entries = [
            (
                look.label + (" (ours)" if look.label in our_policies() else ""),
                "dash" if look.dashed else _CSS[look.colour],
            )
            for look in looks(paper.chart, r.rows, THEMED)
        ]
    return full(Chart(heading="", wide=wide, narrow=narrow, entries=entries, caption=_interval_note(paper)))


def _interval_note(paper: PaperFigure) -> str:
    low = "" if paper.paint else paper.chart.low
    return {"low": "Whiskers: 95% interval of the mean; long ones are cut off.", "": ""}.get(
        low, f"Whiskers: {low} to {paper.chart.high}."
    )


def _numbers(r: Result) -> str:
    """Values with intervals, x by series; then all columns of the data."""
    heads = list(r.rows[0])
    most = len(r.rows) if r.figure.paint else MOST_ROWS
    cells = [("", [escape(_text(row[h])) for h in heads]) for row in r.rows[:most]]
    more = f", first {most} of {len(r.rows)} rows" if len(r.rows) > most else ""
    path = f"{r.system}/{r.figure.name}.csv"
    raw = collapsible("All columns", f"{path}{more}", table(heads, cells, f"Data of {r.figure.title}"))
    pivot = _pivot(r)
    if not pivot:
        return raw
    count, body = pivot
    return (
        f'<div class="panel numbers">{body}</div>' if count <= OPEN_ROWS else collapsible("Numbers", "", body)
    ) + raw


def _pivot(r: Result) -> tuple[int, str] | None:
    """(number of rows, table) with a row per x and a column per series; None if that is not possible."""
    chart, rows = r.figure.chart, r.rows
    if r.figure.paint:
        return None
    series = list(dict.fromkeys(str(row[chart.series]) for row in rows)) if chart.series else [chart.y]
    places = list(dict.fromkeys(row[chart.x] for row in rows))
    found: dict[tuple[str | float, str], Cell] = {}
    for row in rows:
        key = (row[chart.x], str(row[chart.series]) if chart.series else chart.y)
        if key in found or len(series) > MOST_COLUMNS:
            return None
        found[key] = _value(chart.y, chart.low, chart.high, row)
    body = [("", [escape(_text(p)), *[found.get((p, s), "–") for s in series]]) for p in places]
    label = f"Numbers of {r.figure.title}"
    return len(body), table([chart.x_label or chart.x, *series], body, label)


def _value(y: str, low: str, high: str, row: Row) -> Cell:
    text = escape(_text(row[y]))
    if not low or not high:
        return text
    a, b = float(row[low]), float(row[high])
    if low == "low":
        return f"{text} <small>± {_text((b - a) / 2)}</small>" if b > a else text
    return f"{text} <small>{_text(a)} to {_text(b)}</small>"


def _text(value: str | float) -> str:
    if isinstance(value, str):
        return value
    return f"{value:,.0f}" if abs(value) >= 10_000 else f"{value:.4g}"
