"""The header of a run file as pydantic models."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, PlainValidator, WithJsonSchema

from tradewind.files.scalars import Count, Flag, Measure, Name, PlainObject, Text, Whole, rule
from tradewind.files.schemas_scenario import Strict
from tradewind.model.result import WorldName
from tradewind.model.setup import Objective
from tradewind.model.tables import ColumnType

VERSION = 1
SHA256 = "^[0-9a-f]{64}$"


def _digest(value: Any) -> str:
    if type(value) is str and len(value) == 64 and not set(value) - set("0123456789abcdef"):
        return value
    raise rule("it must be a SHA-256 checksum of 64 hexadecimal digits")


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
    """What the run was measured by."""

    name: Objective = Field(description="the metric that decides")
    value: Measure = Field(description="its value, as in metrics and in that metric's unit")


class ViolationFile(Strict):
    """A broken rule."""

    rule: Name = Field(description="name of the rule")
    job: Text = Field(default="", description="id of the job, or empty")
    node: Text = Field(default="", description="name of the node, or empty")
    slot: Whole = Field(default=-1, description="number of the slot, or -1")
    amount: Measure = Field(default=0.0, description="by how much, in the unit of the rule")
    detail: Text = Field(default="", description="a sentence for people")


class AuditFile(Strict):
    """What the audit found."""

    ok: Flag = Field(description="true where there are no violations (no unit)")
    violations: list[ViolationFile] = Field(description="the broken rules")


class BoundFile(Strict):
    """The offline bound of the whole horizon."""

    value: Measure = Field(description="no policy can do better, in the objective's unit")
    sense: Literal["min", "max"] = Field(description="min: the objective is to be small; max: to be large")
    kind: Literal["certified", "in-expectation"] = Field(
        description="certified: holds for this run; in-expectation: for the mean over seeds"
    )
    ratio: Measure = Field(description="objective / bound (a number): at least 1 for min, at most 1 for max")


class TableFile(Strict):
    """One table: how many rows, which columns, and where they are."""

    rows: Count = Field(description="number of rows")
    columns: dict[Name, ColumnType] = Field(description="column -> int, float or str, in order")
    sha256: Digest = Field(description="checksum of the contents, 64 hexadecimal digits; see Checksums")
    data: dict[Name, Column] | None = Field(
        default=None,
        description="column -> list of values in the column's unit; left out where there is a file",
    )
    file: Name | None = Field(
        default=None,
        description="name of the Parquet file in the folder <stem>.d beside the header; left out where inline",
    )


class RunFile(Strict):
    """Header of a run."""

    tradewind_run: Literal[1] = Field(description="version of the format: 1")
    scenario_hash: Text = Field(description="SHA-256 of the scenario's meaning, hexadecimal")
    scenario_name: Text = Field(description="name of the scenario")
    policy: Text = Field(description="name of the policy")
    params: PlainObject = Field(description="parameters of the policy; its page gives their units")
    seed: Whole = Field(description="seed of all random streams (a number)")
    version: Text = Field(description="version of Tradewind that wrote the file")
    world: WorldName = Field(
        default="simulated",
        description="simulated; or processes: completions and progress of fixed jobs and rounds are measured",
    )
    objective: ObjectiveFile = Field(description="what the run was measured by")
    metrics: dict[Name, Measure] = Field(
        description="metric -> value; the unit ends the name; null: undefined, 'inf' and '-inf': unbounded"
    )
    audit: AuditFile = Field(description="what the audit found")
    bound: BoundFile | None = Field(description="the offline bound, or null where none was computed")
    certificates: list[PlainObject] = Field(
        description="bounds that came with decisions, or of what the run served; in their own units"
    )
    tables: dict[Name, TableFile] = Field(description="the tables, see Tables of a run")


class TimingsFile(Strict):
    """Seconds by the wall clock, beside the run file because they differ each time."""

    total: Measure = Field(description="seconds of the whole run")
    decide_p50: Measure = Field(description="median seconds of a decision")
    decide_p99: Measure = Field(description="99th percentile of the seconds of a decision")
