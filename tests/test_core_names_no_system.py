"""The core serves every system alike: no identifier and no text in it names one. Docstrings may cite a paper."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import tradewind
from tradewind import registry

ROOT = Path(tradewind.__file__).parent
CORE = ("model", "audit", "solvers", "traces", "engine", "worlds", "files", "report", "registry.py", "api.py")
ORDINARY = {"cluster"}
"""Names of systems that are ordinary words."""
WORDS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")


def names() -> frozenset[str]:
    return frozenset(name.lower() for name in registry.systems()) - ORDINARY


def words(text: str) -> set[str]:
    """Words of a text or identifier in lower case: snake_case and CamelCase are split, and mlBroker counts as one too."""
    return {word.lower() for word in WORDS.findall(text)} | set(re.findall("[a-z]+", text.lower()))


def texts(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """(line, text) of every identifier and string constant. A string that stands alone is documentation."""
    documentation = {
        id(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    for node in ast.walk(tree):
        if id(node) in documentation:
            continue
        for _, value in ast.iter_fields(node):
            for text in value if isinstance(value, list) else (value,):
                if isinstance(text, str):
                    yield getattr(node, "lineno", 0), text


def findings(path: Path) -> list[str]:
    found = [(0, "/".join(path.relative_to(ROOT).parts)), *texts(ast.parse(path.read_text(encoding="utf-8")))]
    return [
        f"{path.relative_to(ROOT)}:{line}: {text!r} names {', '.join(sorted(named))}"
        for line, text in found
        if (named := names() & words(text))
    ]


def sources() -> list[Path]:
    return [file for part in CORE for file in (sorted((ROOT / part).rglob("*.py")) or [ROOT / part])]


def test_the_core_names_no_system() -> None:
    assert len(names()) >= 5
    assert [each for path in sources() for each in findings(path)] == []


@pytest.mark.parametrize(
    "code",
    [
        "import tradewind.systems.eris.policy",
        "from tradewind.systems import dps",
        "def explain_apsp(): ...",
        "class GadgetRing: ...",
        "key = 'mlBroker runs at slots'",
        "f(eris=1)",
        "text = f'{1} by eris-paper'",
        "match x:\n    case {'dps': y}: ...",
    ],
)
def test_a_planted_name_is_found(code: str) -> None:
    assert any(names() & words(text) for _, text in texts(ast.parse(code)))


@pytest.mark.parametrize(
    "code", ['"""Eris (6)."""', 'X = 1\n"""As in DPS."""', "merit = 'kinds and steps'", "cluster = 'gadgets'"]
)
def test_documentation_and_other_words_are_not(code: str) -> None:
    assert not any(names() & words(text) for _, text in texts(ast.parse(code)))
