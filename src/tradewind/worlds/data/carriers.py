"""How bytes get from site to site: copied between directories; `worlds.testbed.lanes` sends them over links."""

from __future__ import annotations

from collections.abc import Callable
from typing import BinaryIO, Protocol

from tradewind.model.job import Job

PORTION = 1 << 16
Read = Callable[[int], bytes]
"""The next bytes, at most so many; none at the end."""
Take = Callable[[bytes], object]
"""Gets the next bytes."""


class Carrier(Protocol):
    """Carries bytes between sites.

    instead  what happens instead of transfers over links, for the run file; empty where nothing does
    """

    instead: str

    def carry(self, job: Job, ends: tuple[int, int], source: BinaryIO, size: int, take: Take) -> None:
        """Bring the next `size` bytes of a file from one node to another, where `take` gets them in order."""

    def forget(self, job: Job) -> None:
        """Remove what was made for a job that is over."""


def copy(read: Read, size: int, take: Take) -> None:
    """Hand over the next `size` bytes."""
    while size > 0:
        data = read(min(size, PORTION))
        if not data:
            raise OSError(0, "the data ended too early")
        take(data)
        size -= len(data)


class Copier:
    """Copies between directories of one machine, or of a file system that all machines share."""

    instead = (
        "data was copied between directories of sites, over no link: its times say nothing about a network"
    )

    def carry(self, job: Job, ends: tuple[int, int], source: BinaryIO, size: int, take: Take) -> None:
        """Copy."""
        copy(source.read, size, take)

    def forget(self, job: Job) -> None:
        """Nothing is left of a copy."""
