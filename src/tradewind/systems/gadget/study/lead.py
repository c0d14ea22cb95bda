"""Where the lead of Figure 4 is found, by utility, links and load."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from tradewind.lab.study import Effort, Judged, PaperFigure, Row, region, spreads
from tradewind.systems.gadget.study.runs import (
    RIVALS,
    by_seed,
    chart_of,
    claim,
    made,
    played,
    quickly,
    seeds_of,
)

KNOBS = ("links", "utility", "jobs per slot")
NAMES = ("gadget", "gadget-paper")
SEEDS = 5


def region_of(effort: Effort, seed: int) -> list[Row]:
    """Utility over that of the best rival by setting, one seed."""
    rows: list[Row] = []
    for family in effort.pick(("paper",), ("paper", "tight")):
        for utility in ("sigmoid", "sqrt", "log", "gang"):
            for load in effort.pick((1, 6), (1, 3, 10)):
                slots = effort.pick(20, 60)
                given = made(effort, seed, family=family, utility=utility, slots=slots, jobs=load * slots)
                best = max(played(given, name, seed).metrics["utility"] for name in RIVALS)
                row: dict[str, str | float] = {
                    "links": "published" if family == "paper" else "x 0.05",
                    "utility": utility,
                    "jobs per slot": float(load),
                }
                for name in NAMES:
                    row[name] = played(given, name, seed, quickly(name)).metrics["utility"] / max(best, 1e-9)
                rows.append(row)
    return rows


def join_region(effort: Effort, parts: Sequence[Sequence[Row]]) -> list[Row]:
    """Means over the seeds."""
    del effort
    found = spreads([row for part in parts for row in part], (*KNOBS,), *NAMES)
    return [{**row, f"{NAMES[0]} low": row["low"], f"{NAMES[0]} high": row["high"]} for row in found]


def region_rows(effort: Effort) -> list[Row]:
    """The lead by links, utility and load."""
    return join_region(effort, [region_of(effort, seed) for seed in seeds_of(effort, SEEDS, 3)])


def ahead(utility: str, rows: Sequence[Row], policy: str) -> Judged:
    """Whether there is a setting with this utility in which the lead over the best rival is beyond the interval."""
    found: list[Row] = [
        {
            **{k: r[k] for k in KNOBS},
            "measured": r[policy],
            "holds": "yes" if float(r[f"{policy} low"]) > 1 else "no",
        }
        for r in rows
        if r["utility"] == utility
    ]
    values = [float(r["measured"]) for r in found]
    return Judged(
        any(r["holds"] == "yes" for r in found),
        f"{min(values):.2f} to {max(values):.2f} times the best rival; {region(found, KNOBS)}",
    )


FIGURE = PaperFigure(
    name="region-fig-4",
    title="Figure 4: where GADGET leads",
    claims=tuple(
        claim(
            utility,
            f"Fig. 4: more total utility than FIFO, DRF and LAS; is there a setting with it {words}?",
            partial(ahead, utility),
        )
        for utility, words in (
            ("sigmoid", "and the printed sigmoid"),
            ("sqrt", "if the utility is concave (a square root), as the proofs assume"),
            ("log", "if the utility is concave (a logarithm), as the proofs assume"),
            ("gang", "if a job runs with all of its workers or none"),
        )
    ),
    rows=region_rows,
    pieces=by_seed(region_of, join_region, SEEDS, 3),
    chart=chart_of("jobs per slot", "gadget-paper", "utility", y_label="utility / best rival's"),
)
