"""Groups runs into series, and writes the picture of a comparison."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tradewind.model.errors import InputError
from tradewind.model.hash import scenario_hash
from tradewind.model.result import Run
from tradewind.model.scenario import Scenario
from tradewind.report import quantities
from tradewind.report.figures import bars, curves
from tradewind.report.figures.data import RunData, ScenarioData, Series
from tradewind.report.figures.theme import LIGHT, Theme, canvas, save, style
from tradewind.report.summary import group, ranked

Scenarios = Scenario | Sequence[Scenario]
"""The scenario of all runs, or several (one per seed), matched to runs by hash."""


def series_of(scenario: Scenarios, runs: Sequence[Run]) -> list[Series]:
    """One series per policy and parameters, best first."""
    groups = ranked(group(runs))
    if not groups:
        raise InputError("there is no run to report; run at least one policy first")
    bases = _bases(scenario, [g.first for g in groups])
    return [Series(group=g, data=RunData(base, g.first)) for g, base in zip(groups, bases, strict=True)]


def _bases(scenario: Scenarios, runs: Sequence[Run]) -> list[ScenarioData]:
    """Scenario data of each run; runs of the same scenario share one object."""
    several = [scenario] if isinstance(scenario, Scenario) else list({id(s): s for s in scenario}.values())
    if len(several) == 1:
        return [ScenarioData(several[0])] * len(runs)
    known = {scenario_hash(s): ScenarioData(s) for s in several}
    for run in runs:
        if run.scenario_hash not in known:
            raise InputError(
                f"the run of {run.policy} with seed {run.seed} belongs to a scenario with hash "
                f"{run.scenario_hash[:12]}…, which is not among those given; pass the scenario it was made with"
            )
    return [known[run.scenario_hash] for run in runs]


def picture(
    stem: str | Path, scenario: Scenarios, runs: Sequence[Run], theme: Theme = LIGHT
) -> tuple[Path, Path]:
    """Write stem.svg and stem.png: the objective of each policy and its completion times; return both paths.

    If no job finished, the right half shows the queue instead.
    """
    series = series_of(scenario, runs)
    with style():
        figure = _compose(series, theme)
        return save(figure, Path(stem), _label(series))


def _label(series: Sequence[Series]) -> str:
    metric = series[0].group.objective
    values = ", ".join(f"{s.group.label} {quantities.measure(metric, s.group.value.mean)}" for s in series)
    return f"{quantities.name(metric)} by policy: {values}".replace("\u202f", " ")


def _compose(series: Sequence[Series], theme: Theme) -> Any:
    """Two charts side by side, with a legend in the right one."""
    groups = [s.group for s in series]
    width, height = 960.0, max(300.0, bars.height_of(groups) + 74)
    figure = canvas(width, height)
    figure.set_facecolor(theme.panel)
    left = 14 + bars.room_for(groups)
    left_axes = figure.add_axes((left / width, 48 / height, (400 - left) / width, 1 - 104 / height))
    bound = bars.draw_objective(left_axes, groups, theme)
    seeds = max(len(g.runs) for g in groups)
    if seeds > 1:
        left_axes.set_xlabel(
            f"{left_axes.get_xlabel()}, mean of {seeds} seeds with 95% interval".lstrip(", ")
        )
    if bound is not None:
        _name_bound(left_axes, bound, theme)
    right_axes = figure.add_axes((540 / width, 48 / height, 396 / width, 1 - 104 / height))
    if curves.finished(series):
        curves.draw_completion(right_axes, series, theme)
    else:
        curves.draw_queue(right_axes, series, theme)
    right_axes.set_title("")
    metric = groups[0].objective
    heads = (
        quantities.name(metric),
        "share of jobs completed" if curves.finished(series) else "jobs waiting",
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
    for s in series:
        right_axes.plot([], [], color=theme.policy(s.number), label=bars.named(s.group))
    right_axes.legend(loc="best", frameon=False, labelcolor=theme.ink, fontsize=9.5, handlelength=1.2)
    return figure


def _name_bound(axes: Any, x: float, theme: Theme) -> None:
    """Label the dashed line of the bound."""
    axes.annotate(
        "offline bound", (x, 1.0), xycoords=("data", "axes fraction"), xytext=(0, 3), textcoords="offset points",
        ha="center", va="bottom", fontsize=9.5, color=theme.muted,
    )  # fmt: skip
