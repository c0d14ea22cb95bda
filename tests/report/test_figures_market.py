"""Profit, regret and acceptance in a report are those of the run, recomputed here from its tables."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.report.sample_runs import market as made_market
from tests.systems.eris.test_promises import OUTAGE, PRICED, failing
from tests.systems.eris.test_rivals import bid
from tests.systems.eris.test_rivals import market as sites
from tradewind import api
from tradewind.cli.guard import guarded
from tradewind.cli.main import app
from tradewind.files.scenario_file import dump
from tradewind.model.params import resolve_params
from tradewind.model.result import Run
from tradewind.model.scenario import Scenario
from tradewind.registry import policies
from tradewind.report import page as report
from tradewind.report.figures import comparison
from tradewind.report.figures import market as market_charts
from tradewind.report.figures.market import Offers
from tradewind.systems.dps.bound import fixed_price_sales
from tradewind.systems.dps.paper import DPS_SIMPLE
from tradewind.systems.dps.policy import DPS
from tradewind.systems.dps.rivals.fixed_price import BFP
from tradewind.systems.dps.workload.generator import DPS as WORKLOAD
from tradewind.worlds.simulate import simulate

SIZES = {"jobs": 700, "slots": 700, "servers": 8, "worker_types": 2, "server_types": 2}
HEADINGS = (
    "Profit over time",
    "Regret over time",
    "Acceptance by price",
    "Expected and actual acceptance",
)


@pytest.fixture(scope="module")
def market() -> Scenario:
    return WORKLOAD.generate(resolve_params("dps", WORKLOAD.params, {"market": "balanced", **SIZES}), 1)


@pytest.fixture(scope="module")
def ours(market: Scenario) -> Run:
    return simulate(market, DPS, seed=1)


def test_profit_over_time_ends_at_the_profit_of_the_run(market: Scenario, ours: Run) -> None:
    data = comparison.series_of(market, [ours])[0].data
    curve = market_charts.profit_until(data, np.array([-1.0, 0.25 * data.end_us, float(data.end_us)]))
    assert curve[0] == 0.0
    assert 0.0 < curve[1] < curve[2]
    assert curve[2] == pytest.approx(ours.metrics["profit_usd"], rel=1e-12)


def test_what_is_paid_back_after_a_failure_leaves_the_curve_when_the_job_is_over() -> None:
    given = failing(sites([bid(0, {0: 12})], gpus=(2,), slots=30), *OUTAGE)
    run = simulate(given, policies.find("eris"), PRICED)
    assert run.metrics["profit_usd"] == 0
    data = comparison.series_of(given, [run])[0].data
    over_us = int(run.tables["outcomes"]["finish_us"][0])
    before, after = market_charts.profit_until(data, np.array([over_us - 1.0, float(over_us)]))
    assert before > 0
    assert after == 0


def test_the_reference_is_the_run_of_bfp_if_there_is_one(market: Scenario, ours: Run) -> None:
    fixed = simulate(market, BFP, {"prices": "0.4"}, seed=1)
    series = comparison.series_of(market, [ours, fixed])
    at = market_charts.instants(series)
    reference = market_charts.reference(series, at)
    assert reference is not None
    assert reference.profit[-1] == pytest.approx(fixed.metrics["profit_usd"])


def test_without_bfp_the_reference_is_computed_and_beats_every_flat_price(
    market: Scenario, ours: Run
) -> None:
    series = comparison.series_of(market, [ours])
    reference = market_charts.reference(series, market_charts.instants(series))
    assert reference is not None
    assert reference.profit[-1] == pytest.approx(fixed_price_sales(market).sum())
    for price in (0.25, 0.4, 0.6):
        flat = simulate(market, BFP, {"prices": str(price), "placement": "pa"})
        assert flat.metrics["profit_usd"] <= reference.profit[-1]


def test_a_market_without_bundles_has_no_computed_reference() -> None:
    scenario, run = made_market()
    series = comparison.series_of(scenario, [run])
    assert market_charts.reference(series, market_charts.instants(series)) is None
    assert len(market_charts.single_offers(series[0].data).unit) == 0, "its quotes are menus"


def test_the_expected_acceptance_is_read_from_the_reasons_in_the_run(market: Scenario, ours: Run) -> None:
    offers = market_charts.single_offers(comparison.series_of(market, [ours])[0].data)
    answers = ours.tables["answers"]
    asked = [i for i, refused in enumerate(answers["refused"]) if not refused]
    assert len(offers.taken) == len(asked)
    assert offers.taken.sum() == sum(1 for i in asked if answers["taken"][i] == 0)
    assert np.isfinite(offers.expected).all()
    assert abs(offers.expected.mean() - offers.taken.mean()) < 0.1, (
        "the learner knows its customers by and large"
    )


def test_a_policy_without_expected_acceptance_has_only_an_actual_curve(market: Scenario) -> None:
    series = comparison.series_of(market, [simulate(market, DPS_SIMPLE, seed=1)])
    assert market_charts.forecasters(series) == []
    assert market_charts.sellers(series) == series


def test_classes_show_expected_and_actual_acceptance() -> None:
    expected = np.repeat([0.25, 0.85], 40)
    taken = np.concatenate([np.arange(40) < 10, np.arange(40) < 20]).astype(float)
    x, y, half = market_charts.by_expectation(Offers(unit=np.ones(80), expected=expected, taken=taken))
    assert x.tolist() == pytest.approx([0.25, 0.85])
    assert y.tolist() == pytest.approx([0.25, 0.5])
    assert half[1] == pytest.approx(1.96 * np.sqrt(0.25 / 40))
    unit = np.linspace(0.1, 1.0, 80)
    price, share, expected = market_charts.by_price(Offers(unit=unit, expected=1 - unit, taken=taken))
    assert len(price) == 10
    assert share[0] == 1.0
    np.testing.assert_allclose(expected, 1 - price)


def test_with_floor_or_cap_the_expected_acceptance_is_that_of_the_price_offered(market: Scenario) -> None:
    low = simulate(market, DPS, {"cap": 0.05}, seed=1)
    offers = market_charts.single_offers(comparison.series_of(market, [low])[0].data)
    assert offers.expected[len(offers.expected) // 2 :].mean() > 0.9, (
        "almost everybody accepts so low a price"
    )


def test_a_report_of_a_run_file_alone_shows_the_market(
    market: Scenario, ours: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    dump(market, tmp_path / "market.json")
    api.save(ours, tmp_path / "run.json")
    page = tmp_path / "report.html"
    command = ["report", str(tmp_path / "run.json"), "-o", str(page)]
    assert guarded(lambda: app(command, standalone_mode=False)) == 0
    assert str(page) in capsys.readouterr().out
    text = page.read_text(encoding="utf-8")
    for heading in HEADINGS:
        assert heading in text
    assert text == report.html(market, [api.load_run(tmp_path / "run.json")])


def test_a_report_refuses_a_scenario_that_was_not_run(
    market: Scenario, ours: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    api.save(ours, tmp_path / "run.json")
    other = WORKLOAD.generate(resolve_params("dps", WORKLOAD.params, {"market": "light", **SIZES}), 1)
    dump(other, tmp_path / "other.json")
    command = ["report", str(tmp_path / "run.json"), "--scenario", str(tmp_path / "other.json")]
    assert guarded(lambda: app([*command, "-o", str(tmp_path / "r.html")], standalone_mode=False)) == 2
    assert "name the scenario that was run" in capsys.readouterr().err
