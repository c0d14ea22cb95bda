"""Places for stores: a file of SQLite, a database of PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.store.postgres import Server, server


@pytest.fixture(scope="session")
def postgres() -> Iterator[Server]:
    """A server for all tests of this process."""
    with server() as found:
        yield found


@pytest.fixture(params=["sqlite", "postgresql"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of a store that does not exist yet."""
    if request.param == "sqlite":
        return str(tmp_path / "store.db")
    found: Server = request.getfixturevalue("postgres")
    return found.database()
