"""One Ray cluster for all tests that need one, and folders that users of jobs can reach."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fleets.ray_cluster import RayCluster

pytest.register_assert_rewrite(*(f"tests.fleets.{name}" for name in ("hostile_on", "live_on", "storm")))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests on Ray race with its heartbeats: one that fails is tried once more, and the summary names it."""
    for item in items:
        if item.path == Path(__file__).with_name("test_ray.py"):
            item.add_marker(pytest.mark.flaky(reruns=1))


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
