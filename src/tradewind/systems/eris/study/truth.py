"""Table beside Eris's figures: lies that pay (Theorem 3), told to the printed algorithm and to both of our markets."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

from tradewind.lab.study import Effort, Finding, Row
from tradewind.systems.eris.study.lies import CHARGED, KINDS, NARROW, SOLD, Mechanism, try_lie
from tradewind.systems.eris.study.runs import PAPER, word

GAIN = 1e-6
"""USD from which on a lie pays."""
TRUTHFUL = f"{CHARGED.name}, payments={CHARGED.params['payments']}"
TOLD = (
    *product((Mechanism(PAPER, {}), SOLD), KINDS),
    (CHARGED, "scale"),
)
"""Who is lied to, about what; a scale is all that the payments of `eris-preemptive` are made for."""
WORDS = {
    "utility": "worth",
    "scale": "worth, its scale",
    "late": "arrival, later",
    "data": "data, more",
    "epochs": "epochs, more",
}


def lie_rows(effort: Effort) -> list[Row]:
    """Of each kind of lie, how many there were, changed what the liar had, and paid; the largest gain in USD."""
    rows: list[Row] = []
    for (mechanism, kind), (where, changes) in product(TOLD, (("", {}), (", narrow network", NARROW))):
        told = [try_lie(seed, kind, mechanism, **changes) for seed in range(1, 1 + effort.pick(10, 200))]
        rows.append({
            "mechanism": TRUTHFUL if mechanism is CHARGED else mechanism.name, "lie": WORDS[kind] + where,
            "lies": len(told), "mattered": sum(t.mattered for t in told), "paid": sum(t.gain > GAIN for t in told),
            "share": sum(t.gain > GAIN for t in told) / len(told), "largest gain": max(0.0, *(t.gain for t in told)),
            "least payoff": min(t.least_payoff for t in told),
        })  # fmt: skip
    return rows


def judge_lies(rows: Sequence[Row]) -> Finding:
    """Is every kind of lie useless, as Theorem 3 says?"""
    paper = [r for r in rows if r["mechanism"] == PAPER]
    held = [r for r in paper if not r["paid"]]
    told = [
        f"{r['lie']} {int(r['paid'])} of {int(r['lies'])}, up to {float(r['largest gain']):.4g} USD"
        for r in paper
        if r["paid"]
    ]
    ours = [r for r in rows if r["mechanism"] != PAPER]
    count, paid = (sum(int(r[key]) for r in ours) for key in ("lies", "paid"))
    least = min(float(r["least payoff"]) for r in rows)
    return Finding(
        word=word(len(held), len(paper)),
        reason=f"lies to eris-paper that paid: {'; '.join(told) or 'none'}. PostedPrices do not depend on a bid, but which "
        "schedule is found does: it is not the cheapest, and where it cannot be made real the job is turned away. Of "
        f"{count} lies to eris and to {TRUTHFUL}, {paid} paid. Least payoff of an honest buyer: {least:.2f} USD",
    )
