"""Made-up rows for the claims of Eris: one table that satisfies each, one that violates it."""

from __future__ import annotations

from collections.abc import Sequence

from tests.lab.claims import Certain, Table
from tradewind.lab.study import Row
from tradewind.systems.eris.study.bases import SO_FAR
from tradewind.systems.eris.study.runs import FIXED
from tradewind.systems.eris.study.tables import TEXT
from tradewind.systems.eris.study.testbed import CLAIMED


def lead(policy: str, value: float) -> dict[str, float]:
    name = f"lead of {policy}"
    return {name: value, f"{name} low": value - 0.01, f"{name} high": value + 0.01}


def headline(rival: str) -> tuple[Table, Table]:
    def rows(value: float) -> Table:
        return lambda policy: [{"policy": rival, **lead(policy, value)}]

    return rows(CLAIMED[rival]), rows(CLAIMED[rival] - 0.1)


def shares(value: float) -> Table:
    ends = {"of bound low": value - 0.01, "of bound high": value + 0.01}
    return lambda policy: [{"policy": policy, "of bound": value, **ends}]


def versus(column: str, mine: float, rivals: float) -> Table:
    return lambda policy: [
        {"policy": n, column: v, "low": v - 0.1, "high": v + 0.1}
        for n, v in ((policy, mine), *((n, rivals) for n in FIXED))
    ]


def use(gpu: float, other: float, peak: float = 1.0) -> Table:
    found = (("cpu", other), ("gb", other), ("gpu", gpu))
    return lambda policy: [{"use": f"{policy} {k}", "most": peak, "steady": v} for k, v in found]


def course(
    x: str, mine: Sequence[float], rivals: Sequence[float], ahead: float = 0.1, half: float = 0.1
) -> Table:
    return lambda policy: [
        {x: float(i), "policy": n, "welfare": v, "low": v - half, "high": v + half, **lead(policy, ahead)}
        for n, values in ((policy, mine), *((n, rivals) for n in FIXED))
        for i, v in enumerate(values)
    ]


def profit(what: str, values: Sequence[float], half: float = 0.1) -> Table:
    return lambda policy: [
        {"case": f"{10 * i + 10} {what}", "policy": n, "profit": v, "low": v - half, "high": v + half}
        for n in (policy, *FIXED)
        for i, v in enumerate(values)
    ]


def gamma(values: Sequence[float], half: float = 0.1) -> Table:
    return lambda policy: [
        {"gamma": 10.0**i, "policy": f"{policy}, simulator", "welfare": v, "low": v - half, "high": v + half}
        for i, v in enumerate(values)
    ]


def leads(x: str, *values: float) -> Table:
    """Leads over every rival, by size."""
    return lambda policy: [
        {x: float(i), "policy": n, **lead(policy, v)} for n in FIXED for i, v in enumerate(values)
    ]


def completed(*values: float, half: float = 0.1) -> Table:
    """Jobs completed of 10, 20, 30, give or take."""
    return lambda policy: [
        {
            "jobs": 10.0 * i + 10,
            "policy": n,
            "unserved": 10.0 * i + 10 - v,
            "unserved low": 10.0 * i + 10 - v - half,
            "unserved high": 10.0 * i + 10 - v + half,
        }
        for n in (policy, *FIXED)
        for i, v in enumerate(values)
    ]


def any_base(*values: float) -> Table:
    return lambda policy: [
        {"gamma": 10.0**i, "policy": f"{n}, simulator", **lead(policy, v)}
        for n in FIXED
        for i, v in enumerate(values)
    ]


def counts(value: float) -> Table:
    def rows(policy: str) -> list[Row]:
        low = "low" if policy == "eris-paper" else f"lead of {policy} low"
        return [{"case": "testbed, elastic", f"lead of {policy}": value, low: value - 0.01}]

    return rows


def finish(reading: str, *values: float) -> Table:
    return lambda policy: [
        {"policy": policy, "reading": "" if policy == "eris" else reading, "size": f"s{i}", "finish": v}
        for i, v in enumerate(values)
    ]


def outcomes(equal: float) -> Table:
    share = {"equal": equal, "dearer": 1 - equal}
    return lambda _: [{"outcome": k, "share": v, "excess": 0.2} for k, v in share.items()]


def lies(lie: str, paid: int, least: float = 1.0) -> Table:
    row: dict[str, str | float] = {
        "lie": lie,
        "lies": 10,
        "paid": paid,
        "largest gain": 2.5 * paid,
        "least payoff": least,
    }
    return lambda policy: [{"mechanism": policy, **row}]


def settings(tiresias: float) -> Table:
    where: dict[str, str | float] = {
        "workers": 4.0,
        "chunks per worker": 1.0,
        "demands": "usual",
        "jobs": 10.0,
    }
    found = CLAIMED | {"tiresias": tiresias}
    return lambda policy: [
        {**where, "reading": TEXT, "rival": n, **lead(policy, v)} for n, v in found.items()
    ]


def ratios(high: float) -> Table:
    where: dict[str, str | float] = {
        "base": "1000",
        "chunks per worker": 1.0,
        "demands": "usual",
        "jobs": 10.0,
        "reading": TEXT,
    }
    return lambda policy: [
        {**where, policy: high - 0.1, "high" if policy == "eris-paper" else f"{policy} high": high}
    ]


def needed(column: str, value: float) -> Table:
    return lambda _: [{"size": "testbed", column: 10.0}, {"size": "simulator", column: value}]


def derived(low: float) -> Table:
    return lambda policy: [
        {
            "size": "testbed",
            "base": policy if policy == "eris" else SO_FAR,
            "of bound": low + 0.01,
            "low": low,
        }
    ]


UP, DOWN = (1.0, 2.0, 3.0), (3.0, 2.0, 1.0)
RATIO = {
    "below-1.5": (versus("loss", 1.3, 1.6), versus("loss", 1.45, 1.6)),
    "least": (versus("loss", 1.3, 1.6), versus("loss", 1.3, 1.2)),
}
JOBS = {
    "best": (course("jobs", UP, UP), course("jobs", UP, UP, ahead=0.0)),
    "falls": (course("jobs", DOWN, DOWN), course("jobs", UP, DOWN)),
    "scale": (leads("jobs", 0.1, 0.05, 0.2), leads("jobs", 0.2, 0.3, 0.1)),
    "completes": (completed(9, 8, 7), completed(9, 8, 7, half=1.0)),
}
MADE: dict[str, tuple[Table, Table]] = {
    **{f"{figure}/{n}": headline(n) for figure in ("fig-3", "fig-3-demands") for n in FIXED},
    **{f"{figure}/near-optimal": (shares(0.95), shares(0.905)) for figure in ("fig-3", "fig-3-demands")},
    **{f"{figure}/{n}": made for figure in ("fig-5", "fig-5-exact") for n, made in RATIO.items()},
    **{f"{figure}/{n}": made for figure in ("fig-9", "fig-9-crowded") for n, made in JOBS.items()},
    "region-lead/together": (settings(0.5), settings(0.435)),
    "region-ratio/somewhere": (ratios(1.4), ratios(1.6)),
    "fig-11-bids/resources": (needed("resources", 900.0), needed("resources", 1100.0)),
    "fig-11-bids/bandwidth": (needed("per MB", 900.0), needed("per MB", 1100.0)),
    "fig-11-bids/below-1.5": (derived(0.7), derived(0.6)),
    "fig-4/fewer": (versus("unserved", 1.0, 2.0), versus("unserved", 1.0, 1.1)),
    "fig-7/gpu": (use(0.4, 0.1), use(0.4, 0.1, peak=0.9)),
    "fig-7/cpu": (use(0.4, 0.1), use(0.1, 0.4)),
    "fig-7/memory": (use(0.4, 0.1), use(0.1, 0.4)),
    "fig-5/far-below-theory": (versus("loss", 3.0, 5.0), versus("loss", 4.0, 5.0)),
    "fig-8/scale": (leads("sites", 0.1, 0.05, 0.2), leads("sites", 0.2, 0.3, 0.1)),
    "fig-11/best": (any_base(0.1, 0.1), any_base(0.1, 0.0)),
    "fig-8/best": (course("sites", UP, UP), course("sites", UP, UP, ahead=0.0)),
    "fig-8/rises": (course("sites", UP, UP), course("sites", UP, DOWN)),
    "fig-9-crowded/never-falls": (course("jobs", UP, DOWN), course("jobs", DOWN, UP)),
    "fig-10/sites": (profit("sites", DOWN), profit("sites", DOWN, half=1.0)),
    "fig-10/jobs": (profit("jobs", UP), profit("jobs", (1.0, 3.0, 2.0))),
    "fig-11/falls": (gamma(DOWN), gamma(DOWN, half=1.0)),
    "table-workers/any-count": (counts(0.2), counts(0.0)),
    "table-readings/formulas": (finish("formulas", 1.0, 1.0), finish("formulas", 1.0, 0.2)),
    "table-readings/text": (finish(TEXT, 1.0, 1.0), finish(TEXT, 1.0, 0.2)),
    "table-slot/optimal": (outcomes(1.0), outcomes(0.7)),
    "table-lies/worth": (lies("worth", 0), lies("worth", 1)),
    "table-lies/arrival": (lies("arrival, later", 0), lies("arrival, later", 1)),
    "table-lies/work": (lies("data, more", 0), lies("epochs, more", 1)),
    "table-lies/proportional": (lies("smaller worker", 0), lies("larger worker", 1)),
    "table-lies/slim": (lies("slim server", 0), lies("slim worker", 1)),
    "table-lies/rational": (lies("worth", 0), lies("worth", 0, least=-1.0)),
}

CERTAIN: Certain = {
    "a peak, in any slot of any seed": ("fig-7/gpu",),
    "a spread over slots": ("fig-7/cpu", "fig-7/memory"),
    "an aim of ours about the mean": ("fig-9-crowded/never-falls",),
    "the largest of all bids": ("fig-11-bids/resources", "fig-11-bids/bandwidth"),
    "accepted jobs, states and lies are counted": (
        *(f"table-readings/{name}" for name in ("formulas", "text")),
        "table-slot/optimal",
        *(f"table-lies/{name}" for name in ("worth", "arrival", "work", "proportional", "slim", "rational")),
    ),
}
