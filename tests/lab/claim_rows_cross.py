"""Made-up rows for the claims about what knowledge is worth: rows that satisfy each, and rows that violate it."""

from __future__ import annotations

from tests.lab.claims import Table


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


MADE: dict[str, tuple[Table, Table]] = {
    **{
        f"knowledge/{c}": (shares(c, 0.82, 0.9), shares(c, 0.8, 0.9))
        for c in ("mlbroker deploy", "mlbroker rotating")
    },
    "knowledge/dps balanced": (shares("dps balanced", 0.85, 0.97), shares("dps balanced", 0.85, 0.955)),
    "knowledge/dps saturated": (shares("dps saturated", 0.85, 0.97), shares("dps saturated", 0.85, 0.955)),
    "knowledge/eris contended": (shares("eris contended", 0.82, 0.9), shares("eris contended", 0.8, 0.9)),
}
