"""Reads jobs as a user has them: GPU-hours or a measured iteration, GPU types, data, deadline, budget, regions."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, PlainValidator, WithJsonSchema

from tradewind.files import documents
from tradewind.files.messages import validated
from tradewind.files.profile_file import ProfileFile
from tradewind.files.profile_file import load as load_profile
from tradewind.files.scalars import (
    Bytes,
    Count,
    Flag,
    Name,
    Number,
    Some,
    SpanUs,
    Tenant,
    Text,
    TimeUs,
    Usd,
    rule,
)
from tradewind.model.errors import InputError

MOST_GPUS = 65_536


def _types(value: Any) -> tuple[str, ...]:
    """`A100 or H100`, or a list of names."""
    if isinstance(value, str):
        value = value.replace(",", " or ").split(" or ")
    names = tuple(each.strip() for each in value) if _is_texts(value) else ()
    if not names or not all(names) or len(set(names)) < len(names):
        raise rule("it must name GPU types, each once: 'A100 or H100', or a list")
    return names


def _is_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(each, str) for each in value)


def _counts(value: Any) -> tuple[int, ...]:
    """`8`, `[4, 8, 16]`, or `4-32` for the powers of two in between."""
    if isinstance(value, str):
        low, sign, high = value.partition("-")
        if sign and low.strip().isdecimal() and high.strip().isdecimal() and len(value) < 20:
            value = [2**k for k in range(17) if int(low) <= 2**k <= int(high)]
    counts = value if isinstance(value, list) else [value]
    if not counts or not all(type(n) is int and 0 < n <= MOST_GPUS for n in counts):
        raise rule(
            f"it must be a number of GPUs from 1 to {MOST_GPUS:,}, a list, or a range 4-32 of powers of two"
        )
    return tuple(sorted(set(counts)))


def _regions(value: Any) -> tuple[str, ...]:
    words = tuple(value) if _is_texts(value) else (value,) if isinstance(value, str) else ()
    if not words or not all(words):
        raise rule("it must name regions: eu, aws, us-east-1, aws:us-east-1, us-*, or a list of such words")
    return words


_ANY_TEXT = WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]})
Types = Annotated[tuple[str, ...], PlainValidator(_types), _ANY_TEXT]
Regions = Annotated[tuple[str, ...], PlainValidator(_regions), _ANY_TEXT]
Counts = Annotated[
    tuple[int, ...],
    PlainValidator(_counts),
    WithJsonSchema(
        {"anyOf": [{"type": "integer"}, {"type": "string"}, {"type": "array", "items": {"type": "integer"}}]}
    ),
]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class PlanJobFile(_Part):
    """A job. The work is `gpu_hours`, or `iterations` with `iteration_s` or a `profile`."""

    id: Name = Field(description="name of the job")
    tenant: Tenant = Field(default="", description="for whom it runs")
    gpu: Types = Field(description="GPU types that it can use: 'A100 or H100'")
    gpu_hours: Number | None = Field(default=None, description="GPU-hours on the reference type")
    iterations: Some | None = Field(default=None, description="iterations to do")
    iteration_s: Number | None = Field(
        default=None, description="seconds of an iteration, on `measured_gpus` of the reference type"
    )
    measured_gpus: Some = Field(default=1, description="GPUs on which iteration_s was measured")
    profile: Text | None = Field(
        default=None, description="file of `tradewind profile`, instead of iteration_s"
    )
    of: Name | None = Field(
        default=None, description="reference GPU type of the work; default: the profile's, else the first"
    )
    speeds: dict[Name, Number] = Field(
        default_factory=dict, description="speed of each type beside the reference's 1"
    )
    gpus: Counts = Field(
        default=(1, 2, 4, 8, 16), description="numbers of GPUs that it can use: 8, [4, 8] or 4-32"
    )
    gpu_memory: Bytes = Field(default=0, description="memory that it needs on a GPU")
    model: Bytes = Field(default=0, description="bytes that GPUs sum up in every iteration (gradients)")
    data: dict[Name, Bytes] = Field(
        default_factory=dict, description="region -> size of the data that lies there"
    )
    regions: Regions | None = Field(default=None, description="where it may run; anywhere if omitted")
    after: TimeUs = Field(default=0, description="earliest start, from now on")
    deadline: SpanUs | None = Field(default=None, description="when it must be done, from now on")
    due: SpanUs | None = Field(
        default=None, description="when it should be done, from now on; later costs `late` until the deadline"
    )
    late: Usd = Field(default=0.0, description="USD lost per hour after `due`")
    budget: Usd | None = Field(default=None, description="USD that it may cost at list price")
    spot: Flag = Field(default=False, description="whether it may use spot machines")
    pauses: Count = Field(default=0, description="how often it may pause and go on")
    restart: TimeUs | None = Field(
        default=None, description="time without progress at every start; default 5 min"
    )
    checkpoint: TimeUs | None = Field(default=None, description="time of a checkpoint; default 1 min")
    sync_every: Count = Field(
        default=0,
        description="it may train in two regions with data that exchange the model every so many iterations; 0: no",
    )
    command: list[Text] = Field(
        default_factory=list, description="program and arguments, for `tradewind live`; once per machine"
    )
    env: dict[Name, Text] = Field(default_factory=dict, description="environment of the command")


class SpotFile(_Part):
    """What is assumed of every spot offer."""

    machines: Some = Field(description="machines that can be had of an offer")
    interruptions_per_hour: Number = Field(description="how often they are expected to be taken back")


class PlanFile(_Part):
    """Jobs that are planned together."""

    tradewind_jobs: Some = Field(description="version of the format: 1")
    name: Name = Field(default="plan", description="name of the plan; default: that of the file")
    slot: SpanUs = Field(default=3_600_000_000, description="time step of the plan; default 1 h")
    deadline: SpanUs | None = Field(default=None, description="deadline of jobs that have none; default 7 d")
    spot: SpotFile | None = Field(
        default=None, description="spot machines: their number and how often they are lost"
    )
    jobs: list[PlanJobFile] = Field(description="the jobs")


def load_jobs(path: Path) -> tuple[PlanFile, dict[str, ProfileFile]]:
    """Jobs from a YAML or JSON file, and the profiles that they name (beside the file), by job."""
    raw = documents.read_version(path, "tradewind_jobs", 1)
    if isinstance(raw, dict):
        raw = {"name": documents.stem(path), **raw}
    found = validated(PlanFile, raw, str(path))
    if not found.jobs:
        raise InputError("jobs is empty; add at least one", where=str(path))
    seen: set[str] = set()
    profiles: dict[str, ProfileFile] = {}
    for job in found.jobs:
        if job.id in seen:
            raise InputError(f"two jobs are called {job.id!r}; rename one", where=str(path))
        seen.add(job.id)
        if job.profile is not None:
            profiles[job.id] = load_profile(path.parent / job.profile)
    return found, profiles
