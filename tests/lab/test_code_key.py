"""The key of a saved result changes with the code that it depends on, and only with that."""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tradewind.lab import code_key as module
from tradewind.lab.code_key import code_key, reach
from tradewind.lab.study import Effort
from tradewind.registry import policies, studies

FILES = {
    "__init__.py": "",
    "study.py": '''
        from madepkg import tools
        from madepkg.tools import helper
        SIZES = (1, 2)
        def first(effort):
            """Says something."""
            return [helper(size) for size in SIZES]
        def second(effort, name="made-policy"):
            return tools.other(3)
        def maker(factor):
            def rows(effort):
                return factor
            return rows
    ''',
    "tools.py": """
        def helper(x):
            return deeper(x) + 1
        def deeper(x):
            return x
        def other(x):
            return -x
    """,
    "policy.py": """
        class Made:
            pass
        SPEC = Made()
    """,
}


def _written(text: str) -> str:
    return "\n".join(line[8:] for line in text.splitlines())


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    folder = tmp_path / "madepkg"
    folder.mkdir()
    for name, text in FILES.items():
        (folder / name).write_text(_written(text))
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setitem(policies.entries, "made-policy", "madepkg.policy:SPEC")
    yield folder
    _forget()


def _forget() -> None:
    for name in [n for n in sys.modules if n.partition(".")[0] == "madepkg"]:
        del sys.modules[name]
    for cached in (module._module, module._uses, module._text):
        cached.cache_clear()
    importlib.invalidate_caches()


def keys(folder: Path, file: str = "", old: str = "", new: str = "") -> dict[str, str]:
    """The keys of the study's functions after a change of one file."""
    if file:
        text = (folder / file).read_text()
        assert old in text
        (folder / file).write_text(text.replace(old, new) + "#" * len(new))
    _forget()
    study: Any = importlib.import_module("madepkg.study")
    return {"first": code_key(study.first), "second": code_key(study.second)}


@pytest.mark.parametrize(
    ("file", "old", "new", "changed"),
    [
        ("study.py", "(1, 2)", "(1, 2, 3)", {"first"}),
        ("study.py", "Says something", "Says something else", set()),
        ("tools.py", "return x", "return x * 2", {"first"}),
        ("tools.py", "return -x", "return -x * 2", {"second"}),
        ("policy.py", "pass", "knob = 1", {"second"}),
    ],
)
def test_a_change_affects_only_results_that_use_it(
    package: Path, file: str, old: str, new: str, changed: set[str]
) -> None:
    before = keys(package)
    after = keys(package, file, old, new)
    assert {name for name in before if before[name] != after[name]} == changed


def test_values_bound_to_a_function_count(package: Path) -> None:
    _forget()
    study: Any = importlib.import_module("madepkg.study")
    assert code_key(study.maker(1)) == code_key(study.maker(1))
    assert code_key(study.maker(1)) != code_key(study.maker(2))
    assert code_key(partial(study.second, name="a")) != code_key(partial(study.second, name="b"))
    assert code_key(study.first, 3) != code_key(study.first, 4)


def test_calls_that_differ_have_different_keys_although_they_reach_the_same_code() -> None:
    def rows(make: Any) -> Any:
        return partial(code_key, make)

    given: Callable[..., Any] = code_key
    two = [lambda: 1, lambda: 1]
    calls = [
        *two,
        *(rows(each) for each in two),
        *(partial(given, make=f) for f in (json.dumps, json.dump)),
        partial(given, call="a"),
        partial(given, more="a"),
    ]
    keys = [code_key(call) for call in calls]
    assert len(set(keys)) == len(keys)
    assert [code_key(call) for call in calls] == keys


def test_the_code_of_every_part_of_every_study_is_found() -> None:
    effort = Effort(quick=True, seeds=1)
    for figure in (f for name in studies.names() for f in studies.find(name).figures):
        for part in figure.pieces.parts(effort) if figure.pieces else ():
            assert len(code_key(part.rows)) == 32
        assert len(code_key(figure.rows)) == 32


def test_figures_of_real_studies_reach_their_own_policies_only() -> None:
    roots = {f.name: module._roots(f.rows)[0] for f in studies.find("gadget").figures}
    found = {m for m, _ in reach(roots["fig-4"])}
    assert {
        "tradewind.systems.gadget.paper",
        "tradewind.systems.gadget.workload.generator",
        "tradewind.systems.gadget.bound",
    } <= found
    others = [m for m in found if m.startswith("tradewind.systems")]
    # bounds of other objectives and what they compute with are within reach, policies are not
    others = [m for m in others if not {"bound", "kernels", "workload", "shared"} & set(m.split("."))]
    assert not any("mlbroker" in m or "eris" in m or ".dps" in m for m in others)


def test_the_function_that_finds_bounds_exists() -> None:
    package, name = module.BOUND
    assert callable(getattr(importlib.import_module(package), name))
