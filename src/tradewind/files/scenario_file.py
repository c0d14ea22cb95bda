"""Scenario files: load, dump and hash."""

from __future__ import annotations

import csv
import gc
import io
import json
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, Literal

from pydantic import ValidationError

from tradewind.files import documents
from tradewind.files.atomic import replacing, write_text
from tradewind.files.messages import sentence, shown
from tradewind.files.row_tables import (
    Columns,
    check_columns,
    csv_cell,
    flatten,
    read_columns,
    rows_from_columns,
    table_path,
)
from tradewind.files.scenario_build import MOST_SLOTS, build
from tradewind.files.scenario_write import document
from tradewind.files.schemas_scenario import VERSION, ScenarioFile
from tradewind.model.errors import InputError, InputWarning, ScenarioError
from tradewind.model.hash import scenario_hash
from tradewind.model.scenario import Scenario
from tradewind.model.units import US_PER_S

__all__ = ["dump", "load", "parse", "scenario_hash"]

TableFormat = Literal["", "csv", "parquet"]
TABLES: Final = ("jobs", "changes", "links", "egress")
INLINE_ROWS: Final = 500_000
"""Tables with more rows than this are written to a Parquet file next to the scenario."""
_DEEP: Final = ("work", "worker", "server", "private")


def load(path: str | Path) -> Scenario:
    """Read and validate a .json, .yaml or .yml file; raise a ScenarioError that says where a mistake is."""
    path = Path(path)
    try:
        with _no_collection():
            return parse(documents.read(path), folder=path.parent, name=documents.stem(path))
    except InputError as error:
        text = str(error)
        raise ScenarioError(text if text.startswith(str(path)) else f"{path}: {text}") from None
    except (RecursionError, MemoryError) as error:
        raise ScenarioError(f"{path}: is too large or nested too deeply ({type(error).__name__})") from None


def parse(raw: Any, *, folder: Path | None = None, name: str = "scenario") -> Scenario:
    """Build a scenario from the plain values of a file; `folder` is where its table files are."""
    if not isinstance(raw, dict):
        raise ScenarioError(f"the file contains {shown(raw)}; a scenario must be an object")
    documents.check_version(raw, "tradewind_scenario", VERSION)
    raw = _with_tables(raw, folder)
    try:
        file = ScenarioFile.model_validate(raw)
    except ValidationError as error:
        raise ScenarioError(sentence(error, ScenarioFile, raw)) from None
    _warn_of_unit(raw["slot_us"], file)
    _warn_of_resources(file)
    return build(file, name)


MANY_SLOTS = 10_000


def _warn_of_unit(written: Any, file: ScenarioFile) -> None:
    """A slot of less than a second without a unit, and very many of them: probably seconds were meant."""
    slots = file.horizon_us // file.slot_us
    if isinstance(written, int) and written < US_PER_S and MANY_SLOTS < slots <= MOST_SLOTS:
        warnings.warn(
            f"slot_us is {written} microseconds ({written / US_PER_S:g} s), so that the horizon has {slots:,} slots; a "
            "number without a unit counts microseconds, and text has one: slot_us: 1 h",
            InputWarning,
            stacklevel=2,
        )


def _warn_of_resources(file: ScenarioFile) -> None:
    """A resource of nodes that no job uses and that differs from one in use by capitals or a plural s: probably a slip."""
    used = {name for job in file.jobs for name in (*job.worker, *job.server)}
    alike = {name.lower().rstrip("s"): name for name in sorted(used)}
    for node in file.nodes:
        for name in {*node.capacity, *node.rent} - used:
            if name.lower().rstrip("s") in alike:
                warnings.warn(
                    f"nodes[{node.name}] has {name!r}, which no job uses; did you mean {alike[name.lower().rstrip('s')]!r}, "
                    "of which it has no limit or price?",
                    InputWarning,
                    stacklevel=2,
                )
                return


@contextmanager
def _no_collection() -> Iterator[None]:
    """Pause the cyclic garbage collector: many thousands of jobs have no cycles but would be scanned often."""
    paused = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if paused:
            gc.enable()


def _with_tables(raw: dict[str, Any], folder: Path | None) -> dict[str, Any]:
    """The document with every table as a list of rows (volumes: as columns)."""
    raw = dict(raw)
    for table in ("jobs", "changes", "volumes"):
        file = raw.pop(f"{table}_file", None)
        if file is None:
            continue
        where = f"{table}_file"
        if table in raw:
            raise ScenarioError(f"both {table} and {where} are given; keep one")
        if not isinstance(file, str) or not file:
            raise ScenarioError(f"{where} is {shown(file)}; it must be the name of a .csv or .parquet file")
        if folder is None:
            raise ScenarioError(
                f"{where} is {shown(file)}; only a scenario loaded from a file can refer to other files"
            )
        raw[table] = read_columns(table_path(folder, file, where))
    for table in TABLES:
        if isinstance(raw.get(table), dict):
            raw[table] = rows_from_columns(raw[table], table)
    if isinstance(raw.get("volumes"), list):
        raw["volumes"] = _volume_columns(raw["volumes"])
    elif isinstance(raw.get("volumes"), dict):
        check_columns(raw["volumes"], "volumes")
    return raw


def _volume_columns(rows: list[Any]) -> Columns:
    columns: Columns = {"job": [], "slot": [], "node": [], "bytes": []}
    for number, row in enumerate(rows):
        if not isinstance(row, dict) or set(row) != set(columns):
            raise ScenarioError(
                f"volumes[{number}] must be an object with exactly the fields {', '.join(columns)}"
            )
        for name, column in columns.items():
            column.append(row[name])
    return columns


def dump(scenario: Scenario, path: str | Path, *, tables: TableFormat = "") -> None:
    """Write a scenario so that `load` returns an equal one.

    tables  "" keeps jobs, changes and volumes inline (very long tables go to Parquet files); "csv" and "parquet" write them
            to `<stem>.jobs.csv` and so on, next to the scenario
    """
    path = Path(path)
    documents.check_suffix(path)
    with _no_collection():
        whole = document(scenario)
        for table in ("jobs", "changes", "volumes"):
            rows = len(scenario.volumes) if table == "volumes" else len(whole.get(table, ()))
            suffix: TableFormat = tables or ("parquet" if rows > INLINE_ROWS else "")
            if rows and suffix:
                file = path.with_name(f"{path.stem}.{table}.{suffix}")
                content = whole.pop(table)
                _write_columns(file, content if table == "volumes" else flatten(content, _DEEP))
                whole[f"{table}_file"] = file.name
        documents.write(path, documents.text_for(path, whole))


def _write_columns(path: Path, columns: Columns) -> None:
    plain = {name: _cells_of(column) for name, column in columns.items()}
    if path.suffix == ".parquet":
        import pyarrow as pa
        import pyarrow.parquet as pq

        with replacing(path) as temporary:
            pq.write_table(pa.table(plain), temporary, compression="zstd", store_schema=False)
        return
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(plain)
    for row in zip(*plain.values(), strict=True):
        writer.writerow(["" if cell is None else csv_cell(cell) for cell in row])
    write_text(path, text.getvalue())


def _cells_of(column: list[Any]) -> list[Any]:
    """Make a column of one type: lists and objects become JSON text, mixed numbers floats, numbers mixed with text text."""
    kinds = set(map(type, column)) - {type(None)}
    if kinds & {list, dict}:
        return [None if v is None else json.dumps(v, ensure_ascii=False) for v in column]
    if kinds == {int, float}:
        return [None if v is None else float(v) for v in column]
    if str in kinds and len(kinds) > 1:
        return [None if v is None else str(v) for v in column]
    if kinds == {bool}:
        return [None if v is None else str(v).lower() for v in column]
    return column
