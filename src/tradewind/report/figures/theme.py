"""Themes, matplotlib settings, and figures as inline SVG or as files.

Figures are drawn with the colours of a theme. The theme of a report (THEMED) holds placeholder colours, which `svg` replaces
by CSS variables, so that one drawing serves light and dark pages. Text stays text, in the reader's own font.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

FONTS = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, 'Liberation Sans', sans-serif"
DASH = 6.0
"""Length of a dash of curves that take turns, in line widths."""
PX = 1 / 72
"""Inches per viewBox unit; all sizes, fonts included, are in CSS pixels."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Theme:
    """Colours by role: text, faint text, grid, surface, policies (8), types of cost (4), heat (one hue, by opacity)."""

    ink: str
    muted: str
    grid: str
    panel: str
    series: tuple[str, ...]
    costs: tuple[str, ...]
    heat: str

    def policy(self, number: int) -> str:
        """Colour of the policy with this number."""
        return self.series[number % len(self.series)]


LIGHT = Theme(
    ink="#1d242b", muted="#5a6570", grid="#e2e6e9", panel="#ffffff", heat="#1f6fb2",
    series=("#1f6fb2", "#c65a11", "#12836f", "#8a4fbf", "#b5316b", "#7b6d00", "#4d5f73", "#a23b2a"),
    costs=("#33608c", "#7fa8cf", "#d39a3c", "#8b7a6b"),
)  # fmt: skip
DARK = Theme(
    ink="#e7ebef", muted="#9aa6b2", grid="#2d353d", panel="#171c21", heat="#6fb1ee",
    series=("#6fb1ee", "#f2965b", "#4fc3ac", "#bf97ee", "#ee83b0", "#d1c04f", "#a6b6c8", "#e58876"),
    costs=("#7fb0e0", "#4a7196", "#e0b05e", "#a8998b"),
)  # fmt: skip
THEMED = Theme(
    ink="#fe0a00", muted="#fe0a01", grid="#fe0a02", panel="#fe0a03", heat="#fe0a04",
    series=tuple(f"#fe0b{i:02x}" for i in range(8)),
    costs=tuple(f"#fe0c{i:02x}" for i in range(4)),
)  # fmt: skip


def variables(theme: Theme) -> dict[str, str]:
    """CSS variable -> colour."""
    found = {f"--{role}": getattr(theme, role) for role in ("ink", "muted", "grid", "panel", "heat")}
    found.update({f"--c{i}": colour for i, colour in enumerate(theme.series)})
    found.update({f"--k{i}": colour for i, colour in enumerate(theme.costs)})
    return found


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
    head = f'<svg viewBox="{box[1] if box else "0 0 1 1"}" role="img" aria-label="{escape(label)}">'
    return head + f"<title>{escape(label)}</title>" + text[text.index(">", text.index("<svg")) + 1 :].strip()


def _render(figure: Any, salt: str) -> str:
    """SVG text without prologue, dates and style sheet, with coordinates rounded to 0.01."""
    buffer = io.StringIO()
    with matplotlib.rc_context({"svg.hashsalt": salt, "svg.fonttype": "none"}):
        figure.savefig(
            buffer,
            format="svg",
            transparent=True,
            metadata={"Date": None, "Creator": None, "Type": None, "Format": None},
        )
    text = buffer.getvalue()
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
    as_svg.write_text(f"{head}><title>{escape(label)}</title>{rest}", encoding="utf-8")
    figure.savefig(as_png, dpi=144, metadata={"Software": None})
    return as_svg, as_png
