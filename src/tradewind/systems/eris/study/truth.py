"""Table of lies that pay (Theorem 3), for the printed algorithm and both of our truthful mechanisms."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

from tradewind.lab.study import Effort, Finding, Row
from tradewind.systems.eris.study.lies import CHARGED, KINDS, NARROW, SOLD, Mechanism, try_lie
from tradewind.systems.eris.study.runs import PAPER, word

GAIN = 1e-6
"""Gain in USD above which a lie pays."""
TRUTHFUL = f"{CHARGED.name}, payments={CHARGED.params['payments']}"
CASES = (
    *product((Mechanism(PAPER, {}), SOLD), KINDS),
    (CHARGED, "scale"),
)
"""Mechanism and kind of lie; the payments of `eris-preemptive` only claim truthfulness about the scale."""
WORDS = {
    "utility": "worth",
    "scale": "worth, its scale",
    "late": "arrival, later",
    "data": "data, more",
    "epochs": "epochs, more",
}


def lie_rows(effort: Effort) -> list[Row]:
    """Per kind of lie: how many were tried, changed the liar's payoff, and paid; the largest gain in USD."""
    rows: list[Row] = []
    for (mechanism, kind), (where, changes) in product(CASES, (("", {}), (", narrow network", NARROW))):
        tried = [try_lie(seed, kind, mechanism, **changes) for seed in range(1, 1 + effort.pick(10, 200))]
        rows.append({
            "mechanism": TRUTHFUL if mechanism is CHARGED else mechanism.name, "lie": WORDS[kind] + where,
            "lies": len(tried), "mattered": sum(t.mattered for t in tried), "paid": sum(t.gain > GAIN for t in tried),
            "share": sum(t.gain > GAIN for t in tried) / len(tried), "largest gain": max(0.0, *(t.gain for t in tried)),
            "least payoff": min(t.least_payoff for t in tried),
        })  # fmt: skip
    return rows


def judge_lies(rows: Sequence[Row]) -> Finding:
    """Is every kind of lie useless, as Theorem 3 says?"""
    paper = [r for r in rows if r["mechanism"] == PAPER]
    held = [r for r in paper if not r["paid"]]
    paying = [
        f"{r['lie']} {int(r['paid'])} of {int(r['lies'])}, up to {float(r['largest gain']):.4g} USD"
        for r in paper
        if r["paid"]
    ]
    ours = [r for r in rows if r["mechanism"] != PAPER]
    count, paid = (sum(int(r[key]) for r in ours) for key in ("lies", "paid"))
    least = min(float(r["least payoff"]) for r in rows)
    return Finding(
        word=word(len(held), len(paper)),
        reason=f"lies to eris-paper that paid: {'; '.join(paying) or 'none'}. Prices do not depend on a bid, but the "
        "schedule that is found does: it is not the cheapest, and if it is infeasible the job is refused. Of "
        f"{count} lies to eris and to {TRUTHFUL}, {paid} paid. Least payoff of an honest buyer: {least:.2f} USD",
    )
