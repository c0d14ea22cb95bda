"""Writing files so that a reader never meets half of one: write beside, flush to disk, rename."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tradewind.model.errors import InputError


def write_text(path: Path, text: str) -> None:
    """Writes UTF-8 text; `path` holds either what it held before or all of `text`."""
    write_bytes(path, text.encode())


def write_bytes(path: Path, data: bytes) -> None:
    """Writes bytes; `path` holds either what it held before or all of `data`."""
    with replacing(path) as temporary:
        temporary.write_bytes(data)


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Gives the name of a new file beside `path`, which takes its place when the block ends well."""
    with _understandable(path):
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".tmp", dir=path.parent)
        os.close(handle)
        temporary = Path(name)
        try:
            yield temporary
            _flush(temporary)
            temporary.chmod(0o666 & ~_umask())
            os.replace(temporary, path)
        finally:
            temporary.unlink(missing_ok=True)
        _flush(path.parent)


@contextmanager
def replacing_directory(path: Path) -> Iterator[Path]:
    """Gives a new empty directory beside `path`, which takes its place as a whole when the block ends well.

    A directory cannot be renamed over a full one, so an old one steps aside first; it comes back if the
    exchange fails.
    """
    with _understandable(path):
        temporary = Path(tempfile.mkdtemp(prefix=f".{path.name}.", suffix=".tmp", dir=path.parent))
        aside = temporary.with_suffix(".old")
        try:
            yield temporary
            for file in temporary.iterdir():
                _flush(file)
            temporary.chmod(0o777 & ~_umask())
            _exchange(temporary, path, aside)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)
        remove(aside)
        _flush(path.parent)


def _exchange(temporary: Path, path: Path, aside: Path) -> None:
    if path.is_symlink() or path.exists():
        os.rename(path, aside)
    try:
        os.rename(temporary, path)
    except BaseException:
        if aside.exists():
            os.rename(aside, path)
        raise


def remove(path: Path) -> None:
    """Removes a file or a directory, if it is there."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def _flush(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


@contextmanager
def _understandable(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        raise InputError(
            f"it cannot be written ({reason}). Choose another place, or create the folder first.",
            where=str(path),
        ) from error
