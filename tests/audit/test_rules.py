"""Every rule of the audit is broken by a test."""

from __future__ import annotations

import re
from pathlib import Path

import tradewind.audit
from tests.audit.planted import PLANTED
from tests.audit.test_lying_world import LIES
from tests.builders import SLOT, setup
from tradewind.audit.costs import CostLedger
from tradewind.model.view import Change

NAME = re.compile(
    r'"((?:form|time|workers|servers|places|capacity|data|routes|ring|work|market|plan|ledger|spend)\.[a-z_]+)"'
)


def names(path: Path) -> set[str]:
    return set(NAME.findall(path.read_text()))


def test_every_rule_in_the_source_is_broken_by_a_test_and_no_test_names_another() -> None:
    folder = Path(tradewind.audit.__file__).parent
    known = set().union(*(names(path) for path in folder.glob("*.py")))
    tested = {p.rule for p in PLANTED} | {rule for rule, _, _ in LIES}
    tests = Path(__file__).parents[1]
    others = ("lying_world", "market", "held", "columnar")
    paths = (
        *(tests / "audit" / f"test_{name}.py" for name in others),
        tests / "worlds" / "test_estimates.py",
    )
    tested |= set().union(*map(names, paths))
    assert tested == known


def test_every_rule_belongs_to_a_family_that_the_concepts_page_explains() -> None:
    page = (Path(__file__).parents[2] / "docs" / "concepts.md").read_text()
    for rule in {p.rule for p in PLANTED} | {rule for rule, _, _ in LIES}:
        family = rule.partition(".")[0]
        assert f"`{family}." in page, rule


def test_prices_of_a_snapshot_that_counted_thousandths_alone_stay_what_they_were() -> None:
    costs = CostLedger(setup())
    costs.restore(costs.save()._replace(factors={("price", 0, 0): ((3, 1500),)}))
    costs.change(Change(5 * SLOT, "price", 0, 0, 4000, 3000))
    costs.restore(costs.save())
    assert [costs.factor("price", 0, 0, slot) for slot in (2, 3, 5)] == [1.0, 1.5, 4 / 3]
