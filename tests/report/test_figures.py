"""The data behind figures, and that drawing is themed and reproducible."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.report.sample_runs import HOUR, S, Tables, cluster, job, market, moved, run, scheduled, setup, wan
from tradewind.model.arrays import Floats
from tradewind.model.errors import InputError
from tradewind.model.job import Customer, Stream
from tradewind.model.node import Node
from tradewind.model.result import Bound
from tradewind.model.scenario import Scenario
from tradewind.model.text import shown
from tradewind.model.units import UNLIMITED
from tradewind.model.view import Change
from tradewind.report import charts, quantities, summary
from tradewind.report.figures import bars, comparison, curves, gantt, labels, places
from tradewind.report.figures.data import RunData, ScenarioData, Series, bins, kinds, link_bps, moved_bytes
from tradewind.report.figures.theme import LIGHT, THEMED, canvas, make_logarithmic, style, svg


def run_data(scenario: Scenario, tables: Tables) -> RunData:
    return RunData(ScenarioData(scenario), run(scenario, tables))


def two_jobs() -> tuple[Scenario, Tables]:
    """Job 0 has 4 gpus in the first of two hours, job 1 waits and then has 8 of 16."""
    scenario = Scenario(name="two", setup=setup(2), jobs=(job(0), job(1)))
    t = Tables()
    for j in (0, 1):
        t.event(0, "arrived", j)
    t.plan(0, 0, (0, -1, [(0, 4)]))
    t.event(HOUR, "finished", 0)
    t.plan(HOUR, 1, (HOUR, -1, [(1, 8)]))
    t.event(2 * HOUR, "finished", 1)
    t.outcome(0, "finished", 0, HOUR)
    t.outcome(1, "finished", HOUR, 2 * HOUR)
    return scenario, t


def test_a_job_that_was_given_up_does_not_wait_from_then_on() -> None:
    data = Scenario(setup=setup(), jobs=(job(0), job(1)), name="two")
    tables = Tables()
    for number, end, how in ((0, 2 * HOUR, "finished"), (1, HOUR, "ended")):
        tables.event(0, "arrived", number)
        tables.plan(0, number, (0, end, [(0, 1)]))
        tables.event(end, how, number)
    tables.outcome(0, "finished", 0, 2 * HOUR)
    tables.outcome(1, "unfinished", 0)
    found = RunData(ScenarioData(data), run(data, tables))
    assert found.wait_mean_s == 0.0
    assert found.queue(bins(2 * HOUR, 2)).tolist() == [0.0, 0.0]


def test_use_and_queue_follow_the_plans() -> None:
    found = run_data(*two_jobs())
    edges = bins(2 * HOUR, 2)
    assert found.end_us == 2 * HOUR
    np.testing.assert_allclose(found.used(edges), [[4.0, 8.0]])
    np.testing.assert_allclose(found.queue(edges), [1.0, 0.0])
    assert found.load == pytest.approx(6 / 16)
    assert found.wait_mean_s == pytest.approx(1800)
    assert found.completion_s.tolist() == [3600.0, 7200.0]
    assert found.worker_seconds.tolist() == [4 * 3600.0, 8 * 3600.0]


def test_a_stream_without_data_does_not_wait() -> None:
    scenario, t = two_jobs()
    whole, stream = Customer(), replace(scenario.jobs[1], work=Stream(bytes_per_worker_slot=1))
    streams = replace(
        scenario, jobs=(scenario.jobs[0], stream), customers=(whole, Customer(runtime_us=2 * HOUR))
    )
    found = run_data(streams, t)
    assert found.queue(bins(2 * HOUR, 2)).tolist() == [0.0, 0.0]
    assert found.wait_mean_s == 0.0


def test_capacity_follows_failures_and_limits_of_parents() -> None:
    nodes = (
        Node(name="site", capacity_milli=(10_000,)),
        Node(name="a", kind="server", parent=0, capacity_milli=(8_000,)),
        Node(name="b", kind="server", parent=0, capacity_milli=(8_000,)),
        Node(name="alone", kind="server", capacity_milli=(3_000,)),
    )
    changes = (Change(HOUR, "node_down", 1, 0, 0), Change(2 * HOUR, "capacity", 3, 0, 1_000))
    scenario = Scenario(name="tree", setup=setup(nodes=nodes), jobs=(job(0),), changes=changes)
    assert ScenarioData(scenario).capacity(bins(3 * HOUR, 3)).tolist() == [[13.0, 11.0, 9.0]]


def test_capacity_is_infinite_if_a_root_is_unlimited() -> None:
    scenario = Scenario(
        name="free", setup=setup(nodes=(Node(name="x", capacity_milli=(UNLIMITED,)),)), jobs=(job(0),)
    )
    assert np.isinf(ScenarioData(scenario).capacity(bins(HOUR, 1))).all()


def test_many_numbered_resources_become_one_kind() -> None:
    names = [f"worker-{i}" for i in range(5)] + [f"ps-{i}" for i in range(4)]
    found = kinds(names)
    assert found.names == ("worker", "ps")
    assert found.of == (0,) * 5 + (1,) * 4
    assert kinds(["worker-1", "worker-2"]).names == ("worker-1", "worker-2")


def test_a_long_tail_with_little_activity_is_cut() -> None:
    scenario = Scenario(name="tail", setup=setup(4, horizon_us=100 * HOUR), jobs=(job(0, workers=30), job(1)))
    t = Tables()
    t.plan(0, 0, (0, 10 * HOUR, [(0, 8), (1, 8), (2, 8), (3, 6)]))
    t.plan(0, 1, (0, 90 * HOUR, [(3, 1)]))
    t.event(10 * HOUR, "finished", 0)
    t.event(90 * HOUR, "finished", 1)
    assert run_data(scenario, t).shown_us < 12 * HOUR
    assert run_data(*two_jobs()).shown_us == 2 * HOUR


def test_moved_data_adds_up_by_pair() -> None:
    scenario = wan()
    found = RunData(ScenarioData(scenario), moved(scenario))
    src, dst, size, traffic = moved_bytes(found)
    assert not traffic.any()
    assert set(zip(src.tolist(), dst.tolist(), strict=True)) == {((h + 2) % 6, h) for h in range(6)}
    assert size.sum() == sum(5 * 10**9 * (1 + i) for i in range(20))
    assert (np.diff(size) <= 0).all()


def test_reserved_bandwidth_adds_up_by_link_and_counts_a_shared_link_once() -> None:
    scenario = wan()
    result = moved(scenario)
    found = RunData(ScenarioData(scenario), result)
    per_job = 2 * 1e8 * 5 * HOUR / found.end_us
    homes = np.bincount([j % 6 for j in range(20)], minlength=7)
    np.testing.assert_allclose(link_bps(found), homes * per_job)
    shared = replace(scenario.setup, links=tuple(replace(x, shared=True) for x in scenario.setup.links))
    half = RunData(ScenarioData(replace(scenario, setup=shared)), result)
    np.testing.assert_allclose(link_bps(half), homes * per_job / 2)


def test_the_gantt_chart_shows_the_largest_jobs_by_arrival() -> None:
    scenario = cluster(200)
    found = RunData(ScenarioData(scenario), scheduled(scenario, "fifo"))
    chart = gantt.gantt(found)
    assert (len(chart.jobs), chart.total) == (gantt.MOST_ROWS, 200)
    left_out = np.setdiff1d(np.arange(200), chart.jobs)
    assert found.worker_seconds[left_out].max() <= found.worker_seconds[chart.jobs].min()
    assert (np.diff(chart.jobs) > 0).all()
    assert chart.by == "node"


def test_short_pauses_are_joined_until_the_bars_are_few() -> None:
    scenario = Scenario(name="flicker", setup=setup(1), jobs=tuple(job(i) for i in range(4)))
    t = Tables()
    for j in range(4):
        t.plan(0, j, *[(k * 10 * S, (k * 10 + 5) * S, [(0, 1)]) for k in range(2000)])
        t.event(scenario.setup.horizon_us, "ended", j)
    chart = gantt.gantt(run_data(scenario, t))
    assert len(chart.row) <= gantt.MOST_BARS
    assert chart.gap_us > 0
    assert chart.until_us.max() == (1999 * 10 + 5) * S


def test_colours_fall_back_to_the_number_of_workers_on_many_servers() -> None:
    scenario = Scenario(name="many", setup=setup(20), jobs=tuple(job(i, workers=2**i) for i in range(5)))
    t = Tables()
    for j in range(5):
        t.plan(0, j, (0, HOUR, [(4 * j + k, 2**j // 4 or 2**j) for k in range(4 if 2**j >= 4 else 1)]))
    t.plan(0, 0, (0, HOUR, [(n, 1) for n in range(20)]))
    chart = gantt.gantt(run_data(scenario, t))
    assert chart.by == "workers"
    assert chart.legend == ("1", "2–3", "4–7", "8–15", "16 or more")
    assert chart.shares[chart.mix].argmax(axis=1).tolist() == [4, 1, 2, 3, 4]


def test_a_job_at_several_nodes_has_a_band_for_each_as_thick_as_its_share() -> None:
    scenario = Scenario(name="split", setup=setup(2), jobs=(job(0, workers=4), job(1, workers=4)))
    t = Tables()
    t.plan(0, 0, (0, HOUR, [(0, 3), (1, 1)]), (HOUR, 2 * HOUR, [(1, 4)]))
    t.plan(0, 1, (0, HOUR, [(0, 4)]))
    t.event(2 * HOUR, "ended", 0)
    found = run_data(scenario, t)
    chart = gantt.gantt(found)
    assert chart.shares[chart.mix].tolist() == [[0.75, 0.25], [0.0, 1.0], [1.0, 0.0]]
    figure = gantt.draw(chart, found, LIGHT, 400)
    bands = [patch for patch in figure.axes[0].patches if patch.get_alpha() == 1.0]
    first, second = (patch.get_path().vertices.reshape(-1, 5, 2) for patch in bands)
    heights = [[float(np.ptp(box[:, 1])) for box in boxes] for boxes in (first, second)]
    np.testing.assert_allclose(heights, [[0.54, 0.72], [0.18, 0.72]])
    assert first[0][:, 1].max() == pytest.approx(second[0][:, 1].min())  # one below the other


def test_curves_of_few_changes_are_exact_and_of_many_are_means() -> None:
    scenario, t = two_jobs()
    series = [shown_series(scenario, t)]
    assert curves.edges_of(series).tolist() == [0.0, HOUR, 2 * HOUR]
    many = Tables()
    many.plan(0, 0, *[(k * 10 * S, (k * 10 + 5) * S, [(0, 1)]) for k in range(400)])
    many.event(2 * HOUR, "ended", 0)
    assert len(curves.edges_of([shown_series(scenario, many)])) == curves.POINTS + 1


def shown_series(scenario: Scenario, t: Tables) -> Series:
    result = run(scenario, t)
    return Series(group=summary.group([result])[0], data=RunData(ScenarioData(scenario), result))


def test_a_layout_is_repeatable_and_stays_in_its_box() -> None:
    ring = np.array([(i, (i + 1) % 9) for i in range(9)])
    tree = np.array([(0, i) for i in range(1, 4)] + [(i, 3 * i + k) for i in range(1, 4) for k in (1, 2, 3)])
    for count, links in (
        (9, ring),
        (13, tree),
        (5, np.zeros((0, 2), dtype=np.int64)),
        (120, ring),
        (1, ring[:0]),
    ):
        xy = places.layout(count, links)
        np.testing.assert_array_equal(xy, places.layout(count, links))
        assert xy.shape == (count, 2)
        assert np.abs(xy).max() <= 1 + 1e-12


def test_nodes_of_a_tree_do_not_overlap() -> None:
    tree = np.array(
        [(0, i) for i in range(1, 5)] + [(i, 4 + 4 * (i - 1) + k) for i in range(1, 5) for k in (1, 2, 3, 4)]
    )
    xy = places.layout(21, tree)
    apart = np.linalg.norm(xy[:, None] - xy[None], axis=2) + 9 * np.eye(21)
    assert apart.min() > 0.1


def test_names_of_nodes_are_clear_of_lines_discs_and_each_other_and_stay_in_the_picture() -> None:
    xy = np.array([[0.0, 80.0], [0.0, 0.0], [0.0, -80.0], [-190.0, 0.0]])
    lines = labels.points_of(xy[[[0, 1], [1, 2], [3, 1]]])
    texts = {n: labels.wrapped(f"gcp:northamerica-northeast{n}", 14) for n in range(4)}
    half = np.array([200.0, 110.0])
    found = labels.spots(xy, np.full(4, 8.0), texts, labels.Canvas(lines=lines, half=half))
    boxes: list[Floats] = []
    for n, spot in found.items():
        rows = texts[n].split("\n")
        size = np.array([labels.CHARACTER * max(map(len, rows)) / 2, labels.LINE * len(rows) / 2])
        assert not (np.abs(lines - spot) < size).all(axis=1).any(), texts[n]
        assert (np.abs(spot) + size <= half + 1e-9).all()
        assert labels.covered(np.asarray(spot), size, np.array(boxes).reshape(-1, 4)) == 0
        boxes.append(np.concatenate((spot - size, spot + size)))


def test_names_that_can_be_spared_are_left_out_where_they_would_cover_others() -> None:
    xy = np.array([[0.0, 0.0], [6.0, 0.0], [12.0, 0.0], [0.0, 90.0], [0.0, 6.0], [12.0, 6.0], [6.0, -6.0]])
    texts = {n: f"aws:us-east-{n}" for n in range(len(xy))}
    clear = labels.Canvas(lines=np.empty((0, 2)), half=np.array([200.0, 110.0]))
    found = labels.spots(xy, np.full(len(xy), 8.0), texts, clear, spare=range(1, len(xy)))
    assert {0, 3} <= set(found) < set(texts)  # the one that has to be there, and one with room
    assert set(labels.spots(xy, np.full(len(xy), 8.0), texts, clear)) == set(texts)


@pytest.mark.parametrize("name", ["gcp:northamerica-northeast2", "one two three four", "x" * 40, "a"])
def test_long_names_are_broken_into_lines_and_never_cut(name: str) -> None:
    assert labels.wrapped(name, 14).replace("\n", "").replace(" ", "") == name.replace(" ", "")


def test_nodes_at_the_same_place_are_drawn_apart() -> None:
    half = np.array([100.0, 100.0])
    xy = labels.apart(np.zeros((3, 2)), 20.0, half)
    assert min(float(np.hypot(*(xy[a] - xy[b]))) for a, b in ((0, 1), (0, 2), (1, 2))) > 15
    assert (np.abs(xy) <= half).all()


def test_the_heat_map_joins_servers_if_there_are_many() -> None:
    scenario = Scenario(name="wide", setup=setup(400), jobs=(job(0, workers=8),))
    t = Tables()
    t.plan(0, 0, (0, 2 * HOUR, [(0, 8)]))
    t.event(2 * HOUR, "finished", 0)
    found = places.heat(run_data(scenario, t))
    assert found is not None
    assert found.per_row == 3
    assert len(found.share) == 134
    np.testing.assert_allclose(found.share[0], 1 / 3)
    assert found.share[1:].max() == 0


def test_a_report_of_one_run_has_no_card_with_an_empty_half() -> None:
    bound = Bound(value=1.0, sense="min", kind="certified", ratio=2.0)
    plain, priced = cluster(20), wan()
    without = comparison.series_of(plain, [replace(scheduled(plain, "fifo"), bound=bound)])
    assert "objective" not in [spec.name for spec in charts.comparison_charts(without)]
    series = comparison.series_of(priced, [replace(moved(priced), bound=bound)])
    specs = charts.comparison_charts(series)
    assert [spec.name for spec in specs[:2]] == ["objective", "costs"]
    assert bars.height_of([series[0].group]) < 150 < bars.height_of([series[0].group] * 2)


def test_the_caption_of_a_large_map_names_its_busiest_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    scenario = wan()
    series = comparison.series_of(scenario, [moved(scenario)])[0]
    small = charts.place(series)
    monkeypatch.setattr(places, "MOST_NAMES", 5)
    large = charts.place(series)
    assert small is not None
    assert large is not None
    assert "busiest" not in small.caption
    drawn = places.graph(series.data)
    first = drawn.names[int(drawn.busy.argmax())]
    assert re.search(rf"the busiest by mean \w+ use: {re.escape(first)} \(", large.caption)


def test_all_placeholder_colours_become_variables() -> None:
    scenario = wan()
    series = comparison.series_of(
        scenario, [moved(scenario, p, s) for p in ("nearest", "far") for s in (1, 2)]
    )
    groups = [s.group for s in series]
    graph, chart = places.graph(series[0].data), gantt.gantt(series[0].data)
    with style():
        pictures = [
            svg(bars.objective(groups, THEMED, 400), "a", "x"),
            svg(bars.costs(groups, THEMED, 400), "b", "x"),
            svg(curves.utilisation(series, THEMED, 400), "c", "x"),
            svg(curves.queue(series, THEMED, 400), "d", "x"),
            svg(curves.completion(series, THEMED, 400), "e", "x"),
            svg(places.draw_graph(graph, THEMED, 400), "f", "x"),
            svg(gantt.draw(chart, series[0].data, THEMED, 400), "g", "x"),
        ]
    for text in pictures:
        assert re.findall(r"#[0-9a-fA-F]{6}\b", text) == []
        assert "var(--" in text
        ET.fromstring(text.replace("xlink:href", "href"))


def test_ids_start_with_the_name_of_the_figure_and_references_resolve() -> None:
    scenario, result = market()
    with style():
        text = svg(curves.prices(comparison.series_of(scenario, [result]), THEMED, 400), "asked", "x")
    ids = re.findall(r'\bid="([^"]+)"', text)
    assert len(ids) == len(set(ids))
    assert all(i.startswith("asked-") for i in ids)
    used = re.findall(r'href="#([^"]+)"', text) + re.findall(r"url\(#([^)]+)\)", text)
    assert set(used) <= set(ids)


def test_labels_are_escaped() -> None:
    scenario = cluster(5)
    series = comparison.series_of(scenario, [replace(scheduled(scenario, "fifo"), policy="<b>&")])
    with style():
        text = svg(bars.objective([s.group for s in series], THEMED, 400), "a", 'say "<b>&"')
    assert "<b>" not in text
    ET.fromstring(text.replace("xlink:href", "href"))


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("name", ["$\\frac{$", "$x^2$", "\x1b[2J\x9b31m", "\u202eab", "\u8239"])
def test_names_are_drawn_as_they_are_whatever_they_contain(name: str, tmp_path: Path) -> None:
    scenario = cluster(5)
    runs = [replace(scheduled(scenario, "fifo"), policy=name), scheduled(scenario, "sjf")]
    series = comparison.series_of(scenario, runs)
    with style():
        text = svg(bars.objective([s.group for s in series], THEMED, 400), "a", "label")
    picture = comparison.picture(tmp_path / "x", scenario, runs)[0].read_text()
    for drawn in (text, picture):
        found = "".join(ET.fromstring(drawn.replace("xlink:href", "href")).itertext())
        assert shown(name) in found
        assert shown(found) == found


def test_a_logarithmic_axis_has_plain_numbers() -> None:
    with style():
        figure = canvas(400, 200)
        axes = figure.add_subplot()
        axes.plot([1, 1000], [2, 5])
        make_logarithmic(axes, "x")
        make_logarithmic(axes, "y")
        found = set(ET.fromstring(svg(figure, "a", "").replace("xlink:href", "href")).itertext())
    assert {"1", "10", "100", quantities.number(1000), "2", "3", "4"} <= found


def test_pictures_are_reproducible_and_self_contained(tmp_path: Path) -> None:
    scenario = cluster(40)
    runs = [scheduled(scenario, p, s) for p in ("fifo", "sjf") for s in (1, 2)]
    first = [p.read_bytes() for p in comparison.picture(tmp_path / "a" / "x", scenario, runs)]
    again = [p.read_bytes() for p in comparison.picture(tmp_path / "b" / "x", scenario, runs)]
    assert first == again
    assert first[1].startswith(b"\x89PNG")
    assert LIGHT.series[0].encode() in first[0]
    assert b"var(" not in first[0]
    ET.fromstring(first[0])


def test_a_picture_names_the_bound_and_the_seeds(tmp_path: Path) -> None:
    scenario = wan()
    vector, _ = comparison.picture(tmp_path / "x", scenario, [moved(scenario, "nearest", s) for s in (1, 2)])
    assert "offline bound" in vector.read_text()
    assert "mean of 2 seeds with 95% interval" in vector.read_text()


def test_a_picture_without_finished_jobs_shows_the_queue(tmp_path: Path) -> None:
    scenario = Scenario(name="none", setup=setup(), jobs=(job(0),))
    t = Tables()
    t.event(0, "arrived", 0)
    t.outcome(0, "unfinished")
    vector, _ = comparison.picture(tmp_path / "x", scenario, [run(scenario, t)])
    assert "Jobs waiting" in vector.read_text()


def test_matplotlib_settings_of_the_user_are_kept() -> None:
    import matplotlib

    def settings() -> dict[str, object]:
        return {
            k: matplotlib.rcParams[k] for k in matplotlib.rcParams if k != "backend"
        }  # found out when first read

    before = settings()
    with style():
        assert matplotlib.rcParams["svg.fonttype"] == "none"
    assert settings() == before


def test_runs_are_matched_to_their_own_scenarios() -> None:
    from tradewind.model.hash import scenario_hash

    one, two = cluster(20, seed=1), cluster(30, seed=2)
    runs = [
        replace(scheduled(s, "fifo", i), scenario_hash=scenario_hash(s)) for i, s in enumerate((one, two))
    ]
    assert comparison.series_of([one, two], runs)[0].data.base.scenario is one
    with pytest.raises(InputError, match="not among those given"):
        comparison.series_of([two, cluster(5, seed=3)], runs)
    with pytest.raises(InputError, match="no run to report"):
        comparison.series_of(one, [])
