"""Charts of studies: settings that share an x are points, and few values of a logarithmic axis are all written at it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pytest

from tradewind.lab.drawing import draw
from tradewind.lab.study import Chart, Row
from tradewind.report.figures.theme import LIGHT, style


def axes_of(chart: Chart, rows: Sequence[Row]) -> Any:
    with style():
        return draw(chart, rows, LIGHT).axes[0]


def rows_of(*points: tuple[float, float]) -> list[Row]:
    return [{"load": x, "who": "a", "value": y, "low": y - 1, "high": y + 1} for x, y in points]


CHART = Chart(x="load", y="value", series="who", low="low", high="high")


def test_several_settings_at_one_x_are_points_beside_each_other_not_a_line() -> None:
    axes = axes_of(CHART, rows_of((1, 5), (1, 7), (4, 6)))
    (points,) = axes.get_lines()
    assert points.get_linestyle() == "None"
    assert points.get_ydata().tolist() == [5, 7, 6]
    assert [label.get_text() for label in axes.get_xticklabels()] == ["1", "4"]
    assert axes.get_xlabel() == "load"
    bars = Chart(x="load", y="value", series="who", kind="bar", low="low", high="high")
    assert not axes_of(bars, rows_of((1, 5), (1, 7))).patches
    assert len(axes_of(bars, rows_of((1, 5), (2, 7))).patches) == 2


def test_one_value_per_x_is_a_line_with_whiskers() -> None:
    (container,) = axes_of(CHART, rows_of((1, 5), (4, 6))).containers
    assert container.lines[0].get_linestyle() == "-"
    assert container.has_yerr


def test_a_logarithmic_axis_names_its_values() -> None:
    log = Chart(x="load", y="value", log_x=True)
    axes = axes_of(log, rows_of((0.25, 1), (1, 2), (2000, 3)))
    assert [label.get_text() for label in axes.get_xticklabels()] == ["0.25", "1", "2,000"]
    assert not axes.get_xticks(minor=True).size


def test_long_names_beside_each_other_do_not_touch() -> None:
    names = (
        "dps",
        "dps-paper",
        "dps-simple",
        "top",
        "random",
        "bfp",
        "bfp-tau",
        "bfp-printed",
        "non-peeking bound",
    )
    rows: list[Row] = [{"policy": name, "profit": 1.0} for name in names]
    with style():
        axes = draw(Chart(x="policy", y="profit", kind="bar"), rows, LIGHT).axes[0]
        axes.figure.canvas.draw()
        boxes = [label.get_window_extent() for label in axes.get_xticklabels()]
        turned = [label.get_rotation() > 0 for label in axes.get_xticklabels()]
    assert all(turned) or all(a.x1 < b.x0 for a, b in pairwise(boxes))


@pytest.mark.parametrize("width", [760, 329])
@pytest.mark.parametrize("count", [4, 32, 144])
def test_settings_with_long_names_are_numbered_within_the_picture(count: int, width: float) -> None:
    rows: list[Row] = [
        {"setting": f"setting {i} with a name of many words", "value": 1.0} for i in range(count)
    ]
    with style():
        axes = draw(Chart(x="setting", y="value", kind="bar"), rows, LIGHT, width).axes[0]
        axes.figure.canvas.draw()
        labels = [label for label in axes.get_xticklabels() if label.get_text()]
        boxes = [label.get_window_extent() for label in labels]
    assert labels[0].get_text() == "1"
    assert axes.get_xlabel() == f"setting, 1 to {count} in the order of the numbers"
    assert all(a.x1 < b.x0 for a, b in pairwise(boxes))
    assert all(box.x0 >= 0 and box.y0 >= 0 for box in boxes)


def test_many_short_names_are_numbered_where_they_have_no_room() -> None:
    rows: list[Row] = [{"setting": f"a{i}", "value": 1.0} for i in range(144)]
    axes = axes_of(Chart(x="setting", y="value", kind="bar"), rows)
    assert {label.get_text() for label in axes.get_xticklabels()} >= {"1", ""}
