"""The table of theorems, and the region in which a claim holds."""

from __future__ import annotations

import math
from itertools import islice

import pytest

from tests.effort import tries
from tradewind.lab.study import Effort, Instance, Row, Study, Theorem, region
from tradewind.lab.theory import page
from tradewind.registry import studies

QUICK = Effort(quick=True, seeds=1)


def test_every_theorem_has_a_row_per_instance_with_constant_and_measured_ratio() -> None:
    found = [
        Instance("small", 2.5, 1.25, True),
        Instance("large", math.inf, 1e4, False, "a | b"),
    ]
    theorem = Theorem(name="Theorem 3", words="At most r.", instances=lambda _: found)
    text = page([(Study(system="made", title="Made up", figures=()), theorem, found)], QUICK)
    assert "## Made up" in text
    assert "At most r. Within on 1 of 2 instances." in text
    assert "| small | 2.5 | 1.25 | yes |  |" in text
    assert "| large | infinite | 10,000 | **no** | a / b |" in text


@pytest.mark.parametrize("system", [name for name in studies.names() if studies.find(name).theorems])
def test_the_theorems_of_every_study_can_be_computed(system: str) -> None:
    for theorem in studies.find(system).theorems:
        rows = list(islice(theorem.instances(QUICK), tries(2, 1000)))
        assert rows, theorem.name
        assert all(not math.isnan(row.measured) for row in rows), theorem.name


def test_a_region_names_the_knobs_that_matter() -> None:
    rows: list[Row] = [
        {"load": load, "ties": ties, "measured": load, "holds": "yes" if load > 2 else "no"}
        for load in (1.0, 2.0, 4.0)
        for ties in (("worst", "best") if load > 2 else ("best", "worst"))
    ]
    assert region(rows, ("load", "ties")) == "holds in 2 of 6 settings, all with load 4 (of 1, 2, 4)"
    assert region(rows[4:], ("load", "ties")) == "holds in 2 of 2 settings"
    none = region(rows[:4], ("load", "ties"))
    assert none == "holds in none of 4 settings; the nearest is 2 with load 2, ties best"
    assert "load 1" in region(rows[:4], ("load", "ties"), largest=False)
