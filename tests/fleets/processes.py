"""Processes of this machine, for tests that end or stop them."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Iterator
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple


class Program(NamedTuple):
    """A starter or supervisor: its process, its name, and the site and control directory of its rank."""

    pid: int
    name: str
    site: str
    control: Path


def descendants(pid: int) -> list[int]:
    """All processes below one."""
    found = []
    with suppress(OSError):
        for thread in os.listdir(f"/proc/{pid}/task"):
            for child in Path(f"/proc/{pid}/task/{thread}/children").read_text().split():
                found += [int(child), *descendants(int(child))]
    return found


def programs(state: Path) -> Iterator[Program]:
    """Starters and supervisors of the runs below a directory, whoever started them."""
    for entry in os.listdir("/proc"):
        if entry.isdecimal():
            with suppress(OSError, ValueError):
                words = Path(f"/proc/{entry}/cmdline").read_text().split("\0")
                for word, control in pairwise(words):
                    if word.endswith(("/starter.py", "/supervisor.py")) and control.startswith(f"{state}/"):
                        spec = json.loads((Path(control) / "spec.json").read_text())
                        site = spec["env"]["TRADEWIND_SITE"]
                        yield Program(int(entry), Path(word).stem, site, Path(control))


def at_site(state: Path, site: str) -> list[int]:
    """Processes of all ranks at a site, with their starters and supervisors."""
    found = [each.pid for each in programs(state) if each.site == site]
    return [*found, *(below for pid in found for below in descendants(pid))]


def with_files_in(folder: Path) -> list[int]:
    """Processes that have a file below a directory open."""
    found = []
    for entry in os.listdir("/proc"):
        if entry.isdecimal() and int(entry) != os.getpid():
            with suppress(OSError):
                links = [os.readlink(each) for each in Path(f"/proc/{entry}/fd").iterdir()]
                if any(link.startswith(f"{folder}/") for link in links):
                    found.append(int(entry))
    return found


def send(pids: list[int], number: int) -> None:
    """Signal processes that may have ended."""
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, number)


def free_ports(count: int) -> list[int]:
    """Ports that nobody listens on."""
    sockets = [socket.socket() for _ in range(count)]
    for each in sockets:
        each.bind(("127.0.0.1", 0))
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports
