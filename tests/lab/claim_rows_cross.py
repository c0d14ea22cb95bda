"""Made-up rows for the claims of the cross-table: rows that satisfy each, and rows that violate it."""

from __future__ import annotations

from tests.lab.claims import Certain, Table
from tradewind.lab import contention, joint, loss_curves


def shares(case: str, learned: float, of_known: float) -> Table:
    return lambda _: [
        {
            "case": case,
            "knowledge": knowledge,
            "share": share,
            "low": share - 0.01,
            "high": share + 0.01,
            "of known": of_known,
            "of known low": of_known - 0.01,
            "of known high": of_known + 0.01,
        }
        for knowledge, share in (("none", 0.8), ("learned", learned), ("known", 0.9))
    ]


def rounds(ratio: float, of_bound: float = 1.05) -> Table:
    """Rounds of other ways over the joint one, and of the joint one over the bound."""
    return lambda _: [
        {
            "case": "b4, 4 jobs",
            "way": way,
            "over joint": 1.0 if way == joint.JOINT else ratio,
            "low": 1.0 if way == joint.JOINT else ratio - 0.02,
            "high": 1.0 if way == joint.JOINT else ratio + 0.02,
            "of bound": of_bound,
            "of bound low": of_bound - 0.02,
            "of bound high": of_bound + 0.02,
            "rings": 0.5,
        }
        for way in joint.WAYS
    ]


def contending(way: str, share: float) -> Table:
    """Utility of a way of sharing links over that with reservations, in two families."""
    return lambda _: [
        {
            "case": f"{family} sqrt",
            "family": family,
            "way": way,
            "of reserved": value,
            "low": value - 0.01,
            "high": value + 0.01,
            "below": 0.5,
        }
        for family, value in (("paper", 1.02), ("tight", share))
    ]


def fitted(over_typical: float, of_known: float) -> Table:
    """What learned curves earn at two loads, over a typical one and over known ones."""
    return lambda _: [
        {
            "case": case,
            "way": loss_curves.LEARNED,
            "over typical": value,
            "over typical low": value - 0.01,
            "over typical high": value + 0.01,
            "of known": share,
            "low": share - 0.01,
            "high": share + 0.01,
        }
        for case, value, share in (
            ("1 job per slot", 1.02, 0.99),
            ("10 jobs per slot", over_typical, of_known),
        )
    ]


MADE: dict[str, tuple[Table, Table]] = {
    **{
        f"knowledge/{c}": (shares(c, 0.83, 0.9), shares(c, 0.815, 0.9))
        for c in ("mlbroker deploy", "mlbroker rotating")
    },
    "knowledge/dps balanced": (shares("dps balanced", 0.85, 0.97), shares("dps balanced", 0.85, 0.955)),
    "knowledge/dps saturated": (shares("dps saturated", 0.85, 0.97), shares("dps saturated", 0.85, 0.955)),
    "knowledge/eris contended": (shares("eris contended", 0.83, 0.9), shares("eris contended", 0.815, 0.9)),
    **{f"joint/beats {way}": (rounds(1.1), rounds(1.01)) for way in joint.WAYS if way != joint.JOINT},
    "joint/near the bound": (rounds(1.1), rounds(1.1, 1.09)),
    "contention/reserving pays": (contending(contention.BLIND, 0.9), contending(contention.BLIND, 0.995)),
    "contention/idle bandwidth pays": (
        contending(contention.SPARE, 1.02),
        contending(contention.SPARE, 1.005),
    ),
    "loss-curves/learning pays": (fitted(1.05, 0.9), fitted(1.005, 0.9)),
    "loss-curves/nearly known": (fitted(1.0, 0.97), fitted(1.0, 0.955)),
}

CERTAIN: Certain = {}
