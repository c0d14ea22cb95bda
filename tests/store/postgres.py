"""A PostgreSQL server for the tests, run by an unprivileged user in a temporary directory and reached by a socket there."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import sqlalchemy as sql

USER, PASSWORD = "tester", "s3cret"
_numbers = count()


def _program(name: str) -> str:
    """A server program; Debian keeps them off the PATH."""
    found = shutil.which(name) or max(map(str, Path("/usr/lib/postgresql").glob(f"*/bin/{name}")), default="")
    assert found, f"{name} is missing: run tools/system-packages, or install the package postgresql"
    return found


class Server:
    """A running server."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._as: Mapping[str, Any] = {"user": "postgres", "group": "postgres"} if os.geteuid() == 0 else {}
        self._process: subprocess.Popen[bytes] | None = None

    def create(self) -> None:
        """Make the files of the server; its user logs in with a password."""
        if self._as:
            shutil.chown(self.folder, "postgres", "postgres")
        secret = self.folder / "password"
        secret.write_text(PASSWORD)
        options = ["--auth=scram-sha-256", f"--username={USER}", f"--pwfile={secret}", "--encoding=UTF8"]
        command = [_program("initdb"), "--no-sync", "--locale=C", *options, "-D", str(self.folder / "data")]
        done = subprocess.run(
            command, cwd=self.folder, capture_output=True, text=True, check=False, **self._as
        )
        assert done.returncode == 0, done.stderr

    def start(self) -> None:
        """Start it and wait until it answers."""
        settings = (
            "listen_addresses=",
            f"unix_socket_directories={self.folder}",
            "fsync=off",
            "max_connections=30",
        )
        command = [_program("postgres"), "-D", str(self.folder / "data")]
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                command + [word for each in settings for word in ("-c", each)],
                cwd=self.folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log, **self._as,
            )  # fmt: skip
        ready = [_program("pg_isready"), "-q", "-h", str(self.folder)]
        for _ in range(200):
            if subprocess.run(ready, check=False).returncode == 0:
                return
            assert self._process.poll() is None, (self.folder / "log").read_text()
            time.sleep(0.1)
        raise AssertionError("the server does not answer")

    def stop(self, number: int = signal.SIGINT) -> None:
        """Stop it, by default orderly; SIGQUIT is a crash."""
        if self._process is not None:
            self._process.send_signal(number)
            self._process.wait(30)
            self._process = None

    def url(self, database: str, password: str = PASSWORD) -> str:
        """The address of a database."""
        return f"postgresql://{USER}:{password}@/{database}?host={self.folder}"

    def database(self) -> str:
        """The address of a new, empty database."""
        name = f"store_{next(_numbers)}"
        alter(self.url("postgres"), f"create database {name}")
        return self.url(name)


@contextmanager
def server() -> Iterator[Server]:
    """A server that lives as long as the block."""
    folder = Path(tempfile.mkdtemp(prefix="tradewind-postgres-"))
    found = Server(folder)
    try:
        found.create()
        found.start()
        yield found
    finally:
        found.stop()
        shutil.rmtree(folder)


def alter(url: str, *statements: str) -> None:
    """Run SQL behind the store's back."""
    address = url.replace("postgresql://", "postgresql+psycopg://") if "://" in url else f"sqlite:///{url}"
    engine = sql.create_engine(address, poolclass=sql.NullPool, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        for statement in statements:
            connection.exec_driver_sql(statement.replace("%", "%%") if "postgresql" in address else statement)
