"""Where the printed reductions of APSP would be found: rules, least bandwidths, transports and ties."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

from tradewind.lab.study import Effort, Row, region
from tradewind.report.summary import estimate
from tradewind.systems.apsp.study.draws import RULES, printed

MEAN = "most-connected, mean of ties"
PRINTED: dict[tuple[str, str], tuple[float, float]] = {
    ("b4", "random-ps"): (52.40, 61.78),
    ("b4", MEAN): (11.10, 25.00),
    ("internet2", "random-ps"): (21.69, 21.78),
    ("internet2", MEAN): (19.90, 21.04),
}
"""Sec. V-B: percent of time that APSP saves."""
NEAR = 2.0
"""A mean within so many percentage points of the printed range counts as found."""
KNOBS = ("rule", "least Mbit/s", "transport", "ties")


def rows(effort: Effort) -> list[Row]:
    """What Algorithm 2 saves, by network and rival, over what the paper leaves open; cut-through: |p| left out of (4)."""
    found: list[Row] = []
    transports = ("store-and-forward", "cut-through")
    for network, rule, least, transport in product(
        ("b4", "internet2"), RULES, effort.pick((500, 3000), (500, 1000, 2000, 3000, 4000)), transports
    ):
        draws = [printed(network, rule, least, seed, transport) for seed in range(effort.pick(2, 10))]
        for (where, rival), claimed in PRINTED.items():
            if where != network:
                continue
            for k, ties in enumerate(("mean", "best", "worst") if rival == MEAN else ("none",)):
                base = [d.connected[k] if rival == MEAN else d.random for d in draws]
                e = estimate([100 * (1 - d.apsp / b) for d, b in zip(draws, base, strict=True)])
                near = claimed[0] - NEAR <= e.mean <= claimed[1] + NEAR
                over = rival.partition(",")[0]
                found.append(
                    {
                        "setting": f"{network} over {over}: {rule}, {least}, {transport}, {ties}",
                        "claim": f"{network} over {over}", "printed": f"{claimed[0]:.2f}-{claimed[1]:.2f}%",
                        "rule": rule, "least Mbit/s": float(least), "transport": transport, "ties": ties,
                        "measured": e.mean, "low": e.mean - e.half, "high": e.mean + e.half,
                        "away": max(claimed[0] - e.mean, e.mean - claimed[1], 0.0), "holds": "yes" if near else "no",
                    }
                )  # fmt: skip
    return found


def summary(found: Sequence[Row]) -> str:
    """The region of each printed range."""
    parts = []
    for claim in dict.fromkeys(str(r["claim"]) for r in found):
        mine = [r for r in found if r["claim"] == claim]
        nearest = min(mine, key=lambda r: float(r["away"]))
        where = (
            f"none of {len(mine)} settings, nearest {float(nearest['measured']):.1f}% ({nearest['setting']})"
        )
        if any(r["holds"] == "yes" for r in mine):
            where = region(mine, KNOBS)
        parts.append(f"{claim}, {mine[0]['printed']} within {NEAR:g} points: {where}")
    return ". ".join(parts)
