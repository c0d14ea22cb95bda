"""Backups of a data directory while it is used: the store, as of one instant, and the keys beside it, in one file."""

from __future__ import annotations

import sqlite3
import tarfile
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

from tradewind.model.errors import InputError
from tradewind.store.database import FILE
from tradewind.store.store import Store

SECRETS = ("seal.key", "admin.token")
"""Files beside the store that belong to it."""


def backup(data: Path, output: Path) -> int:
    """Write a backup; return the number of records in it. Services and runs go on meanwhile."""
    store = data / FILE
    if not store.is_file():
        raise InputError(
            f"there is no {FILE}; name the data directory of a service or live run. A PostgreSQL store is backed up with "
            "pg_dump; keep seal.key with it",
            where=str(data),
        )
    with TemporaryDirectory(dir=output.resolve().parent) as folder:
        copy = Path(folder) / FILE
        with closing(sqlite3.connect(store)) as source, closing(sqlite3.connect(copy)) as target:
            source.backup(target)
        with Store.open(copy) as opened:
            records = opened.verify().number
        temporary = Path(folder) / "backup.tar"
        with tarfile.open(temporary, "w") as archive:
            archive.add(copy, FILE)
            for name in SECRETS:
                if (data / name).is_file():
                    archive.add(data / name, name)
        temporary.chmod(0o600)
        temporary.replace(output)
    return records


def restore(archive: Path, data: Path) -> int:
    """Make a data directory of a backup; return the number of records in it."""
    if data.exists() and any(data.iterdir()):
        raise InputError("is not empty; restore into a new directory", where=str(data))
    try:
        with tarfile.open(archive) as opened:
            names = opened.getnames()
            if FILE not in names or set(names) - {FILE, *SECRETS}:
                raise InputError("is no backup of a store", where=str(archive))
            data.mkdir(parents=True, exist_ok=True)
            opened.extractall(data, filter="data")
    except (tarfile.TarError, OSError) as error:
        raise InputError(f"cannot be read: {error}", where=str(archive)) from None
    for name in SECRETS:
        if (data / name).exists():
            (data / name).chmod(0o600)
    with Store.open(data) as store:
        return store.verify().number
