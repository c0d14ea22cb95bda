"""Made-up rows for the claims of DPS: one table that satisfies each, one that violates it."""

from __future__ import annotations

from collections.abc import Sequence

from tests.lab.claims import Certain, Table
from tradewind.lab.study import Row
from tradewind.systems.dps.study.ours import REQUIRED
from tradewind.systems.dps.study.region import CLAIMED
from tradewind.systems.dps.study.rows import RIVALS

TIMES = (0.0, 1000.0, 2000.0, 3500.0, 5000.0, 10_000.0)
PRINTED = (0, 900, 600, -100, -300, -900)
"""A regret over these slots as the paper prints it."""


def line(values: Sequence[float], **what: str | float) -> list[Row]:
    return [
        {"slot": t, **what, "regret": v, "low": v - 10, "high": v + 10}
        for t, v in zip(TIMES, values, strict=True)
    ]


def regret(mine: Sequence[float], simple: Sequence[float] = PRINTED) -> Table:
    def rows(policy: str) -> list[Row]:
        both = [line(mine, policy=policy, against=b) for b in ("bfp", "bfp-printed")]
        others = {"dps-simple": simple, "top": flat(500), "random": flat(800)}
        return [row for each in both for row in each] + [
            row for name, values in others.items() for row in line(values, policy=name, against="bfp")
        ]

    return rows


def over(rival: str, value: float) -> Table:
    return lambda policy: [
        {
            "policy": rival,
            f"{policy} over it": value,
            f"{policy} over it low": value - 0.02,
            f"{policy} over it high": value + 0.02,
        }
    ]


def gains(*values: float) -> Table:
    """Percentage points that each of the rivals gives up, from half time to the end."""
    return lambda policy: [
        {"policy": rival} | {f"{policy} over it, gain{end}": v + d for end, d in (("", 0), (" low", -0.02), (" high", 0.02))}
        for rival, v in zip(("bfp", "random"), values, strict=True)
    ]  # fmt: skip


def jobs(*curves: Sequence[float]) -> Table:
    def rows(policy: str) -> list[Row]:
        each = [line(values, policy=policy, jobs=10.0 ** (3 + i)) for i, values in enumerate(curves)]
        return [row for curve in each for row in curve]

    return rows


def constants(name: str, **ends: Sequence[float]) -> Table:
    """One curve per value of a constant; keyword p5 stands for 0.5."""
    return lambda _: [row for key, values in ends.items() for row in line(values, **{name: _text(key)})]


def _text(key: str) -> str:
    return key if key == "formula" else f"{float(key.replace('p', '0.')):g}"


def flat(end: float) -> Sequence[float]:
    return (0.0, end, end, end, end, end)


def profit(ahead: Sequence[float], runtime: float = 50.0) -> Table:
    def rows(policy: str) -> list[Row]:
        found: list[Row] = []
        for name, mean in ((policy, runtime), ("dps-rs", 60.0)):
            for i, (t, v) in enumerate(zip(TIMES, ahead, strict=True)):
                lead = {
                    f"over {r}{end}": v + d
                    for r in RIVALS
                    for end, d in (("", 0), (" low", -1), (" high", 1))
                }
                ran = {"mean runtime": mean, "runtime": mean * (i + 1)}
                ends = {f"{k}{end}": v + d for k, v in ran.items() for end, d in ((" low", -1), (" high", 1))}
                found.append({"slot": t, "policy": name, **lead, **ran, **ends})
        return found

    return rows


def growth(grows: str, power: float, half: float = 0.01) -> Table:
    return lambda policy: [
        {
            "grows": grows,
            "size": size,
            "policy": policy,
            "regret": size**power,
            "share": size ** (power - 1),
            "low": size ** (power - 1) - half,
            "high": size ** (power - 1) + half,
        }
        for size in (1e3, 3e3, 1e4)
    ]


def settings(**found: float) -> Table:
    """Two settings; in the first every ratio is as claimed unless given."""
    where = {"theta": 0.11, "delta": 0.2}
    values = CLAIMED | {name.replace("_", "-"): value for name, value in found.items()}
    return lambda policy: [
        {"market": market, **where, "policy": policy, "rival": name, "ratio": ratio}
        for market, ratios in (("a", values), ("b", dict.fromkeys(CLAIMED, 0.9)))
        for name, ratio in ratios.items()
    ]


def share(market: str, value: float) -> Table:
    return lambda policy: [{"market": market, "policy": policy, "of bfp": value}]


AHEAD = (0, 1, 2, 3, 5, 19)
THETA = {
    "p02": (0, 100, 90, 85, 80, 50),
    "p11": (0, 300, 200, 150, 100, 20),
    "p3": (0, 500, 500, 500, 400, 300),
}
MADE: dict[str, tuple[Table, Table]] = {
    "fig-2/turns": (regret(PRINTED), regret((0, 200, 400, 600, 800, 900))),
    "fig-2/zero-bfp": (regret(PRINTED), regret((0, 900, 600, 100, -300, -900))),
    "fig-2/zero-bfp-printed": (regret(PRINTED), regret((0, 900, 600, 100, -300, -900))),
    "fig-2/negative-bfp": (regret(PRINTED), regret((0, 900, 600, -100, -300, -5))),
    "fig-2/negative-bfp-printed": (regret(PRINTED), regret((0, 900, 600, -100, -900, -300))),
    "fig-2/outperforms": (regret(PRINTED, flat(0)), regret((0, 900, 600, 500, 480, 490), flat(900))),
    "fig-2/free-stage": (regret(PRINTED, flat(0)), regret(PRINTED, flat(-895))),
    **{f"fig-3/{n}": (over(n, c), over(n, c - 0.1)) for n, c in CLAIMED.items()},
    "fig-3/increases": (gains(0.1, 0.05), gains(0.1, 0.01)),
    "fig-4/start": (jobs(flat(10), flat(50), flat(90)), jobs(flat(10), flat(90), flat(95))),
    "fig-4/falls": (
        jobs((0, 90, 80, 70, 60, 50), (0, 900, 600, 400, 200, 0)),
        jobs((0, 90, 80, 70, 60, 80), (0, 900, 600, 400, 200, 0)),
    ),
    "fig-5/formula": (
        constants("delta", p05=flat(90), p2=flat(70), formula=flat(3)),
        constants("delta", p05=flat(9), p2=flat(2), formula=flat(3)),
    ),
    "fig-5/too-small": (
        constants("delta", p05=flat(90), p2=flat(7)),
        constants("delta", p05=flat(20), p2=flat(7)),
    ),
    "fig-5/too-large": (
        constants("delta", p5=flat(90), p2=flat(7)),
        constants("delta", p5=flat(5), p2=flat(7)),
    ),
    "fig-6/early": (constants("theta", **THETA), constants("theta", p02=flat(9), p11=flat(7))),
    "fig-6/late": (
        constants("theta", **{k: v for k, v in THETA.items() if k != "p3"}),
        constants("theta", p02=(0, 90, 80, 70, 60, 10), p11=(0, 90, 80, 70, 60, 20)),
    ),
    "fig-6/figure": (constants("theta", **THETA), constants("theta", p02=flat(3), p11=flat(7))),
    "fig-6/formula": (
        constants("theta", p11=flat(90), formula=flat(3)),
        constants("theta", p11=flat(9), formula=flat(99)),
    ),
    "fig-7/random": (profit(AHEAD), profit((0, 1, 2, 3, 9, 8))),
    "fig-7/bfp": (profit(AHEAD), profit((0, 1, 2, 3, 0.2, 0.5))),
    "fig-7/runtime": (profit(AHEAD), profit(AHEAD, runtime=58.5)),
    "fig-7/total-runtime": (profit(AHEAD), profit(AHEAD, runtime=59.8)),
    **{f"theorem-2/{g}": (growth(g, 0.7), growth(g, 0.7, half=0.1)) for g in ("jobs", "slots")},
    **{f"theorem-2/{g}-printed": (growth(g, 0.7), growth(g, 1.0)) for g in ("jobs", "slots")},
    **{f"region/{n}": (settings(), settings(**{n.replace("-", "_"): c - 0.01})) for n, c in CLAIMED.items()},
    "region/together": (settings(bfp=0.9), settings(dps_simple=1.0)),
    **{f"table-markets/{m}": (share(m, least), share(m, least - 0.01)) for m, least in REQUIRED.items()},
}

CERTAIN: Certain = {
    "settings are searched by their means": (*(f"region/{n}" for n in CLAIMED), "region/together"),
    "an aim of ours about the mean": tuple(f"table-markets/{m}" for m in REQUIRED),
}
