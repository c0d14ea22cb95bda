"""Means, intervals, ranks, units and sentences."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from scipy import stats

from tests.report.sample_runs import broken, cluster, moved, run, scheduled, wan
from tradewind.model.result import Run
from tradewind.report import quantities
from tradewind.report.bills import usd_text
from tradewind.report.figures import comparison
from tradewind.report.summary import estimate, group, measured, paired, ranked
from tradewind.report.verdict import sentences


def test_the_interval_is_a_t_interval() -> None:
    values = [3.0, 4.5, 5.0, 7.25]
    low, high = stats.t.interval(0.95, 3, loc=4.9375, scale=stats.sem(values))
    found = estimate(values)
    assert (found.mean, found.n) == (4.9375, 4)
    assert found.half == pytest.approx((high - low) / 2, rel=1e-9)


def test_a_single_value_has_no_interval_and_none_has_no_mean() -> None:
    assert math.isnan(estimate([2.0]).half)
    assert math.isnan(estimate([math.nan]).mean)
    assert estimate([2.0, math.nan]).n == 1


def test_equal_values_have_an_interval_of_zero_width() -> None:
    assert estimate([0.1, 0.1, 0.1]).half == 0


def runs_of(values: dict[str, list[float]]) -> list[Run]:
    scenario = cluster(3)
    return [
        run(scenario, policy=name, seed=seed, metrics={"jct_mean_s": v})
        for name, row in values.items()
        for seed, v in enumerate(row)
    ]


def test_policies_are_ranked_by_the_sense_of_the_objective() -> None:
    least = ranked(group(runs_of({"a": [3.0], "b": [1.0], "c": [math.nan], "d": [2.0]})))
    assert [g.label for g in least] == ["b", "d", "a", "c"]
    scenario = wan()
    most = [
        run(scenario, policy=p, objective="profit_usd", metrics={"profit_usd": v})
        for p, v in (("a", -1.0), ("b", 5.0))
    ]
    assert [g.label for g in ranked(group(most))] == ["b", "a"]


def test_a_policy_with_violations_comes_last() -> None:
    scenario = cluster(20)
    assert [g.label for g in ranked(group([broken(scenario), scheduled(scenario, "fifo")]))] == [
        "fifo",
        "cheater",
    ]


def test_labels_include_only_parameters_that_differ() -> None:
    scenario = wan()
    runs = [
        moved(scenario, "nearest", 1, 1.0),
        moved(scenario, "nearest", 1, 2.0),
        moved(scenario, "far", 1, 2.0),
    ]
    assert [g.label for g in group(runs)] == ["nearest (factor=1.0)", "nearest (factor=2.0)", "far"]


def test_seeds_of_a_policy_are_one_group_in_order() -> None:
    (one,) = group(runs_of({"a": [1.0, 2.0, 3.0]})[::-1])
    assert [r.seed for r in one.runs] == [0, 1, 2]
    assert one.value.mean == 2.0


def test_differences_are_paired_by_seed() -> None:
    a, b = group(runs_of({"a": [1.0, 11.0, 21.0], "b": [2.0, 12.0, 22.0]}))
    assert paired(a, b).mean == -1.0
    assert paired(a, b).half == 0.0


@pytest.mark.parametrize(
    ("metric", "value", "text"),
    [
        ("jct_mean_s", 5400.0, "1.50 h"),
        ("jct_mean_s", 0.0, "0 s"),
        ("jct_mean_s", 2e-5, "20.0 µs"),
        ("cost_usd", 1234567.0, "1 234 567 USD"),
        ("cost_usd", -0.5, "−0.500 USD"),
        ("moved_bytes", 2.5e9, "2.50 GB"),
        ("utility", math.nan, "–"),
        ("jobs", 7.0, "7"),
    ],
)
def test_numbers_are_formatted_for_readers(metric: str, value: float, text: str) -> None:
    assert quantities.measure(metric, value).replace("\u202f", " ") == text


def test_an_interval_is_written_in_the_unit_of_its_mean() -> None:
    assert quantities.measure("jct_mean_s", 1932.0, 38520.0).replace("\u202f", " ") == "0.54 h"


def summary(runs: list[Run]) -> str:
    return " ".join(sentences(comparison.series_of(cluster(3), runs))).replace("\u202f", " ")


def test_the_winner_is_named_with_its_lead() -> None:
    text = summary(runs_of({"a": [200.0], "b": [100.0], "c": [400.0]}))
    assert text.startswith("b has the lowest mean completion time: 100 s, 50% below a (second)")
    assert "75% below c (last)" in text
    assert "a single seed" in text


def test_a_lead_within_its_interval_is_too_close_to_call() -> None:
    assert "too close to call" in summary(runs_of({"a": [10.0, 20.0, 30.0], "b": [12.0, 19.0, 30.0]}))
    assert "significant" in summary(runs_of({"a": [10.0, 20.0, 30.1], "b": [20.0, 30.0, 40.0]}))


def test_equal_policies_share_the_win() -> None:
    assert summary(runs_of({"a": [10.0], "b": [10.0]})).startswith(
        "a and b reach the same mean completion time: 10 s."
    )


def test_the_bound_and_the_cost_that_differs_most_are_reported() -> None:
    scenario = wan()
    runs = [moved(scenario, "nearest", s, 1.0) for s in (1, 2)] + [
        moved(scenario, "far", s, 1.5) for s in (1, 2)
    ]
    text = " ".join(sentences(comparison.series_of(scenario, runs))).replace("\u202f", " ")
    assert "above the certified offline bound of 100 USD" in text
    assert (
        "The largest cost difference is in rent: 40 USD less than far, against 10 USD more for data transfer."
        in text
    )


def test_jobs_left_out_of_a_mean_are_reported() -> None:
    scenario = cluster(20)
    good = scheduled(scenario, "fifo")
    state = ["unfinished"] * 3 + ["finished"] * 17
    tables = {**good.tables, "outcomes": {**good.tables["outcomes"], "state": state}}
    short = replace(good, policy="short", tables=tables)
    assert "unfinished" not in " ".join(sentences(comparison.series_of(scenario, [good])))
    assert "short leaves 3 of 20 jobs unfinished" in " ".join(
        sentences(comparison.series_of(scenario, [good, short]))
    )


def test_a_run_that_completed_nothing_has_no_completion_time_and_does_not_win() -> None:
    runs = runs_of({"idle": [0.0], "works": [100.0]})
    metrics = {**runs[0].metrics, "jobs": 3.0, "jobs_completed": 0.0, "makespan_s": 0.0}
    idle = replace(runs[0], metrics=metrics)
    assert math.isnan(measured(idle, "jct_mean_s"))
    assert measured(idle, "jobs_completed") == 0
    assert [g.label for g in ranked(group([idle, runs[1]]))] == ["works", "idle"]
    text = summary([idle, runs[1]])
    assert text.startswith("works: mean completion time 100 s.")
    assert "idle completed no job and is not ranked." in text
    assert summary([idle]).startswith("No policy has a value for the objective")


def test_amounts_of_a_bill_are_written_as_money_however_small() -> None:
    amounts = {
        1.7e-18: "0.00",
        -1.7e-18: "0.00",
        0.0125843: "0.012584",
        -0.5: "-0.500000",
        1234.5: "1,234.50",
    }
    assert [usd_text(value) for value in amounts] == [f"{text} USD" for text in amounts.values()]
