"""Where the four headline ratios would be found: markets and constants that the paper leaves open."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tradewind.lab.study import Effort, Judged, Row, region, spread
from tradewind.systems.dps.kernels.fixed import QUICK
from tradewind.systems.dps.study.rows import BOTH, seeds
from tradewind.systems.dps.study.runs import (
    EXTRA,
    Knobs,
    best_fixed,
    better_printed,
    drawn,
    sell_printed,
    sold,
)
from tradewind.systems.dps.workload.draw import KINDS

CLAIMED = {"bfp": 1.25, "bfp-printed": 1.25, "dps-simple": 1.15, "top": 1.22, "random": 2.38}
"""What DPS earns over its rivals (Section V); the 125% are held against two readings of BFP."""
KNOBS = ("market", "theta", "delta")


def region_rows(effort: Effort) -> list[Row]:
    """Ratio of dps-paper and of dps to each rival, by market, theta and delta."""
    rows: list[Row] = []
    markets = effort.pick(("balanced", "sat-runtime", "poor"), (*KINDS, *EXTRA))
    for market in markets:
        for seed in seeds(effort, effort.pick(1, 3)):
            data = drawn(market, seed)
            rivals = {name: sold(market, seed, name).outcome.profit for name in ("top", "random")}
            rivals["bfp-printed"] = sell_printed(data).outcome.profit
            rivals["bfp"] = max(best_fixed(market, seed, QUICK).profit, better_printed(data).profit)
            for theta in effort.pick((0.02, 0.11), (0.005, 0.02, 0.05, 0.11)):
                for delta in effort.pick((0.2,), (0.05, 0.1, 0.2, 0.4)):
                    knobs = Knobs(theta=theta, delta=delta)
                    rivals["dps-simple"] = sold(market, seed, "dps-simple", Knobs(delta=delta)).outcome.profit
                    for policy in BOTH:
                        mine = sold(market, seed, policy, knobs if policy != "dps" else None).outcome.profit
                        rows += [
                            {
                                "market": market,
                                "theta": theta,
                                "delta": delta,
                                "policy": policy,
                                "rival": name,
                            }
                            | {"ratio": mine / rivals[name], "line": f"{policy} over {name}"}
                            | {"setting": f"{market} {theta:g}/{delta:g}"}
                            for name in CLAIMED
                            if rivals[name] > 0  # a grid above all budgets sells nothing, which says nothing
                        ]
    return spread(rows, (*KNOBS, "policy", "rival", "line", "setting"), "ratio")


def somewhere(rival: str) -> Callable[[Sequence[Row], str], Judged]:
    """Predicate: in some setting the mean ratio to the rival is at least what is claimed."""

    def holds(rows: Sequence[Row], policy: str) -> Judged:
        mine = [
            {
                **row,
                "measured": row["ratio"],
                "holds": "yes" if float(row["ratio"]) >= CLAIMED[rival] else "no",
            }
            for row in rows
            if row["policy"] == policy and row["rival"] == rival
        ]
        return Judged(any(row["holds"] == "yes" for row in mine), region(mine, KNOBS))

    return holds


def together(rows: Sequence[Row], policy: str) -> Judged:
    """Predicate: all four ratios in one setting, with bfp-printed as BFP."""
    wanted = {name: ratio for name, ratio in CLAIMED.items() if name != "bfp"}
    settings: dict[tuple[str | float, ...], dict[str, float]] = {}
    for row in rows:
        if row["policy"] == policy:
            settings.setdefault(tuple(row[k] for k in KNOBS), {})[str(row["rival"])] = float(row["ratio"])
    held = {where: sum(found.get(n, 0.0) >= wanted[n] for n in wanted) for where, found in settings.items()}
    most = max(held.values())
    first = next(where for where, count in held.items() if count == most)
    text = ", ".join(f"{k} {v}" for k, v in zip(KNOBS, first, strict=True))
    return Judged(most == len(wanted), f"at most {most} of {len(wanted)} at once, first with {text}")
