"""One Ray cluster for all tests that need one, and folders that users of jobs can reach."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fleets.ray_cluster import RayCluster

pytest.register_assert_rewrite(*(f"tests.fleets.{name}" for name in ("hostile_on", "live_on", "storm")))


@pytest.fixture(scope="session")
def ray_cluster() -> Iterator[RayCluster]:
    made = RayCluster(("a1", "b1"))
    try:
        made.start()
        yield made
    finally:
        made.stop()


@pytest.fixture
def open_folder() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="tradewind-fleet-"))
    folder.chmod(0o711)
    yield folder
    shutil.rmtree(folder, ignore_errors=True)
