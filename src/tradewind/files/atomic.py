"""Atomic file writes: write a temporary file in the same folder, flush it to disk, rename it."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tradewind.model.errors import InputError


def write_text(path: Path, text: str) -> None:
    """Write UTF-8 text atomically."""
    write_bytes(path, text.encode())


def write_bytes(path: Path, data: bytes) -> None:
    """Write bytes atomically: `path` keeps its old contents or gets all of `data`."""
    with replacing(path) as temporary:
        temporary.write_bytes(data)


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a temporary file that replaces `path` if the block succeeds."""
    with _as_input_error(path):
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
    """Yield a temporary directory that replaces `path` if the block succeeds.

    A directory cannot be renamed over one that is not empty, so the old one is moved away first and moved back on failure.
    """
    with _as_input_error(path):
        temporary = Path(tempfile.mkdtemp(prefix=f".{path.name}.", suffix=".tmp", dir=path.parent))
        old = temporary.with_suffix(".old")
        try:
            yield temporary
            for file in temporary.iterdir():
                _flush(file)
            temporary.chmod(0o777 & ~_umask())
            _exchange(temporary, path, old)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)
        remove(old)
        _flush(path.parent)


def _exchange(temporary: Path, path: Path, old: Path) -> None:
    if path.is_symlink() or path.exists():
        os.rename(path, old)
    try:
        os.rename(temporary, path)
    except BaseException:
        if old.exists():
            os.rename(old, path)
        raise


def remove(path: Path) -> None:
    """Remove a file or directory if it exists."""
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
def _as_input_error(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        raise InputError(
            f"cannot be written ({reason}); choose another location or create the folder first",
            where=str(path),
        ) from error
