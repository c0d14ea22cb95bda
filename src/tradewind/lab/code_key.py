"""What a result depends on: a digest of the code that a function can reach, name by name, and of nothing else.

A kept result is used again only while the generator, the policy, the bound and the study behind it are what they were.
The reach of a function is found without running it: from its source, every name that it uses is followed through the
imports of its module, top-level name by top-level name. Entries of the catalogues (policies, workloads, bounds) are looked
up by text, so a text in a study that is the name of an entry counts as a use of it. Docstrings and comments do not count.
"""

from __future__ import annotations

import ast
import hashlib
import inspect
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache, partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from tradewind.model.setup import OBJECTIVES
from tradewind.registry import policies, systems, workloads

Place = tuple[str, str]
"""(module, top-level name in it); "*" stands for all names."""
HOME = "tradewind"
_OURS = {HOME}
"""Packages whose code counts: Tradewind, and those that studies outside of it are written in."""
REGISTRY = "tradewind.registry"
CATALOGUES = {(REGISTRY, "policies"): policies.entries, (REGISTRY, "workloads"): workloads.entries}
BOUND: Place = ("tradewind.engine.bounds", "_system_for")
"""Finds a bound by the objective, whatever the workload is called."""
_REF = re.compile(rf"({HOME}(?:\.\w+)+):(\w+)")
"""A `module:attribute` that is loaded when it is needed."""
READS_DATA = "resources"
"""A name by which modules open the data files of their package."""


@dataclass(slots=True)
class _Module:
    """Top-level names with the statements that make them, and where imported names come from."""

    made: dict[str, list[ast.stmt]] = field(default_factory=dict)
    imported: dict[str, Place] = field(default_factory=dict)
    folder: Path = Path()


def code_key(call: Callable[..., Any], *more: object) -> str:
    """Digest (32 hex digits) of the code behind a call, of the values bound to it, and of `more`."""
    roots, values = _roots(call)
    _OURS.update(module.partition(".")[0] for module, _ in roots)
    digest = hashlib.sha256(repr((values, more)).encode())
    named = [text for text in (*values, *more) if isinstance(text, str)]
    for place in sorted(reach([*roots, *_entries(named)])):
        digest.update(repr(place).encode())
        digest.update(_text(place).encode())
    return digest.hexdigest()[:32]


def _roots(call: Any) -> tuple[list[Place], list[object]]:
    """Where a function is written, and the values it carries: arguments of a partial, variables of a closure."""
    if isinstance(call, partial):
        roots, values = _roots(call.func)
        return _carried((*call.args, *(v for _, v in sorted(call.keywords.items()))), roots, values)
    if not inspect.isfunction(call):
        raise TypeError(f"{call!r} is neither a function nor a partial of one; its code cannot be found")
    top = call.__qualname__.split(".")[0]
    roots = [(call.__module__, "*" if top == "<lambda>" else top)]
    return _carried([cell.cell_contents for cell in call.__closure__ or ()], roots, [])


def _carried(
    given: Iterable[Any], roots: list[Place], values: list[object]
) -> tuple[list[Place], list[object]]:
    """Adds what functions among the given values reach, and the other values themselves."""
    for value in given:
        code = isinstance(value, partial) or inspect.isfunction(value)
        more, carried = _roots(value) if code else ([], [value])
        roots, values = [*roots, *more], [*values, *carried]
    return roots, values


def reach(roots: Iterable[Place]) -> set[Place]:
    """All (module, name) that can be reached from the roots."""
    queue, seen = list(roots), set[Place]()
    while queue:
        place = queue.pop()
        if place not in seen and _module(place[0]) is not None:
            seen.add(place)
            queue += _uses(place)
    return seen


@cache
def _module(name: str) -> _Module | None:
    """A module of ours, read; None for anybody else's, or where there is no such module."""
    if name.partition(".")[0] not in _OURS:
        return None
    try:
        spec = find_spec(name)
    except ModuleNotFoundError:
        return None
    if spec is None or spec.origin is None or not spec.origin.endswith(".py"):
        return None
    tree = ast.parse(Path(spec.origin).read_text(encoding="utf-8"))
    found = _Module(folder=Path(spec.origin).parent)
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for alias in node.names:
                found.imported[alias.asname or alias.name] = (node.module, alias.name)
        elif isinstance(node, ast.Import):
            for alias in node.names:
                found.imported[alias.asname or alias.name.partition(".")[0]] = (alias.name, "*")
    for statement in tree.body:
        for made in _made_by(statement):
            found.made.setdefault(made, []).append(statement)
    return found


def _made_by(statement: ast.stmt) -> Iterator[str]:
    """Names that a top-level statement gives a value to; those inside comprehensions are its own affair."""
    if isinstance(statement, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef):
        yield statement.name
        return
    targets: list[ast.expr] = list(getattr(statement, "targets", ()))
    if isinstance(statement, ast.AnnAssign | ast.AugAssign | ast.For):
        targets.append(statement.target)
    for target in targets:
        yield from (
            n.id for n in ast.walk(target) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
        )
    for part in ("body", "orelse", "handlers", "finalbody"):
        for inner in getattr(statement, part, ()):
            yield from _made_by(inner)


@cache
def _uses(place: Place) -> tuple[Place, ...]:
    """Places that the statements of a place name."""
    module, name = place
    here = _module(module)
    assert here is not None
    if name == "*":
        return (*((module, made) for made in here.made), *here.imported.values())
    if name not in here.made:
        return (_resolve(here.imported[name]) if name in here.imported else (f"{module}.{name}", "*"),)
    found: list[Place] = []
    if place == BOUND:
        found += [_place(ref) for key, ref in _bounds().items() if key in OBJECTIVES]
    for statement in here.made[name]:
        found += _named(here, module, statement)
        texts = [
            n.value for n in ast.walk(statement) if isinstance(n, ast.Constant) and isinstance(n.value, str)
        ]
        found += [_place(text) for text in texts if _REF.fullmatch(text)]
        if _is_study(module):
            found += _entries(texts)
    return tuple(dict.fromkeys(found))


def _is_study(module: str) -> bool:
    """Whether texts in a module may name policies and workloads."""
    parts = module.split(".")
    return parts[0] != HOME or parts[1:2] == ["lab"] or (parts[1:2] == ["systems"] and "study" in parts)


def _bounds() -> dict[str, str]:
    """Workload or objective -> where its bound is computed."""
    return {key: system.bound for system in systems().values() for key in system.bound_for}


def _named(here: _Module, module: str, statement: ast.stmt) -> Iterator[Place]:
    """Names and `module.name` pairs in a statement."""
    whole: set[int] = set()
    for node in ast.walk(statement):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            source = here.imported.get(node.value.id)
            if source in CATALOGUES and node.attr in ("names", "entries"):  # may use all of it
                assert source is not None
                yield from (_place(ref) for ref in CATALOGUES[source].values())
            package = _as_module(source) if source else None
            if package:
                whole.add(id(node.value))
                yield (package, node.attr)
    for node in ast.walk(statement):
        if isinstance(node, ast.Name) and id(node) not in whole:
            if node.id in here.made:
                yield (module, node.id)
            elif node.id in here.imported:
                yield _resolve(here.imported[node.id])


def _as_module(source: Place) -> str | None:
    """The module that an imported name stands for, if it is one of ours."""
    module, name = source
    candidate = module if name == "*" else f"{module}.{name}"
    return candidate if _module(candidate) is not None else None


def _resolve(source: Place) -> Place:
    package = _as_module(source)
    return (package, "*") if package else source


def _place(entry: str) -> Place:
    module, _, name = entry.partition(":")
    return (module, name)


def _entries(texts: Iterable[str]) -> list[Place]:
    """Catalogue entries that go by one of these names."""
    tables = [policies.entries, workloads.entries, _bounds()]
    return [_place(table[text]) for text in texts for table in tables if text in table]


@cache
def _text(place: Place) -> str:
    """The statements of a place without docstrings, and the data files beside a module that reads any."""
    module, name = place
    here = _module(module)
    assert here is not None
    statements = here.made.get(name, [])
    text = "".join(ast.dump(_plain(statement)) for statement in statements)
    if any(isinstance(n, ast.Name) and n.id == READS_DATA for s in statements for n in ast.walk(s)):
        for path in sorted((here.folder / "data").glob("*")):
            text += hashlib.sha256(path.read_bytes()).hexdigest()
    return text


def _plain(statement: ast.stmt) -> ast.stmt:
    """A copy without docstrings."""
    copy = ast.parse(ast.unparse(statement)).body[0]
    for node in ast.walk(copy):
        if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef) and len(node.body) > 1:
            first = node.body[0]
            if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
                node.body = node.body[1:]
    return copy
