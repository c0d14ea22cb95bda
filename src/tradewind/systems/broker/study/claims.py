"""Our aims for the broker's study, judged on the rows of its figures."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from tradewind.lab.study import Claim, Holds, Judged, Row, mean_of

NEAR = {"F": 1.01, "Bm": 1.01, "E": 1.25}
"""Family -> mean cost over the offline bound that online decisions should stay below; the others have no aim."""
ROUNDING = 1e-9
"""Share of a bill by which equal plans may differ, as numbers are rounded."""
RIVALS = ("broker-selfish", "broker-central", "skypilot-rule")


def aim(name: str, words: str, holds: Holds) -> Claim:
    """An aim of ours."""
    return Claim(name=name, words=f"Our aim: {words}", holds=holds, ours="broker")


def near() -> str:
    """The aims of online decisions in words."""
    return ", ".join(f"{most:g} ({family})" for family, most in NEAR.items())


def each_freedom_saves(rows: Sequence[Row], _policy: str) -> Judged:
    """Without a freedom the bill is higher beyond chance in some family."""
    held, parts = True, []
    for source in dict.fromkeys(str(r["source"]) for r in rows):
        mine = [r for r in rows if r["source"] == source]
        clear = [str(r["family"]) for r in mine if float(r["low"]) > 100 * ROUNDING]
        most = max(float(r["more"]) for r in mine)
        held = held and bool(clear)
        parts.append(f"{source} up to {most:.3g}% in {', '.join(clear) or 'no family beyond chance'}")
    return Judged(held, "; ".join(parts))


def later_is_cheaper(rows: Sequence[Row], _policy: str) -> Judged:
    """In every family the bill does not rise with the time until deadlines."""
    held, parts = True, []
    for family in dict.fromkeys(str(r["family"]) for r in rows):
        mine = sorted((r for r in rows if r["family"] == family), key=lambda r: float(r["factor"]))
        bills = [float(r["cost"]) for r in mine]
        rise = max((b - a for a, b in pairwise(bills)), default=0.0)
        held = held and rise <= ROUNDING
        rises = f" (once {100 * rise:.2g}% up)" if rise > ROUNDING else ""
        parts.append(f"{family} {bills[-1]:.4f} of the bill{rises}")
    return Judged(held, f"with the latest deadlines {', '.join(parts)}")


def near_the_bound(rows: Sequence[Row], policy: str) -> Judged:
    """The mean cost over the offline bound is at most the aim of its family; an interval is shown beside it."""
    mine = [r for r in rows if r["policy"] == policy]
    held, parts = True, []
    for row in mine:
        aim_of = NEAR.get(str(row["family"]))
        held = held and (aim_of is None or float(row["ratio"]) <= aim_of)
        beside = "" if aim_of is None else f" of {aim_of:g}"
        parts.append(f"{row['family']} {float(row['ratio']):.3f}{beside} (to {float(row['high']):.3f})")
    return Judged(held, ", ".join(parts))


def never_dearer(rows: Sequence[Row], policy: str) -> Judged:
    """In every family the mean cost is at most that of every rival."""
    held, parts = True, []
    for family in dict.fromkeys(str(r["family"]) for r in rows):
        cost = {n: mean_of(rows, "ratio", family=family, policy=n) for n in (policy, *RIVALS)}
        held = held and all(cost[policy] <= cost[n] * (1 + ROUNDING) for n in RIVALS)
        parts.append(f"{family} {min(cost[n] / cost[policy] for n in RIVALS):.3f}")
    return Judged(held, f"best rival over it: {', '.join(parts)}")
