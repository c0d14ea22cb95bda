"""Whether the claims of DPS's figures hold."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tradewind.lab.study import Finding, Row, Word
from tradewind.systems.dps.study.rows import mean_of
from tradewind.systems.dps.workload.draw import KINDS

REQUIRED = dict(zip(KINDS, (0.94, 1.01, 1.08, 1.09, 1.25, 0.95, 1.02, 1.15, 0.85), strict=True))
"""Least profit of dps over bfp that we accept, per market."""
GOAL = dict(zip(KINDS, (0.98, 1.06, 1.15, 1.16, 1.32, 1.00, 1.10, 1.24, 1.00), strict=True))


def _word(held: int, of: int) -> Word:
    """The verdict on a claim of which `held` of `of` parts hold."""
    return "reproduced" if held == of else "partly reproduced" if held else "not reproduced"


def judge_regret(rows: Sequence[Row]) -> Finding:
    """Does the paper's regret turn negative?"""
    end = max(float(r["slot"]) for r in rows)
    paper, ours = (mean_of(rows, "regret", slot=end, policy=p) for p in ("dps-paper", "dps"))
    peak = max((float(r["regret"]), float(r["slot"])) for r in rows if r["policy"] == "dps-paper")
    words = (
        f"at the end the regret of dps-paper is {paper:,.0f} (highest {peak[0]:,.0f} at slot {peak[1]:,.0f}) "
        f"and that of dps, our learner, {ours:,.0f}; negative means better than the best fixed prices"
    )
    return Finding(word="reproduced" if paper < 0 else "not reproduced", reason=words)


def judge_profit(rows: Sequence[Row]) -> Finding:
    """Do the four headline ratios hold?"""
    paper = mean_of(rows, "of bfp", policy="dps-paper")
    claims = {"bfp": 1.25, "dps-simple": 1.15, "top": 1.22, "random": 2.38}
    ratios = {name: paper / mean_of(rows, "of bfp", policy=name) for name in claims}
    held = sum(ratios[name] >= 0.95 * claim for name, claim in claims.items())
    listed = ", ".join(f"{ratios[n]:.0%} of {n} (paper {c:.0%})" for n, c in claims.items())
    ours = mean_of(rows, "of bfp", policy="dps")
    return Finding(
        word=_word(held, 4), reason=f"dps-paper earns {listed}; dps, our learner, {ours:.0%} of bfp"
    )


def judge_jobs(rows: Sequence[Row]) -> Finding:
    """Does the regret fall with the number of jobs?"""
    sizes = sorted({float(r["jobs"]) for r in rows})
    regret = [mean_of(rows, "regret of bfp", jobs=n, policy="dps-paper") for n in sizes]
    falls = regret[-1] < regret[0]
    listed = ", ".join(f"{r:.0%} at {n:,.0f} jobs" for n, r in zip(sizes, regret, strict=True))
    return Finding(
        word="partly reproduced" if falls else "not reproduced",
        reason=f"dps-paper's regret as a share of bfp's profit: {listed}; it falls with N, but never below zero"
        if falls and min(regret) > 0
        else f"dps-paper's regret as a share of bfp's profit: {listed}",
    )


def judge_constant(rows: Sequence[Row], name: str) -> Finding:
    """Is the printed formula the best value of a constant?"""
    regret = {str(r[name]): float(r["regret"]) for r in rows}
    best = min(regret, key=lambda key: regret[key])
    listed = ", ".join(f"{key}: {value:,.0f}" for key, value in regret.items())
    word = _word(int(best == "formula"), 1)
    return Finding(word=word, reason=f"regret by {name}: {listed}; the smallest is at {best}")


def judge_placement(rows: Sequence[Row]) -> Finding:
    """Is PA better than random placement?"""
    pa, rs = (mean_of(rows, "of bfp", policy=p) for p in ("dps-paper", "dps-rs"))
    long_pa, long_rs = (mean_of(rows, "runtime", policy=p) for p in ("dps-paper", "dps-rs"))
    held = (pa > rs) + (long_pa < long_rs) + (pa > 1)
    return Finding(
        word=_word(held, 3),
        reason=f"PA earns {pa:.1%} of bfp and random placement {rs:.1%}; mean runtime {long_pa:.0f} against "
        f"{long_rs:.0f} slots",
    )


def summary_acceptance(rows: Sequence[Row]) -> str:
    """How far the learned acceptance is off."""
    weight = np.array([float(r["n"]) for r in rows])
    off = np.array([abs(float(r["expected"]) - float(r["realised"])) for r in rows])
    mean = float((weight * off).sum() / weight.sum())
    return f"on average the expected acceptance differs from the realised one by {mean:.1%}"


def summary_prices(rows: Sequence[Row]) -> str:
    """Do prices follow budgets that rise and fall?"""
    half = max(float(r["slot"]) for r in rows) / 2
    first = float(np.mean([float(r["price"]) for r in rows if float(r["slot"]) < half]))
    second = float(np.mean([float(r["price"]) for r in rows if float(r["slot"]) >= half]))
    return (
        "budgets are high in the first half and low in the second; "
        f"the prices asked are {first:.2f} and {second:.2f}"
    )


def summary_markets(rows: Sequence[Row]) -> str:
    """Which of our own targets are met?"""
    ours = {name: mean_of(rows, "of bfp", market=name, policy="dps") for name in KINDS}
    low = [name for name in KINDS if ours[name] < REQUIRED[name]]
    goal = [name for name in KINDS if ours[name] < GOAL[name]]
    listed = ", ".join(f"{name} {value:.2f}" for name, value in ours.items())
    return (
        f"dps over bfp: {listed}. Below our requirement: {', '.join(low) or 'none'}; "
        f"below our goal: {', '.join(goal) or 'none'}. The paper has no such table."
    )
