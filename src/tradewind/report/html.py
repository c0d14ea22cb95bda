"""HTML building blocks: tables, legends, figures, collapsible parts. All input is escaped."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from html import escape
from importlib import resources
from string import Template

from tradewind.report.figures.colours import DARK, FONTS, LIGHT, Theme, variables

Cell = str
"""Markup that is already escaped."""


@cache
def template(name: str) -> Template:
    """A template by file name."""
    return Template(
        resources.files("tradewind.report").joinpath("templates", name).read_text(encoding="utf-8")
    )


def stylesheet() -> str:
    """The style sheet with the colours of both themes."""
    return template("report.css").substitute(light=_declared(LIGHT), dark=_declared(DARK), fonts=FONTS)


def _declared(theme: Theme) -> str:
    return " ".join(f"{name}: {colour};" for name, colour in variables(theme).items())


def legend(entries: Iterable[tuple[str, str]]) -> str:
    """Legend of (label, colour) pairs; "dot", "open" and "dash" mean a filled marker, an open one, a dashed line."""
    items = []
    for label, colour in entries:
        chip = f'class="{colour}"' if colour in ("dot", "open", "dash") else f'style="background: {colour}"'
        items.append(f"<li><i {chip}></i>{escape(label)}</li>")
    return f'<ul class="legend">{"".join(items)}</ul>' if items else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """A figure of the page: heading, legend, SVG for wide and narrow screens, caption."""

    heading: str
    wide: str
    narrow: str = ""
    entries: Sequence[tuple[str, str]] = ()
    caption: str = ""

    def html(self) -> str:
        body = self.wide
        if self.narrow:
            body = f'<div class="wide">{self.wide}</div><div class="narrow">{self.narrow}</div>'
        caption = f"<figcaption>{escape(self.caption)}</figcaption>" if self.caption else ""
        return f"<figure><h3>{escape(self.heading)}</h3>{legend(self.entries)}{body}{caption}</figure>"


def pair(charts: Sequence[Chart]) -> str:
    """Charts in two columns on a wide screen, in one on a narrow one."""
    return f'<div class="pair">{"".join(c.html() for c in charts)}</div>' if charts else ""


def full(chart: Chart) -> str:
    """A chart at full width."""
    return f'<div class="full">{chart.html()}</div>'


def table(
    heads: Sequence[str],
    rows: Iterable[tuple[str, Sequence[Cell]]],
    label: str,
    kind: str = "",
    words: Collection[str] = (),
) -> str:
    """A horizontally scrollable table; rows are (class, cells), the first cell is a row heading.

    Columns are numbers, to the right, or those named in `words` text, to the left and in several lines where needed.
    """
    marks = [' class="words"' if head in words else "" for head in heads]
    top = "".join(
        f'<th scope="col"{mark}>{escape(head)}</th>' for head, mark in zip(heads, marks, strict=True)
    )
    body = []
    for name, (first, *cells) in rows:
        of_row = f' class="{name}"' if name else ""
        line = "".join(
            f"<td{mark}><div>{cell}</div></td>" if mark else f"<td>{cell}</td>"
            for mark, cell in zip(marks[1:], cells, strict=True)
        )
        body.append(f'<tr{of_row}><th scope="row">{first}</th>{line}</tr>')
    return (
        f'<div class="scroll {kind}" tabindex="0" role="region" aria-label="{escape(label)}"><table>'
        f"<thead><tr>{top}</tr></thead><tbody>{''.join(body)}</tbody></table></div>"
    )


def section(heading: str, *parts: str, note: str = "") -> str:
    """A section of the page; empty if all parts are."""
    found = [p for p in parts if p]
    if not found:
        return ""
    text = f'<p class="note">{escape(note)}</p>' if note else ""
    return f"<section><h2>{escape(heading)}</h2>{text}{''.join(found)}</section>"


def collapsible(heading: str, aside: str, *parts: str) -> str:
    """A collapsible part."""
    head = f"<summary>{escape(heading)}<span>{escape(aside)}</span></summary>"
    return f"<details>{head}{''.join(parts)}</details>"
