"""Tables of the study: the rivals' worker counts, the readings of the text, and where the headline leads hold."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

from tradewind.lab.study import Effort, Row, mean_of
from tradewind.systems.eris.study.runs import (
    ELASTIC,
    FIXED,
    LEADS,
    PAPER,
    joined,
    limit,
    made,
    outcome,
    seeds,
)

COUNTS = (4, 8, 16, 32)
READINGS: dict[str, dict[str, str]] = {
    "formulas": {},
    "reserved": {"server": "reserved"},
    "remaining": {"data": "remaining"},
    "remaining, reserved": {"data": "remaining", "server": "reserved"},
    "remaining, reserved, both": {"data": "remaining", "server": "reserved", "pairs": "both"},
}
"""Readings of the text: M is all data or the remaining (Table I), room for the server (Sec. IV-D), pairs (line 2)."""
TEXT = "remaining, reserved, both"


def count_rows(effort: Effort) -> list[Row]:
    """Lead of both versions of Eris over each rival, by the rival's number of workers."""
    rows: list[Row] = []
    for size in ("testbed", "simulator", "contended"):
        for seed in (
            seeds(effort, 10, effort.pick(2, 1)) if size == "testbed" else seeds(effort, effort.pick(2, 5))
        ):
            scenario = made(effort, seed, size)
            paper, ours = outcome(scenario, PAPER), outcome(scenario, "eris")
            for name, elastic in zip(FIXED, ELASTIC, strict=True):
                found = {
                    f"{n} workers": outcome(scenario, name, {"workers": n})
                    for n in effort.pick(COUNTS[1:], COUNTS)
                }
                found["elastic"] = outcome(scenario, elastic)
                for given, o in found.items():
                    rows.append({
                        "case": f"{size}, {given}", "rival": name, LEADS[0]: paper.welfare / max(o.welfare, 1e-9) - 1,
                        LEADS[1]: ours.welfare / max(o.welfare, 1e-9) - 1,
                    })  # fmt: skip
    return joined(rows, ("case", "rival"), *LEADS)


def reading_rows(effort: Effort) -> list[Row]:
    """Share of the accepted jobs that finish as printed, and share of the bound once repaired, in every reading."""
    rows: list[Row] = []
    for size in ("testbed", "simulator", "contended", "crowded"):
        for seed in seeds(effort, effort.pick(2, 5)):
            scenario = made(effort, seed, size)
            top = limit(scenario)
            found = {
                (name, reading): outcome(scenario, name, params)
                for reading, params in READINGS.items()
                for name in ("eris-printed", PAPER)
            }
            found[PAPER, "per MB"] = outcome(scenario, PAPER, {"transfer_unit": "mb"})
            found["eris", ""] = outcome(scenario, "eris")
            for (name, reading), o in found.items():
                rows.append({
                    "size": size, "policy": name, "reading": reading, "finish": o.completed / max(o.accepted, 1.0),
                    "accepted": o.accepted, "of bound": o.welfare / top, "bar": f"{name} {reading}",
                })  # fmt: skip
    return joined(rows, ("size", "policy", "reading", "bar"), "finish", "accepted", "of bound")


def readings_summary(rows: Sequence[Row]) -> str:
    """Shares of the bound of the repaired algorithm by reading."""
    sizes = list(dict.fromkeys(str(r["size"]) for r in rows))
    names = [(PAPER, reading) for reading in (*READINGS, "per MB")] + [("eris", "")]
    parts = []
    for name, reading in names:
        shares = [mean_of(rows, "of bound", size=s, policy=name, reading=reading) for s in sizes]
        parts.append(f"{name} {reading} {', '.join(f'{x:.2f}' for x in shares)}")
    return (
        f"shares of the bound ({', '.join(sizes)}) once every schedule is made feasible: {'; '.join(parts)}"
    )


KNOBS = ("workers", "chunks per worker", "demands", "jobs", "reading")


def region_rows(effort: Effort) -> list[Row]:
    """Leads on the testbed over what the paper leaves open: the rivals' workers, P / E, demands, load, reading of M."""
    rows: list[Row] = []
    for per_worker, demands, jobs in product(
        effort.pick((0.0, 1.0), (0.0, 1.0, 3.0, 6.0)),
        effort.pick(("usual",), ("usual", "printed")),
        effort.pick((10,), (5, 10, 20)),
    ):
        for seed in seeds(effort, effort.pick(4, 10), 2):
            scenario = made(
                effort,
                seed,
                "testbed",
                chunks_per_worker=per_worker,
                demands=demands,
                jobs=jobs,
                forecast=False,
            )
            ours = outcome(scenario, "eris").welfare
            papers = {r: outcome(scenario, PAPER, READINGS[r]).welfare for r in ("formulas", TEXT)}
            for workers, rival in product(effort.pick((4, 16), (2, 4, 6, 8, 16)), FIXED):
                other = max(outcome(scenario, rival, {"workers": workers}).welfare, 1e-9)
                for reading, paper in papers.items():
                    rows.append({
                        "workers": float(workers), "chunks per worker": per_worker, "demands": demands,
                        "jobs": float(jobs), "reading": reading, "rival": rival, "welfare": other,
                        LEADS[0]: paper / other - 1, LEADS[1]: ours / other - 1,
                    })  # fmt: skip
    return joined(rows, (*KNOBS, "rival"), "welfare", *LEADS)
