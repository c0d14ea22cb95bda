"""Users of jobs, where the control loop is root: each job has one of its own, however many jobs there are."""

from __future__ import annotations

from pathlib import Path
from typing import Final

FIRST_UID: Final = 61_184
USERS: Final = 4000
"""The first users of jobs: those that every system leaves free below 65,536."""
LATER_UID: Final = 2_010_000_000
LATER_USERS: Final = 130_000_000
"""The users of later jobs: above those of isolated policies, below 2^31."""


def later_uid(maps: Path = Path("/proc/self")) -> int | None:
    """The first user of later jobs; None in a namespace that does not have them, such as one with 65,536 users."""
    return LATER_UID if all(_has_them(maps / f"{kind}_map") for kind in ("uid", "gid")) else None


def _has_them(path: Path) -> bool:
    rows = (tuple(map(int, line.split())) for line in path.read_text().splitlines())
    return any(first <= LATER_UID and first + count >= LATER_UID + LATER_USERS for first, _, count in rows)
