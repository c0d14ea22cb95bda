"""Every claim of every study is judged in both directions on made-up rows.

The rows of a system's claims are in `claim_rows.py` beside its tests: MADE.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from importlib import import_module

import pytest

from tests.lab import sample_study
from tests.lab.claims import Table, check_claims
from tradewind.lab.study import Claim, Judged, PaperFigure, Row, Study
from tradewind.registry import studies

WHERE = {"cross": "tests.lab.claim_rows_cross", "live": "tests.lab.claim_rows_live"}


@pytest.mark.parametrize("system", studies.names())
def test_every_claim_holds_on_rows_that_satisfy_it_and_fails_on_rows_that_violate_it(system: str) -> None:
    study = studies.find(system)
    if any(f.claims for f in study.figures):
        rows = import_module(WHERE.get(system, f"tests.systems.{system}.claim_rows"))
        check_claims(study, rows.MADE, rows.CERTAIN)


def study_of(*claims: Claim) -> Study:
    figure = PaperFigure(
        name="fig-1", title="Figure 1", rows=lambda _: [], chart=sample_study.CHART, claims=claims
    )
    return Study(system="made", title="A made-up paper", figures=(figure,))


def rising(rows: Sequence[Row], policy: str) -> Judged:
    mine = [r for r in rows if r["policy"] == policy]
    return Judged(float(mine[-1]["low"]) > float(mine[0]["high"]), f"{mine}")


def course(*values: float) -> Table:
    return lambda policy: [{"policy": policy, "value": v, "low": v - 0.1, "high": v + 0.1} for v in values]


UP = Claim(name="up", words="it rises", holds=rising, paper="a", ours="b")
claim = partial(replace, UP)


def test_a_claim_without_made_up_rows_is_an_error() -> None:
    check_claims(study_of(claim()), {"fig-1/up": (course(1, 2), course(2, 1))})
    check_claims(study_of(claim(holds=None)), {})
    with pytest.raises(AssertionError, match="fig-1/up"):
        check_claims(study_of(claim()), {})
    with pytest.raises(AssertionError, match="fig-1/down"):
        check_claims(study_of(), {"fig-1/down": (course(1, 2), course(2, 1))})


def test_a_judge_that_cannot_fail_is_an_error() -> None:
    blind = study_of(
        claim(holds=lambda rows, policy: Judged(policy == "b" or rising(rows, policy).holds, "x"))
    )
    with pytest.raises(AssertionError, match="for b"):
        check_claims(blind, {"fig-1/up": (course(1, 2), course(2, 1))})


def test_a_judge_that_compares_means_alone_is_an_error_unless_it_is_named() -> None:
    def means(rows: Sequence[Row], policy: str) -> Judged:
        values = [float(r["value"]) for r in rows if r["policy"] == policy]
        return Judged(values[-1] > values[0], f"{values}")

    made, blind = {"fig-1/up": (course(1, 2), course(2, 1))}, study_of(claim(holds=means))
    check_claims(blind, made, {"values are counted": ("fig-1/up",)})
    with pytest.raises(AssertionError, match="endless"):
        check_claims(blind, made)
    with pytest.raises(AssertionError, match="endless"):
        check_claims(study_of(claim()), made, {"values are counted": ("fig-1/up",)})
    with pytest.raises(AssertionError, match="no such claims"):
        check_claims(study_of(claim()), made, {"values are counted": ("fig-1/down",)})


def test_what_a_single_seed_shows_is_not_beyond_chance() -> None:
    figure, rows = study_of(claim()).figures[0], [*course(1, 2)("a"), *course(1, 2)("b")]
    for n, holds in ((1, False), (3, True)):
        (found,) = figure.judge([{**row, "n": float(n)} for row in rows]).outcomes
        assert found.paper is not None
        assert found.ours is not None
        assert found.paper.holds is found.ours.holds is holds
        assert ("one seed" in found.paper.found) is not holds


def test_a_figure_has_one_verdict_for_the_paper_and_one_for_ours() -> None:
    rows = [*course(1, 2)("a"), *course(2, 1)("b")]

    def always(_rows: Sequence[Row], _policy: str) -> Judged:
        return Judged(True, "so")

    def never(_rows: Sequence[Row], _policy: str) -> Judged:
        return Judged(False, "so")

    def words(*claims: Claim) -> tuple[str, str]:
        verdict = study_of(*claims).figures[0].judge(rows)
        return verdict.paper, verdict.ours

    assert words(claim()) == ("reproduced", "does not hold")
    assert words(claim(), claim(name="n", holds=never)) == ("partly reproduced", "does not hold")
    assert words(claim(name="n", holds=never), claim(name="y", holds=always, paper="")) == (
        "not reproduced",
        "holds in part",
    ), "an aim of ours does not count for the paper"
    assert words(claim(holds=always, paper="", ours="")) == ("reproduced", "not tested"), (
        "rivals count for the paper"
    )
    assert words(claim(holds=None)) == ("not tested", "not tested")
    assert words() == ("not tested", "not tested")
