"""Made-up rows for the claims of the GADGET study: a table that satisfies each of them, and one that violates it."""

from __future__ import annotations

from collections.abc import Sequence

from tests.lab.claims import Certain, Table
from tradewind.lab.study import Row
from tradewind.systems.gadget.study.objectives import LESS_COST, PRINTED
from tradewind.systems.gadget.study.ours import ANEW, COSTS_S, FAILING, RINGS
from tradewind.systems.gadget.study.ratio import PUBLISHED, READINGS
from tradewind.systems.gadget.study.ring_time import BY_1
from tradewind.systems.gadget.study.runs import RIVALS

Cells = dict[str, str | float]


def interval(name: str, low: float, mean: float, high: float) -> Cells:
    """A column with its interval, as `spreads` writes those after the first."""
    return {name: mean, f"{name} low": low, f"{name} high": high}


def counts(*rows: Cells) -> Table:
    """Figure 4: a row per number of jobs."""

    def table(policy: str) -> list[Row]:
        same: Cells = {"case": "paper", "policy": policy, "line": policy}
        return [{**same, "jobs": 10 * (n + 1), **row} for n, row in enumerate(rows)]

    return table


def scales(value: str, rise: str, *means: float, low: float) -> Table:
    """Figures 5 and 6: a row per scale of the published case; low: of the rise at the last."""

    def table(policy: str) -> list[Row]:
        same: Cells = {"case": "paper sigmoid", "policy": policy}
        return [
            {**same, "scale": scale, value: mean, **interval(rise, low, mean - means[0], mean)}
            for scale, mean in zip((0.25, 1.0, 4.0), means, strict=True)
        ]

    return table


def ratio(mean: float, low: float, high: float, least: float) -> Table:
    """Figure 7 on the published case."""
    return lambda policy: [
        {"case": PUBLISHED, "policy": policy, "ratio": mean, "low": low, "high": high, "least": least}
    ]


def settings(reading: str, *measured: tuple[float, str]) -> Table:
    """Settings of the region; others lie in the range and must not count."""
    knobs: Cells = {"links": "published", "utility": "sqrt", "jobs per GPU": 1.0}

    def table(_: str) -> list[Row]:
        mine: list[Row] = [
            {**knobs, "rounding": reading, "measured": value, "holds": holds} for value, holds in measured
        ]
        others = [{**knobs, "rounding": r, "measured": 0.7, "holds": "yes"} for r in READINGS if r != reading]
        return [*mine, *others]

    return table


def objective(case: str, gained_low: float, **more: float) -> Table:
    """Tables of Sec. IV: the policy and its rivals."""

    def table(policy: str) -> list[Row]:
        same: Cells = {"case": case, "of bound": 0.9, "kWh": 5.0, "late": 0.2, "late high": 0.3}
        same |= interval("gained", gained_low, gained_low + 5, gained_low + 10)
        return [{**same, **more, "policy": policy}, *({**same, "policy": rival} for rival in RIVALS)]

    return table


def ring_time(*lows: float) -> Table:
    """Leads with ring time; without it the policy loses, which must not matter."""

    def table(policy: str) -> list[Row]:
        made: list[Row] = [
            {
                "zeta": BY_1,
                "case": f"u{n}, (1)",
                "policy": policy,
                "ring time, s": 1.0,
                "lead": low + 0.1,
                "lead low": low,
            }
            for n, low in enumerate(lows)
        ]
        return [*made, {**made[0], "zeta": "zeta as drawn", "lead": 0.5, "lead low": 0.4}]

    return table


def failing(ours: float) -> Table:
    return lambda policy: [
        {"failing": share, "policy": name, "of bound": ours if name == policy else 0.7}
        for share in FAILING
        for name in (policy, *RIVALS)
    ]


def churn(moved: float, kept: float) -> Table:
    rows: Sequence[Row] = [
        {"case": "a", "rings": "stay", "moved": moved, "utility": kept},
        {"case": "a", "rings": "anew", "moved": 0.9, "utility": 10_000.0},
    ]
    return lambda _: rows


def migration(ours: float, anew: float) -> Table:
    worth = dict.fromkeys(RIVALS, 0.7) | {ANEW: anew}
    return lambda policy: [
        {"cost": cost, "policy": name, "of bound": value, "moved": 0.1}
        for cost in COSTS_S
        for name, value in (worth | {policy: ours}).items()
    ]


def trace(ours: float) -> Table:
    return lambda policy: [
        {
            "trace": "philly",
            "policy": name,
            "mean completion": ours if name == policy else 30.0,
            "makespan": 100.0,
        }
        for name in RINGS
    ]


def level(name: str, *lows: float) -> Table:
    """Figure 4 with one column by its lower ends."""
    return counts(*({**interval(name, low, low + 0.1, low + 0.2), "lead": 1.0} for low in lows))


def leading(utility: str, low: float) -> Table:
    """Settings of the region of Figure 4; another utility leads and must not count."""
    other = "sqrt" if utility == "sigmoid" else "sigmoid"
    return lambda policy: [
        {
            "links": "published",
            "utility": u,
            "jobs per slot": 1.0,
            **interval(policy, end, end + 0.1, end + 0.2),
        }
        for u, end in ((utility, low), (other, 1.5))
    ]


MADE = {
    **{f"region-fig-4/{u}": (leading(u, 1.05), leading(u, 0.95)) for u in ("sigmoid", "sqrt", "log", "gang")},
    "fig-4/leads": (level("lead", 1.01, 1.2), level("lead", 0.99, 1.2)),
    "fig-4/gains more": (level("gained", 5.0, 50.0), level("gained", 50.0, 50.0)),
    "fig-4/uses more": (level("more GPUs used", -0.2, 0.01), level("more GPUs used", 0.2, -0.01)),
    "fig-5/rises": (
        scales("embedded ratio", "rise", 0.2, 0.5, 0.9, low=0.1),
        scales("embedded ratio", "rise", 0.2, 0.1, 0.9, low=0.1),
    ),
    "fig-5/inside servers": (
        scales("on one server", "inside rise", 0.2, 0.5, 0.9, low=0.1),
        scales("on one server", "inside rise", 0.2, 0.5, 0.9, low=-0.1),
    ),
    "fig-6/rises": (
        scales("embedded ratio", "rise", 0.2, 0.2, 0.9, low=0.1),
        scales("embedded ratio", "rise", 0.5, 0.5, 0.5, low=0.0),
    ),
    "fig-6/between servers": (
        scales("over several", "several rise", 0.2, 0.5, 0.9, low=0.1),
        scales("over several", "several rise", 0.9, 0.5, 0.2, low=-0.1),
    ),
    "fig-7/reaches 60%": (ratio(0.7, 0.61, 0.8, 0.5), ratio(0.7, 0.59, 0.8, 0.5)),
    "fig-7/stays below 80%": (ratio(0.7, 0.6, 0.79, 0.5), ratio(0.7, 0.6, 0.81, 0.5)),
    "fig-7/better than Theorem 8": (ratio(0.7, 0.6, 0.8, 0.34), ratio(0.7, 0.6, 0.8, 0.33)),
    **{
        f"region-fig-7/{reading}": (
            settings(reading, (0.9, "no"), (0.7, "yes")),
            settings(reading, (0.9, "no"), (0.5, "no")),
        )
        for reading in READINGS
    },
    "table-energy/printed utility": (objective(PRINTED, 0.0), objective(PRINTED, 0.0, kWh=0.0)),
    "table-energy/earns most": (objective(LESS_COST, 1.0), objective(LESS_COST, -1.0)),
    "table-energy/stops early": (
        objective(LESS_COST, 1.0, **{"late high": 0.01}),
        objective(LESS_COST, 1.0, **{"late high": 0.03}),
    ),
    "table-fairness/earns most": (objective("fairness", 1.0), objective("fairness", -1.0)),
    "table-ring-time/leads": (ring_time(1.1, 1.01), ring_time(1.1, 0.99)),
    "table-failures/aim": (failing(0.9), failing(0.6)),
    "table-churn/aim": (churn(0.24, 9999.0), churn(0.26, 9999.0)),
    "table-migration/aim": (migration(0.9, 0.8), migration(0.9, 0.95)),
    "table-trace/aim": (trace(30.0), trace(31.0)),
}

CERTAIN: Certain = {
    "the worst seed": ("fig-7/better than Theorem 8",),
    "settings are searched by their means": tuple(f"region-fig-7/{reading}" for reading in READINGS),
    "nothing is trained, in any seed": ("table-energy/printed utility",),
    "an aim of ours about means": tuple(
        f"table-{n}/aim" for n in ("failures", "churn", "migration", "trace")
    ),
}
