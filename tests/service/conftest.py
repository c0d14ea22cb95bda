"""One server with a queue for all tests of a process that do not stop it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.service.servers import QUEUE, Server, running


@pytest.fixture(scope="session")
def queue(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A service with a queue, started as from a shell."""
    folder: Path = tmp_path_factory.mktemp("queue")
    with running(folder, QUEUE, anew=True) as server:
        yield server
