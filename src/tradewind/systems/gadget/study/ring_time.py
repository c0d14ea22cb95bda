"""Equation (1) in whole runs: an iteration takes its computation and the ring time of its model."""

from __future__ import annotations

from collections.abc import Sequence

from tradewind.engine import bounds
from tradewind.lab.study import Effort, Judged, PaperFigure, Row, spreads
from tradewind.systems.gadget.study.runs import RIVALS, by_seed, chart_of, claim, made, played, seeds_of

NAMES = ("gadget", "gadget-paper", *RIVALS)
DRAWN, BY_1 = "zeta as drawn", "zeta by (1)"
UTILITIES = ("sigmoid", "sqrt")
SEEDS = 5


def ring_time_of(effort: Effort, seed: int) -> list[Row]:
    """Utility with and without ring time, what is gained on the best rival, and seconds of ring time, one seed."""
    rows: list[Row] = []
    for utility in UTILITIES:
        for zeta in (DRAWN, BY_1):
            size = effort.pick({}, {"slots": 60, "jobs": 600})
            given = made(effort, seed, utility=utility, ring_time=zeta == BY_1, **size)
            runs = {name: played(given, name, seed).metrics for name in NAMES}
            best, top = max(runs[name]["utility"] for name in RIVALS), bounds.bound(given)
            assert top is not None
            for name, run in runs.items():
                rows.append(
                    {"utility of": utility, "zeta": zeta, "case": f"{utility}, {zeta}", "policy": name,
                     "utility": run["utility"], "lead": run["utility"] / best,
                     "of bound": run["utility"] / top.value, "ring time, s": run["epoch_s"]}
                )  # fmt: skip
    return rows


def join_ring_time(effort: Effort, parts: Sequence[Sequence[Row]]) -> list[Row]:
    """Means over the seeds."""
    del effort
    rows = [row for part in parts for row in part]
    return spreads(
        rows, ("utility of", "zeta", "case", "policy"), "utility", "lead", "of bound", "ring time, s"
    )


def ring_time_rows(effort: Effort) -> list[Row]:
    """Utility with and without ring time by policy."""
    return join_ring_time(effort, [ring_time_of(effort, seed) for seed in seeds_of(effort, SEEDS, 3)])


def leads_with_ring_time(rows: Sequence[Row], policy: str) -> Judged:
    """Where ring time counts, more utility than every rival of the same seed on all utilities, beyond the interval."""
    mine = [r for r in rows if r["policy"] == policy]
    slow = [r for r in mine if r["zeta"] == BY_1]
    found = "; ".join(
        f"{r['case']}: {float(r['lead']):.2f} times the best rival, {float(r['ring time, s']):.2f} s of ring time"
        for r in mine
    )
    return Judged(all(float(r["lead low"]) > 1 for r in slow), found)


def _of_bound(rows: Sequence[Row]) -> str:
    """Shares of the offline bound where ring time counts."""
    slow = [r for r in rows if r["zeta"] == BY_1]
    return "of the offline bound with ring time: " + "; ".join(
        f"{utility} "
        + ", ".join(f"{r['policy']} {float(r['of bound']):.2f}" for r in slow if r["utility of"] == utility)
        for utility in UTILITIES
    )


FIGURE = PaperFigure(
    name="table-ring-time",
    title="Eq. (1): ring time acts on progress",
    claims=(
        claim(
            "leads",
            "Sec. III-3, IV-3: zeta can be obtained by inverting Eq. (1) (not measured). Here: with it, more utility "
            "than FIFO, DRF and LAS.",
            leads_with_ring_time,
        ),
    ),
    rows=ring_time_rows,
    summary=_of_bound,
    pieces=by_seed(ring_time_of, join_ring_time, SEEDS, 3),
    chart=chart_of("case", "utility", "policy", kind="bar"),
)
