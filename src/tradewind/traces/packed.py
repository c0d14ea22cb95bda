"""Compressed files that may be hostile: what unpacks to far more than tables do is refused before memory is used."""

from __future__ import annotations

import gzip
import io
from pathlib import Path
from typing import Any, Final

from tradewind.model.errors import InputError

FREE_BYTES: Final = 1 << 26
RATIO: Final = 100
"""A file may unpack to this many times its size, and FREE_BYTES: tables shrink to a fifth or a twentieth of their size."""


class Unpacked(io.RawIOBase):
    """The contents of a gzip file; InputError once they are too large."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._path, self._file = path, gzip.GzipFile(path)
        self._left = FREE_BYTES + RATIO * path.stat().st_size

    def readable(self) -> bool:
        """It is read only."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Read and count."""
        found = self._file.readinto(buffer)
        self._left -= found
        if self._left < 0:
            raise InputError(
                f"unpacks to more than {RATIO} times its size; unpack it yourself if that is meant",
                where=str(self._path),
            )
        return found

    def close(self) -> None:
        """Close the file, too."""
        self._file.close()
        super().close()


def unpacked(path: Path) -> bytes:
    """All contents of a gzip file."""
    with Unpacked(path) as file:
        return b"".join(iter(lambda: file.read(1 << 20), b""))
