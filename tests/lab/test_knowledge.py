"""What knowledge is worth: no decision does better than the bound, and every kind of knowledge has a share."""

from __future__ import annotations

import pytest

from tradewind.lab import knowledge
from tradewind.lab.study import Effort

QUICK = Effort(quick=True, seeds=1)


@pytest.mark.parametrize(("case", "most"), [("mlbroker deploy", 1 + 1e-6), ("dps saturated", 1.5)])
def test_shares_lie_between_nothing_and_the_bound(case: str, most: float) -> None:
    rows = knowledge.case_rows(QUICK, case)
    assert {knowledge.LEARNED, knowledge.KNOWN} <= {r["knowledge"] for r in rows}
    assert all(0 < float(r["share"]) <= most for r in rows)
    table = knowledge.join(QUICK, [rows])
    assert all(r["of known"] == 1 for r in table if r["knowledge"] == knowledge.KNOWN)
