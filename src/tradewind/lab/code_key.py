"""Cache key of a result: a digest of exactly the code that a function can reach.

A saved result is reused only while the workload, policy, bound and study behind it are unchanged. Reachable code is found
statically: every top-level name that a function uses is followed through the imports of its module. Policies, workloads and
bounds are looked up by name at run time, so a string in a study that equals such a name counts as a use of it. Docstrings
and comments do not count.
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

from tradewind.registry import policies, systems, workloads

Place = tuple[str, str]
"""(module, top-level name in it); "*" means all names."""
PACKAGE = "tradewind"
_PACKAGES = {PACKAGE}
"""Packages whose code counts: Tradewind, and those of external studies."""
REGISTRY = "tradewind.registry"
REGISTRIES = {(REGISTRY, "policies"): policies.entries, (REGISTRY, "workloads"): workloads.entries}
BOUND: Place = ("tradewind.engine.bounds", "_systems")
"""The function that finds a bound by objective."""
_REF = re.compile(rf"({PACKAGE}(?:\.\w+)+):(\w+)")
"""A lazily loaded `module:attribute`."""
READS_DATA = "resources"
"""The name through which modules read the data files of their package."""


@dataclass(slots=True)
class _Module:
    """Top-level names of a module with the statements that define them, and the sources of imported names."""

    defined: dict[str, list[ast.stmt]] = field(default_factory=dict)
    imported: dict[str, Place] = field(default_factory=dict)
    folder: Path = Path()


def code_key(call: Callable[..., Any], *more: object) -> str:
    """Digest (32 hex digits) of the code behind a callable, the values bound to it, and `more`.

    Callables that are not the same have different keys, even if they reach the same code.
    """
    roots, values = _roots(call)
    _PACKAGES.update(module.partition(".")[0] for module, _ in roots)
    digest = hashlib.sha256(repr((roots, values, more)).encode())
    named = [text for text in (*values, *more) if isinstance(text, str)]
    for place in sorted(reach([*roots, *_entries(named)])):
        digest.update(repr(place).encode())
        digest.update(_text(place).encode())
    return digest.hexdigest()[:32]


def _roots(call: Any) -> tuple[list[Place], list[object]]:
    """Where a function is defined, and its bound values: arguments of a partial, variables of a closure."""
    if isinstance(call, partial):
        roots, values = _roots(call.func)
        values.append(tuple(sorted(call.keywords)))
        return _with_values((*call.args, *(v for _, v in sorted(call.keywords.items()))), roots, values)
    call = inspect.unwrap(call)  # what `functools.cache` wraps
    if not inspect.isfunction(call):
        raise TypeError(f"{call!r} is neither a function nor a partial of one; its code cannot be found")
    top = call.__qualname__.split(".")[0]
    roots = [(call.__module__, "*" if top == "<lambda>" else top)]
    unnamed = tuple(call.__code__.co_positions()) if "<lambda>" in call.__qualname__ else None
    bound = [cell.cell_contents for cell in call.__closure__ or ()]
    return _with_values(bound, roots, [(call.__qualname__, unnamed)])


def _with_values(
    given: Iterable[Any], roots: list[Place], values: list[object]
) -> tuple[list[Place], list[object]]:
    """Add the roots of functions among the given values, and the other values themselves."""
    for value in given:
        code = isinstance(value, partial) or inspect.isfunction(value)
        more, bound = _roots(value) if code else ([], [value])
        roots, values = [*roots, *more], [*values, *bound]
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
    """A parsed module; None if it does not exist or belongs to another package."""
    if name.partition(".")[0] not in _PACKAGES:
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
        for defined in _defined_by(statement):
            found.defined.setdefault(defined, []).append(statement)
    return found


def _defined_by(statement: ast.stmt) -> Iterator[str]:
    """Names that a top-level statement defines, without those inside comprehensions."""
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
            yield from _defined_by(inner)


@cache
def _uses(place: Place) -> tuple[Place, ...]:
    """Places that the statements of a place refer to."""
    module, name = place
    here = _module(module)
    assert here is not None
    if name == "*":
        return (*((module, defined) for defined in here.defined), *here.imported.values())
    if name not in here.defined:
        return (_resolve(here.imported[name]) if name in here.imported else (f"{module}.{name}", "*"),)
    found: list[Place] = []
    if place == BOUND:
        found += [_place(system.bound) for system in systems().values() if system.bound]
    for statement in here.defined[name]:
        found += _named(here, module, statement)
        texts = [
            n.value for n in ast.walk(statement) if isinstance(n, ast.Constant) and isinstance(n.value, str)
        ]
        found += [_place(text) for text in texts if _REF.fullmatch(text)]
        if _is_study(module):
            found += _entries(texts)
    return tuple(dict.fromkeys(found))


def _is_study(module: str) -> bool:
    """Whether strings in a module may be names of policies and workloads."""
    parts = module.split(".")
    return parts[0] != PACKAGE or parts[1:2] == ["lab"] or (parts[1:2] == ["systems"] and "study" in parts)


def _bounds() -> dict[str, str]:
    """Workload or objective -> reference to its bound."""
    found = [system for system in systems().values() if system.bound]
    return {name: each.bound for each in found for name in (*each.workloads, *each.bound_for)}


def _named(here: _Module, module: str, statement: ast.stmt) -> Iterator[Place]:
    """Names and `module.name` pairs in a statement."""
    whole: set[int] = set()
    for node in ast.walk(statement):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            source = here.imported.get(node.value.id)
            if source in REGISTRIES and node.attr in ("names", "entries"):  # may use any entry
                assert source is not None
                yield from (_place(ref) for ref in REGISTRIES[source].values())
            package = _as_module(source) if source else None
            if package:
                whole.add(id(node.value))
                yield (package, node.attr)
    for node in ast.walk(statement):
        if isinstance(node, ast.Name) and id(node) not in whole:
            if node.id in here.defined:
                yield (module, node.id)
            elif node.id in here.imported:
                yield _resolve(here.imported[node.id])


def _as_module(source: Place) -> str | None:
    """The module that an imported name refers to, if its code counts."""
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
    """Registry entries with one of these names."""
    tables = [policies.entries, workloads.entries, _bounds()]
    return [_place(table[text]) for text in texts for table in tables if text in table]


@cache
def _text(place: Place) -> str:
    """The statements of a place without docstrings, and the data files of a module that reads any."""
    module, name = place
    here = _module(module)
    assert here is not None
    statements = here.defined.get(name, [])
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
