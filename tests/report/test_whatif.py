"""What-if: the jobs that differ most between two runs, and the reason that is true of them."""

from __future__ import annotations

import json
from dataclasses import replace
from math import isclose
from pathlib import Path

import pytest

import tradewind as tw
from tests.builders import job, node, scenario, setup
from tests.command import tradewind
from tradewind.engine.costs import job_costs
from tradewind.engine.intervals import effective, end_us
from tradewind.model.errors import RunFileError
from tradewind.model.job import Fixed
from tradewind.model.setup import SENSE
from tradewind.model.tariff import Tariff
from tradewind.report.whatif import difference

S = 1_000_000


def long_and_short() -> tw.Scenario:
    """One place, a long job, and a short one that comes a second later."""
    where = setup([node("a", 1)], slot_us=S, horizon_us=500 * S, objective="jct_mean_s")
    return scenario(
        [
            job(0, id="long", work=Fixed(runtime_us=100 * S)),
            job(1, id="short", work=Fixed(runtime_us=5 * S), arrive_us=S),
        ],
        where=where,
    )


def test_runs_differ_in_every_objective() -> None:
    for objective in SENSE:
        where = setup([node("a", 1)], slot_us=S, horizon_us=500 * S, objective=objective)
        data = replace(long_and_short(), setup=where)
        named = replace(tw.run(long_and_short(), "fifo"), objective=objective)
        other = replace(tw.run(long_and_short(), "srtf"), objective=objective)
        assert difference(data, named, other).jobs == 2, objective


def test_bills_and_worth_lost_of_jobs_add_up_to_the_difference_of_the_totals() -> None:
    data = tw.generate("broker", seed=3, jobs=6, regions=3, slots=48)
    before = tw.run(data, "broker")
    found = tw.whatif(data, before, "skypilot-rule", most=6)
    assert found.difference.of == "cost and worth lost"
    total = sum(each.score for each in found.difference.largest)
    assert total == pytest.approx(found.other.value - before.value)
    assert total > 0


def test_a_job_that_waits_for_another_names_it() -> None:
    data = long_and_short()
    found = tw.whatif(data, tw.run(data, "fifo"), "srtf")
    assert (found.difference.of, found.difference.jobs) == ("completion", 2)
    short, long = found.difference.largest
    assert (short.job, short.score) == ("short", -99.0)
    assert short.reasons[0] == "starts 99 s earlier (long runs first under fifo)"
    assert (long.job, long.score) == ("long", 5.0)
    assert "is stopped for 5 s instead of 0 s after its start" in long.reasons
    assert found.other.metrics["jct_mean_s"] < found.recorded.metrics["jct_mean_s"]


def test_equal_runs_have_no_difference() -> None:
    data = long_and_short()
    found = tw.whatif(data, tw.run(data, "fifo"), "fifo")
    assert found.difference.largest == ()
    assert found.difference.jobs == 0


def test_a_run_of_another_scenario_is_refused() -> None:
    data = long_and_short()
    with pytest.raises(RunFileError, match="does not belong to the scenario"):
        tw.whatif(tw.generate("cluster", jobs=3, seed=1), tw.run(data, "fifo"), "srtf")


@pytest.mark.parametrize(
    ("workload", "params", "first", "second", "of"),
    [
        ("mlbroker", {"sites": 5, "slots": 12}, "mlbroker", "local", "cost"),
        ("dps", {"jobs": 300, "slots": 300}, "dps", "top", "profit"),
        ("apsp", {}, "apsp", "random-ps", "time of a round"),
    ],
)
def test_scores_add_up_to_the_difference_of_the_objective(
    workload: str, params: dict[str, int], first: str, second: str, of: str
) -> None:
    data = tw.generate(workload, seed=2, **params)
    before, after = tw.run(data, first, seed=1), tw.run(data, second, seed=1)
    found = difference(data, before, after, most=10**6)
    assert found.of == of
    total = sum(each.score for each in found.largest)
    assert isclose(total, after.value - before.value, rel_tol=1e-9, abs_tol=1e-6)
    assert all(each.reasons for each in found.largest)
    for run in (before, after):
        costs = job_costs(data, run, effective(run, end_us(run)))
        assert isclose(sum(costs.values()), run.metrics["cost_usd"], rel_tol=1e-9, abs_tol=1e-9)


def test_a_job_that_a_market_turns_away_says_why() -> None:
    data = tw.generate("dps", seed=2, jobs=300, slots=300)
    found = difference(data, tw.run(data, "dps", seed=1), tw.run(data, "top", seed=1), most=300)
    gone = [each for each in found.largest if each.after.state != "finished" == each.before.state]
    assert gone
    for each in gone:
        word = "capacity" if each.after.state == "refused" else "the cheapest offer was"
        assert any(f"{each.after.state} under top ({word}" in reason for reason in each.reasons), each


def test_the_command_leaves_out_profit_where_nobody_pays(tmp_path: Path) -> None:
    data = long_and_short()
    data = replace(data, setup=replace(data.setup, rent={(0, 0): Tariff(usd=(2.0,))}))
    tw.dump(data, tmp_path / "s.json")
    tw.save(tw.run(data, "fifo"), tmp_path / "r.json")
    shown = tradewind("whatif", "r.json", "--policy", "srtf", cwd=tmp_path)
    assert shown.returncode == 0, shown.stderr
    assert "cost_usd" in shown.stdout
    assert "profit_usd" not in shown.stdout


def test_the_command_prints_both_sides_and_the_reasons(tmp_path: Path) -> None:
    data = long_and_short()
    tw.dump(data, tmp_path / "s.json")
    tw.save(tw.run(data, "fifo"), tmp_path / "r.json")
    shown = tradewind("whatif", "r.json", "--policy", "srtf", cwd=tmp_path)
    assert shown.returncode == 0, shown.stderr
    assert "fifo (recorded)" in shown.stdout
    assert "short: -99 s: starts 99 s earlier (long runs first under fifo)" in shown.stdout
    found = json.loads(tradewind("whatif", "r.json", "--policy", "srtf", "--json", cwd=tmp_path).stdout)
    assert [run["policy"] for run in found["runs"]] == ["fifo", "srtf"]
    assert found["difference"]["largest"][0]["job"] == "short"
    wrong = tradewind("whatif", "r.json", "--policy", "eris", cwd=tmp_path)
    assert (wrong.returncode, wrong.stdout) == (2, "")
