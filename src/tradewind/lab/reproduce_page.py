"""The page of `tradewind reproduce`: claims with what was found, chart and numbers of every figure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

from tradewind.files import atomic
from tradewind.lab.drawing import draw, looks, many_settings, our_policies
from tradewind.lab.reproduce_times import total, words
from tradewind.lab.study import Effort, Judged, Outcome, PaperFigure, Row, Verdict
from tradewind.registry import studies
from tradewind.report.figures.theme import LIGHT, THEMED, Theme, save, style, svg, variables
from tradewind.report.html import Cell, Chart, collapsible, full, section, stylesheet, table, template
from tradewind.traces.arrivals import DRAWN, recorded_name
from tradewind.version import __version__

MOST_ROWS = 60
"""Most rows of a figure's data on the page; the CSV has all."""
OPEN_ROWS = 14
"""Most rows of a table of numbers that is not collapsed."""
MOST_COLUMNS = 9
WIDE, NARROW = 920.0, 360.0
WORDS = ("reproduced", "partly reproduced", "not reproduced", "not tested")
KINDS = {
    "reproduced": "yes", "partly reproduced": "partly", "not reproduced": "no", "failed": "no",
    "holds": "yes", "holds in part": "partly", "does not hold": "no", "yes": "yes", "no": "no",
}  # fmt: skip
"""Style of a badge by its word."""
VERDICTS = (
    "system", "figure", "claim", "words", "paper", "paper holds", "paper found", "ours", "ours holds", "ours found",
)  # fmt: skip
"""Columns of verdicts.csv."""
_CSS = {colour: f"var({name})" for name, colour in variables(THEMED).items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """A figure with our rows and the verdict on its claims; `error` says why it could not be computed."""

    system: str
    figure: PaperFigure
    rows: list[Row]
    verdict: Verdict
    error: str = ""

    @property
    def failed(self) -> bool:
        return bool(self.error)

    @property
    def word(self) -> str:
        """The verdict on the paper's claims, or "failed"."""
        return "failed" if self.error else self.verdict.paper

    def short(self) -> str:
        """How many claims hold for the paper's policy, and the names of the others."""
        if self.error:
            return f"failed: {self.error}"
        judged = [(o.claim.name, o.paper) for o in self.verdict.outcomes if o.paper]
        missing = [name for name, found in judged if not found.holds]
        counted = f"{len(judged) - len(missing)} of {len(judged)} claims hold" if judged else ""
        text = counted + (f"; not: {', '.join(missing)}" if missing else "")
        return ". ".join(filter(None, (text, self.verdict.summary)))

    def unjudged(self) -> list[str]:
        """The claims that nothing judges."""
        return [f"no judge: {c.name}: {c.words}" for c in self.figure.claims if c.holds is None]

    def verdicts(self) -> list[Row]:
        """One row of verdicts.csv per claim."""
        rows: list[Row] = []
        for o in self.verdict.outcomes:
            claim = o.claim
            cells = (self.system, self.figure.name, claim.name, claim.words, claim.paper, *_cells(o.paper))
            rows.append(dict(zip(VERDICTS, (*cells, claim.ours, *_cells(o.ours)), strict=True)))
        return rows


def _cells(judged: Judged | None) -> tuple[str, str]:
    return ("", "") if judged is None else ("yes" if judged.holds else "no", judged.found)


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
    arrivals = recorded_name(effort.arrivals)
    options = (" --quick" if effort.quick else "") + ("" if arrivals == DRAWN else f" --arrivals {arrivals}")
    return (
        f"<code>tradewind reproduce {escape(name + options)}</code> with {effort.seeds} seeds, arrivals of mlBroker, DPS, "
        f"GADGET and Eris {'drawn' if arrivals == DRAWN else 'recorded'}; {escape(', '.join(times))}."
    )


def _overview(results: Sequence[Result]) -> str:
    """Number of figures per verdict, and a table of all figures with links."""
    counts = [(word, sum(r.verdict.paper == word for r in results)) for word in WORDS]
    tally = "".join(f"<li>{_badge(word)} {n}</li>" for word, n in counts if n)
    rows = []
    for r in results:
        link = f'<a href="#{_anchor(r)}">{escape(r.figure.title)}</a>'
        name = f"{link} <small>{escape(r.system)}</small>"
        rows.append(("", [name, _badge(r.word), _badge(r.verdict.ours), escape(r.short())]))
    heads = ["figure", "the paper's algorithm", "ours", "claims"]
    cover = table(heads, rows, "Verdicts", "panel prose")
    return section("Verdicts", f'<ul class="tally">{tally}</ul>', cover)


def _anchor(r: Result) -> str:
    return f"{r.system}-{r.figure.name}"


def _badge(word: str) -> str:
    return f'<b class="badge {KINDS.get(word, "open")}">{escape(word)}</b>'


def _part(out: Path, r: Result) -> str:
    """HTML of one figure: claims, chart, numbers; also writes the picture files."""
    head = f'<h3 class="figure" id="{_anchor(r)}">{escape(r.figure.title)}</h3>'
    lines = [_claim(o) for o in r.verdict.outcomes]
    for text in (f"failed: {r.error}" if r.error else "", r.verdict.summary):
        lines += [f"<dt>{_badge(r.word) if r.error else 'Found'}</dt><dd>{escape(text)}</dd>"] if text else []
    claims = f'<dl class="claim">{"".join(lines)}</dl>' if lines else ""
    return f"{head}{claims}{_chart(out, r) if r.rows else ''}{_numbers(r) if r.rows else ''}"


def _claim(o: Outcome) -> str:
    """A claim, and below it what was found for the paper's policy and for ours."""
    lines = [f"<dt>{escape(o.claim.name)}</dt><dd>{escape(o.claim.words)}</dd>"]
    for judged, policy in ((o.paper, o.claim.paper), (o.ours, f"{o.claim.ours} (ours)")):
        if judged:
            who = f"{escape(policy)}: " if policy else ""
            lines.append(
                f"<dt>{_badge('yes' if judged.holds else 'no')}</dt><dd>{who}{escape(judged.found)}</dd>"
            )
    if o.claim.holds is None:
        lines.append(f"<dt>{_badge('no judge')}</dt><dd></dd>")
    return "".join(lines)


def _drawing(r: Result, theme: Theme, width: float, *, legend: bool) -> object:
    paper = r.figure
    return (
        paper.paint(r.rows, theme, width)
        if paper.paint
        else draw(paper.chart, r.rows, theme, width, legend=legend)
    )


def _chart(out: Path, r: Result) -> str:
    paper = r.figure
    label = f"{paper.title}: {r.word}"
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
    return full(Chart(heading="", wide=wide, narrow=narrow, entries=entries, caption=_note(r)))


def _note(r: Result) -> str:
    paper = r.figure
    if not paper.paint and many_settings(paper.chart, r.rows):
        return "A point is one setting; the intervals are in the table."
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
    if all(isinstance(place, float) for place in places):
        places.sort(key=float)
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
