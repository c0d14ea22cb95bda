"""How pods of ranks are made: a small file that TRADEWIND_KUBERNETES names."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import yaml

from tradewind.model.errors import InputError

VARIABLE = "TRADEWIND_KUBERNETES"
KINDS: Mapping[str, type | tuple[type, ...]] = {
    "str": str, "bool": bool, "int | None": int, "Sequence[str]": list, "Mapping[str, str]": dict,
    "Sequence[Mapping[str, Any]]": list,
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class PodOptions:
    """How pods of ranks are made.

    images           a job runs in the first one, or in that of them which its variable TRADEWIND_IMAGE names
    python           program of the images that runs starters, Python 3.9 or newer
    commands         what jobs may run: patterns for the first word of a command
    namespace        where pods are; empty: that of the context
    tenants          namespaces of tenants that have one of their own
    requests,limits  per rank, beside what its job demands
    gpu              what the cluster calls a GPU
    tolerations      as in a pod, for machines that are reserved
    node_selector    labels that a machine must have
    volumes          what pods see: {path, claim or host, read_only}; one of them has the runs' directory
    user             runs as this user; without it, as the image's
    scheduler        who binds pods to machines
    queue            kueue/NAME or volcano/NAME: gangs wait in this queue; empty: in none
    host_network     pods use the addresses of their machines
    """

    images: Sequence[str] = ("python:3.11",)
    python: str = "python3"
    commands: Sequence[str] = ("*",)
    namespace: str = ""
    tenants: Mapping[str, str] = field(default_factory=dict)
    requests: Mapping[str, str] = field(default_factory=dict)
    limits: Mapping[str, str] = field(default_factory=dict)
    gpu: str = "nvidia.com/gpu"
    tolerations: Sequence[Mapping[str, Any]] = ()
    node_selector: Mapping[str, str] = field(default_factory=dict)
    volumes: Sequence[Mapping[str, Any]] = ()
    user: int | None = None
    scheduler: str = "default-scheduler"
    queue: str = ""
    host_network: bool = False


def read_options() -> PodOptions:
    """The options of this process."""
    path = os.environ.get(VARIABLE, "")
    if not path:
        return PodOptions()
    try:
        document = yaml.safe_load(Path(path).read_text()) or {}
    except (OSError, yaml.YAMLError) as error:
        raise InputError(f"{VARIABLE} names a file that cannot be read: {error}", where=path) from None
    return options_from(document, path)


def options_from(document: Any, where: str) -> PodOptions:
    """Options from the values of a file."""
    known = {each.name: str(each.type) for each in fields(PodOptions)}
    if not isinstance(document, dict) or (unknown := sorted(set(document) - set(known))):
        found = ", ".join(unknown) if isinstance(document, dict) else type(document).__name__
        raise InputError(f"found {found}; allowed are {', '.join(known)}", where=where)
    for name, value in document.items():
        if not isinstance(value, KINDS[known[name]]):
            raise InputError(f"{name} is {value!r}; it must be a {known[name]}", where=where)
    if not document.get("images", ["-"]):
        raise InputError("images is empty; name at least one image", where=where)
    if (queue := document.get("queue")) and not re.fullmatch(r"(kueue|volcano)/[a-z0-9.-]+", queue):
        raise InputError(f"queue is {queue!r}; write kueue/NAME or volcano/NAME", where=where)
    for volume in document.get("volumes", ()):
        given = set(volume) if isinstance(volume, dict) else set()
        if (
            not given <= {"path", "claim", "host", "read_only"}
            or len(given & {"claim", "host"}) != 1
            or "path" not in given
        ):
            raise InputError(
                f"volumes has {volume!r}; write path, and either claim (of a PersistentVolumeClaim) or host (a directory of "
                "the machines), and read_only: true where nothing is written",
                where=where,
            )
    return PodOptions(**document)
