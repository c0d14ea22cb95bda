"""What ran where and when, and the life of a job, for every kind of job."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from math import fsum
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tradewind as tw
from tradewind.cli.guard import guarded
from tradewind.cli.main import app
from tradewind.cli.show import same_decimals
from tradewind.cli.show_placements import table
from tradewind.model.errors import LookupFailed
from tradewind.model.scenario import Scenario
from tradewind.report.figures import places
from tradewind.report.figures.data import RunData, ScenarioData
from tradewind.report.life import life_of
from tradewind.report.placements import Place, Placement, csv_rows, joined, placements

KINDS: dict[str, tuple[str, dict[str, Any]]] = {
    "mlbroker": ("mlbroker", {"slots": 3, "sites": 4, "jobs_per_slot": 4}),
    "eris": ("eris", {"size": "testbed", "jobs": 4}),
    "gadget": ("gadget", {"jobs": 6, "slots": 60}),
    "cluster": ("las", {"jobs": 20}),
    "dps": ("dps", {"jobs": 12}),
    "apsp": ("apsp", {}),
    "broker": ("broker", {"jobs": 8}),
    "mixed": ("mixed-line", {"jobs": 8, "slots": 6}),
}


def made(kind: str) -> tuple[Scenario, tw.Run]:
    policy, params = KINDS[kind]
    scenario = tw.generate(kind, **params)
    return scenario, tw.run(scenario, policy=policy)


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_job_has_a_life_that_agrees_with_its_outcome(kind: str) -> None:
    scenario, run = made(kind)
    outcomes: Mapping[str, Any] = run.tables["outcomes"]
    costs = []
    for job, state, start in zip(outcomes["job"], outcomes["state"], outcomes["start_us"], strict=True):
        life = life_of(scenario, run, scenario.jobs[job].id)
        costs.append(life.usd)
        assert life.state == state
        assert life.happened[0] == (scenario.jobs[job].arrive_us, "arrived")
        assert (life.placed[0].from_us if life.placed else -1) == start
        assert life.as_json()["job"] in life.lines[0]
    assert fsum(costs) == pytest.approx(run.metrics["cost_usd"], rel=1e-9)


@pytest.mark.parametrize("kind", ["mlbroker", "broker", "dps"])
def test_rows_for_a_spreadsheet_have_all_that_moved_and_all_that_was_paid(kind: str) -> None:
    scenario, run = made(kind)
    plan = placements(scenario, run)
    rows = csv_rows(scenario, run, plan)
    moved = fsum(move.bytes for row in plan for move in row.moves) / 1e9
    assert (moved > 0) == (kind != "dps")
    assert fsum(row["moved_in_gb"] for row in rows) == pytest.approx(moved, rel=1e-9)
    assert fsum(row["paid_usd"] for row in rows) == pytest.approx(run.metrics["payments_usd"], rel=1e-9)
    assert fsum(row["usd"] for row in rows) == pytest.approx(run.metrics["cost_usd"], rel=1e-9)


def test_machines_are_drawn_at_the_site_that_offers_them() -> None:
    scenario, run = made("broker")
    data = RunData(ScenarioData(scenario), run)
    drawn = places.graph(data)
    sites = {node.name for node in scenario.setup.nodes if node.parent < 0}
    assert set(drawn.names) <= sites
    used = data.used_by_node(data.main_kind, np.array([0.0, float(data.end_us)]))
    assert drawn.busy.sum() == pytest.approx(used.sum())


def test_costs_of_placements_add_up_to_the_bill_and_so_do_the_bytes_moved() -> None:
    scenario, run = made("mlbroker")
    rows = placements(scenario, run)
    assert run.metrics["cost_usd"] > 0
    assert fsum(row.usd for row in rows) == pytest.approx(run.metrics["cost_usd"], rel=1e-9)
    flows: Mapping[str, Any] = run.tables["flows"]
    between = [b for a, z, b in zip(flows["src"], flows["dst"], flows["bytes"], strict=True) if a != z]
    assert sum(move.bytes for row in rows for move in row.moves) == sum(between) > 0


def test_equal_rows_of_a_job_are_joined_only_where_nothing_lies_between() -> None:
    here, there = (Place("a", 2, 0),), (Place("b", 2, 0),)

    def row(begin: int, end: int, places: tuple[Place, ...], job: str = "x") -> Placement:
        return Placement(job, begin, end, places, (), 1.0, "")

    rows = [row(0, 1, here), row(0, 9, there, "y"), row(1, 2, here), row(3, 4, here), row(4, 5, there)]
    found = [(r.job, r.from_us, r.until_us, r.usd) for r in joined(rows)]
    assert found == [("x", 0, 2, 2.0), ("y", 0, 9, 1.0), ("x", 3, 4, 1.0), ("x", 4, 5, 1.0)]


def test_the_command_prints_a_table_and_writes_csv(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    scenario, run = made("mlbroker")
    tw.dump(scenario, tmp_path / "s.json")
    tw.save(run, tmp_path / "r.json")

    def said(*words: str) -> tuple[int, str]:
        code = guarded(lambda: app([*words], standalone_mode=False))
        out = capsys.readouterr()
        return code, out.out + out.err

    name = scenario.jobs[0].id
    code, text = said("show", str(tmp_path / "r.json"))
    assert (code, name in text, "server" in text) == (0, True, True)
    assert said("show", str(tmp_path / "r.json"), "-o", str(tmp_path / "r.csv"))[0] == 0
    rows = list(csv.DictReader((tmp_path / "r.csv").open()))
    assert fsum(float(r["usd"]) for r in rows) == pytest.approx(run.metrics["cost_usd"], rel=1e-9)
    code, text = said("show", str(tmp_path / "r.json"), "-o", str(tmp_path / "r.txt"))
    assert (code, "end its name in .csv" in text) == (2, True)
    code, text = said("show", str(tmp_path / "r.json"), "--job", name, "--slot", "0")
    assert (code, scenario.jobs[-1].id in text) == (0, False)
    last = scenario.setup.slots - 1
    for words in (["show"], ["explain", "--job", name], ["ranks"], ["manifests"]):
        code, text = said(words[0], str(tmp_path / "r.json"), *words[1:], "--slot", str(last + 1))
        assert (code, f"found slot {last + 1}; allowed are 0 to {last}" in text) == (2, True), words
    code, text = said("explain", str(tmp_path / "r.json"), "--job", name)
    assert (code, "arrived" in text, "USD of the cost" in text) == (0, True, True)


def test_the_table_of_a_market_says_once_per_job_what_was_paid(capsys: pytest.CaptureFixture[str]) -> None:
    scenario, run = made("eris")
    table(scenario, run, placements(scenario, run), whole=True, as_json=False)
    shown = capsys.readouterr().out
    assert "paid USD" in shown
    paid: Mapping[str, Any] = run.tables["payments"]
    for job, usd in zip(paid["job"], same_decimals(paid["usd"]), strict=True):
        rows = [line for line in shown.splitlines() if f" {scenario.jobs[job].id} " in line]
        assert [f" {usd} " in row for row in rows] == [True] + [False] * (len(rows) - 1)


def test_an_unknown_job_is_an_error_that_suggests_one() -> None:
    scenario, run = made("cluster")
    with pytest.raises(LookupFailed, match="No job is called"):
        life_of(scenario, run, "nobody")
