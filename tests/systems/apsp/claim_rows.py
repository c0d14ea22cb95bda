"""Made-up rows that satisfy and that violate each claim of the APSP study."""

from __future__ import annotations

from collections.abc import Sequence

from tests.lab.claims import Certain, Made, Table
from tradewind.lab.study import Row
from tradewind.systems.apsp.study.figures import ANSWERS
from tradewind.systems.apsp.study.region import MEAN, PRINTED


def saved(*percent: float, half: float = 1.0) -> Table:
    """What is saved over each method of Figures 4 to 6, in that order."""
    methods = ("random-ps", "most-connected", "shortest-path", "load-balancing")
    return lambda who: [
        {
            "policy": who,
            "method": method,
            "saved_percent": p,
            "saved low": p - half,
            "lost": 0.0,
            "draws": 3.0,
        }
        for method, p in zip(methods, percent, strict=True)
    ]


def seconds(*values: float, inside: bool = True) -> Table:
    """Times of models whose printed times rise; the printed time within the draws or not."""
    return lambda who: [
        {
            "policy": who, "method": "chosen", "network": "b4", "seconds": v, "paper_s": float(k),
            "p5": k - 0.5, "p95": k + (0.5 if inside else -0.2),
        }
        for k, v in enumerate(values)
    ]  # fmt: skip


def sweep(random: Sequence[float], most: Sequence[float]) -> Table:
    """Times over the least bandwidth, with 1 s for the chosen site."""

    def rows(who: str) -> list[Row]:
        course = {"random-ps": random, "most-connected": most, "chosen": [1.0] * len(random)}
        return [
            {
                "policy": who,
                "method": method,
                "min_mbps": float(k),
                "seconds": v,
                "saved low": 98 - 100 / v,
                "saved high": 102 - 100 / v,
            }
            for method, values in course.items()
            for k, v in enumerate(values)
        ]

    return rows


def rule(network: str, rival: str, *values: float, half: float = 1.0) -> Table:
    """A saving under each rule, give or take."""
    return lambda who: [
        {
            "policy": who,
            "network": network,
            "rival": rival,
            "rule": f"rule {k}",
            "saved_percent": value,
            "low": value - half,
            "high": value + half,
        }
        for k, value in enumerate(values)
    ]


def average(value: float, half: float = 1.0) -> Table:
    """What is saved over the most connected site, on two networks."""
    made = rule("b4", MEAN, value - 0.5, value + 0.5, half=half)
    return lambda who: [*made(who), *rule("b4", "random-ps", 90.0)(who)]


def less(*points: float) -> Table:
    """Percentage points saved less over the most connected site than over a random one, give or take 1."""
    return lambda who: [
        {"policy": who, "case": f"case {k}", "rival": MEAN, "less": v, "less low": v - 1, "less high": v + 1}
        for k, v in enumerate(points)
    ]


def best_site(*shares: float) -> Table:
    return lambda _: [{"case": f"case {k}", "best site": share} for k, share in enumerate(shares)]


def faster_links(*values: float) -> Table:
    """Times of the chosen site over the least bandwidth, give or take 1 s."""
    return lambda who: [
        {"policy": who, "method": "chosen", "min_mbps": float(k), "seconds": v, "low": v - 1, "high": v + 1}
        for k, v in enumerate(values)
    ]


def day(low: float) -> Table:
    return lambda _: [{"server": ANSWERS[1][0], "rounds_percent": 103.0, "low": low, "high": 105.0}]


FIGURES = ("b4", "internet2")
MADE: Made = {
    "table-3/fastest": (saved(50, 10, 0, 0), saved(50, 0.5, 0, 0)),
    "table-3/numbers": (seconds(1, 2, 3), seconds(1, 2, 3, inside=False)),
    "table-3/grows": (seconds(1, 2, 3), seconds(1, 3, 2)),
    **{
        f"reductions/{network}, {rival}": (
            rule(network, rival, low + 0.05, low + 0.05),
            rule(network, rival, low + 0.05, high + 2.1, half=5.0),
        )
        for (network, rival), (low, high) in PRINTED.items()
    },
    "reductions/18% on average": (average(17.5), average(24, half=10.0)),
    "reductions/less over most connected": (less(5, 1.5), less(5, 0.5)),
    "reductions/worse than random": (less(5, -1.5), less(5, -0.5)),
    "excess/optimal site": (best_site(1, 1), best_site(1, 0.9)),
    **{f"fig-5-{n}/falls": (faster_links(9, 8, 6), faster_links(9, 6, 8)) for n in FIGURES},
    **{f"fig-5-{n}/faster": (saved(50, 10, 0, 0), saved(0.5, 10, 0, 0)) for n in FIGURES},
    **{f"fig-5-{n}/shrinks": (sweep((3, 2), (2, 1)), sweep((3, 2), (2, 2.1))) for n in FIGURES},
    **{f"fig-5-{n}/equal at the end": (sweep((3, 2), (2, 1.005)), sweep((3, 2), (2, 1.2))) for n in FIGURES},
    **{f"fig-6-{n}/shortest paths": (saved(0, 0, 5, 0), saved(0, 0, 0.5, 5)) for n in FIGURES},
    **{f"fig-6-{n}/load balancing": (saved(0, 0, 0, 5), saved(0, 0, 5, -1)) for n in FIGURES},
    "day/moving pays": (day(100.5), day(99.5)),
}

CERTAIN: Certain = {
    "the printed time lies in a range of draws, not of their mean": ("table-3/numbers",),
    "time is in proportion to the model in every draw": ("table-3/grows",),
    "with equal bandwidths all draws are one network": tuple(f"fig-5-{n}/equal at the end" for n in FIGURES),
    "draws are counted": ("excess/optimal site",),
}
