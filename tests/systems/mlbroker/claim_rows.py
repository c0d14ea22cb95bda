"""Made-up rows that satisfy and that violate each claim of the mlBroker study."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tests.lab.claims import Certain, Made, Table
from tradewind.lab.study import Row
from tradewind.systems.mlbroker.study.rows import compared, with_change

ME = "me"
"""Stands for the policy that is judged."""
Values = Mapping[str, Sequence[float]]


def names(values: Values, who: str) -> dict[str, Sequence[float]]:
    """The values by policy; where only rivals are judged, the pipeline is the other one."""
    return {(who or "mlbroker-paper") if name == ME else name: v for name, v in values.items()}


def over(x: str, column: str, values: Values, **constant: str | float) -> Table:
    """Values of each policy over two x, the same for two seeds."""

    def rows(who: str) -> list[Row]:
        raw: list[Row] = [
            {x: at, "seed": seed, "policy": name, column: value, **constant}
            for name, several in names(values, who).items()
            for at, value in zip((100.0, 700.0), several, strict=True)
            for seed in (0, 1)
        ]
        found = compared(raw, (x, *constant), column, tuple(names(values, who)))
        return [{**row, "total": 1000.0} for row in with_change(found, raw, x, "policy", column)]

    return rows


def parts(name: str, column: str, values: Mapping[str, Mapping[str, float]]) -> Table:
    """A table by part: part -> policy -> value."""

    def rows(who: str) -> list[Row]:
        raw: list[Row] = [
            {
                name: part,
                "seed": seed,
                "policy": (who or "mlbroker-paper") if policy == ME else policy,
                column: value,
            }
            for part, several in values.items()
            for policy, value in several.items()
            for seed in (0, 1)
        ]
        at = (name,) if name else ()
        return compared(raw, at, column, tuple(dict.fromkeys(str(r["policy"]) for r in raw)))

    return rows


def bars(column: str, **values: float) -> Table:
    return parts("", column, {"": values})


def ratio(value: float, half: float, **more: float) -> Table:
    """One row with an interval."""
    return lambda who: [{"policy": who, "ratio": value, "low": value - half, "high": value + half, **more}]


def course(name: str, low: float, high: float) -> Table:
    """A change with its interval."""
    return lambda who: [
        {"policy": who, name: (low + high) / 2, f"{name} low": low, f"{name} high": high, "ratio": 1.0}
    ]


def cost(me: float, oasis: float, local: float, central: float) -> dict[str, float]:
    return {ME: me, "oasis": oasis, "local": local, "central": central}


def both(me: float, oasis: float, local: float, central: float) -> dict[str, Sequence[float]]:
    return {name: (value, value) for name, value in cost(me, oasis, local, central).items()}


CHEAPEST = both(9, 10, 10, 10)
NOT_CHEAPEST = {**both(9, 10, 10, 10), "central": (10, 8.9)}
TABLE_4 = cost(1070, 1201, 1386, 1100)
PARTS: dict[str, dict[str, float]] = {
    "transfer": {ME: 2.8},
    "rent": {ME: 1018},
    "deploy": {ME: 14},
    "traffic": {ME: 34},
    "cost": {ME: 1069},
}

MADE: Made = {
    "fig-5/below 1.25": (ratio(1.2, 0.04), ratio(1.2, 0.06)),
    "fig-5/little impact": (
        lambda who: [*ratio(1.0, 0)(who), *ratio(1.04, 0)(who)],
        lambda who: [*ratio(1.0, 0)(who), *ratio(1.04, 0.02)(who)],
    ),
    "fig-6/below 2.5": (ratio(2.4, 0.05), ratio(2.4, 0.2)),
    "fig-6/falls with data": (course("change", -0.2, -0.1), course("change", -0.2, 0.01)),
    "fig-6/rises with P": (course("over P", 0.1, 0.2), course("over P", -0.01, 0.2)),
    "fig-7/better": (
        over("sites", "ratio", {ME: (1, 1), "independent": (1.1, 1.2), "greedy": (1.3, 1.2)}, family="paper"),
        over(
            "sites", "ratio", {ME: (1, 1), "independent": (1.1, 0.99), "greedy": (1.3, 1.2)}, family="paper"
        ),
    ),
    "fig-8/cheapest": (over("data_gb", "cost", CHEAPEST), over("data_gb", "cost", NOT_CHEAPEST)),
    "fig-8/20-50%": (
        over("data_gb", "cost", both(7.9, 10, 15, 10)),
        over("data_gb", "cost", {**both(7.9, 10, 15, 10), "oasis": (10, 9.8)}),
    ),
    "fig-8/near Opt": (
        over("data_gb", "cost", {ME: (20, 29), "opt": (10, 10)}),
        over("data_gb", "cost", {ME: (20, 31), "opt": (10, 10)}),
    ),
    "fig-8/crossover": (
        over("data_gb", "cost", {"local": (2, 5), "central": (1, 6)}),
        over("data_gb", "cost", {"local": (2, 5), "central": (1, 4)}),
    ),
    "fig-9/up to 3": (ratio(2.8, 0.1), ratio(2.8, 0.3)),
    "fig-9/grows slightly": (course("change", 0.05, 0.15), course("change", -0.05, 0.15)),
    "fig-9/best": (over("slots", "ratio", CHEAPEST), over("slots", "ratio", NOT_CHEAPEST)),
    "fig-10/up to 3": (ratio(2.8, 0.1), ratio(2.8, 0.3)),
    "fig-10/stable": (course("change", -0.05, 0.09), course("change", -0.05, 0.11)),
    "fig-10/best": (over("jobs_per_slot", "ratio", CHEAPEST), over("jobs_per_slot", "ratio", NOT_CHEAPEST)),
    "fig-11/rises": (
        over("data_gb", "transfer", {ME: (1, 5), "central": (1, 6), "oasis": (1, 7), "local": (0, 0)}),
        over("data_gb", "transfer", {ME: (1, 6.5), "central": (1, 6), "oasis": (1, 7), "local": (0, 0)}),
    ),
    "fig-11/less": (
        over("data_gb", "transfer", {ME: (1, 5), "central": (2, 6), "oasis": (2, 7), "local": (0, 0)}),
        over("data_gb", "transfer", {ME: (1, 6), "central": (2, 6), "oasis": (2, 7), "local": (0, 0)}),
    ),
    "fig-12/Central, small data": (
        over("data_gb", "rent", {"central": (1, 9), "local": (2, 2)}),
        over("data_gb", "rent", {"central": (2, 1), "local": (2, 2)}),
    ),
    "fig-12/large data": (
        over("data_gb", "rent", {ME: (9, 3), "central": (1, 4), "local": (2, 5)}),
        over("data_gb", "rent", {ME: (1, 4.1), "central": (2, 4), "local": (2, 5)}),
    ),
    "fig-12/large part": (
        over("data_gb", "rent", both(510, 900, 700, 600)),
        over("data_gb", "rent", both(510, 900, 490, 600)),
    ),
    "fig-12/OASiS least": (
        over("data_gb", "rent", both(3, 2, 5, 4)),
        over("data_gb", "rent", {**both(3, 2, 5, 4), ME: (3, 1)}),
    ),
    "fig-13/stable": (course("change", -0.09, 0.05), course("change", -0.11, 0.05)),
    "fig-13/stable, rivals": (
        over("data_gb", "deploy", {"oasis": (10, 10.5), "local": (10, 10), "central": (10, 9.5)}),
        over("data_gb", "deploy", {"oasis": (10, 12), "local": (10, 10), "central": (10, 9.5)}),
    ),
    "fig-13/small": (
        over("data_gb", "deploy", both(20, 60, 40, 30)),
        over("data_gb", "deploy", both(20, 80, 40, 30)),
    ),
    "fig-14/less": (
        over("data_gb", "traffic", both(1, 2, 3, 0)),
        over("data_gb", "traffic", both(2, 1.9, 3, 0)),
    ),
    "table-4/cheapest": (
        parts("part", "usd", {"cost": TABLE_4}),
        parts("part", "usd", {"cost": cost(9, 10, 12, 8.9)}),
    ),
    "table-4/savings": (
        parts("part", "usd", {"cost": cost(1070, 1202, 1387, 1100)}),
        parts("part", "usd", {"cost": cost(1070, 1190, 1387, 1100)}),
    ),
    "table-4/order": (
        parts("part", "usd", {"cost": TABLE_4}),
        parts("part", "usd", {"cost": cost(9, 10, 12, 11)}),
    ),
    "table-4/parts": (parts("part", "usd", PARTS), parts("part", "usd", {**PARTS, "transfer": {ME: 20}})),
    "table-5/Central fastest": (
        parts("what", "value", {"hours": cost(392, 397, 418, 389)}),
        parts("what", "value", {"hours": cost(389, 397, 418, 389)}),
    ),
    "table-5/second": (
        parts("what", "value", {"hours": cost(392, 397, 418, 389)}),
        parts("what", "value", {"hours": cost(398, 397, 418, 389)}),
    ),
    "table-5/waiting": (
        parts("what", "value", {"waiting": cost(3, 8, 29, 0)}),
        parts("what", "value", {"waiting": cost(30, 8, 29, 0)}),
    ),
    "table-5/discount": (
        parts("what", "value", {"discount": cost(0.85, 0.93, 0.98, 0.91)}),
        parts("what", "value", {"discount": cost(0.92, 0.93, 0.98, 0.91)}),
    ),
    "table-5/rent": (
        parts("what", "value", {"rent": cost(1018, 1129, 1254, 1084)}),
        parts("what", "value", {"rent": cost(1130, 1129, 1254, 1184)}),
    ),
    "fig-15/cheapest": (bars("cost", **TABLE_4), bars("cost", **cost(1101, 1201, 1386, 1100))),
    "fig-16/Central fastest": (
        bars("hours", **cost(392, 397, 418, 389)),
        bars("hours", **cost(388, 397, 418, 389)),
    ),
    "fig-17/discount": (
        bars("discount", **cost(0.85, 0.93, 0.98, 0.91)),
        bars("discount", **cost(0.99, 0.93, 0.98, 0.91)),
    ),
    "growth/linear": (
        lambda _: [{"line": "measured", "jobs": n, "seconds": n / 100} for n in (100.0, 300.0)],
        lambda _: [{"line": "measured", "jobs": n, "seconds": n**2 / 100} for n in (100.0, 300.0)],
    ),
}

CERTAIN: Certain = {
    "a slope over sizes, of times measured once": ("growth/linear",),
    "a part of the mean cost, which varies with it from seed to seed": ("fig-12/large part", "fig-13/small"),
}
