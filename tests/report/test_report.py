"""The report is one self-contained file, agrees with the metrics, and copes with odd runs."""

from __future__ import annotations

import math
import re
import time
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tradewind as tw
from tests.report.sample_runs import (
    HOUR,
    S,
    Tables,
    broken,
    cluster,
    job,
    market,
    moved,
    run,
    scheduled,
    setup,
    wan,
)
from tradewind.model.errors import InputError
from tradewind.model.result import Run
from tradewind.model.scenario import Scenario
from tradewind.report import page as report
from tradewind.report.figures.data import RunData, ScenarioData
from tradewind.report.live import measured

VOID = {"meta", "link", "br", "img", "hr"}


class Page(HTMLParser):
    """Check that tags close in order; collect ids, headings and addresses."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.addresses: list[str] = []
        self.headings: list[str] = []
        self.unnamed = 0
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        if tag not in VOID:
            self.open.append(tag)
        self.ids += [found["id"] or ""] if "id" in found else []
        self.addresses += [v or "" for k, v in attrs if k in ("src", "href", "xlink:href", "data", "action")]
        self.unnamed += tag == "svg" and not found.get("aria-label")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] in ("h2", "h3"):
            self.headings.append(data)


def compared() -> tuple[Scenario, list[Run]]:
    scenario = cluster(60)
    return scenario, [scheduled(scenario, p, s) for p in ("fifo", "sjf", "largest") for s in (1, 2, 3)]


@pytest.fixture(scope="module")
def text() -> str:
    return report.html(*compared(), title="A <crowded> cluster")


def test_the_page_is_well_formed_and_every_chart_has_a_label(text: str) -> None:
    page = Page(text)
    assert page.unnamed == 0
    assert len(page.ids) == len(set(page.ids))


def test_the_page_needs_no_network(text: str) -> None:
    assert all(a.startswith(("#", "data:")) for a in Page(text).addresses)
    assert "<script" not in text
    assert "@import" not in text
    assert re.findall(r"url\((?!#)", text) == []


def test_every_reference_inside_a_chart_resolves(text: str) -> None:
    page = Page(text)
    used = re.findall(r"url\(#([^)]+)\)", text) + [a[1:] for a in page.addresses if a.startswith("#")]
    assert set(used) <= set(page.ids)


def test_the_style_sheet_covers_light_dark_phone_and_print(text: str) -> None:
    for rule in ("prefers-color-scheme: dark", "max-width: 760px", "@media print", 'name="viewport"'):
        assert rule in text
    declared = set(re.findall(r"(--[a-z0-9]+):", text))
    assert set(re.findall(r"var\((--[a-z0-9]+)\)", text)) <= declared


def test_no_colour_is_fixed_outside_the_style_sheet(text: str) -> None:
    body = text[text.index("</style>") :]
    assert re.findall(r"[:\"]\s*#[0-9a-fA-F]{6}\b", body) == []


def test_the_same_runs_give_the_same_bytes(text: str) -> None:
    assert report.html(*compared(), title="A <crowded> cluster") == text


def test_title_and_names_are_escaped(text: str) -> None:
    assert "<title>A &lt;crowded&gt; cluster</title>" in text
    scenario = cluster(10)
    odd = replace(scheduled(scenario, "fifo"), policy='<img src="x">', params={"k": "<script>"})
    page = report.html(scenario, [odd])
    assert "<img" not in page
    assert "<script" not in page


def test_the_table_shows_means_intervals_and_the_winner(text: str) -> None:
    rows = re.findall(r'<tr class="best">.*?</tr>', text)
    assert len(rows) == 1
    assert "sjf" in rows[0]
    assert "±" in rows[0]
    assert "60 <small>of 60</small>" in rows[0]
    assert "20.0\u202fµs" in rows[0]


def test_sections_without_data_are_left_out(text: str) -> None:
    assert Page(text).headings == [
        "Results", "Mean completion time", "Completion times", "Resources in use", "Queue",
        "Placement", "Servers under sjf", "Jobs", "Jobs under sjf", "All runs",
        "Servers under fifo", "Jobs under fifo", "Servers under largest", "Jobs under largest",
    ]  # fmt: skip
    scenario = wan()
    headings = Page(report.html(scenario, [moved(scenario)])).headings
    assert "Cost by type" in headings
    assert "Nodes and flows under nearest" in headings
    assert "Prices offered" not in headings
    assert "Prices offered" in Page(report.html(*_market())).headings


def _market() -> tuple[Scenario, list[Run]]:
    scenario, result = market()
    return scenario, [result]


def test_metrics_that_are_always_zero_are_left_out(text: str) -> None:
    assert "<small>makespan_s</small>" in text
    assert "<small>cost_usd</small>" not in text
    assert text.index("<small>jct_mean_s</small>") < text.index("<small>makespan_s</small>")


def test_a_large_gap_is_shown_as_a_multiple() -> None:
    scenario = cluster(10)
    fast = scheduled(scenario, "fifo")
    slow = replace(fast, policy="slow", metrics={"jct_mean_s": 7.5 * fast.value})
    assert "×7.50" in report.html(scenario, [fast, slow])


@pytest.mark.parametrize("policy", ["fifo", "las", "srtf"])
def test_chart_data_agrees_with_the_audited_metrics(policy: str) -> None:
    scenario = tw.generate("cluster", jobs=80, seed=3)
    result = tw.run(scenario, policy, seed=3)
    data = RunData(ScenarioData(scenario), result)
    assert data.load == pytest.approx(result.metrics["utilisation_gpu"], rel=1e-9)
    assert data.completion_s.mean() == pytest.approx(result.metrics["jct_mean_s"], rel=1e-9)
    assert data.end_us >= result.metrics["makespan_s"] * S


def test_one_scenario_per_seed_makes_one_report() -> None:
    found = tw.compare(
        [tw.generate("cluster", jobs=30, seed=s) for s in (1, 2)], ["fifo", "srtf"], seeds=(1, 2)
    )
    page = report.html(found.scenarios, found.runs)
    Page(page)
    assert "2 seeds" in page


def test_a_run_with_violations_is_shown_but_not_ranked() -> None:
    scenario = cluster(20)
    page = report.html(scenario, [broken(scenario), scheduled(scenario, "fifo")])
    assert "1 violation" in page
    assert "rule capacity, job job-3, at s1, slot 4" in page
    assert "cheater violated an audit rule" in page
    assert re.findall(r'<tr class="best">.*?</i>(\w+)', page) == ["fifo"]


def test_a_run_without_any_activity_still_has_a_report() -> None:
    scenario = Scenario(name="nothing", setup=setup(), jobs=(job(0),))
    t = Tables()
    t.event(0, "arrived", 0)
    t.event(0, "refused", 0)
    t.outcome(0, "refused")
    result = run(scenario, t, metrics={"jct_mean_s": math.nan, "jobs_completed": 0.0})
    page = report.html(scenario, [result])
    Page(page)
    assert "No policy has a value" in page
    Page(
        report.html(scenario, [run(scenario, metrics={"jct_mean_s": math.nan}), replace(result, policy="b")])
    )


def test_a_live_report_shows_no_loss_where_none_was_reported() -> None:
    where = setup()
    data = Scenario(setup=where, jobs=(job(0), job(1)), name="two")
    attempts: dict[str, Any] = {
        "job": [0, 1], "slot": [0, 0], "places": ["1@a", "1@a"], "why": ["complete", "complete"], "iterations": [5, 5],
        "measured_s": [0.1, 0.1], "predicted_s": [0.2, 0.2], "bytes_sent": [0.0, 0.0],
    }  # fmt: skip
    ran = run(data, Tables())
    live = [
        measured(
            data,
            replace(ran, world="processes", tables={**ran.tables, "attempts": {**attempts, "loss": loss}}),
        )
        for loss in ([0.0, 0.0], [0.0, 1.5])
    ]
    assert ">loss<" not in live[0]
    assert "<td>1.5</td>" in live[1]
    assert "<td>0</td></tr>" not in live[1]
    assert '<td class="words"><div>complete</div></td>' in live[1]


def test_a_loss_is_drawn_too() -> None:
    scenario, result = market()
    worse = replace(result, policy="loss", metrics={"profit_usd": -40.0})
    page = report.html(scenario, [result, worse])
    Page(page)
    assert "−40" in page


def test_a_report_without_runs_is_rejected() -> None:
    with pytest.raises(InputError, match="no run"):
        report.html(cluster(3), [])


def test_write_leaves_one_complete_file(tmp_path: Path) -> None:
    scenario = cluster(10)
    path = report.write(tmp_path / "r.html", scenario, [scheduled(scenario, "fifo")])
    assert path.read_text(encoding="utf-8").endswith("</html>\n")
    assert [p.name for p in tmp_path.iterdir()] == ["r.html"]
    with pytest.raises(InputError, match="cannot be written"):
        report.write(tmp_path / "nowhere" / "r.html", scenario, [scheduled(scenario, "fifo")])


def large(jobs: int, pieces: int) -> tuple[Scenario, Run]:
    """Jobs that run in pieces with pauses in between, each piece a plan and a stop, on 312 servers."""
    rng = np.random.default_rng(5)
    arrive = np.sort(rng.integers(0, 1000 * HOUR, jobs))
    begin = arrive[:, None] + np.cumsum(rng.integers(S, 2 * HOUR, (jobs, pieces)), axis=1)
    end = begin + np.diff(begin, axis=1, append=begin[:, -1:] + 2 * S) // 2 + 1
    at = np.stack((begin, end), axis=2).ravel()
    order = np.argsort(at, kind="stable")
    row = np.argsort(order, kind="stable").reshape(jobs, pieces, 2)
    t, count = Tables().tables, jobs * pieces
    every, state = list(range(jobs)), ["finished"] * jobs
    t["plans"] = {
        "at_us": at[order].tolist(),
        "decision": [0] * len(at),
        "job": (order // (2 * pieces)).tolist(),
    }
    t["steps"] = {
        "plan": row[..., 0].ravel().tolist(),
        "from_us": begin.ravel().tolist(),
        "until_us": [-1] * count,
    }
    node = rng.integers(0, 312, count).tolist()
    t["places"] = {"step": list(range(count)), "node": node, "workers": [1] * count, "servers": [0] * count}
    t["events"] = {"at_us": end[:, -1].tolist(), "kind": state, "job": every}
    t["outcomes"] = {"job": every, "state": state, "finish_us": end[:, -1].tolist()}
    scenario = Scenario(
        name="large",
        setup=setup(312, horizon_us=2000 * HOUR),
        jobs=tuple(job(i, int(a)) for i, a in enumerate(arrive)),
    )
    return scenario, replace(run(scenario), tables=t)


def test_a_large_run_gives_a_small_page_quickly() -> None:
    scenario, result = large(20_000, 5)
    began = time.process_time()
    page = report.html(scenario, [result])
    spent = time.process_time() - began
    assert len(page) < 1_500_000
    assert spent < 10  # about 1.5 s on a quiet machine
