"""Checks the claims of a study on made-up rows: one table that satisfies each claim, one that violates it.

A claim must also say no to the first table if its intervals are endless: means alone prove nothing. Claims that need no
interval are named with the reason.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from tradewind.lab.study import Row, Study

Table = Callable[[str], Sequence[Row]]
"""Made-up rows of a figure, with the given policy as the one that is judged."""
Made = Mapping[str, tuple[Table, Table]]
""""figure/claim" -> rows that satisfy the claim, rows that violate it."""
Certain = Mapping[str, Sequence[str]]
"""Why claims need no intervals -> their names, "figure/claim"."""


def endless(rows: Sequence[Row]) -> list[Row]:
    """The rows with intervals that say nothing."""
    ends = {"low": -1e12, "high": 1e12}
    return [{key: ends.get(key.rpartition(" ")[2], value) for key, value in row.items()} for row in rows]


def check_claims(study: Study, made: Made, certain: Certain | None = None) -> None:
    """Every claim with a judge has made-up rows, and says yes to the first and no to the second, for paper and ours.

    It says no to the first with endless intervals, too, if it is not among the `certain`.
    """
    judged = {f"{f.name}/{c.name}": c for f in study.figures for c in f.claims if c.holds is not None}
    assert set(judged) == set(made), f"without rows or without claim: {sorted(set(judged) ^ set(made))}"
    assert len(judged) == sum(c.holds is not None for f in study.figures for c in f.claims), (
        "names are unique"
    )
    exempt = [name for names in (certain or {}).values() for name in names]
    assert len(exempt) == len(set(exempt)), f"named twice: {sorted(exempt)}"
    assert set(exempt) <= set(judged), f"no such claims: {sorted(set(exempt) - set(judged))}"
    for name, claim in judged.items():
        assert claim.holds is not None
        for policy in dict.fromkeys(filter(None, (claim.paper, claim.ours))) or ("",):
            for table, wanted in zip(made[name], (True, False), strict=True):
                found = claim.holds(table(policy), policy)
                assert found.holds == wanted, f"{name} for {policy or 'the rivals'}: {found.found}"
                assert found.found, f"{name}: says nothing"
            found = claim.holds(endless(made[name][0](policy)), policy)
            assert found.holds == (name in exempt), (
                f"{name} for {policy or 'the rivals'} with endless intervals: {found.found}"
            )
