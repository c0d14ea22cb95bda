"""The page that compares verdicts under drawn and recorded arrivals."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from tradewind.lab.arrivals import compare, page
from tradewind.lab.reproduce_page import Result
from tradewind.lab.study import Chart, Claim, Effort, Judged, PaperFigure, Row

EFFORT = Effort(quick=True, seeds=3, arrivals="google:folder/jobs.csv.gz")


def below(rows: Sequence[Row], policy: str) -> Judged:
    value = next(float(row["y"]) for row in rows if row["policy"] == policy)
    return Judged(value < 2.0, f"{policy} {value:g}")


FIGURE = PaperFigure(
    name="fig-9",
    title="Figure 9",
    rows=lambda effort: [],
    chart=Chart(x="policy", y="y"),
    claims=(Claim(name="below", words="The cost is below 2.", holds=below, paper="dps-paper", ours="dps"),),
)


def result(paper: float, ours: float) -> Result:
    rows: list[Row] = [{"policy": "dps-paper", "y": paper}, {"policy": "dps", "y": ours}]
    return Result(system="dps", figure=FIGURE, rows=rows, verdict=FIGURE.judge(rows))


def test_the_page_shows_both_verdicts_and_says_which_claims_depend_on_the_arrivals() -> None:
    text = page([result(1.0, 1.0)], [result(3.0, 1.5)], EFFORT)
    assert "| fig-9 | reproduced | not reproduced | holds | holds |" in text
    assert "dps fig-9, below (paper): The cost is below 2." in text
    assert "drawn: holds; dps-paper 1" in text
    assert "recorded: does not hold; dps-paper 3" in text
    assert "(ours)" not in text
    assert "google:jobs.csv.gz dps`" in text


def test_figures_that_do_not_depend_on_arrivals_are_counted_and_left_out() -> None:
    text = page([result(1.0, 1.0)], [result(1.0, 1.0)], EFFORT)
    assert "Of 1 figures with claims, 1 have rows that do not depend on the arrivals" in text
    assert "| fig-9 |" not in text
    assert "None." in text


@pytest.mark.parametrize(("system", "figure"), [("mlbroker", "fig-5"), ("dps", "tiny"), ("eris", "fig-7")])
def test_both_reproductions_are_computed_and_kept(system: str, figure: str, tmp_path: Path) -> None:
    trace = tmp_path / "jobs.csv"
    trace.write_text("submit_s,start_s,end_s,user\n" + "".join(f"{600 * i},{i},{i},u\n" for i in range(2000)))
    effort = Effort(quick=True, seeds=1, arrivals=f"google:{trace}")
    work = tmp_path / "work"
    text = compare([system], work, effort, figure=figure)
    assert f"google:jobs.csv {system}`" in text
    kept = [sorted(p.name for p in (work / name / "kept").iterdir()) for name in ("drawn", "recorded")]
    assert kept[0]
    assert not set(kept[0]) & set(kept[1])
    rows = [(work / name / system / f"{figure}.csv").read_text() for name in ("drawn", "recorded")]
    assert rows[0] != rows[1]
