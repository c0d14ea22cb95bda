"""Profiles of training commands as files: written by `tradewind profile`, referred to by jobs of a plan."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from tradewind.files import documents
from tradewind.files.messages import validated
from tradewind.files.scalars import Count, Name, Number, Some, Text
from tradewind.model.errors import InputError
from tradewind.worlds.profile import Profile


class ProfileFile(BaseModel):
    """A profile as it is written."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    tradewind_profile: Some = Field(description="version of the format: 1")
    command: list[Text] = Field(default_factory=list, description="the command that was measured")
    gpu: Name | None = Field(default=None, description="GPU type on which it was measured")
    ranks: Some = Field(default=1, description="processes that were measured together")
    iterations: Count = Field(default=0, description="iterations that were measured")
    iteration_s: Number = Field(description="median seconds of an iteration")
    iteration_p90_s: Number | None = Field(default=None, description="seconds of the slowest tenth")
    iterations_per_hour: Number | None = Field(default=None, description="iterations per hour by the clock")
    bytes_sent_per_iteration: Number | None = Field(default=None, description="bytes that rank 0 sent")
    communication_share: Number | None = Field(
        default=None, description="part of an iteration spent waiting for others"
    )
    start_s: Number | None = Field(default=None, description="seconds to start")
    checkpoint_s: Number | None = Field(default=None, description="seconds from SIGTERM to the exit")
    restart_s: Number | None = Field(default=None, description="seconds to start again from the checkpoint")
    notes: list[Text] = Field(default_factory=list, description="what could not be measured")


def as_document(profile: Profile, command: Sequence[str], gpu: str) -> dict[str, Any]:
    """A profile as plain data; times to 5 significant digits."""
    document: dict[str, Any] = {"tradewind_profile": 1, "command": list(command)}
    if gpu:
        document["gpu"] = gpu
    for name, value in asdict(profile).items():
        if value is not None:
            document[name] = float(f"{value:.5g}") if isinstance(value, float) else value
    return document | {"notes": list(profile.notes)}


def save(path: Path, document: dict[str, Any]) -> None:
    """Write a profile as YAML or JSON."""
    documents.check_suffix(path)
    documents.write(path, documents.text_for(path, document))


def load(path: Path) -> ProfileFile:
    """Read a profile."""
    found = validated(ProfileFile, documents.read_version(path, "tradewind_profile", 1), str(path))
    for name in ("iteration_s", "iterations_per_hour", "checkpoint_s", "restart_s", "start_s"):
        value = getattr(found, name)
        if value is not None and (value < 0 or (value == 0 and name.startswith("iteration"))):
            raise InputError(f"{name} is {value:g}; it must be above 0", where=str(path))
    return found
