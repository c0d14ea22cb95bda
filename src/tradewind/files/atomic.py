"""Atomic file writes: write a temporary file in the same folder, flush it to disk, rename it."""

from __future__ import annotations

import filecmp
import glob
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
def adding_directory(path: Path) -> Iterator[Path]:
    """Yield a temporary directory that becomes `path` if the block succeeds.

    A directory that is there with the same files stays, so that nothing that refers to it ever misses it.
    """
    with _as_input_error(path):
        path.parent.mkdir(exist_ok=True)
        temporary = Path(tempfile.mkdtemp(prefix=f".{path.name}.", suffix=".tmp", dir=path.parent))
        try:
            yield temporary
            for file in temporary.iterdir():
                _flush(file)
            temporary.chmod(0o777 & ~_umask())
            if not _equal(temporary, path):
                remove(path)  # damaged: what refers to it could not be read before either
                os.rename(temporary, path)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)
        _flush(path.parent)


def _equal(a: Path, b: Path) -> bool:
    """Whether two directories hold the same files."""
    if not b.is_dir() or b.is_symlink():
        return False
    names = sorted(file.name for file in a.iterdir())
    same = names == sorted(file.name for file in b.iterdir())
    return same and not any(filecmp.cmpfiles(a, b, names, shallow=False)[1:])


def remove_leftovers(path: Path) -> None:
    """Remove what interrupted writes of a file left beside it."""
    for file in path.parent.glob(f".{glob.escape(path.name)}.*.tmp"):
        remove(file)


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
