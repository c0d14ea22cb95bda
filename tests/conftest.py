"""Settings of all tests."""

import os
from itertools import groupby

import pytest
from hypothesis import settings

settings.register_profile("tests", deadline=None)  # a busy machine is not a wrong result
settings.load_profile("tests")

CLUSTERS = ("test_kubernetes", "test_ray", "test_slurm")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The shares of workers begin with one cluster each: its tests mostly wait, and other workers use the time.

    xdist (worksteal) deals items in order, in equal parts, and a worker that is done takes from the end of another's part: a
    cluster is started once. Without workers the clusters come first.
    """
    ours = sorted((item for item in items if _cluster(item)), key=_cluster)
    clusters = [list(group) for _, group in groupby(ours, key=_cluster)]
    others = [item for item in items if not _cluster(item)]
    workers, left = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1")), len(items)
    items.clear()
    for number in range(workers):
        size = left // (workers - number)
        mine = [item for group in clusters[number::workers] for item in group]
        rest = max(0, size - len(mine))
        items += mine + others[:rest]
        del others[:rest]
        left -= size
    items += others


def _cluster(item: pytest.Item) -> str:
    """The cluster that a test runs on; empty: none."""
    return next((name for name in CLUSTERS if item.path.name.startswith(name)), "")
