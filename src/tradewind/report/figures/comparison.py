"""The door to all drawings: themes, charts, and the picture of a comparison as files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tradewind.model.errors import InputError
from tradewind.model.hash import scenario_hash
from tradewind.model.result import Run
from tradewind.model.scenario import Scenario
from tradewind.report import quantities
from tradewind.report.figures import bars as figures_bars
from tradewind.report.figures import time as figures_time
from tradewind.report.figures.data import Facts, Land
from tradewind.report.figures.theme import (
    DARK,
    LIGHT,
    THEMED,
    Theme,
    canvas,
    dress,
    save,
    style,
    svg,
    variables,
)
from tradewind.report.figures.time import Drawn
from tradewind.report.summary import group, ranked

__all__ = [
    "DARK",
    "LIGHT",
    "THEMED",
    "Drawn",
    "Scenarios",
    "Theme",
    "canvas",
    "draw",
    "dress",
    "picture",
    "save",
    "style",
    "svg",
    "variables",
]


Scenarios = Scenario | Sequence[Scenario]
"""What the runs are of: one scenario, or several (one per seed), told apart by their hash."""


def draw(scenario: Scenarios, runs: Sequence[Run]) -> list[Drawn]:
    """The groups of the runs, best first, each with the facts of its first run."""
    groups = ranked(group(runs))
    if not groups:
        raise InputError("there is no run to show; run at least one policy first")
    lands = _lands(scenario, [g.first for g in groups])
    return [Drawn(group=g, facts=Facts(land, g.first)) for g, land in zip(groups, lands, strict=True)]


def _lands(scenario: Scenarios, runs: Sequence[Run]) -> list[Land]:
    """The scenario of each run; runs of the same scenario share what is computed from it."""
    several = [scenario] if isinstance(scenario, Scenario) else list({id(s): s for s in scenario}.values())
    if len(several) == 1:
        return [Land(several[0])] * len(runs)
    known = {scenario_hash(s): Land(s) for s in several}
    for run in runs:
        if run.scenario_hash not in known:
            raise InputError(
                f"the run of {run.policy} with seed {run.seed} belongs to a scenario with hash "
                f"{run.scenario_hash[:12]}…, which is not among those given; give the scenario that was run"
            )
    return [known[run.scenario_hash] for run in runs]


def picture(
    stem: str | Path, scenario: Scenarios, runs: Sequence[Run], theme: Theme = LIGHT
) -> tuple[Path, Path]:
    """Writes stem.svg and stem.png: the objective of each policy, and how soon its jobs were completed.

    Where no job finished, the right half shows the queue instead. Returns both paths.
    """
    drawn = draw(scenario, runs)
    with style():
        figure = _compose(drawn, theme)
        return save(figure, Path(stem), _label(drawn))


def _label(drawn: Sequence[Drawn]) -> str:
    metric = drawn[0].group.objective
    values = ", ".join(f"{d.group.label} {quantities.measure(metric, d.group.value.mean)}" for d in drawn)
    return f"{quantities.name(metric)} by policy: {values}".replace("\u202f", " ")


def _compose(drawn: Sequence[Drawn], theme: Theme) -> Any:
    """Two charts side by side on the theme's surface, a legend below the right one."""
    groups = [d.group for d in drawn]
    width, height = 960.0, max(300.0, figures_bars.height_of(groups) + 74)
    figure = canvas(width, height)
    figure.set_facecolor(theme.panel)
    left = 14 + figures_bars.room_for(groups)
    bars = figure.add_axes((left / width, 48 / height, (400 - left) / width, 1 - 104 / height))
    bound = figures_bars.draw_objective(bars, groups, theme)
    seeds = max(len(g.runs) for g in groups)
    if seeds > 1:
        bars.set_xlabel(f"{bars.get_xlabel()}, mean of {seeds} seeds with 95% interval".lstrip(", "))
    if bound is not None:
        _name_bound(bars, bound, theme)
    right = figure.add_axes((540 / width, 48 / height, 396 / width, 1 - 104 / height))
    if figures_time.finished(drawn):
        figures_time.draw_completion(right, drawn, theme)
    else:
        figures_time.draw_queue(right, drawn, theme)
    right.set_title("")
    metric = groups[0].objective
    heads = (
        quantities.name(metric),
        "share of jobs completed" if figures_time.finished(drawn) else "jobs waiting",
    )
    for x, text in ((16, heads[0]), (508, heads[1])):
        figure.text(
            x / width,
            1 - 32 / height,
            text[0].upper() + text[1:],
            color=theme.ink,
            fontsize=13,
            weight="bold",
        )
    for d in drawn:
        right.plot([], [], color=theme.policy(d.number), label=figures_bars.shorten(d.group.label, 18))
    right.legend(loc="best", frameon=False, labelcolor=theme.ink, fontsize=9.5, handlelength=1.2)
    return figure


def _name_bound(bars: Any, x: float, theme: Theme) -> None:
    """Writes above the dashed line what it is."""
    bars.annotate(
        "offline bound", (x, 1.0), xycoords=("data", "axes fraction"), xytext=(0, 3), textcoords="offset points",
        ha="center", va="bottom", fontsize=9.5, color=theme.muted,
    )  # fmt: skip
