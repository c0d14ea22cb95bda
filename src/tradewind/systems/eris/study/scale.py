"""Figures 8 to 11 of Eris: sites, jobs, payments and the base of the prices in the simulator."""

from __future__ import annotations

from tradewind.lab.study import Effort, Row
from tradewind.systems.eris.study.runs import (
    BOUND,
    ELASTIC,
    FIXED,
    LEADS,
    NAMES,
    OURS,
    PAPER,
    compared,
    joined,
    limit,
    made,
    outcome,
    seeds,
)

GAMMAS = (1.0, 10.0, 100.0, 1_000.0, 10_000.0, 100_000.0)
FEW = (PAPER, *OURS, *FIXED, *ELASTIC)
"""Policies that a quick study compares."""


def site_rows(effort: Effort) -> list[Row]:
    """Figure 8: 100 jobs on a growing number of sites."""
    rows: list[Row] = []
    for seed in seeds(effort, 6):
        for sites in effort.pick((10, 20, 50), (10, 20, 30, 50, 80)):
            scenario = made(effort, seed, "simulator", sites=sites)
            found = compared(scenario, effort.pick(FEW, NAMES))
            rows += [{"sites": float(len(scenario.setup.hosts)), **row} for row in found]
    return joined(rows, ("sites", "policy"), "welfare", "of bound", *LEADS)


def job_rows(size: str, most: int, effort: Effort) -> list[Row]:
    """Figure 9: a growing number of jobs on 50 sites."""
    rows: list[Row] = []
    for seed in seeds(effort, effort.pick(2, most)):
        for jobs in (100, 200, 300):
            scenario = made(effort, seed, size, jobs=jobs)
            found = compared(scenario, effort.pick(FEW, NAMES))
            rows += [{"jobs": float(len(scenario.jobs)), **row} for row in found]
    return joined(rows, ("jobs", "policy"), "welfare", "of bound", "unserved", *LEADS)


# ------------------------------------------------------------------ figure 10
def profit_rows(effort: Effort) -> list[Row]:
    """Payments over sites (100 jobs) and over jobs (50 sites); for the rivals, the posted prices of what ran."""
    cases: list[dict[str, int]] = [
        *({"sites": n} for n in (10, 20, 50)),
        *({"jobs": n} for n in (100, 200, 300)),
    ]
    rows: list[Row] = []
    for seed in seeds(effort, effort.pick(2, 6)):
        for params in cases:
            scenario = made(effort, seed, "simulator", **params)
            count = len(scenario.setup.hosts if "sites" in params else scenario.jobs)
            case = f"{count} {next(iter(params))}"
            for name in (PAPER, "eris", *FIXED, *ELASTIC):
                o = outcome(scenario, name)
                rows.append(
                    {
                        "case": case,
                        "policy": name,
                        "profit": o.paid,
                        "of welfare": o.paid / max(o.welfare, 1e-9),
                    }
                )
            rows.append({"case": case, "policy": BOUND, "profit": limit(scenario), "of welfare": 1.0})
    return joined(rows, ("case", "policy"), "profit", "of welfare")


# ------------------------------------------------------------------ figure 11
def gamma_rows(effort: Effort) -> list[Row]:
    """Welfare over gamma on two sizes: printed, ours without and with a floor, all rivals and the bound."""
    rows: list[Row] = []
    for seed in seeds(effort, 6):
        for size in ("simulator", "contended"):
            scenario = made(effort, seed, size)
            flat = {n: outcome(scenario, n).welfare for n in (*FIXED, *ELASTIC)} | {BOUND: limit(scenario)}
            for gamma in effort.pick(GAMMAS[::3] + GAMMAS[-1:], GAMMAS):
                base = {
                    PAPER: outcome(scenario, PAPER, {"gamma": gamma}),
                    "eris without floor": outcome(scenario, "eris", {"gamma": gamma, "floor": "none"}),
                    "eris": outcome(scenario, "eris", {"gamma": gamma}),
                }
                found = {n: o.welfare for n, o in base.items()} | flat
                rows += [
                    {"gamma": gamma, "policy": f"{n}, {size}", "welfare": w}
                    | {f"lead of {p}": base[p].welfare / max(w, 1e-9) - 1 for p in (PAPER, "eris")}
                    for n, w in found.items()
                ]
    return joined(rows, ("gamma", "policy"), "welfare", *LEADS)
