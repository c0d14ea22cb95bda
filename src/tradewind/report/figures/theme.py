"""Themes, matplotlib settings, and figures as inline SVG or as files.

Figures are drawn with the colours of a theme. The theme of a report (THEMED) holds placeholder colours, which `svg` replaces
by CSS variables, so that one drawing serves light and dark pages. Text stays text, in the reader's own font.
"""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from html import escape
from pathlib import Path
from typing import Any, Literal

import matplotlib
import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import LogFormatter, MaxNLocator

from tradewind.model.text import shown
from tradewind.report import quantities
from tradewind.report.figures.colours import FONTS
from tradewind.report.figures.colours import LIGHT as LIGHT
from tradewind.report.figures.colours import THEMED as THEMED
from tradewind.report.figures.colours import Theme as Theme
from tradewind.report.figures.colours import variables as variables

DASH = 6.0
"""Length of a dash of curves that take turns, in line widths."""
PX = 1 / 72
"""Inches per viewBox unit; all sizes, fonts included, are in CSS pixels."""
_PLACEHOLDERS = {colour: f"var({name})" for name, colour in variables(THEMED).items()}
_STYLE = {
    "svg.fonttype": "none",
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 12.0,
    "axes.linewidth": 0.8,
    "axes.axisbelow": True,
    "axes.unicode_minus": True,
    "axes.titlesize": 12.0,
    "axes.titlelocation": "left",
    "axes.formatter.limits": (-4, 6),
    "lines.linewidth": 1.6,
    "lines.solid_capstyle": "round",
    "xtick.major.size": 0.0,
    "ytick.major.size": 0.0,
    "xtick.minor.size": 0.0,
    "ytick.minor.size": 0.0,
    "xtick.labelsize": 12.0,
    "ytick.labelsize": 12.0,
    "text.parse_math": False,  # names may contain $
    "path.simplify": True,
    "path.simplify_threshold": 0.2,
    "figure.dpi": 72.0,
    "savefig.dpi": 72.0,
}


@contextmanager
def style(salt: str = "tradewind") -> Iterator[None]:
    """Apply the project's matplotlib settings, whatever the user's are; ids depend on the salt only."""
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update({**_STYLE, "svg.hashsalt": salt})
        yield


def canvas(width: float, height: float) -> Any:
    """A figure of width x height CSS pixels without global state; call within `style`."""
    figure = Figure(figsize=(width * PX, height * PX), dpi=72)
    FigureCanvasAgg(figure)
    return figure


def style_axes(axes: Any, theme: Theme, *, grid: str = "y") -> None:
    """Remove the box of axes, add a faint grid ("x", "y", "both" or "") and apply the theme."""
    axes.set_facecolor("none")
    for side in ("top", "right", "left", "bottom"):
        axes.spines[side].set_visible(side == "bottom" and grid != "x")
        axes.spines[side].set_color(theme.grid)
    axes.tick_params(colors=theme.muted, which="both", labelcolor=theme.muted)
    axes.xaxis.label.set_color(theme.muted)
    axes.yaxis.label.set_color(theme.muted)
    if grid:
        axes.grid(True, axis=grid, color=theme.grid, linewidth=0.8)


def ticks(count: int, whole: bool = False) -> Any:
    """About `count` ticks at round values; integers only if `whole`."""
    return MaxNLocator(count, steps=[1, 2, 5, 10] if whole else [1, 2, 2.5, 5, 10], integer=whole)


class LogLabels(LogFormatter):
    """Labels of a logarithmic axis, as plain numbers."""

    def __call__(self, x: float, pos: int | None = None) -> str:
        """The label at a value; "" where there is no room for one."""
        return quantities.number(x) if super().__call__(x, pos) else ""


def make_logarithmic(axes: Any, which: Literal["x", "y"]) -> None:
    """Make an axis logarithmic."""
    axis = getattr(axes, f"{which}axis")
    getattr(axes, f"set_{which}scale")("log")
    axis.set_major_formatter(LogLabels())
    axis.set_minor_formatter(LogLabels(labelOnlyBase=False, minor_thresholds=(1, 0.4)))


def draw_curves(axes: Any, curves: Sequence[tuple[Any, Any, str]], **more: Any) -> None:
    """Plot (x, y, colour); curves that are exactly the same take turns, so that each of their colours is seen."""
    same: dict[bytes, list[int]] = {}
    for number, (x, y, _) in enumerate(curves):
        same.setdefault(np.asarray(x).tobytes() + np.asarray(y).tobytes(), []).append(number)
    turns = {number: (turn, len(group)) for group in same.values() for turn, number in enumerate(group)}
    for number, (x, y, colour) in enumerate(curves):
        turn, of = turns[number]
        dashes = (
            {"linestyle": (DASH * turn, (DASH, DASH * (of - 1))), "dash_capstyle": "butt"} if of > 1 else {}
        )
        axes.plot(x, y, color=colour, **dashes, **more)


def axes_title(axes: Any, text: str, theme: Theme) -> None:
    """Title at the top left of axes, in place of a rotated y label."""
    axes.set_title(text, pad=6, color=theme.muted)


def svg(figure: Any, name: str, label: str) -> str:
    """The figure as an SVG element for a page: ids start with `name`, `label` is for screen readers.

    Placeholder colours become CSS variables; size and fonts come from the page.
    """
    text = _render(figure, name)
    text = re.sub(r"#fe0[abc][0-9a-f]{2}", lambda m: _PLACEHOLDERS.get(m[0], m[0]), text)
    text = re.sub(r"\bid=\"([^\"]+)\"", rf'id="{name}-\1"', text)
    text = re.sub(r"\"#([A-Za-z_][^\"]*)\"", rf'"#{name}-\1"', text)
    text = re.sub(r"url\(#([^)]+)\)", rf"url(#{name}-\1)", text)
    text = re.sub(r"font: ([0-9.]+)px [^;\"]+", r"font-size: \1px", text)
    box = re.search(r'viewBox="([^"]+)"', text)
    head = f'<svg viewBox="{box[1] if box else "0 0 1 1"}" role="img" aria-label="{escape(shown(label))}">'
    return (
        head
        + f"<title>{escape(shown(label))}</title>"
        + text[text.index(">", text.index("<svg")) + 1 :].strip()
    )


@contextmanager
def _any_glyph() -> Iterator[None]:
    """Names may have characters that matplotlib's font lacks; the reader's has them, or shows a box."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph ")
        yield


def _render(figure: Any, salt: str) -> str:
    """SVG text without prologue, dates and style sheet, with coordinates rounded to 0.01."""
    buffer = io.StringIO()
    with matplotlib.rc_context({"svg.hashsalt": salt, "svg.fonttype": "none"}), _any_glyph():
        figure.savefig(
            buffer,
            format="svg",
            transparent=True,
            metadata={"Date": None, "Creator": None, "Type": None, "Format": None},
        )
    text = shown(buffer.getvalue())
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>\s*", "", text, flags=re.DOTALL)
    text = re.sub(r"<defs>\s*<style[^>]*>.*?</style>\s*</defs>\s*", "", text, flags=re.DOTALL)
    text = re.sub(r"<!--.*?-->\s*", "", text, flags=re.DOTALL)
    text = re.sub(r"(?<=\bd=\")[^\"]+", lambda m: _shorten(m[0]), text)
    return re.sub(r"\n\s*", "\n", text)


def _shorten(path: str) -> str:
    """Round the coordinates of a path to two decimals and remove line breaks."""
    short = re.sub(r"-?\d+\.\d{3,}", lambda m: f"{float(m[0]):.2f}".rstrip("0").rstrip("."), path)
    return " ".join(short.split())


def save(figure: Any, stem: Path, label: str) -> tuple[Path, Path]:
    """Write stem.svg and stem.png (at twice the size, for sharp screens); return both paths."""
    stem.parent.mkdir(parents=True, exist_ok=True)
    as_svg, as_png = stem.with_suffix(".svg"), stem.with_suffix(".png")
    text = re.sub(r"font: ([0-9.]+)px [^;\"]+", rf"font: \1px {FONTS}", _render(figure, stem.name))
    head, rest = text.split(">", 1)
    as_svg.write_text(f"{head}><title>{escape(shown(label))}</title>{rest}", encoding="utf-8")
    with _any_glyph():
        figure.savefig(as_png, dpi=144, metadata={"Software": None})
    return as_svg, as_png
