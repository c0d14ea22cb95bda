"""Carries the data of jobs over the links of a testbed, by the transport of the scenario.

cut-through                  one TCP connection per file, between addresses of the job's own
store-and-forward, chunks:K  a connection per link; relays at the sites between receive all of a file, or each of K parts
                             of it, before they send it on

Data takes the path with the fewest hops among sites where the job's data may be: no other site forwards it.
"""

from __future__ import annotations

import ctypes
import os
import socket
import threading
from collections import deque
from collections.abc import Callable, Collection, Sequence
from contextlib import ExitStack, suppress
from functools import partial
from itertools import pairwise
from queue import SimpleQueue
from typing import BinaryIO

from tradewind.model.job import Job
from tradewind.model.setup import Setup
from tradewind.worlds.data.carriers import Take, copy
from tradewind.worlds.testbed.network import INTERFACE, NETNS, Testbed, batch
from tradewind.worlds.testbed.relays import cut
from tradewind.worlds.testbed.routes import SiteFinder, address_in
from tradewind.worlds.testbed.wan import Path, Wan

DATA_NET = 128
"""Addresses of data are in 10.128.0.0/10."""
SILENT_S = 30.0
"""A transfer without progress for this time is begun again."""
CLONE_NEWNET = 0x40000000


class Lanes:
    """Transfers over a testbed; it may be used by several threads."""

    instead = ""

    def __init__(self, bed: Testbed, setup: Setup) -> None:
        self._bed, self._setup, self._sites = bed, setup, SiteFinder(bed, setup)
        kind, _, chunks = setup.transport.partition(":")
        self._chunks = 0 if kind == "cut-through" else int(chunks or 1)  # into which relays divide a file
        self._lock = threading.Lock()
        self._ways: dict[
            int, dict[tuple[int, int], list[tuple[int, str]]]
        ] = {}  # job -> ends -> (site, what was added)

    @property
    def has_all_sites(self) -> bool:
        """Whether every node that can have data is at a site of the testbed."""
        return all(self._sites.find(node) is not None for node in self._setup.hosts)

    def carry(self, job: Job, ends: tuple[int, int], source: BinaryIO, size: int, take: Take) -> None:
        """Send the next `size` bytes of a file from one node to another, where `take` gets them in order."""
        a, b = (self._sites.find(node) for node in ends)
        assert a is not None
        assert b is not None
        if a == b:
            return copy(source.read, size, take)
        path = self._path(job, (a, b))
        with ExitStack() as stack:
            wires = [stack.enter_context(_Wire(*each)) for each in self._hops(job, path)]
            parts = cut(size, self._chunks)
            tasks = [partial(_send, source, size, wires[0])]
            tasks += [partial(_relay, one, two, parts) for one, two in pairwise(wires)]
            threads = [threading.Thread(target=_until_error, args=(task,), daemon=True) for task in tasks]
            for thread in threads:
                thread.start()
            try:
                copy(wires[-1].receiver.recv, size, take)
            finally:
                for wire in wires:
                    wire.cut()
                for thread in threads:
                    thread.join()
        return None

    def _path(self, job: Job, ends: tuple[int, int]) -> Path:
        path = way(self._bed.wan, *ends, self._allowed(job, ends))
        if path is None:
            raise OSError(0, "every path crosses a site where its data may not be")
        return path

    def _hops(self, job: Job, path: Path) -> list[tuple[str, str, str, str]]:
        """Namespace and address of both ends of every connection: one along the path, or one for each of its links."""
        bed = self._bed
        if self._chunks and len(path) > 2:
            return [
                (bed.namespace(a), bed.address(a), bed.namespace(b), bed.address(b))
                for a, b in pairwise(path)
            ]
        ends = path[0], path[-1]
        self._join(job, ends)
        a, b = ((bed.namespace(site), address_in(DATA_NET, job.index, site)) for site in ends)
        return [(*a, *b)]

    def forget(self, job: Job) -> None:
        """Remove a job's addresses and routes."""
        with self._lock:
            added = {each for ways in self._ways.pop(job.index, {}).values() for each in ways}
        for site, what in sorted(added, reverse=True):
            batch(["ip"], self._bed.namespace(site), [what.replace(" add ", " del ", 1)], check=False)

    def _join(self, job: Job, ends: tuple[int, int]) -> None:
        """Give a job addresses at two sites, and ways there and back."""
        with self._lock:
            known = self._ways.setdefault(job.index, {})
            if ends in known:
                return
            added = [(site, f"addr add {address_in(DATA_NET, job.index, site)}/32 dev lo") for site in ends]
            for start, goal in (ends, ends[::-1]):
                to = address_in(DATA_NET, job.index, goal)
                added += [
                    (
                        here,
                        f"route add {to} via {self._bed.address(near)} dev {INTERFACE} onlink congctl cubic",
                    )
                    for here, near in pairwise(self._path(job, (start, goal)))
                ]
            for site, line in added:
                again = line.replace(" add ", " replace ", 1)
                batch(["ip"], self._bed.namespace(site), [again])
            known[ends] = added

    def _allowed(self, job: Job, ends: tuple[int, int]) -> frozenset[int]:
        """Sites that may see a job's data: its own, the ends, and whatever is no site of the scenario, such as switches."""
        setup, every = self._setup, range(len(self._bed.wan.sites))
        if job.data_nodes is None:
            return frozenset(every)
        may = {self._sites.find(node) for node in job.data_nodes}
        sites = {self._sites.find(node) for node, each in enumerate(setup.nodes) if each.kind != "switch"}
        return frozenset(site for site in every if site in may or site in ends or site not in sites)


def way(wan: Wan, start: int, goal: int, allowed: Collection[int]) -> Path | None:
    """The path with the fewest hops among allowed sites, on ties over the lowest numbers; None if there is none."""
    near: dict[int, list[int]] = {}
    for a, b in sorted(wan.rates()):
        near.setdefault(a, []).append(b)
    after, queue = {goal: goal}, deque([goal])
    while queue:
        at = queue.popleft()
        for other in near.get(at, ()):
            if other in allowed and other not in after:
                after[other] = at
                if other != start:  # it sends its own data, and forwards nothing
                    queue.append(other)
    if start not in after:
        return None
    path = [start]
    while path[-1] != goal:
        path.append(after[path[-1]])
    return tuple(path)


def _socket_in(namespace: str) -> socket.socket:
    """A TCP socket in a network namespace: made by a thread that enters it, and ends there."""
    found: list[socket.socket | OSError] = []

    def make() -> None:
        try:
            handle = os.open(NETNS / namespace, os.O_RDONLY)
            try:
                if ctypes.CDLL(None, use_errno=True).setns(handle, CLONE_NEWNET):
                    raise OSError(ctypes.get_errno(), f"cannot enter network namespace {namespace}")
                found.append(socket.socket())
            finally:
                os.close(handle)
        except OSError as error:
            found.append(error)

    thread = threading.Thread(target=make)
    thread.start()
    thread.join()
    if isinstance(found[0], OSError):
        raise found[0]
    found[0].settimeout(SILENT_S)
    return found[0]


class _Wire:
    """A TCP connection between two namespaces."""

    def __init__(self, here: str, source: str, there: str, goal: str) -> None:
        with _socket_in(there) as listener:
            listener.bind((goal, 0))
            listener.listen()
            self.sender = _socket_in(here)
            self.sender.bind((source, 0))
            self.sender.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.sender.connect(listener.getsockname())
            self.receiver = _accept(listener, self.sender.getsockname())

    def __enter__(self) -> _Wire:
        return self

    def __exit__(self, *_: object) -> None:
        self.sender.close()
        self.receiver.close()

    def cut(self) -> None:
        """End it; whoever waits for it goes on."""
        for each in (self.sender, self.receiver):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)


def _accept(listener: socket.socket, sender: tuple[str, int]) -> socket.socket:
    """The connection of the sender; others are closed."""
    while True:
        peer, address = listener.accept()
        if address == sender:
            peer.settimeout(SILENT_S)
            return peer
        peer.close()


def _until_error(task: Callable[[], object]) -> None:
    """Do something; where a connection ends too early, whoever receives at its end notices."""
    with suppress(OSError):
        task()


def _send(source: BinaryIO, size: int, wire: _Wire) -> None:
    try:
        copy(source.read, size, wire.sender.sendall)
    finally:
        wire.sender.shutdown(socket.SHUT_WR)


def _relay(before: _Wire, after: _Wire, parts: Sequence[int]) -> None:
    """Receive each part completely before it is sent on, while the next one arrives."""
    stored: SimpleQueue[bytes | None] = SimpleQueue()

    def receive() -> None:
        try:
            for size in parts:
                data = bytearray()
                copy(before.receiver.recv, size, data.extend)
                stored.put(bytes(data))
        finally:
            stored.put(None)

    receiving = threading.Thread(target=_until_error, args=(receive,), daemon=True)
    receiving.start()
    try:
        while (data := stored.get()) is not None:
            after.sender.sendall(data)
    finally:
        after.sender.shutdown(socket.SHUT_WR)
        receiving.join()
