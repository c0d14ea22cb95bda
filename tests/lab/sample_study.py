"""Studies for tests: cheap figures that count how often they are computed; one has parts, one waits."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from tradewind.lab.study import Chart, Claim, Effort, Judged, PaperFigure, Part, Pieces, Row, Study, spread

COUNTER = Path("computed.txt")
GATE = Path("gate.txt")
"""Waiting parts finish once this file exists."""
PIDS = Path("pids.txt")


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


def _total(rows: Sequence[Row], policy: str) -> float:
    return sum(float(r["cost"]) for r in rows if r["policy"] == policy)


def _cheap(rows: Sequence[Row], policy: str) -> Judged:
    """Cheaper than the dearest policy."""
    mine, most = _total(rows, policy), max(_total(rows, p) for p in ("ours", "theirs"))
    return Judged(mine < most, f"{mine:g} against {most:g}")


CHART = Chart(x="size", y="cost", series="policy", low="low", high="high")
CLAIMS = (
    Claim(name="cheap", words="theirs costs <half>", holds=_cheap, paper="theirs", ours="ours"),
    Claim(
        name="positive",
        words="costs are positive",
        holds=lambda rows, _: Judged(_total(rows, "ours") > 0, "yes"),
    ),
    Claim(name="fast", words="theirs is fast", holds=None, paper="theirs"),
)


def _figure(name: str, kind: str) -> PaperFigure:
    chart = Chart(
        x="size", y="cost", series="policy", low="low", high="high", kind="bar" if kind == "bar" else "line"
    )
    return PaperFigure(name=name, title=f"Figure {name}", rows=_rows, claims=CLAIMS, chart=chart)


STUDY = Study(
    system="made", title="A made-up paper", figures=(_figure("fig-1", "line"), _figure("table-2", "bar"))
)


def _piece(effort: Effort, number: int) -> list[Row]:
    """The first two parts finish at once, the others wait for the gate."""
    PIDS.open("a").write(f"{os.getpid()}\n")
    while number >= 2 and not GATE.exists():
        time.sleep(0.01)
    COUNTER.open("a").write(str(number))
    return [
        {"size": number, "policy": p, "cost": k * effort.seeds, "low": 0.0, "high": 9.0}
        for k, p in ((1, "ours"), (2, "theirs"))
    ]


def _parts(_effort: Effort) -> list[Part]:
    return [Part(name=f"part {number}", rows=partial(_piece, number=number)) for number in range(4)]


def _join(_effort: Effort, rows: Sequence[Sequence[Row]]) -> list[Row]:
    return [row for part in rows for row in part]


def _whole(effort: Effort) -> list[Row]:
    return _join(effort, [part.rows(effort) for part in _parts(effort)])


PIECES = Study(
    system="pieces",
    title="A made-up paper in parts",
    figures=(
        PaperFigure(
            name="fig-1", title="Figure 1", rows=_whole, claims=CLAIMS, chart=CHART,
            pieces=Pieces(parts=_parts, join=_join),
        ),
    ),
)  # fmt: skip


def _broken(_effort: Effort) -> list[Row]:
    raise ValueError("three is not two")


BROKEN = Study(
    system="broken",
    title="A made-up paper that fails",
    figures=(
        PaperFigure(name="fig-9", title="Figure 9", rows=_broken, claims=CLAIMS, chart=CHART),
        _figure("fig-1", "line"),
    ),
)
