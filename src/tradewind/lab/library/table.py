"""The table of the library: instances, best known values and bounds, in one CSV file with its versions in front.

An instance is a workload, its settings and a seed; the hash says which scenario they must give. A version of the table is a
set of instances with their hashes. Its digest stands in the header, so instances cannot change without a new version.
"""

from __future__ import annotations

import csv
import hashlib
import io
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from math import inf, isclose
from pathlib import Path
from typing import Literal, get_args, get_type_hints

from tradewind.files import atomic
from tradewind.files.documents import read_text
from tradewind.model.errors import InputError, LookupFailed
from tradewind.model.hash import scenario_hash
from tradewind.model.result import CLOSED
from tradewind.model.scenario import Scenario
from tradewind.model.setup import SENSE, Objective
from tradewind.registry import workloads

TABLE = Path(__file__).with_name("table.csv")
TITLE = "# tradewind library"
SAME = 1e-9
"""Relative difference up to which two values are equal: the digits that the audit compares."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Instance:
    """A row of the table.

    settings  parameters of the workload: "jobs=20 load=0.5"
    value     best known value of the objective; None: none is known
    found_by  what found it, as `solve` of the library takes it, or who
    bound     certified bound; bound_by: what proved it
    """

    name: str
    workload: str
    seed: int
    settings: str
    hash: str = ""
    jobs: int = 0
    objective: Objective = "jct_mean_s"
    value: float | None = None
    found_by: str = ""
    bound: float | None = None
    bound_by: str = ""

    @property
    def sense(self) -> Literal["min", "max"]:
        """Whether smaller or larger values are better."""
        return SENSE[self.objective]

    @property
    def gap(self) -> float | None:
        """Distance of the best known value from the bound as a share of the bound; None where one is missing."""
        return None if self.value is None else self.gap_of(self.value)

    def gap_of(self, value: float) -> float | None:
        """The same for any value; negative: better than the bound."""
        if self.bound is None:
            return None
        if value == self.bound:
            return 0.0
        off = value - self.bound if self.sense == "min" else self.bound - value
        return off / abs(self.bound) if self.bound else (inf if off > 0 else -inf)

    @property
    def closed(self) -> bool:
        """Whether the best known value is proven optimal."""
        return self.gap is not None and self.gap <= CLOSED

    def beats(self, value: float, other: float | None) -> bool:
        """Whether a value is better than another one (any is better than None)."""
        if other is None:
            return True
        if isclose(value, other, rel_tol=SAME, abs_tol=SAME):
            return False
        return value < other if self.sense == "min" else value > other

    def tightens(self, bound: float) -> bool:
        """Whether a bound is tighter than the known one."""
        if self.bound is None:
            return True
        return bound > self.bound if self.sense == "min" else bound < self.bound

    def made(self) -> Scenario:
        """The scenario that the generator gives now, whatever its hash."""
        given = dict(each.split("=", 1) for each in self.settings.split())
        return workloads.generate(self.workload, given, self.seed)

    def scenario(self) -> Scenario:
        """The scenario of the instance; an error where the generator no longer gives it."""
        found = self.made()
        if scenario_hash(found) != self.hash:
            raise InputError(
                f"the generator {self.workload} gives a scenario with hash {scenario_hash(found)[:12]}…, the table has "
                f"{self.hash[:12]}…. Where the generator changed on purpose, `tradewind library improve --new-version` "
                "raises the table's version",
                where=self.name,
            )
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Library:
    """All instances, and the digests of the versions so far; the last is in force."""

    versions: tuple[str, ...]
    instances: tuple[Instance, ...]

    @property
    def version(self) -> int:
        """Number of the version in force."""
        return len(self.versions)

    @property
    def digest(self) -> str:
        """Digest of the instances without values and bounds."""
        rows = [[i.name, i.workload, i.seed, i.settings, i.hash] for i in self.instances]
        return hashlib.sha256(repr(rows).encode()).hexdigest()[:32]

    def find(self, name: str) -> Instance:
        """The instance of that name."""
        for each in self.instances:
            if each.name == name:
                return each
        raise LookupFailed("instance of the library", name, [i.name for i in self.instances])

    def with_row(self, row: Instance) -> Library:
        """The library with one row replaced."""
        return replace(self, instances=tuple(row if i.name == row.name else i for i in self.instances))

    def renewed(self) -> Library:
        """The next version: hashes as the generators give them now; changed instances lose value and bound."""
        rows = tuple(map(_renewed, self.instances))
        found = replace(self, instances=rows)
        return (
            self
            if found.digest in self.versions[-1:]
            else replace(found, versions=(*self.versions, found.digest))
        )


def _renewed(row: Instance) -> Instance:
    made = row.made()
    if scenario_hash(made) == row.hash:
        return row
    return Instance(
        name=row.name,
        workload=row.workload,
        seed=row.seed,
        settings=row.settings,
        hash=scenario_hash(made),
        jobs=len(made.jobs),
        objective=made.setup.objective,
    )


def read(path: Path = TABLE, *, checked: bool = True) -> Library:
    """The table in a file. checked: the instances must be those of the last version."""
    lines = read_text(path, 10**7).splitlines()
    head = [line for line in lines if line.startswith("#")]
    if not head or head[0] != TITLE:
        raise InputError(f"the first line must be {TITLE!r}", where=str(path))
    versions = []
    for number, line in enumerate(head[1:], 1):
        begin = f"# version {number}: "
        if not line.startswith(begin):
            raise InputError(f"found {line!r}; line {number + 1} must be {begin}DIGEST", where=str(path))
        versions.append(line.removeprefix(begin))
    rows = list(csv.DictReader(line for line in lines if not line.startswith("#")))
    found = Library(
        versions=tuple(versions), instances=tuple(_row(path, n, row) for n, row in enumerate(rows, 1))
    )
    names = [i.name for i in found.instances]
    if len(set(names)) != len(names):
        raise InputError(f"{next(n for n in names if names.count(n) > 1)} is in it twice", where=str(path))
    if checked and found.digest not in versions[-1:]:
        raise InputError(
            f"the instances are not those of version {found.version} (digest {found.digest}); "
            "`tradewind library improve --new-version` raises the version",
            where=str(path),
        )
    return found


KINDS = get_type_hints(Instance)


def _row(path: Path, number: int, row: dict[str, str]) -> Instance:
    wanted = [field.name for field in fields(Instance)]
    if list(row) != wanted or None in row.values():
        raise InputError(
            f"its columns are {', '.join(map(str, row))}; they must be {', '.join(wanted)}", where=str(path)
        )
    values: dict[str, object] = {}
    try:
        for name, text in row.items():
            kind = KINDS[name]
            if type(None) in get_args(kind):
                values[name] = float(text) if text else None
            else:
                values[name] = int(text or 0) if kind is int else text
    except ValueError:
        raise InputError(f"found {text!r}; {name} is a number", where=f"{path}, row {number}") from None
    if values["objective"] not in SENSE:
        raise InputError(f"found {values['objective']!r} as objective", where=f"{path}, row {number}")
    return Instance(**values)  # type: ignore[arg-type] # each was read as its type


def write(library: Library, path: Path = TABLE) -> None:
    """Write the table; equal libraries give equal bytes."""
    target = io.StringIO()
    target.writelines(f"{line}\n" for line in _head(library))
    out = csv.writer(target, lineterminator="\n")
    names = [field.name for field in fields(Instance)]
    out.writerow(names)
    for row in library.instances:
        cells = [getattr(row, name) for name in names]
        out.writerow(
            ["" if cell is None else repr(cell) if isinstance(cell, float) else cell for cell in cells]
        )
    atomic.write_text(path, target.getvalue())


def _head(library: Library) -> Iterator[str]:
    yield TITLE
    for number, digest in enumerate(library.versions, 1):
        yield f"# version {number}: {digest}"
