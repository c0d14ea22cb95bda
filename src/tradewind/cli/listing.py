"""Policies and workloads as plain data for listings.

Specs stand beside the code of their policies, so listing them imports every system with its numerical libraries (a second).
What is listed of our own is therefore kept on disk, under a name that changes with any file of the package. Plug-ins are
always asked.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Any

import tradewind

if TYPE_CHECKING:
    from tradewind.model.spec import Param, Spec
    from tradewind.model.workload import Workload

Row = dict[str, Any]
PACKAGE = Path(tradewind.__file__).parent


def policy_rows() -> list[Row]:
    """All policies by name."""
    return _rows("policies", _all_policies)


def workload_rows() -> list[Row]:
    """All workloads by name."""
    return _rows("workloads", _all_workloads)


def broken_plug_ins() -> Mapping[str, str]:
    """Plug-in -> why it could not be used, of those that were listed."""
    if not _has_plug_ins():
        return {}
    from tradewind.registry import broken

    return broken()


def _all_policies() -> list[Row]:
    from tradewind import registry

    return [policy_row(spec) for spec in registry.policies.all()]


def _all_workloads() -> list[Row]:
    from tradewind import registry

    return [workload_row(each) for each in registry.workloads.all()]


def _rows(kind: str, compute: Callable[[], list[Row]]) -> list[Row]:
    if _has_plug_ins():
        return compute()
    kept = PACKAGE / "__pycache__" / f"listing-{kind}-{_stamp()}.json"
    try:
        found: list[Row] = json.loads(kept.read_text(encoding="utf-8"))
        return found
    except (OSError, ValueError):
        pass
    rows = compute()
    _keep(kept, json.dumps(rows))
    return rows


@cache
def _has_plug_ins() -> bool:
    """Whether another package registers anything that could be listed."""
    points = entry_points()
    groups = ("systems", "policies", "workloads")
    return any(
        point.dist is None or point.dist.name != "tradewind"
        for group in groups
        for point in points.select(group=f"tradewind.{group}")
    )


def _stamp() -> str:
    """16 hex digits over the paths, sizes and times of the package's files."""
    found = hashlib.sha256()
    for path, status in sorted(_files(str(PACKAGE))):
        found.update(f"{path} {status.st_size} {status.st_mtime_ns}\n".encode())
    return found.hexdigest()[:16]


def _files(folder: str) -> Iterator[tuple[str, os.stat_result]]:
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                if entry.name != "__pycache__":
                    yield from _files(entry.path)
            elif entry.name.endswith(".py"):
                yield entry.path, entry.stat()


def _keep(file: Path, text: str) -> None:
    """Write the listing and remove those of older code; a package that cannot be written has none."""
    made = file.with_suffix(f".{os.getpid()}")
    try:
        file.parent.mkdir(exist_ok=True)
        made.write_text(text, encoding="utf-8")
        made.replace(file)
        for old in file.parent.glob(f"{file.name.rpartition('-')[0]}-*.json"):
            if old != file:
                old.unlink(missing_ok=True)
    except OSError:
        return


def policy_row(spec: Spec) -> Row:
    """A policy as plain data."""
    return {
        "name": spec.name,
        "summary": spec.summary,
        "system": spec.system,
        "works": sorted(spec.works),
        "architectures": sorted(spec.architectures),
        "objectives": sorted(spec.objectives),
        "needs": sorted(spec.needs),
        "pricer": spec.pricer,
        "online": spec.online,
        "params": _params(spec.params),
    }


def workload_row(workload: Workload) -> Row:
    """A workload as plain data."""
    return {"name": workload.name, "summary": workload.summary, "params": _params(workload.params)}


def _params(params: Mapping[str, Param]) -> Row:
    return {
        name: {
            "default": param.default,
            "doc": param.doc,
            **({"choices": list(param.choices)} if param.choices else {}),
            **({"allowed": param.range} if param.range else {}),
        }
        for name, param in params.items()
    }
