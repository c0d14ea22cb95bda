"""Run files: a JSON header, tables inline or as Parquet files next to it, timings in a separate file."""

from __future__ import annotations

import hashlib
import math
import os
from collections.abc import Iterable, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from pydantic import ValidationError

from tradewind.files import documents
from tradewind.files.atomic import adding_directory, remove, remove_leftovers
from tradewind.files.messages import sentence, shown
from tradewind.files.run_tables import (
    INLINE_ROWS,
    check_links,
    checksum,
    columns_of,
    normal,
    read_parquet,
    rows,
    write_parquet,
)
from tradewind.files.scenario_write import plain_values
from tradewind.files.schemas_run import VERSION, BoundFile, RunFile, TableFile, TimingsFile
from tradewind.model.errors import InputError, RunFileError
from tradewind.model.result import Bound, Run, Table, Timings, Violation
from tradewind.model.tables import RARE, TABLES


def save(run: Run, path: str | Path) -> None:
    """Write a run file; `path` is written last and atomically. Equal runs give equal bytes.

    Up to INLINE_ROWS rows are kept in the header; more go to `<stem>.d/<version>/<table>.parquet`, where the version follows
    from the contents, so that an older header keeps its tables until the new one is in place. Timings go to
    `<stem>.timings.json`. One process writes a run file at a time.
    """
    path = Path(path)
    documents.check_suffix(path)
    tables = {name: normal(name, run.tables[name]) for name in in_order(run.tables)}
    check_links(tables)
    folder, timings = path.with_name(f"{path.stem}.d"), timings_path(path)
    inline = sum(map(rows, tables.values())) <= INLINE_ROWS
    sums = {name: checksum(name, table) for name, table in tables.items()}
    version = "" if inline else hashlib.sha256("".join(sums.values()).encode()).hexdigest()[:16]
    header = header_of(run)
    header["tables"] = {name: _entry(name, table, sums[name], version) for name, table in tables.items()}
    text = documents.text_for(path, header)
    remove(timings)  # of an older run
    if not inline:
        with adding_directory(folder / version) as temporary:
            for name, table in tables.items():
                write_parquet(name, table, temporary / f"{name}.parquet")
    documents.write(path, text)
    if folder.is_dir():
        for old in folder.iterdir():
            if old.name != version:
                remove(old)
        if inline:
            remove(folder)
    remove_leftovers(path)
    if run.timings is not None:
        documents.write(timings, documents.json_text(_timings(run.timings)))


def note_source(path: Path, source: Path | str, given: Mapping[str, str]) -> None:
    """Write down beside a run file what it was made from, so that its scenario is found again: a file, or a workload."""
    timings = timings_path(path)
    if timings.exists():
        if isinstance(source, Path):
            source = os.path.relpath(source.resolve(), path.resolve().parent)
        documents.write(
            timings, documents.json_text(documents.read(timings) | {"scenario": source, "given": dict(given)})
        )


def source_of(path: Path) -> tuple[str, Mapping[str, str]]:
    """What `note_source` wrote down; empty where nothing is."""
    file = _timings_file(timings_path(path))
    return (file.scenario, file.given) if file is not None else ("", {})


def in_order(names: Iterable[str]) -> list[str]:
    """Known tables in the order of model.tables, then unknown ones, which are rejected later."""
    order = list(TABLES)
    return sorted(names, key=lambda name: (order.index(name) if name in TABLES else len(order), name))


def timings_path(path: Path) -> Path:
    """Path of the timings of a run file."""
    return path.with_name(f"{path.stem}.timings.json")


def _entry(name: str, table: Table, digest: str, version: str) -> dict[str, Any]:
    entry: dict[str, Any] = {"rows": rows(table), "columns": columns_of(name), "sha256": digest}
    # without the folder: the bytes of a run do not depend on the name of its file
    if version:
        return entry | {"file": f"{version}/{name}.parquet"}
    return entry | {"data": {column: list(values) for column, values in table.items()}}


def _measure(value: float) -> float | str | None:
    """A number as JSON: null if undefined, "inf" or "-inf" if unbounded."""
    value = float(value)
    if math.isnan(value):
        return None
    return value if math.isfinite(value) else ("inf" if value > 0 else "-inf")


def _ordered(value: Any) -> Any:
    """Plain values with object fields sorted, so that equal values give equal bytes."""
    if isinstance(value, Mapping):
        return {key: _ordered(value[key]) for key in sorted(value)}
    if isinstance(value, list):
        return [_ordered(each) for each in value]
    if isinstance(value, float) and math.isinf(value):
        return "inf" if value > 0 else "-inf"
    return value


def header_of(run: Run) -> dict[str, Any]:
    """The header of a run file without the tables, as plain data."""
    bound = run.bound
    return {
        "tradewind_run": VERSION,
        "scenario_hash": run.scenario_hash,
        "scenario_name": run.scenario_name,
        "policy": run.policy,
        "params": _ordered(plain_values(run.params)),
        "seed": int(run.seed),
        "version": run.version,
        **({} if run.world == "simulated" else {"world": run.world}),
        **({"fleet": run.fleet} if run.fleet else {}),
        "objective": {
            "name": run.objective,
            "value": _measure(run.metrics.get(run.objective, math.nan)),
        },
        "metrics": {key: _measure(run.metrics[key]) for key in sorted(run.metrics)},
        "audit": {"ok": not run.violations, "violations": [_violation(v) for v in run.violations]},
        "bound": None
        if bound is None
        else {
            "value": _measure(bound.value),
            "sense": bound.sense,
            "kind": bound.kind,
            "ratio": _measure(bound.ratio),
        },
        "certificates": [_ordered(plain_values(each)) for each in run.certificates],
    }


def _violation(violation: Violation) -> dict[str, Any]:
    row = violation._asdict()
    return row | {"slot": int(violation.slot), "amount": _measure(violation.amount)}


def _timings(timings: Timings) -> dict[str, Any]:
    return {name: _measure(getattr(timings, name)) for name in ("total", "decide_p50", "decide_p99")}


def load_run(path: str | Path) -> Run:
    """Read a run file and its tables; check version, types, checksums and references between rows."""
    path = Path(path)
    try:
        return _load(path)
    except InputError as error:
        text = str(error)
        raise RunFileError(text if text.startswith(str(path)) else f"{path}: {text}") from None
    except (RecursionError, MemoryError) as error:
        raise RunFileError(f"{path}: is too large or nested too deeply ({type(error).__name__})") from None


def _load(path: Path) -> Run:
    raw = documents.read(path)
    if not isinstance(raw, dict):
        raise RunFileError(f"the file contains {shown(raw)}; a run file must be an object")
    documents.check_version(raw, "tradewind_run", VERSION)
    try:
        file = RunFile.model_validate(raw)
    except ValidationError as error:
        raise RunFileError(sentence(error, RunFile, raw)) from None
    tables = {name: _table(path, name, table) for name, table in file.tables.items()}
    for name in TABLES:
        if name not in RARE and name not in tables:  # in a file that is older than the table
            tables[name] = normal(name, dict.fromkeys(columns_of(name), ()))
    check_links(tables)
    return _run(file, tables, _read_timings(timings_path(path)))


def _table(path: Path, name: str, file: TableFile) -> dict[str, Any]:
    if (file.data is None) == (file.file is None):
        raise RunFileError(f"tables.{name} must have either data or file")
    raw: Mapping[str, Any] = file.data or {}
    if file.file is not None:
        raw = read_parquet(name, _table_path(path, name, file.file), file.rows)
    table = normal(name, raw)
    if dict(file.columns) != columns_of(name):
        raise RunFileError(
            f"tables.{name}.columns is {_listed(file.columns)}; it must be {_listed(columns_of(name))}"
        )
    if rows(table) != file.rows:
        raise RunFileError(f"tables.{name}.rows is {file.rows}, but the table has {rows(table)} rows")
    if checksum(name, table) != file.sha256:
        raise RunFileError(
            f"tables.{name}.sha256 does not match the contents: the file was modified or is incomplete. "
            "Run the policy again."
        )
    return table


def _listed(columns: Mapping[str, str]) -> str:
    return ", ".join(f"{name}: {kind}" for name, kind in columns.items())[:600]


def _table_path(path: Path, table: str, name: str) -> Path:
    pure = PurePosixPath(name)
    if pure.is_absolute() or ".." in pure.parts or "\\" in name:
        raise RunFileError(
            f"tables.{table}.file is {name!r}; it must be a file in the run's folder, given without a path"
        )
    file = path.with_name(f"{path.stem}.d") / pure
    documents.check_file(file)
    return file


def _read_timings(path: Path) -> Timings | None:
    file = _timings_file(path)
    if file is None:
        return None
    return Timings(total=file.total, decide_p50=file.decide_p50, decide_p99=file.decide_p99)


def _timings_file(path: Path) -> TimingsFile | None:
    if not path.exists():
        return None
    raw = documents.read(path)
    try:
        return TimingsFile.model_validate(raw)
    except ValidationError as error:
        raise RunFileError(f"{path.name}: {sentence(error, TimingsFile, raw)}") from None


def _bound(file: BoundFile | None) -> Bound | None:
    if file is None:
        return None
    return Bound(value=file.value, sense=file.sense, kind=file.kind, ratio=file.ratio)


def _run(file: RunFile, tables: Mapping[str, Table], timings: Timings | None) -> Run:
    if file.audit.ok == bool(file.audit.violations):
        raise RunFileError("audit.ok contradicts audit.violations; it must be true exactly if there are none")
    value = file.metrics.get(file.objective.name, math.nan)
    same = value == file.objective.value or (math.isnan(value) and math.isnan(file.objective.value))
    if not same:
        raise RunFileError(
            f"objective.value is {file.objective.value}, but metrics.{file.objective.name} is {value}"
        )
    return Run(
        scenario_hash=file.scenario_hash,
        scenario_name=file.scenario_name,
        policy=file.policy,
        params=file.params,
        seed=file.seed,
        version=file.version,
        objective=file.objective.name,
        metrics=file.metrics,
        violations=tuple(
            Violation(v.rule, v.job, v.node, v.slot, v.amount, v.detail) for v in file.audit.violations
        ),
        tables=tables,
        bound=_bound(file.bound),
        certificates=tuple(file.certificates),
        world=file.world,
        fleet=file.fleet,
        timings=timings,
    )
