"""How gradients and parameters travel between ranks, over torch.distributed's gloo.

Workers of one site first add their gradients up at the site's leader (its lowest rank), so a site sends its gradient
once and receives parameters once, however many workers it has. Sums are made in the order of ranks: the same every time.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from contextlib import suppress
from datetime import timedelta
from typing import TYPE_CHECKING

import torch
import torch.distributed as dist
from torch import Tensor

if TYPE_CHECKING:  # the public names, where their types are written down
    from torch._C._distributed_c10d import Store, TCPStore
else:
    from torch.distributed import Store, TCPStore

GOODBYE_S = 10.0
MEETING_S = 120.0


def ring_numbers(ring: Sequence[int]) -> dict[int, int]:
    """Number of every rank within gloo, so that data flows from each peer to the next in the ring.

    gloo's ring passes blocks from r to r - 1, hence the order is turned round; the first stays 0.
    """
    n = len(ring)
    return {rank: (n - place) % n for place, rank in enumerate(ring)}


def join(
    *, number: int, world: int, master: tuple[str, int], interface: str, host: bool, timeout_s: float
) -> Store:
    """Meet the other ranks; `host` is the one at the master's address. The store stays usable for goodbyes.

    On a busy machine ranks start far apart, so they wait longer for each other to appear than for a peer that is silent.
    """
    os.environ["GLOO_SOCKET_IFNAME"] = interface
    patience, meeting = timedelta(seconds=timeout_s), timedelta(seconds=max(timeout_s, MEETING_S))
    store = TCPStore(master[0], master[1], world, host, timeout=meeting, wait_for_workers=False)
    if store.add("present", 1) == world:
        store.set("all present", "1")
    store.wait(["all present"], meeting)
    dist.init_process_group("gloo", store=store, rank=number, world_size=world, timeout=patience)
    return store


def part(store: Store, world: int, *, host: bool) -> None:
    """Leave together: a rank that closes its connections early could cut off what is still on its way to others."""
    with suppress(RuntimeError):  # somebody was killed meanwhile: nothing left to wait for
        if store.add("goodbye", 1) == world:
            store.set("all here", "1")
        store.wait(["all here"], timedelta(seconds=GOODBYE_S))
        limit = time.monotonic() + GOODBYE_S
        left = store.add("left", 0 if host else 1)
        while host and left < world - 1 and time.monotonic() < limit:  # the store is in this process
            time.sleep(0.005)
            left = store.add("left", 0)


class Site:
    """The workers of one site, seen from one of them: members and leader as numbers within gloo."""

    def __init__(self, me: int, members: Sequence[int]) -> None:
        self.me, self.leader = me, members[0]
        self.others = [m for m in members if m != self.leader]
        self.sent_bytes = 0

    @property
    def leads(self) -> bool:
        return self.me == self.leader

    def gather(self, values: Tensor) -> None:
        """At the leader `values` becomes the sum over the site; members send theirs."""
        if self.leads:
            add_from(self.others, values)
        else:
            self.sent_bytes += send(values, [self.leader])

    def spread(self, values: Tensor) -> None:
        """Everybody at the site gets the leader's values."""
        if self.leads:
            self.sent_bytes += send(values, self.others)
        else:
            receive(values, self.leader)


def send(values: Tensor, to: Sequence[int]) -> int:
    """Send to all at once; returns bytes sent."""
    for work in [dist.isend(values, peer) for peer in to]:
        if work is not None:
            work.wait()
    return values.numel() * values.element_size() * len(to)


def receive(values: Tensor, source: int) -> None:
    dist.recv(values, source)


def add_from(sources: Sequence[int], values: Tensor) -> None:
    """Receive from all at once, then add in the order given."""
    arrived = [torch.empty_like(values) for _ in sources]
    works = [dist.irecv(buffer, source) for buffer, source in zip(arrived, sources, strict=True)]
    for work, buffer in zip(works, arrived, strict=True):
        if work is not None:
            work.wait()
        values += buffer


class Ring:
    """All-reduce over the leaders of all sites, members served by their leader."""

    def __init__(self, site: Site, leaders: Sequence[int], world: int) -> None:
        self._site = site
        self._leaders = len(leaders)
        self._group = dist.new_group(sorted(leaders)) if 1 < len(leaders) < world else None
        self._around = 0

    @property
    def sent_bytes(self) -> int:
        """Around the ring and within the site."""
        return self._around + self._site.sent_bytes

    def sum(self, values: Tensor) -> None:
        """`values` becomes the sum over all workers, at all workers."""
        self._site.gather(values)
        if self._site.leads and self._leaders > 1:
            dist.all_reduce(values, group=self._group)
            n = self._leaders
            self._around += round(2 * (n - 1) / n * values.numel() * values.element_size())
        self._site.spread(values)
