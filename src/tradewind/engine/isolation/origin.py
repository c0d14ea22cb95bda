"""Where a policy is written, so that another process can load it, and what it declares, as data."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.machinery import PathFinder
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from tradewind.model.errors import InputError
from tradewind.model.setup import Objective
from tradewind.model.spec import Need, Param, Spec, Trigger
from tradewind.registry import OURS, is_file_ref, load, policies, read_file_ref


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """A policy as `module:NAME`, or as the text of a file and a name in it ("" where it has one policy)."""

    ref: str = ""
    file: Path = Path()
    code: bytes = b""
    name: str = ""

    @property
    def package(self) -> str:
        """The package that it is imported from; "" for a file."""
        return self.ref.partition(":")[0].partition(".")[0]

    @property
    def ours(self) -> bool:
        """Whether it is part of this package, so that its declaration may be loaded by the parent."""
        return self.ref.startswith(f"{OURS}.")


def origin_of(given: str | Spec) -> Origin:
    """Where a policy given as name, FILE.py:NAME or object is written. Nothing of it is executed."""
    if isinstance(given, Spec):
        return _origin_of_object(given)
    return _in_file(given) if is_file_ref(given) else Origin(ref=policies.ref(given))


def _in_file(text: str) -> Origin:
    file, code, name = read_file_ref(text)
    return Origin(file=file.resolve(), code=code, name=name)


def _origin_of_object(spec: Spec) -> Origin:
    """The name at the top of a module that the object has; its module must be importable, or a file."""
    if spec.name in policies.entries and policies.find(spec.name) is spec:
        return Origin(ref=policies.ref(spec.name))
    for module in tuple(sys.modules.values()):
        for name, value in tuple(vars(module).items()) if isinstance(module, ModuleType) else ():
            if value is spec:
                package = module.__name__.partition(".")[0]
                if package != "__main__" and PathFinder.find_spec(package) is not None:
                    return Origin(ref=f"{module.__name__}:{name}")
                if module.__file__:
                    return _in_file(f"{module.__file__}:{name}")
    raise InputError(
        f"{spec.name} is an object that another process cannot find; assign it to a name at the top of a module or file, or "
        "give it as FILE.py:NAME"
    )


class ParamData(NamedTuple):
    """A parameter's declaration."""

    default: bool | int | float | str
    doc: str
    choices: tuple[str, ...]
    least: float | None
    most: float | None
    file: bool
    tenants: bool
    later: bool


class SpecData(NamedTuple):
    """A policy's declaration without its factory."""

    name: str
    summary: str
    works: tuple[str, ...]
    architectures: tuple[str, ...]
    objectives: tuple[Objective, ...]
    triggers: tuple[Trigger, ...]
    needs: tuple[Need, ...]
    params: tuple[tuple[str, ParamData], ...]
    pricer: bool
    binding: bool
    serial_quotes: bool
    charges: bool
    uncharged: tuple[tuple[str, bool | int | float | str], ...]
    keeps_caps: bool
    hindsight: str
    system: str


SETS = ("works", "architectures", "objectives", "triggers", "needs")


def declaration(spec: Spec) -> SpecData:
    """What a policy declares, as data."""
    values = {name: getattr(spec, name) for name in SpecData._fields}
    values |= {name: tuple(sorted(values[name])) for name in SETS}
    values["uncharged"] = tuple(spec.uncharged.items())
    values["params"] = tuple(
        (name, ParamData(*(getattr(p, each) for each in ParamData._fields)))
        for name, p in spec.params.items()
    )
    return SpecData(**values)


def spec_of(data: SpecData, factory: Any) -> Spec:
    """The declaration with another factory."""
    params: Mapping[str, Param] = {name: Param(**param._asdict()) for name, param in data.params}
    values = data._asdict() | {name: frozenset(getattr(data, name)) for name in SETS} | {"params": params}
    values["uncharged"] = dict(data.uncharged)
    return Spec(**values, factory=factory)


def load_origin(origin: Origin) -> Spec:
    """The policy itself. Runs its code, so only the confined process does that, and the parent for policies of ours."""
    if origin.ref:
        found = load(origin.ref)
        if not isinstance(found, Spec):
            raise InputError(f"it is a {type(found).__name__}, not a Spec", where=origin.ref)
        return found
    return policies.from_code(origin.file, origin.code, origin.name)
