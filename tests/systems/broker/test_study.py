"""The broker's study: what each freedom saves, what deadlines cost, online against offline; its quick version."""

from __future__ import annotations

import pytest

from tradewind.lab.study import Effort
from tradewind.systems.broker.study.figures import FACTORS, POLICIES, STUDY, deadlines, online, savings
from tradewind.systems.broker.study.savings import SOURCES

QUICK = Effort(quick=True, seeds=1)


def test_every_freedom_is_taken_away_once_and_none_makes_a_plan_cheaper() -> None:
    rows = savings(QUICK, "Bm")
    assert [row["source"] for row in rows] == list(SOURCES)
    more = {str(row["source"]): float(row["more"]) for row in rows}
    assert all(value >= -1e-6 for value in more.values())
    assert more["spot"] == pytest.approx(0.0, abs=1e-6)  # Bm has none
    assert more["GPU type"] > 1.0
    assert more["region"] > 1.0
    assert more["together"] > 1.0


def test_what_the_best_plan_leaves_out_is_there_for_plans_without_a_freedom() -> None:
    """In C data is dear to move: options that ignore egress or use one site must not have been left out before."""
    more = {str(row["source"]): float(row["more"]) for row in savings(QUICK, "C")}
    assert more["egress"] > 100.0
    assert more["two sites"] > 10.0
    assert more["region"] > 10.0


def test_later_deadlines_never_cost_more() -> None:
    bills = [float(row["cost"]) for row in deadlines(QUICK, "D")]
    assert len(bills) == len(FACTORS)
    assert bills == sorted(bills, reverse=True)
    assert bills[-1] < 1.0


def test_online_policies_are_held_against_the_offline_bound() -> None:
    ratios = {str(row["policy"]): float(row["ratio"]) for row in online(QUICK, "Bm")}
    assert list(ratios) == ["offline plan", *(policy.name for policy in POLICIES)]
    assert 1.0 - 1e-6 <= ratios["offline plan"] <= ratios["broker"] + 1e-6
    assert ratios["skypilot-rule"] > ratios["broker"]


def test_the_figures_have_parts_that_join() -> None:
    for figure in STUDY.figures:
        assert figure.pieces is not None
        assert len(figure.pieces.parts(QUICK)) == 3
