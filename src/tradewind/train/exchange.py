"""Exchanges gradients and parameters between ranks, over gloo of torch.distributed.

Workers of a site first sum their gradients at the site's leader (its lowest rank), so a site sends one gradient and
receives parameters once, whatever its number of workers. Sums follow the order of ranks, so they are reproducible.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from datetime import timedelta
from typing import TYPE_CHECKING

import torch
import torch.distributed as dist
from torch import Tensor

if TYPE_CHECKING:  # where the types of the public names are declared
    from torch._C._distributed_c10d import Store, TCPStore
else:
    from torch.distributed import Store, TCPStore

LEAVE_TIMEOUT_S = 10.0
JOIN_TIMEOUT_S = 120.0


def ring_numbers(ring: Sequence[int]) -> dict[int, int]:
    """gloo rank of every rank, such that data flows from each rank to the next in the ring.

    gloo's ring passes blocks from r to r - 1, so the order is reversed; the first rank stays 0.
    """
    n = len(ring)
    return {rank: (n - place) % n for place, rank in enumerate(ring)}


def join(
    *, number: int, world: int, master: tuple[str, int], interface: str, host: bool, timeout_s: float
) -> Store:
    """Join the process group; `host` is the rank at the master's address. Return the store, which `leave` needs.

    On a busy machine ranks start at different times, so they wait longer for all to join than for a silent peer.
    """
    os.environ["GLOO_SOCKET_IFNAME"] = interface
    timeout, join_timeout = timedelta(seconds=timeout_s), timedelta(seconds=max(timeout_s, JOIN_TIMEOUT_S))
    store = TCPStore(master[0], master[1], world, host, timeout=join_timeout, wait_for_workers=False)
    if store.add("present", 1) == world:
        store.set("all present", "1")
    store.wait(["all present"], join_timeout)
    dist.init_process_group("gloo", store=store, rank=number, world_size=world, timeout=timeout)
    return store


def leave(store: Store, world: int, *, host: bool) -> None:
    """Leave the group together: a rank that disconnects early could cut off data that is still in flight."""
    with suppress(RuntimeError):  # a rank was killed: nothing left to wait for
        if store.add("goodbye", 1) == world:
            store.set("all here", "1")
        store.wait(["all here"], timedelta(seconds=LEAVE_TIMEOUT_S))
        limit = time.monotonic() + LEAVE_TIMEOUT_S
        left = store.add("left", 0 if host else 1)
        while host and left < world - 1 and time.monotonic() < limit:  # the store is in this process
            time.sleep(0.005)
            left = store.add("left", 0)


class Site:
    """The workers of a site, as seen by one of them; `me` and `members` are gloo ranks, the first member leads."""

    def __init__(self, me: int, members: Sequence[int]) -> None:
        self.me, self.leader = me, members[0]
        self.others = [m for m in members if m != self.leader]
        self.sent_bytes = 0

    @property
    def leads(self) -> bool:
        """Whether this worker is the site's leader."""
        return self.me == self.leader

    def reduce(self, values: Tensor) -> None:
        """Sum `values` over the site, at the leader."""
        if self.leads:
            add_from(self.others, values)
        else:
            self.sent_bytes += send(values, [self.leader])

    def broadcast(self, values: Tensor) -> None:
        """Copy the leader's values to all workers of the site."""
        if self.leads:
            self.sent_bytes += send(values, self.others)
        else:
            receive(values, self.leader)


def send(values: Tensor, to: Sequence[int]) -> int:
    """Send to all peers concurrently; return the bytes sent."""
    return send_all([(values, peer) for peer in to])


def send_all(messages: Sequence[tuple[Tensor, int]]) -> int:
    """Send (values, peer) pairs concurrently; return the bytes sent."""
    _wait(dist.isend(values, peer) for values, peer in messages)
    return sum(values.numel() * values.element_size() for values, _ in messages)


def receive_all(messages: Sequence[tuple[Tensor, int]]) -> None:
    """Receive (values, peer) pairs concurrently."""
    _wait(dist.irecv(values, peer) for values, peer in messages)


def _wait(begun: Iterable[dist.Work | None]) -> None:
    for work in list(begun):
        if work is not None:
            work.wait()


def receive(values: Tensor, source: int) -> None:
    """Receive into `values`."""
    dist.recv(values, source)


def add_from(sources: Sequence[int], values: Tensor) -> None:
    """Receive from all sources concurrently, then add to `values` in the given order."""
    arrived = [torch.empty_like(values) for _ in sources]
    receive_all(list(zip(arrived, sources, strict=True)))
    for buffer in arrived:
        values += buffer


class Ring:
    """All-reduce over all workers: within each site by its leader, between leaders in a ring."""

    def __init__(self, site: Site, leaders: Sequence[int], world: int) -> None:
        self._site = site
        self._leaders = len(leaders)
        self._group = dist.new_group(sorted(leaders)) if 1 < len(leaders) < world else None
        self._ring_bytes = 0
        self._seconds = 0.0

    @property
    def leads(self) -> bool:
        """Whether this worker is its site's leader."""
        return self._site.leads

    def take_seconds(self) -> float:
        """Seconds spent in sums since the last call."""
        seconds, self._seconds = self._seconds, 0.0
        return seconds

    @property
    def sent_bytes(self) -> int:
        """Bytes sent around the ring and within the site."""
        return self._ring_bytes + self._site.sent_bytes

    def sum(self, values: Tensor) -> None:
        """Sum `values` over all workers, at all workers."""
        began = time.perf_counter()
        self._site.reduce(values)
        if self._site.leads and self._leaders > 1:
            dist.all_reduce(values, group=self._group)
            n = self._leaders
            self._ring_bytes += round(2 * (n - 1) / n * values.numel() * values.element_size())
        self._site.broadcast(values)
        self._seconds += time.perf_counter() - began
