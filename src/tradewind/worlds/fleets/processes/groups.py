"""Control groups for ranks, where they can be made: nothing leaves one, so everything in it can be counted and ended.

A rank is in a group of the unified hierarchy (which can be killed at once) and in one of the older `pids` hierarchy (which
bounds processes, and by that can be emptied too), as far as this machine has them and this user may make them. The
supervisor of the rank makes and removes them.
"""

from __future__ import annotations

import os
from pathlib import Path


def groups(name: str) -> list[str]:
    """Paths for groups of this name, inside those of this process."""
    own: dict[str, str] = {}
    found = []
    try:
        for line in Path("/proc/self/cgroup").read_text().splitlines():
            _, names, path = line.split(":", 2)
            own |= dict.fromkeys(names.split(","), path)
        mounts = Path("/proc/self/mountinfo").read_text().splitlines()
    except (OSError, ValueError):
        return []
    for line in mounts:
        fields, _, kind = line.partition(" - ")
        root, point = fields.split()[3:5]
        controller = {"cgroup2": "", "cgroup": "pids"}.get(kind.split()[0])
        if controller not in own or (controller and controller not in kind.split()[2].split(",")):
            continue
        inside = os.path.relpath(own[controller], root)
        parent = Path(point) / ("." if inside.startswith("..") else inside)
        if os.access(parent, os.W_OK):
            found.append(str(parent / name))
    return found
