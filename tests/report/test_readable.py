"""Charts that an operator can read: nothing strikes through a number, no curve hides another, no impossible interval."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import tradewind as tw
from tests.report.sample_runs import cluster, run, scheduled, wan
from tradewind.model.node import Node
from tradewind.model.result import Bound, Run
from tradewind.model.units import UNLIMITED
from tradewind.report import charts, page
from tradewind.report.figures import bars, curves, places
from tradewind.report.figures.data import RunData, ScenarioData, Series
from tradewind.report.figures.theme import LIGHT, canvas, draw_curves, style
from tradewind.report.summary import group, is_idle


def runs(
    values: Sequence[float], ratios: Sequence[float] = (), sense: Any = "min", kind: Any = "certified"
) -> list[Run]:
    scenario = cluster(3)
    found = [run(scenario, policy="a", seed=i, metrics={"jct_mean_s": v}) for i, v in enumerate(values)]
    bounds = [Bound(value=1.0, sense=sense, kind=kind, ratio=r) for r in ratios]
    return [replace(r, bound=b) for r, b in zip(found, bounds, strict=True)] if ratios else found


def drawn(make: Any, given: Sequence[Run]) -> tuple[Any, Any]:
    with style():
        figure = make(group(given), LIGHT, 400.0)
    figure.canvas.draw()
    return figure, figure.axes[0]


def interval(axes: Any) -> tuple[float, float]:
    line = next(line for line in axes.lines if line.get_marker() == "|")
    return float(line.get_xdata()[0]), float(line.get_xdata()[-1])


@pytest.mark.parametrize("make", [bars.objective, bars.ratio])
def test_numbers_stand_right_of_everything_that_is_drawn(make: Any) -> None:
    _, axes = drawn(make, runs([1.0, 900.0, 3.0], [1.0, 1.6, 1.1]))
    right = axes.get_window_extent().x1
    assert axes.texts
    for text in axes.texts:
        assert text.get_window_extent().x0 > right


@pytest.mark.parametrize("make", [bars.objective, bars.ratio])
def test_settings_of_one_policy_have_whole_names_that_do_not_touch(make: Any) -> None:
    weights = [f"60,600,{n}" for n in (6000, 7000, 8000)]
    same = [replace(one, params={"limits": w, "tick_s": 5.0}) for w in weights for one in runs([1.0], [1.1])]
    figure, axes = drawn(make, [*same, *(replace(one, policy="b") for one in runs([2.0], [1.2]))])
    names = [label.get_text().replace("\n", " ") for label in axes.get_yticklabels()]
    assert [n.replace(" ", "") for n in names] == [*(f"a(limits={w})" for w in weights), "b"]
    boxes = [label.get_window_extent() for label in axes.get_yticklabels()]
    assert all(a.y0 >= b.y1 for a, b in pairwise(boxes))
    assert min(box.x0 for box in boxes) >= figure.bbox.x0


def test_numbers_of_a_logarithmic_time_axis_do_not_touch() -> None:
    with style():
        figure, axes = curves.single(400)
        axes.set_xscale("log")
        curves._log_time(axes, 20.0, 5e6, 1.0)  # 10 h and 1 d are nearest
        figure.canvas.draw()
        labels = [label for label in axes.get_xticklabels() if label.get_text()]
        boxes = [label.get_window_extent() for label in labels]
    assert len(labels) >= 4
    assert all(a.x1 + 4 < b.x0 for a, b in pairwise(boxes))


def test_an_interval_ends_where_no_value_can_be() -> None:
    assert interval(drawn(bars.objective, runs([1.0, 900.0, 3.0]))[1])[0] == 0.0
    assert interval(drawn(bars.ratio, runs([1.0, 2.0], [1.0, 1.6]))[1])[0] == 1.0
    low, high = interval(drawn(bars.ratio, runs([1.0, 2.0], [0.1, 0.99], "max"))[1])
    assert (low, high) == (0.0, 1.0)
    assert interval(drawn(bars.ratio, runs([1.0, 2.0], [0.9, 1.4], "max", "in-expectation"))[1])[1] > 1.4
    assert interval(drawn(bars.objective, runs([60.0, 600.0], [60.0, 600.0]))[1])[0] == pytest.approx(1 / 60)
    apart = runs([60.0, 600.0], [60.0, 600.0])  # of two bounds none limits the mean
    apart[1] = replace(apart[1], bound=Bound(value=2.0, sense="min", kind="certified", ratio=300.0))
    assert interval(drawn(bars.objective, apart)[1])[0] == 0.0


@pytest.mark.parametrize("make", [bars.objective, bars.ratio])
def test_a_single_seed_has_no_interval_whatever_the_bound_allows(make: Any) -> None:
    _, axes = drawn(make, runs([0.9], [0.9], "max"))
    assert [line for line in axes.lines if line.get_marker() == "|"] == []


def test_ids_of_jobs_are_whole_on_a_desktop_and_units_in_use_are_counted_in_whole_numbers() -> None:
    name = "vision-finetune-2026-11"
    where = replace(cluster(3).setup, nodes=(Node(name="cloud", capacity_milli=(UNLIMITED,)),))
    data = replace(
        cluster(3), setup=where, jobs=tuple(replace(job, id=f"{name}-{job.index}") for job in cluster(3).jobs)
    )
    series = Series(
        group=group([tw.run(data, "fifo")])[0], data=RunData(ScenarioData(data), tw.run(data, "fifo"))
    )
    chart = charts.jobs(series)
    assert chart
    with style():
        ids = [label.get_text() for label in chart.draw(960.0).axes[0].get_yticklabels()]
        used = curves.utilisation([series], LIGHT, 960.0)
    used.canvas.draw()
    assert ids == [f"{name}-{i}" for i in range(3)]
    ticks = used.axes[0].get_yticks()
    assert len(ticks) > 1
    assert (ticks == np.floor(ticks)).all()


def test_zeros_of_both_axes_stand_apart() -> None:
    scenario = cluster(20)
    (one,) = group([scheduled(scenario, "fifo")])
    series = [Series(group=one, data=RunData(ScenarioData(scenario), one.first))]
    with style():
        figure = curves.utilisation(series, LIGHT, 400.0)
        figure.canvas.draw()
        axes = figure.axes[0]
        across, up = (
            labels[0].get_window_extent() for labels in (axes.get_xticklabels(), axes.get_yticklabels())
        )
    assert not across.overlaps(up)


def test_a_wide_interval_does_not_squeeze_the_bars() -> None:
    wide = runs([1.0, 900.0])
    assert bars.is_cut(group(wide))
    assert drawn(bars.objective, wide)[1].get_xlim()[1] == pytest.approx(2 * 450.5 / 60)  # minutes
    assert not bars.is_cut(group(runs([400.0, 410.0])))


def test_equal_curves_take_turns_and_others_stay_solid() -> None:
    axes = canvas(300, 200).add_subplot()
    x, y = np.arange(4.0), np.arange(4.0)
    draw_curves(axes, [(x, y, "red"), (x, y + 1, "green"), (x, y.copy(), "blue")])
    first, alone, second = axes.lines
    assert alone.get_linestyle() == "-"
    assert first.get_linestyle() == second.get_linestyle() == "--"
    assert first._unscaled_dash_pattern != second._unscaled_dash_pattern


def test_every_text_of_a_chart_is_at_least_twelve_pixels_on_a_phone() -> None:
    scenario = cluster(20)
    text = page.html(scenario, [tw.run(scenario, policy=name) for name in ("fifo", "las")])
    narrow = re.findall(r'<div class="narrow"><svg viewBox="0 0 ([0-9.]+) .*?</svg>', text, flags=re.DOTALL)
    assert narrow
    assert (
        max(map(float, narrow)) <= 329
    )  # what a phone of 375 px leaves beside margins, so a unit is a pixel or more
    assert min(map(float, re.findall(r"font-size: ([0-9.]+)px", text))) >= 12


def test_a_policy_whose_parameters_follow_from_each_scenario_is_one_group() -> None:
    found = [tw.run(tw.generate("dps", jobs=8, seed=s), policy="bfp", seed=s) for s in (0, 1)]
    assert found[0].params != found[1].params
    assert [g.label for g in group(found)] == ["bfp"]


def test_streams_have_no_completion_curve_and_no_profit_but_bills() -> None:
    scenario = tw.generate("mlbroker", slots=3, sites=4, jobs_per_slot=4)
    both = [tw.run(scenario, policy=name) for name in ("mlbroker", "local")]
    text = page.html(scenario, both)
    assert "Completion times" not in text
    assert is_idle("profit_usd", both)
    assert ">profit" not in text
    assert "Bills by tenant and policy" in text
    assert "seed 0 · scenario" in text


def test_known_positions_are_drawn_and_names_do_not_cover_each_other() -> None:
    scenario = tw.generate("apsp")
    found = places.graph(RunData(ScenarioData(scenario), tw.run(scenario, policy="apsp")))
    position: Any = scenario.origin["positions"]
    east = np.array([position[name][1] for name in found.names])
    assert np.corrcoef(east, found.xy[:, 0])[0, 1] == pytest.approx(1.0)
    with style():
        figure = places.draw_graph(found, LIGHT, 960.0)
    figure.canvas.draw()
    boxes = [text.get_window_extent() for text in figure.axes[0].texts]
    assert len(boxes) == len(found.names)
    overlapping = [
        (a, b)
        for i, a in enumerate(boxes)
        for b in boxes[:i]
        if a.shrunk(0.98, 0.7).overlaps(b.shrunk(0.98, 0.7))
    ]
    assert overlapping == []
    nowhere = replace(scenario, origin={**scenario.origin, "positions": {"x": "y"}})
    assert places.graph(RunData(ScenarioData(nowhere), tw.run(nowhere, policy="apsp"))).names == found.names


def test_on_a_phone_nodes_that_do_nothing_have_no_names_where_there_are_many() -> None:
    scenario = tw.generate("mlbroker", sites=20, slots=2, jobs_per_slot=1.0)
    found = places.graph(RunData(ScenarioData(scenario), tw.run(scenario, policy="local")))
    used = (found.busy > 0) | (found.serves > 0)
    used[found.arcs.ravel()] = True
    assert 0 < used.sum() < 8 < 16 < len(found.names)
    with style():
        figure = places.draw_graph(found, LIGHT, 360.0)
    said = {text.get_text().replace("\n", "") for text in figure.axes[0].texts}
    assert said == {name for name, mine in zip(found.names, used, strict=True) if mine}


def test_data_and_parameters_are_told_apart() -> None:
    scenario = tw.generate("mlbroker", slots=3, sites=5, jobs_per_slot=4)
    found = places.graph(RunData(ScenarioData(scenario), tw.run(scenario, policy="mlbroker")))
    assert {bool(x) for x in found.arc_is_traffic} == {True, False}
    assert not places.graph(RunData(ScenarioData(wan()), run(wan()))).arc_is_traffic.any()
