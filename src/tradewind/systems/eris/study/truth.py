"""Table of lies that pay (Theorem 3), for the printed algorithm and both of our truthful mechanisms."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import product

from tradewind.lab.study import Effort, Row
from tradewind.systems.eris.study.lies import CHARGED, CONFIGURATIONS, KINDS, NARROW, SOLD, Mechanism, try_lie
from tradewind.systems.eris.study.runs import PAPER

GAIN = 1e-6
"""Gain in USD above which a lie pays."""
TRUTHFUL = f"{CHARGED.name}, payments={CHARGED.params['payments']}"
CASES = (
    *product((Mechanism(PAPER, {}), SOLD), (*KINDS, *CONFIGURATIONS)),
    (CHARGED, "scale"),
)
"""Mechanism and kind of lie; the payments of `eris-preemptive` only claim truthfulness about the scale."""
WORDS = {
    "utility": "worth",
    "scale": "worth, its scale",
    "late": "arrival, later",
    "data": "data, more",
    "epochs": "epochs, more",
} | {kind: kind for kind in CONFIGURATIONS}


def lie_rows(effort: Effort) -> list[Row]:
    """Per mechanism and kind of lie: how many were tried, changed the liar's payoff, and paid; the largest gain in USD."""
    return list(rows_of(CASES, effort))


def rows_of(cases: Iterable[tuple[Mechanism, str]], effort: Effort) -> Iterator[Row]:
    """Rows of some mechanisms and kinds of lies, in a wide network and a narrow one."""
    for (mechanism, kind), (where, changes) in product(cases, (("", {}), (", narrow network", NARROW))):
        tried = [try_lie(seed, kind, mechanism, **changes) for seed in range(1, 1 + effort.pick(10, 200))]
        yield {
            "mechanism": TRUTHFUL if mechanism is CHARGED else mechanism.name, "lie": WORDS[kind] + where,
            "lies": len(tried), "mattered": sum(t.mattered for t in tried), "paid": sum(t.gain > GAIN for t in tried),
            "share": sum(t.gain > GAIN for t in tried) / len(tried), "largest gain": max(0.0, *(t.gain for t in tried)),
            "least payoff": min(t.least_payoff for t in tried),
        }  # fmt: skip
