"""A comparison as a file: the report, or a table of runs (CSV, JSON or Parquet), one row per policy and seed."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

from tradewind.files import atomic
from tradewind.files.row_tables import write_csv
from tradewind.files.scenario_write import plain_values
from tradewind.model.errors import InputError
from tradewind.model.result import Run
from tradewind.model.scenario import Scenario
from tradewind.report import page
from tradewind.report.summary import group, metrics_of

PAGES, TABLES = (".html", ".htm"), (".csv", ".json", ".parquet")


class Compared(Protocol):
    """What is written (api.Comparison)."""

    @property
    def scenarios(self) -> Sequence[Scenario]: ...

    @property
    def runs(self) -> Sequence[Run]: ...


def must_be_one(output: Path) -> None:
    """Refuse a name whose ending says nothing."""
    if output.suffix not in PAGES + TABLES:
        raise InputError(
            f"-o {output}: end its name in {', '.join((PAGES[0], *TABLES[:-1]))} or {TABLES[-1]}"
        )


def write(output: Path, compared: Compared) -> None:
    """Write the file that its ending asks for."""
    must_be_one(output)
    if output.suffix in PAGES:
        page.write(output, list(compared.scenarios), compared.runs)
        return
    rows = table(compared.runs)
    if output.suffix == ".csv":
        write_csv(output, _names(rows), _flat(rows))
    elif output.suffix == ".json":
        atomic.write_text(output, json.dumps(plain_values(rows), indent=1) + "\n")
    else:
        _write_parquet(output, columns(compared.runs))


def columns(runs: Sequence[Run]) -> dict[str, list[Any]]:
    """The table by columns."""
    rows = _flat(table(runs))
    return {name: [row.get(name) for row in rows] for name in _names(rows)}


def _flat(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows with parameters as text, for tables whose cells hold no objects."""
    return [{**row, "params": json.dumps(row["params"], sort_keys=True)} for row in rows]


def _names(rows: Sequence[dict[str, Any]]) -> list[str]:
    return list(dict.fromkeys(name for row in rows for name in row))


def table(runs: Sequence[Run]) -> list[dict[str, Any]]:
    """One row per run: label, policy, parameters, seed, scenario, bound, and every metric."""
    labels = {id(run): g.label for g in group(runs) for run in g.runs}
    return [
        {
            "label": labels[id(run)],
            "policy": run.policy,
            "params": dict(run.params),
            "seed": run.seed,
            "scenario": run.scenario_name,
            "scenario_hash": run.scenario_hash,
            "objective": run.objective,
            "value": metrics_of(run)[run.objective],
            "bound": None if run.bound is None else run.bound.value,
            "ratio": None if run.bound is None else run.bound.ratio,
            **metrics_of(run),
        }
        for run in runs
    ]


def _write_parquet(output: Path, columns: dict[str, list[Any]]) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    buffer = pa.BufferOutputStream()
    pq.write_table(pa.table(columns), buffer)
    atomic.write_bytes(output, buffer.getvalue().to_pybytes())
