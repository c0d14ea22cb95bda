"""Compare real traffic on a testbed with the model: times, the best server site and the best ring."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from tradewind.lab.study import Row
from tradewind.lab.testbed.networks import exchanges
from tradewind.report.figures.theme import Theme, axes_title, canvas, style_axes
from tradewind.worlds.testbed.network import Testbed
from tradewind.worlds.testbed.traffic import Measured, carrier, measure, model_size, traffic_server

SECONDS = 0.8
"""Predicted time of the median exchange; the model's size follows from it unless it is given."""
TIE = 0.01
"""Predictions this close count as equal when the best is chosen."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """All measurements on a testbed."""

    network: str
    carrier: str
    model_bytes: int
    measured: tuple[Measured, ...]

    def of(self, kind: str) -> list[Measured]:
        return [m for m in self.measured if m.exchange.kind == kind]

    @property
    def worst(self) -> float:
        """Largest deviation from the prediction, as a share of it."""
        return max(abs(m.error) for m in self.measured)

    def best(self, kind: Literal["server", "ring"]) -> tuple[Measured, Measured, bool]:
        """The best by prediction, the best by measurement, and whether they agree (or were predicted equal)."""
        mine = self.of(kind)
        predicted = min(mine, key=lambda m: m.predicted_s)
        seen = min(mine, key=lambda m: m.seconds)
        return predicted, seen, seen.predicted_s <= predicted.predicted_s * (1 + TIE)


def check(
    bed: Testbed, *, model_bytes: int = 0, rounds: int = 3, tell: Callable[[int], None] | None = None
) -> Check:
    """Measure a server at every site and several rings."""
    every, how = exchanges(bed.wan), carrier()
    size = model_bytes or model_size(bed.wan, every, SECONDS)
    found = []
    with traffic_server(how) as fork_server:
        for exchange in every:
            found.append(measure(bed, fork_server, how, exchange, model_bytes=size, rounds=rounds))
            if tell is not None:
                tell(len(found))
    return Check(network=bed.wan.name, carrier=how, model_bytes=size, measured=tuple(found))


def rows(found: Check) -> list[Row]:
    """One line per exchange."""
    return [
        {
            "kind": m.exchange.kind,
            "where": m.exchange.label,
            "sharing": m.exchange.shared,
            "predicted_s": m.predicted_s,
            "measured_s": m.seconds,
            "fastest_s": min(m.rounds_s),
            "slowest_s": max(m.rounds_s),
            "difference_percent": 100 * m.error,
        }
        for m in found.measured
    ]


def draw(measured: Sequence[Measured], title: str, theme: Theme) -> Any:
    """Measured over predicted seconds, with the line where both are equal; call within theme.style."""
    figure = canvas(560, 420)
    figure.set_facecolor(theme.panel)
    axes = figure.add_axes((0.12, 0.13, 0.84, 0.78))
    style_axes(axes, theme, grid="both")
    longest = 1.05 * max(max(m.predicted_s, m.seconds) for m in measured)
    axes.plot([0, longest], [0, longest], color=theme.muted, linewidth=1.0, label="measured = predicted")
    for number, (kind, mark) in enumerate((("server", "o"), ("ring", "s"))):
        mine = [m for m in measured if m.exchange.kind == kind]
        if mine:
            axes.plot(
                [m.predicted_s for m in mine], [m.seconds for m in mine], mark, color=theme.policy(number), markersize=6,
                label={"server": "parameter server", "ring": "ring"}[kind],
            )  # fmt: skip
    axes.set_xlim(0, longest)
    axes.set_ylim(0, longest)
    axes.set_xlabel("predicted, s")
    axes.set_ylabel("measured, s")
    axes_title(axes, title, theme)
    axes.legend(loc="lower right", frameon=False, labelcolor=theme.ink)
    return figure


def save_picture(found: Check, stem: Path) -> tuple[Path, Path]:
    """stem.svg and stem.png."""
    from tradewind.report.figures.theme import LIGHT, save, style

    title = f"{found.network}: seconds of a round, {found.model_bytes / 1e6:.2g} MB, over {found.carrier}"
    with style():
        return save(draw(found.measured, title, LIGHT), stem, title)
