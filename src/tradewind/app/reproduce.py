"""`tradewind reproduce`: every figure of a paper with its claim beside our numbers, as CSV, pictures and one page."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from html import escape
from multiprocessing import get_context
from pathlib import Path

from tradewind import studies
from tradewind.app import atomic
from tradewind.app.progress import bar
from tradewind.app.report_html import Chart as PageChart
from tradewind.app.report_html import folded, full, section, stylesheet, table, template
from tradewind.model.errors import LookupFailed
from tradewind.studies.figures_theme import LIGHT, THEMED, save, style, svg
from tradewind.studies.study import Effort, Finding, PaperFigure, Row, Study, draw
from tradewind.version import __version__

MOST_ROWS = 40
"""Rows of a figure's table that the page shows; the CSV has them all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """A figure with our rows and the verdict."""

    system: str
    figure: PaperFigure
    rows: list[Row]
    finding: Finding


def _figure(system: str, name: str) -> PaperFigure:
    found = {f.name: f for f in studies.find(system).figures}
    if name not in found:
        raise LookupFailed(f"figure of {system}", name, found)
    return found[name]


def _compute(system: str, name: str, effort: Effort) -> list[Row]:
    """Runs in a process of its own."""
    return _figure(system, name).rows(effort)


def reproduce(
    systems: Sequence[str], out: Path, *, figure: str = "", effort: Effort, jobs: int = 1
) -> list[Result]:
    """Computes the figures (those already computed with the same effort are read back), writes everything to `out`."""
    wanted = [(s, f.name) for s in systems for f in studies.find(s).figures if not figure or f.name == figure]
    if not wanted:
        raise LookupFailed(
            f"figure of {', '.join(systems)}",
            figure,
            [f.name for s in systems for f in studies.find(s).figures],
        )
    rows = {key: kept for key in wanted if (kept := _read_back(out, *key, effort)) is not None}
    missing = [key for key in wanted if key not in rows]
    with bar("reproducing", len(wanted), unit="figures") as tell:
        if jobs <= 1 or len(missing) <= 1:
            for key in missing:
                rows[key] = _keep(out, *key, effort, _compute(*key, effort))
                if tell is not None:
                    tell(0, len(rows))
        else:
            with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
                futures = {pool.submit(_compute, *key, effort): key for key in missing}
                for done in as_completed(futures):
                    key = futures[done]
                    rows[key] = _keep(out, *key, effort, done.result())
                    if tell is not None:
                        tell(0, len(rows))
    results = []
    for system, name in wanted:
        paper = _figure(system, name)
        data = rows[system, name]
        results.append(Result(system=system, figure=paper, rows=data, finding=paper.judge(data)))
    _write(out, systems, results, effort)
    return results


def _stamp(effort: Effort) -> str:
    return json.dumps({"version": __version__, "quick": effort.quick, "seeds": effort.seeds}, sort_keys=True)


def _read_back(out: Path, system: str, name: str, effort: Effort) -> list[Row] | None:
    """Rows of an earlier, perhaps interrupted, reproduction with the same version and effort."""
    path = out / system / f"{name}.json"
    try:
        kept = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    if not isinstance(kept, dict) or kept.get("stamp") != _stamp(effort):
        return None
    rows: list[Row] = kept["rows"]
    return rows


def _keep(out: Path, system: str, name: str, effort: Effort, rows: list[Row]) -> list[Row]:
    """Writes a figure's data as soon as it is there, so that an interruption loses one figure at most."""
    folder = out / system
    folder.mkdir(parents=True, exist_ok=True)
    plain = [{k: v if isinstance(v, str) else float(v) for k, v in row.items()} for row in rows]
    atomic.write_text(folder / f"{name}.json", json.dumps({"stamp": _stamp(effort), "rows": plain}))
    text = io.StringIO()
    writer = csv.DictWriter(text, list(plain[0]) if plain else [])
    writer.writeheader()
    writer.writerows(plain)
    atomic.write_text(folder / f"{name}.csv", text.getvalue())
    found: list[Row] = list(plain)
    return found


def _write(out: Path, systems: Sequence[str], results: Sequence[Result], effort: Effort) -> None:
    parts = []
    for system in systems:
        study = studies.find(system)
        mine = [r for r in results if r.system == system]
        parts.append(section(study.title, _summary(mine), *[_remark(study)], *[_part(out, r) for r in mine]))
    kind = "quick" if effort.quick else "full"
    page = template("report.html").substitute(
        title="The papers, reproduced",
        kind=f"{kind} reproduction",
        version=escape(__version__),
        facts=escape(
            f"{len(results)} figures and tables, {effort.seeds} seeds each where a figure has seeds"
        ),
        css=stylesheet(),
        body="".join(parts),
        footer=f"<p>tradewind reproduce {escape(' '.join(systems))}{' --quick' if effort.quick else ''}</p>",
    )
    atomic.write_text(out / "index.html", page)


def _remark(study: Study) -> str:
    return "".join(f'<p class="note">{escape(remark)}</p>' for remark in study.remarks)


def _summary(results: Sequence[Result]) -> str:
    rows = [("", [escape(r.figure.title), escape(r.finding.word), escape(r.figure.claim)]) for r in results]
    return table(["figure", "verdict", "the paper's claim"], rows, "verdicts")


def _part(out: Path, result: Result) -> str:
    """One figure: claim, verdict, picture, numbers; also writes the picture's files."""
    paper, rows = result.figure, result.rows
    label = f"{paper.title}: {result.finding.word}"
    with style():
        drawing = svg(draw(paper.chart, rows, THEMED), f"{result.system}-{paper.name}", label)
        save(draw(paper.chart, rows, LIGHT), out / result.system / paper.name, label)
    heads = list(rows[0]) if rows else []
    cells = [("", [escape(_cell(row[h])) for h in heads]) for row in rows[:MOST_ROWS]]
    more = f" (first {MOST_ROWS} of {len(rows)})" if len(rows) > MOST_ROWS else ""
    finding = result.finding
    words = f"<p><b>The paper:</b> {escape(paper.claim)}</p><p><b>{finding.word}:</b> {escape(finding.reason)}</p>"
    numbers = folded("Numbers", f"{paper.name}.csv{more}", table(heads, cells, paper.title)) if rows else ""
    return full(PageChart(heading=paper.title, wide=drawing)) + words + numbers


def _cell(value: str | float) -> str:
    return value if isinstance(value, str) else f"{value:.6g}"
