"""Judges that compare means say no where the intervals over seeds meet."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tests.systems.eris import claim_rows as eris_rows
from tradewind.lab.study import Holds, Row
from tradewind.systems.dps.study import claims as dps
from tradewind.systems.eris.study import claims as eris
from tradewind.systems.eris.study.runs import FIXED
from tradewind.systems.mlbroker.study import claims as mlbroker
from tradewind.systems.mlbroker.study.rows import compared

COSTS = {"me": 9.0, "central": 10.0, "oasis": 11.0, "local": 12.0}


def seeds(value: str, off: float, means: dict[str, float] = COSTS, **constant: str) -> list[Row]:
    """Three seeds per policy whose order is that of the means, or differs from seed to seed where `off` is large."""
    shift = {name: off * (-1) ** k for k, name in enumerate(means)}
    raw: list[Row] = [
        {"policy": name, "seed": seed, value: mean + (seed - 1) * shift[name], **constant}
        for name, mean in means.items()
        for seed in range(3)
    ]
    return compared(raw, tuple(constant), value, ("me", "central"))


def part_rows(half: float) -> list[Row]:
    usd = {"rent": 10.0, "deploy": 4.0, "traffic": 3.0, "transfer": 1.0}
    return [
        {"policy": "me", "part": part, "usd": v, "low": v - half, "high": v + half} for part, v in usd.items()
    ]


def ratios(half: float) -> list[Row]:
    values = {"me": 1.2, **dict.fromkeys(FIXED, 1.5)}
    return [{"policy": n, "loss": v, "low": v - half, "high": v + half} for n, v in values.items()]


def leads(half: float) -> list[Row]:
    return [
        {"jobs": x, "policy": n, "lead of me": v, "lead of me low": v - half, "lead of me high": v + half}
        for n in FIXED
        for x, v in ((10.0, 0.1), (20.0, 0.3))
    ]


def thetas(half: float) -> list[Row]:
    return [
        {"slot": 10_000.0, "theta": t, "regret": v, "low": v - half, "high": v + half}
        for t, v in (("0.05", 100.0), ("0.11", 50.0))
    ]


CASES: list[tuple[str, Holds, Sequence[Row], Sequence[Row]]] = [
    (
        "order of costs",
        mlbroker.in_order("usd", "", "central", "oasis", "local"),
        seeds("usd", 0.01),
        seeds("usd", 3.0),
    ),
    ("parts of the cost", mlbroker.parts_ordered, part_rows(0.1), part_rows(4.0)),
    ("ratio", eris.least_ratio, ratios(0.1), ratios(0.2)),
    ("lead", eris.lead_grows("jobs"), leads(0.05), leads(0.15)),
    (
        "welfare",
        eris.courses("jobs", "welfare", rises=True),
        eris_rows.course("jobs", (1, 2, 3), (1, 2, 3))("me"),
        eris_rows.course("jobs", (1, 2, 3), (1, 2, 3), half=1.5)("me"),
    ),
    ("theta", dps.smallest("theta", "0.11"), thetas(10.0), thetas(30.0)),
]


@pytest.mark.parametrize(("judge", "clear", "unclear"), [c[1:] for c in CASES], ids=[c[0] for c in CASES])
def test_equal_means_hold_only_beyond_the_intervals(
    judge: Holds, clear: Sequence[Row], unclear: Sequence[Row]
) -> None:
    assert judge(clear, "me").holds, judge(clear, "me").found
    assert not judge(unclear, "me").holds, judge(unclear, "me").found


def test_waiting_less_must_be_clear_on_the_same_seeds() -> None:
    def rows(hours: Sequence[tuple[float, float]]) -> list[Row]:
        raw: list[Row] = [
            {"policy": name, "seed": seed, "value": value}
            for seed, (mine, local) in enumerate(hours)
            for name, value in (("me", mine), ("central", 0.0), ("local", local))
        ]
        return compared(raw, (), "value", ("me",))

    assert mlbroker.waits(rows([(3, 4), (3.1, 4), (2.9, 4)]), "me").holds
    assert not mlbroker.waits(rows([(3, 9), (5, 4), (4, 4.5)]), "me").holds


def test_a_policy_without_rows_satisfies_no_course() -> None:
    rows: list[Row] = [{"gamma": 1.0, "policy": "eris, simulator", "welfare": 1.0, "low": 1.0, "high": 1.0}]
    assert not eris.falls_with_gamma(rows, "eris-paper").holds
