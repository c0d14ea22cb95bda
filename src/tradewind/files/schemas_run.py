"""The header of a run file as pydantic models."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, PlainValidator, WithJsonSchema

from tradewind.files.scalars import Count, Flag, Measure, Name, PlainObject, Text, Whole, rule
from tradewind.files.schemas_prices import Strict
from tradewind.model.result import WorldName
from tradewind.model.setup import Objective
from tradewind.model.tables import ColumnType

VERSION = 1
SHA256 = "^[0-9a-f]{64}$"


def _digest(value: Any) -> str:
    if type(value) is str and len(value) == 64 and not set(value) - set("0123456789abcdef"):
        return value
    raise rule("it must be a SHA-256 checksum: 64 lower-case hexadecimal digits")


def _column(value: Any) -> list[Any]:
    if isinstance(value, list):
        return value
    raise rule("it must be a list")


Digest = Annotated[str, PlainValidator(_digest), WithJsonSchema({"type": "string", "pattern": SHA256})]
Column = Annotated[
    list[Any],
    PlainValidator(_column),
    WithJsonSchema({"type": "array", "items": {"type": ["number", "string"]}}),
]


class ObjectiveFile(Strict):
    """The objective of the run."""

    name: Objective = Field(description="name of the metric")
    value: Measure = Field(description="its value in the metric's unit, equal to that in metrics")


class ViolationFile(Strict):
    """A violation of an audit rule."""

    rule: Name = Field(description="name of the rule")
    job: Text = Field(default="", description="id of the job, or empty")
    node: Text = Field(default="", description="name of the node, or empty")
    slot: Whole = Field(default=-1, description="number of the slot, or -1")
    amount: Measure = Field(default=0.0, description="by how much, in the unit of the rule")
    detail: Text = Field(default="", description="explanation in plain English")


class AuditFile(Strict):
    """The result of the audit."""

    ok: Flag = Field(description="true if there are no violations (no unit)")
    violations: list[ViolationFile] = Field(description="the violated rules")


class BoundFile(Strict):
    """The offline bound over the whole horizon."""

    value: Measure = Field(description="value that no policy can improve on, in the objective's unit")
    sense: Literal["min", "max"] = Field(description="min: lower is better; max: higher is better")
    kind: Literal["certified", "in-expectation"] = Field(
        description="certified: holds for this run; in-expectation: holds for the mean over seeds"
    )
    ratio: Measure = Field(description="objective / bound (a number): at least 1 for min, at most 1 for max")


class TableFile(Strict):
    """One table: number of rows, columns, and where the data is."""

    rows: Count = Field(description="number of rows")
    columns: dict[Name, ColumnType] = Field(description="column -> int, float or str, in order")
    sha256: Digest = Field(description="checksum of the contents, 64 hexadecimal digits; see Checksums")
    data: dict[Name, Column] | None = Field(
        default=None,
        description="column -> list of values in the column's unit; omitted if there is a file",
    )
    file: Name | None = Field(
        default=None,
        description="Parquet file in the folder <stem>.d next to the header, as version/table.parquet; omitted if inline",
    )


class RunFile(Strict):
    """The header of a run file."""

    tradewind_run: Literal[1] = Field(description="version of the format: 1")
    scenario_hash: Text = Field(description="SHA-256 of the canonical form of the scenario, hexadecimal")
    scenario_name: Text = Field(description="name of the scenario")
    policy: Text = Field(description="name of the policy")
    params: PlainObject = Field(
        description="parameters of the policy; the policy's documentation gives their units"
    )
    seed: Whole = Field(description="seed of all random streams (a number)")
    version: Text = Field(description="version of Tradewind that wrote the file")
    world: WorldName = Field(
        default="simulated",
        description="simulated, or processes: completions and progress of fixed jobs and rounds were measured",
    )
    fleet: Text = Field(
        default="",
        description="the cluster on which the processes ran, such as slurm or ray; omitted: the loop's machine, or none",
    )
    objective: ObjectiveFile = Field(description="the objective of the run")
    metrics: dict[Name, Measure] = Field(
        description="metric -> value in the unit at the end of its name; null: undefined, 'inf' and '-inf': unbounded"
    )
    audit: AuditFile = Field(description="the result of the audit")
    bound: BoundFile | None = Field(description="the offline bound, or null if none was computed")
    certificates: list[PlainObject] = Field(
        description="bounds reported with decisions, and the bound of the served jobs; in their own units"
    )
    tables: dict[Name, TableFile] = Field(description="the tables; see Tables of a run")


class TimingsFile(Strict):
    """Wall-clock times, in a separate file because they differ between runs."""

    total: Measure = Field(description="seconds of the whole run")
    decide_p50: Measure = Field(description="median seconds of a decision")
    decide_p99: Measure = Field(description="99th percentile of the seconds of a decision")
    scenario: str = Field(
        "", description="file (relative to this one) or workload that `tradewind run` was given, if it was"
    )
    given: dict[str, str] = Field(default={}, description="parameters of that workload")
