"""Checks the claims of a study on made-up rows: one table that satisfies each claim, one that violates it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from tradewind.lab.study import Row, Study

Table = Callable[[str], Sequence[Row]]
"""Made-up rows of a figure, with the given policy as the one that is judged."""
Made = Mapping[str, tuple[Table, Table]]
""""figure/claim" -> rows that satisfy the claim, rows that violate it."""


def check_claims(study: Study, made: Made) -> None:
    """Every claim with a judge has made-up rows, and says yes to the first and no to the second, for paper and ours."""
    judged = {f"{f.name}/{c.name}": c for f in study.figures for c in f.claims if c.holds is not None}
    assert set(judged) == set(made), f"without rows or without claim: {sorted(set(judged) ^ set(made))}"
    assert len(judged) == sum(c.holds is not None for f in study.figures for c in f.claims), (
        "names are unique"
    )
    for name, claim in judged.items():
        for policy in dict.fromkeys(filter(None, (claim.paper, claim.ours))) or ("",):
            for table, wanted in zip(made[name], (True, False), strict=True):
                assert claim.holds is not None
                found = claim.holds(table(policy), policy)
                assert found.holds == wanted, f"{name} for {policy or 'the rivals'}: {found.found}"
                assert found.found, f"{name}: says nothing"
