"""Directories of data: one per site, and in it one per job.

    data/SITE              only ranks at the site may pass (its group, where jobs are users of their own)
    data/SITE/JOB          only the job may read (its group); it may not write
        manifest.json      what is there, replaced as a whole
        shards             files that are complete
        store, incoming    data that is stored here, and files on their way; for the loop alone

A rank has the group of its site and that of its job, so it can read what its site holds for its job, and nothing else.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Collection
from pathlib import Path

from tradewind.model.setup import Setup

MANIFEST = "manifest.json"


class DataFolders:
    """The directories below `state`.

    first_uid  first of the users of jobs; the numbers below it are the groups of sites. None: jobs have no users
    """

    def __init__(self, state: Path, setup: Setup, first_uid: int | None) -> None:
        self._root, self._nodes, self._first_uid = state / "data", setup.nodes, first_uid

    def site(self, node: int) -> Path:
        """Directory of a site."""
        return self._root / f"{node:04d}-{re.sub(r'[^A-Za-z0-9._-]', '_', self._nodes[node].name)[:60]}"

    def group(self, node: int) -> int | None:
        """Group of the ranks at a site; None where jobs have no users of their own."""
        return None if self._first_uid is None else self._first_uid - 1 - node

    def keep(self, jobs: Collection[str]) -> None:
        """Remove the directories of all jobs but these."""
        for each in self._root.glob("*/*"):
            if each.name not in jobs:
                shutil.rmtree(each, ignore_errors=True)

    def make(self, job: str, uid: int | None, node: int) -> Path:
        """Make the directories of a job at a site."""
        site = self.site(node)
        home = site / job
        self._root.mkdir(exist_ok=True)
        self._root.chmod(0o711)
        for path, mode, group in (
            (site, 0o710, self.group(node)), (home, 0o750, uid), (home / "shards", 0o750, uid),
            (home / "store", 0o700, None), (home / "incoming", 0o700, None),
        ):  # fmt: skip
            path.mkdir(exist_ok=True, mode=0o700)
            own(path, mode, group)
        return home


def own(path: Path, mode: int, group: int | None) -> None:
    """Set mode and group; without a group only the loop's own user has access."""
    if group is None:
        path.chmod(mode & 0o700)
    else:
        os.chown(path, -1, group)
        path.chmod(mode)


def put(path: Path, text: str, group: int | None) -> None:
    """Replace a file that the job may read; whoever reads it sees all of the old or all of the new text."""
    temporary = path.with_name(f".{path.name}.new")
    temporary.write_text(text)
    own(temporary, 0o640, group)
    temporary.replace(path)
