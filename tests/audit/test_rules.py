"""Every rule of the audit is broken by a test."""

from __future__ import annotations

import re
from pathlib import Path

import tradewind.audit
from tests.audit.planted import PLANTED
from tests.audit.test_lying_world import LIES

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
