"""Figures 8 to 11 of Eris: sites, jobs, payments and the base of the prices in the simulator."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from tradewind.lab.study import Effort, Finding, Row
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
    mean,
    outcome,
    seeds,
    word,
)

GAMMAS = (1.0, 10.0, 100.0, 1_000.0, 10_000.0, 100_000.0)
FEW = (PAPER, *OURS, "tiresias", *ELASTIC)
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
    return joined(rows, ("jobs", "policy"), "welfare", "of bound", *LEADS)


def _over(rows: Sequence[Row], x: str, policy: str, value: str = "welfare") -> list[float]:
    return [mean(rows, value, policy=policy, **{x: at}) for at in sorted({float(r[x]) for r in rows})]


def _beaten(rows: Sequence[Row], x: str, lead: str) -> dict[str, int]:
    """Number of x at which each rival is beaten beyond chance."""
    names = [n for n in (*FIXED, *ELASTIC) if any(r["policy"] == n for r in rows)]
    return {n: sum(float(r[f"{lead} low"]) > 0 for r in rows if r["policy"] == n) for n in names}


def _course(values: Sequence[float]) -> str:
    return ", ".join(f"{v:.0f}" for v in values)


def judge_sites(rows: Sequence[Row]) -> Finding:
    """Welfare rises with sites, and Eris is best at each?"""
    count = len({r["sites"] for r in rows})
    rise = all(b > a for a, b in pairwise(_over(rows, "sites", PAPER)))
    paper, ours = _beaten(rows, "sites", LEADS[0]), _beaten(rows, "sites", LEADS[1])
    parts = [rise, *(n == count for n in paper.values())]
    text = ", ".join(f"{n} {paper[n]} ({ours[n]})" for n in paper)
    return Finding(
        word=word(sum(parts), len(parts)),
        reason=f"eris-paper's welfare in thousand USD by sites: {_course(_over(rows, 'sites', PAPER))}; bound "
        f"{_course(_over(rows, 'sites', BOUND))}; eris {_course(_over(rows, 'sites', 'eris'))}. Of {count} sizes, "
        f"eris-paper (eris) beats beyond chance: {text}",
    )


def judge_jobs(rows: Sequence[Row]) -> Finding:
    """Does welfare fall with jobs with Eris best at each, as claimed? Ours should not fall."""
    count = len({r["jobs"] for r in rows})
    course = {n: _over(rows, "jobs", n) for n in (PAPER, *OURS, "tiresias", *ELASTIC, BOUND)}
    paper = _beaten(rows, "jobs", LEADS[0])
    ours = _beaten(rows, "jobs", LEADS[1])
    parts = [all(b < a for a, b in pairwise(course[PAPER])), *(n == count for n in paper.values())]
    text = "; ".join(f"{n} {_course(v)}" for n, v in course.items())
    falls = [n for n in OURS if any(b < a for a, b in pairwise(course[n]))]
    wins = ", ".join(f"{n} {paper[n]} ({ours[n]})" for n in paper)
    return Finding(
        word=word(sum(parts), len(parts)),
        reason=f"welfare in thousand USD as jobs are added: {text}. Ours "
        + (f"falls for {', '.join(falls)}" if falls else "never falls")
        + f". Of {count} sizes, eris-paper (eris) beats beyond chance: {wins}",
    )


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
            for name in (PAPER, "eris", "tiresias", *ELASTIC):
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


def judge_profit(rows: Sequence[Row]) -> Finding:
    """Falls with sites, rises with jobs?"""

    def course(policy: str, what: str) -> list[float]:
        cases = sorted(
            {str(r["case"]) for r in rows if str(r["case"]).endswith(what)}, key=lambda c: int(c.split()[0])
        )
        return [mean(rows, "profit", case=c, policy=policy) for c in cases]

    sites, jobs = course(PAPER, "sites"), course(PAPER, "jobs")
    parts = [all(b < a for a, b in pairwise(sites)), all(b > a for a, b in pairwise(jobs))]
    shares = [float(r["of welfare"]) for r in rows if r["policy"] == PAPER]
    text = "; ".join(
        f"{n} {', '.join(f'{v:.1f}' for v in course(n, 'sites'))} and {', '.join(f'{v:.1f}' for v in course(n, 'jobs'))}"
        for n in (PAPER, "eris", "tiresias", "tiresias-elastic")
    )
    return Finding(
        word=word(sum(parts), 2),
        reason=f"payments in thousand USD over sites and over jobs: {text}. eris-paper collects {min(shares):.1%} to "
        f"{max(shares):.1%} of the welfare: prices of base 1000 start at zero, so an idle network sells for nothing.",
    )


# ------------------------------------------------------------------ figure 11
def gamma_rows(effort: Effort) -> list[Row]:
    """Welfare over gamma on two sizes: printed, ours without and with a floor, elastic rivals and the bound."""
    rows: list[Row] = []
    for seed in seeds(effort, 6):
        for size in ("simulator", "contended"):
            scenario = made(effort, seed, size)
            flat = {n: outcome(scenario, n).welfare for n in ELASTIC} | {BOUND: limit(scenario)}
            for gamma in effort.pick(GAMMAS[::3] + GAMMAS[-1:], GAMMAS):
                base = {
                    PAPER: outcome(scenario, PAPER, {"gamma": gamma}),
                    "eris without floor": outcome(scenario, "eris", {"gamma": gamma, "floor": "none"}),
                    "eris": outcome(scenario, "eris", {"gamma": gamma}),
                }
                found = {n: o.welfare for n, o in base.items()} | flat
                rows += [{"gamma": gamma, "policy": f"{n}, {size}", "welfare": w} for n, w in found.items()]
    return joined(rows, ("gamma", "policy"), "welfare")


def judge_gamma(rows: Sequence[Row]) -> Finding:
    """Does a larger gamma reduce welfare?"""
    course = {n: _over(rows, "gamma", n) for n in dict.fromkeys(str(r["policy"]) for r in rows)}
    paper = course[f"{PAPER}, simulator"]
    gammas = sorted({float(r["gamma"]) for r in rows})
    held = [paper[-1] < paper[0], all(b <= a for a, b in pairwise(paper))]
    text = "; ".join(f"{n} {_course(v)}" for n, v in course.items() if n.startswith("eris"))
    return Finding(
        word=word(sum(held), 2),
        reason=f"welfare in thousand USD at gamma {', '.join(f'{g:g}' for g in gammas)}: {text}",
    )
