"""Predicates over the rows of the APSP figures: (rows, policy) -> whether the claim holds, and our numbers."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from tradewind.lab.study import Holds, Judged, Row, mean_of
from tradewind.systems.apsp.study.region import MEAN, NEAR

EQUAL = 0.01
"""Times within 1% count as the same."""


def _mine(rows: Sequence[Row], policy: str, method: str) -> list[Row]:
    return [r for r in rows if r["policy"] == policy and r["method"] == method]


def faster(*methods: str) -> Holds:
    """The policy takes less time than each method in every row, beyond chance over the draws."""

    def judge(rows: Sequence[Row], policy: str) -> Judged:
        parts, held = [], True
        for method in methods:
            mine = _mine(rows, policy, method)
            clear = sum(float(r["saved low"]) > 0 for r in mine)
            held = held and clear == len(mine)
            saved = [float(r["saved_percent"]) for r in mine]
            lost = max(float(r["lost"]) / float(r["draws"]) for r in mine)
            parts.append(
                f"{method}: saves {min(saved):.1f} to {max(saved):.1f}%, clear in {clear} of {len(mine)} rows, slower in up "
                f"to {lost:.0%} of the draws"
            )
        return Judged(held, "; ".join(parts))

    return judge


def numbers(rows: Sequence[Row], policy: str) -> Judged:
    """Every number of Table III lies between the 5% and 95% of the draws."""
    mine = [r for r in rows if r["policy"] == policy]
    inside = sum(float(r["p5"]) <= float(r["paper_s"]) <= float(r["p95"]) for r in mine)
    return Judged(
        inside == len(mine), f"{inside} of {len(mine)} numbers lie between the 5% and 95% of our draws"
    )


def grows(rows: Sequence[Row], policy: str) -> Judged:
    """Mean times rise in the order of the models' printed times."""
    held, parts = True, []
    for network in dict.fromkeys(str(r["network"]) for r in rows):
        mine = sorted(
            (r for r in _mine(rows, policy, "chosen") if r["network"] == network),
            key=lambda r: float(r["paper_s"]),
        )
        seconds = [float(r["seconds"]) for r in mine]
        held = held and all(a < b for a, b in pairwise(seconds))
        parts.append(f"{network} {', '.join(f'{s:.1f}' for s in seconds)} s")
    return Judged(held, "; ".join(parts))


def saves(network: str, rival: str, claimed: tuple[float, float]) -> Holds:
    """Under every rule of drawing bandwidths time is saved beyond chance, on average within 2 points of what is printed."""

    def judge(rows: Sequence[Row], policy: str) -> Judged:
        mine = [r for r in rows if (r["policy"], r["network"], r["rival"]) == (policy, network, rival)]
        held = all(
            float(r["low"]) > 0 and claimed[0] - NEAR <= float(r["saved_percent"]) <= claimed[1] + NEAR
            for r in mine
        )
        text = ", ".join(
            f"{r['rule']} {float(r['saved_percent']):.1f}% ({float(r['low']):.1f} to {float(r['high']):.1f})"
            for r in mine
        )
        return Judged(held, text)

    return judge


ON_AVERAGE = 18.0
"""Percent of time saved on average (Sec. I)."""


def on_average(rows: Sequence[Row], policy: str) -> Judged:
    """Over the most connected site time is saved beyond chance, on average of networks and rules within 2 points of 18%."""
    mine = _over_connected(rows, policy)
    low, mean, high = (mean_of(mine, c) for c in ("low", "saved_percent", "high"))
    return Judged(low > 0 and abs(mean - ON_AVERAGE) <= NEAR, f"{mean:.1f}% ({low:.1f} to {high:.1f})")


def _over_connected(rows: Sequence[Row], policy: str) -> list[Row]:
    """What is saved over the most connected site, by network and rule."""
    return [r for r in rows if (r["policy"], r["rival"]) == (policy, MEAN)]


def _less_text(found: Sequence[Row]) -> str:
    parts = [
        f"{r['case']} {float(r['less']):.1f} ({float(r['less low']):.1f} to {float(r['less high']):.1f})"
        for r in found
    ]
    return f"percentage points saved less over the most connected site than over a random one: {', '.join(parts)}"


def less_over_connected(rows: Sequence[Row], policy: str) -> Judged:
    """Under every rule and on every network less is saved over the most connected site, beyond chance on the same draws."""
    found = _over_connected(rows, policy)
    return Judged(all(float(r["less low"]) > 0 for r in found), _less_text(found))


def worse_than_random(rows: Sequence[Row], policy: str) -> Judged:
    """On some network and under some rule more is saved over the most connected site, beyond chance on the same draws."""
    found = _over_connected(rows, policy)
    return Judged(any(float(r["less high"]) < 0 for r in found), _less_text(found))


def optimal_site(rows: Sequence[Row], _policy: str) -> Judged:
    """The site chosen is one of the fastest in every draw."""
    text = ", ".join(f"{r['case']} {float(r['best site']):.0%}" for r in rows)
    return Judged(all(float(r["best site"]) == 1 for r in rows), f"draws in which it is: {text}")


def _by_bandwidth(rows: Sequence[Row], policy: str, method: str) -> list[Row]:
    return sorted(_mine(rows, policy, method), key=lambda r: float(r["min_mbps"]))


def _lead(rows: Sequence[Row], policy: str, method: str) -> list[float]:
    """Time of the method over that of the policy, by rising bandwidth."""

    both = (_by_bandwidth(rows, policy, name) for name in (method, "chosen"))
    return [float(a["seconds"]) / float(b["seconds"]) for a, b in zip(*both, strict=True)]


def shrinks(rows: Sequence[Row], policy: str) -> Judged:
    """Less is saved over both other selections with the largest least bandwidth than with the smallest, beyond chance."""
    leads = {method: _lead(rows, policy, method) for method in ("random-ps", "most-connected")}
    text = ", ".join(f"{method} {lead[0]:.2f} to {lead[-1]:.2f} times" for method, lead in leads.items())
    ends = [_by_bandwidth(rows, policy, method) for method in leads]
    clear = sum(float(mine[-1]["saved high"]) < float(mine[0]["saved low"]) for mine in ends)
    return Judged(clear == len(ends), f"{text}; clear for {clear} of {len(ends)}")


def equal_at_the_end(rows: Sequence[Row], policy: str) -> Judged:
    """With the largest least bandwidth the most connected site takes the same time, within 1%."""
    last = _lead(rows, policy, "most-connected")[-1]
    return Judged(
        abs(last - 1) <= EQUAL, f"the most connected site (mean of ties) takes {last:.3f} of its time"
    )


def falls(rows: Sequence[Row], policy: str) -> Judged:
    """The time at the chosen site is shorter with the largest least bandwidth than with the smallest, beyond chance."""
    mine = _by_bandwidth(rows, policy, "chosen")
    text = ", ".join(f"{float(r['seconds']):.1f}" for r in mine)
    return Judged(float(mine[-1]["high"]) < float(mine[0]["low"]), f"{text} s")
