"""Small pieces of HTML: tables, legends, figures, folded parts. Everything that comes from outside is escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from html import escape
from importlib import resources
from string import Template

from tradewind.report.figures.theme import DARK, FONTS, LIGHT, Theme, variables

Cell = str
"""Markup that is already escaped."""


@cache
def template(name: str) -> Template:
    """A file of the templates folder."""
    return Template(
        resources.files("tradewind.report").joinpath("templates", name).read_text(encoding="utf-8")
    )


def stylesheet() -> str:
    """The style sheet with the colours of both themes in it."""
    return template("report.css").substitute(light=_declared(LIGHT), dark=_declared(DARK), fonts=FONTS)


def _declared(theme: Theme) -> str:
    return " ".join(f"{name}: {colour};" for name, colour in variables(theme).items())


def legend(entries: Iterable[tuple[str, str]]) -> str:
    """(label, colour) pairs as chips; "dot", "open" and "dash" draw a mark, an open mark, a dashed line."""
    items = []
    for label, colour in entries:
        chip = f'class="{colour}"' if colour in ("dot", "open", "dash") else f'style="background: {colour}"'
        items.append(f"<li><i {chip}></i>{escape(label)}</li>")
    return f'<ul class="legend">{"".join(items)}</ul>' if items else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """A figure of the page: heading, legend, drawing (for wide and for narrow screens), a line of explanation."""

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
    """Charts two by two on a wide screen, one below the other on a narrow one."""
    return f'<div class="pair">{"".join(c.html() for c in charts)}</div>' if charts else ""


def full(chart: Chart) -> str:
    """A chart over the whole width."""
    return f'<div class="full">{chart.html()}</div>'


def table(
    heads: Sequence[str], rows: Iterable[tuple[str, Sequence[Cell]]], label: str, kind: str = ""
) -> str:
    """A table that scrolls sideways where it does not fit; rows are (class, cells), the first cell is a heading."""
    top = "".join(f'<th scope="col">{escape(h)}</th>' for h in heads)
    body = []
    for name, (first, *cells) in rows:
        mark = f' class="{name}"' if name else ""
        body.append(f'<tr{mark}><th scope="row">{first}</th>{"".join(f"<td>{c}</td>" for c in cells)}</tr>')
    return (
        f'<div class="scroll {kind}" tabindex="0" role="region" aria-label="{escape(label)}"><table>'
        f"<thead><tr>{top}</tr></thead><tbody>{''.join(body)}</tbody></table></div>"
    )


def section(heading: str, *parts: str, note: str = "") -> str:
    """A part of the page; nothing where all parts are empty."""
    found = [p for p in parts if p]
    if not found:
        return ""
    said = f'<p class="note">{escape(note)}</p>' if note else ""
    return f"<section><h2>{escape(heading)}</h2>{said}{''.join(found)}</section>"


def folded(heading: str, aside: str, *parts: str) -> str:
    """A part that opens on demand."""
    head = f"<summary>{escape(heading)}<span>{escape(aside)}</span></summary>"
    return f"<details>{head}{''.join(parts)}</details>"
