"""The registry: systems, policies, workloads, studies and fleets, found through Python entry points.

Built-in systems and packages of other people use the same door. A package registers

    [project.entry-points."tradewind.systems"]      a System (model.system)
    [project.entry-points."tradewind.policies"]     a single Spec (model.spec)
    [project.entry-points."tradewind.workloads"]    a single Workload (model.workload)
    [project.entry-points."tradewind.studies"]      a single Study (lab.study)
    [project.entry-points."tradewind.fleets"]       a function from an address to an Engine (worlds.fleets.engine)

Wherever a policy or workload is named, an object or a file works too: `./my_policy.py:LIFO`.
"""

from __future__ import annotations

import hashlib
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, cached_property
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from tradewind.model.errors import InputError, LookupFailed
from tradewind.model.spec import Spec
from tradewind.model.system import Ref, System
from tradewind.model.workload import Workload

if TYPE_CHECKING:
    from tradewind.model.scenario import Scenario

OURS = "tradewind"
"""The distribution whose names win where two packages use the same one."""
T = TypeVar("T")


def load(ref: Ref) -> Any:
    """The object that a `module:attribute` names."""
    module, _, attribute = ref.partition(":")
    return getattr(import_module(module), attribute)


@cache
def broken() -> dict[str, str]:
    """Plug-in -> why it could not be used. A broken plug-in hides nothing but itself."""
    return {}


def _entry_points(group: str) -> Iterator[EntryPoint]:
    """Entry points of a group: ours first, then by distribution and name; a name that is taken is skipped."""
    seen: set[str] = set()

    def owner(point: EntryPoint) -> str:
        return point.dist.name if point.dist is not None else ""

    for point in sorted(entry_points(group=group), key=lambda p: (owner(p) != OURS, owner(p), p.name)):
        if point.name in seen:
            if owner(point) != OURS:  # two installations of ours in one environment register the same
                broken()[f"{owner(point)}: {point.name}"] = f"the name {point.name!r} in {group} is taken"
            continue
        seen.add(point.name)
        yield point


@cache
def systems() -> Mapping[str, System]:
    """All systems by name."""
    found: dict[str, System] = {}
    for point in _entry_points("tradewind.systems"):
        try:
            declared = point.load()
        except (Exception, SystemExit) as error:  # somebody else's package may fail in any way
            broken()[point.value] = f"{type(error).__name__}: {error}"
            continue
        if isinstance(declared, System):
            found[declared.name] = declared
        else:
            broken()[point.value] = f"it is a {type(declared).__name__}, not a tradewind.model.system.System"
    return found


class Catalogue(Generic[T]):
    """One kind of thing by name. Nothing is imported before it is asked for."""

    def __init__(self, kind: str, group: str, of_system: Callable[[System], Mapping[str, Ref]]) -> None:
        self.kind = kind
        self._group = group
        self._of_system = of_system

    @cached_property
    def entries(self) -> dict[str, Ref]:
        """Name -> where it is written."""
        found: dict[str, Ref] = {}
        for system in systems().values():
            for name, ref in self._of_system(system).items():
                if name in found:
                    broken()[ref] = f"the name {name!r} is taken by {found[name]}"
                else:
                    found[name] = ref
        for point in _entry_points(self._group):
            found.setdefault(point.name, point.value)
        return found

    def names(self) -> tuple[str, ...]:
        """All names, sorted."""
        return tuple(sorted(self.entries))

    def has(self, name: str) -> bool:
        """Whether there is an entry of that name."""
        return name in self.entries

    def ref(self, name: str) -> Ref:
        """Where the entry of that name is written, or an error that suggests the nearest name."""
        if name not in self.entries:
            head, _, settings = name.partition(":")
            if settings and head in self.entries:
                given = settings if "=" in settings else "NAME=VALUE"
                raise InputError(
                    f"{name!r}: only `compare` takes settings after a colon; write {head} and --set {given}"
                )
            raise LookupFailed(self.kind, name, self.entries)
        return self.entries[name]

    def find(self, name: str) -> T:
        """The entry of that name, or an error that suggests the nearest one."""
        ref = self.ref(name)
        try:
            found: T = load(ref)
        except (Exception, SystemExit) as error:  # somebody else's package may fail in any way
            if ref.startswith(f"{OURS}."):
                raise
            raise InputError(
                f"{ref} cannot be loaded ({type(error).__name__}: {error})", where=name
            ) from None
        return found

    def all(self) -> list[T]:
        """Every entry that can be loaded, by name; the others are noted as broken."""
        found = []
        for name in self.names():
            try:
                found.append(self.find(name))
            except InputError as error:
                broken()[name] = str(error)
        return found


class Openable(Catalogue[T]):
    """A catalogue whose entries may also be given as an object or as `path/to/file.py:NAME`."""

    def __init__(
        self, kind: str, group: str, of_system: Callable[[System], Mapping[str, Ref]], type_: type[T]
    ) -> None:
        super().__init__(kind, group, of_system)
        self._type = type_

    def get(self, given: str | T) -> T:
        """An entry by name, from a file, or as it is."""
        if not isinstance(given, str):
            if not isinstance(given, self._type):
                raise InputError(
                    f"found a {type(given).__name__}; give a name, FILE.py:NAME or a {self._type.__name__}",
                    where=self.kind,
                )
            return given
        return self.from_code(*read_file_ref(given)) if is_file_ref(given) else self.find(given)

    def from_code(self, file: Path, code: bytes, attribute: str) -> T:
        """The entry called `attribute` in the text of a file, which is executed; "" where it has one entry."""
        module = _module_from(file, code)
        made = {name: value for name, value in vars(module).items() if isinstance(value, self._type)}
        noun = self._type.__name__
        if not attribute and len(made) == 1:
            return next(iter(made.values()))
        if attribute not in made:
            known = ", ".join(made) or f"no {noun} at all"
            raise InputError(
                f"found {attribute or 'no name'}; the file has {known}. Write {file}:NAME with the name of a {noun}",
                where=str(file),
            )
        return made[attribute]


def is_file_ref(text: str) -> bool:
    """Whether a text names a Python file, with or without an attribute behind a colon."""
    return _split(text)[0].suffix == ".py"


def _split(text: str) -> tuple[Path, str]:
    file, sign, attribute = text.rpartition(":")
    return (Path(file), attribute) if sign and file.endswith(".py") else (Path(text), "")


def read_file_ref(text: str) -> tuple[Path, bytes, str]:
    """File, its text, and the attribute behind the colon."""
    file, attribute = _split(text)
    try:
        return file, file.read_bytes(), attribute
    except FileNotFoundError:
        raise InputError("there is no such file", where=str(file)) from None
    except OSError as error:
        raise InputError(f"cannot be read ({error.strerror})", where=str(file)) from None


def _module_from(file: Path, code: bytes) -> ModuleType:
    """The text of a Python file as a module, executed once per process."""
    path = str(file.absolute() if file.is_absolute() else file.resolve())
    name = f"{file.stem}_{hashlib.sha256(path.encode()).hexdigest()[:8]}"
    if name in sys.modules:
        return sys.modules[name]
    module = sys.modules[name] = ModuleType(name)
    module.__file__ = path
    try:
        exec(compile(code, path, "exec"), vars(module))
    except (Exception, SystemExit) as error:  # a user's file may fail in any way
        del sys.modules[name]
        line = _line_in(error, path)
        raise InputError(
            f"cannot be loaded ({type(error).__name__}: {error})",
            where=f"{file}{f', line {line}' if line else ''}",
        ) from None
    return module


def _line_in(error: BaseException, path: str) -> int:
    """The last line of a file that an error passed through; 0 where it did not."""
    if isinstance(error, SyntaxError):
        return error.lineno or 0
    line, trace = 0, error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == path:
            line = trace.tb_lineno
        trace = trace.tb_next
    return line


class Setting(NamedTuple):
    """A policy with the parameters that were given beside its name; asked: it was named, not added as a rival."""

    spec: Spec
    params: Mapping[str, str]
    asked: bool = True


class _Policies(Openable[Spec]):
    def with_rivals(
        self, given: Sequence[str | Spec], get: Callable[[str | Spec], Spec] | None = None
    ) -> list[Setting]:
        """These policies, and the rivals that their systems always show beside them; get: how each is found.

        A policy may come with parameters, `las:limits=3250,7200:tick_s=2`, and several times with different ones.
        """
        get = get or self.get
        found: list[Setting] = []
        named: dict[str, tuple[str | Spec, Spec]] = {}
        for each in given:
            name, params = self._parameters(each) if isinstance(each, str) else (each, {})
            setting = Setting(get(name), params)
            _check_colons(setting)
            spec = named.setdefault(setting.spec.name, (name, setting.spec))
            if spec[0] != name and spec[1] != setting.spec:
                raise InputError(
                    f"policies: two are called {setting.spec.name!r}; give one of them another name in its Spec"
                )
            if not any(s.spec.name == setting.spec.name and s.params == params for s in found):
                found.append(setting)
        for system in dict.fromkeys(setting.spec.system for setting in found):
            rivals = systems()[system].beside if system in systems() else ()
            found += [Setting(get(rival), {}, asked=False) for rival in rivals if rival not in named]
        return found

    def _parameters(self, text: str) -> tuple[str, dict[str, str]]:
        name, params = _parameters(text)
        head, colon, rest = name.partition(":")
        if colon and head in self.entries:
            raise InputError(
                f"{text!r}: found {rest!r} after the colon; write {head}:NAME=VALUE, and {head}:NAME=VALUE:NAME=VALUE "
                f"for two parameters (`tradewind policies {head}`)"
            )
        return name, params

    def split(self, text: str) -> list[str]:
        """`fifo,las:limits=1,2` -> ["fifo", "las:limits=1,2"]: a comma within a parameter's value ends no policy."""
        found: list[str] = []
        for part in filter(None, (part.strip() for part in text.split(","))):
            head = _parameters(part)[0]
            if found and "=" in found[-1] and head not in self.entries and not is_file_ref(head):
                found[-1] += f",{part}"
            else:
                found.append(part)
        return found

    def that(self, able: Callable[[Spec], bool]) -> str:
        """`; a, b and c can`, naming the policies that are able to do something; empty where none is."""
        found = [spec.name for spec in self.all() if able(spec)]
        return f"; {' and '.join(filter(None, (', '.join(found[:-1]), found[-1])))} can" if found else ""


_PARAMETER = re.compile(r":(?=[A-Za-z_]\w*=)")


def _parameters(text: str) -> tuple[str, dict[str, str]]:
    """`las:limits=1,2:tick_s=2` -> las, {"limits": "1,2", "tick_s": "2"}."""
    name, *given = _PARAMETER.split(text)
    return name, dict(each.split("=", 1) for each in given)


def _check_colons(setting: Setting) -> None:
    """Refuse a second parameter behind a comma, which would be read as part of the first one's value."""
    for name, value in setting.params.items():
        first, *more = value.split(",")
        found = [each for each in more if each.partition("=")[0] in setting.spec.params and "=" in each]
        if found and "=" not in first:  # as in contracts=acme=2,bell=3
            raise InputError(
                f"{setting.spec.name}.{name}: found {value!r}; separate parameters by colons: "
                f"{name}={value.replace(f',{found[0]}', f':{found[0]}')}"
            )


class _Workloads(Openable[Workload]):
    def generate(
        self, given: str | Workload, params: Mapping[str, Any] | None = None, seed: int = 0
    ) -> Scenario:
        """A scenario; parameters not given take their defaults, text is read as the default's type."""
        return self.get(given).make(params or {}, seed)


policies = _Policies("policy", "tradewind.policies", lambda system: system.policies, Spec)
workloads = _Workloads("workload", "tradewind.workloads", lambda system: system.workloads, Workload)
studies: Catalogue[Any] = Catalogue(
    "study", "tradewind.studies", lambda system: {system.name: system.study} if system.study else {}
)
fleets: Catalogue[Callable[[str], Any]] = Catalogue("fleet", "tradewind.fleets", lambda system: {})
