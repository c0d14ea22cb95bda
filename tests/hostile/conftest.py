"""Directories that every user can reach."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def state() -> Iterator[Path]:
    """A state directory that does not exist, where users of jobs can reach it."""
    folder = Path(tempfile.mkdtemp(prefix="tradewind-hostile-"))
    folder.chmod(0o711)
    yield folder / "state"
    shutil.rmtree(folder, ignore_errors=True)
