"""A study for tests: two figures that cost nothing, and count how often they are computed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tradewind.studies.study import Chart, Effort, Finding, PaperFigure, Row, Study, spread

COUNTER = Path("computed.txt")


def _rows(effort: Effort) -> list[Row]:
    COUNTER.open("a").write("x")
    sizes = effort.pick((1, 2), (1, 2, 3, 4))
    raw: list[Row] = [
        {"size": size, "policy": policy, "cost": size * k + seed}
        for size in sizes
        for k, policy in ((1.0, "ours"), (2.0, "theirs"))
        for seed in range(effort.seeds)
    ]
    return spread(raw, ("size", "policy"), "cost")


def _judge(rows: Sequence[Row]) -> Finding:
    ours, theirs = (sum(float(r["cost"]) for r in rows if r["policy"] == p) for p in ("ours", "theirs"))
    return Finding(
        word="reproduced" if ours < theirs else "not reproduced", reason=f"{ours:g} against {theirs:g}"
    )


def _figure(name: str, kind: str) -> PaperFigure:
    chart = Chart(
        x="size", y="cost", series="policy", low="low", high="high", kind="bar" if kind == "bar" else "line"
    )
    claim = "ours costs <half> of theirs"
    return PaperFigure(name=name, title=f"Figure {name}", claim=claim, rows=_rows, judge=_judge, chart=chart)


STUDY = Study(
    system="made", title="A made-up paper", figures=(_figure("fig-1", "line"), _figure("table-2", "bar"))
)
