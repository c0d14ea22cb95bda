"""One slot of ring jobs as arrays: servers in racks under a core, jobs with gains by ring size.

A ring that visits every chosen server once, rack by rack, crosses each visited server's link once in each direction
and, where it spans several racks, each visited rack's trunk once in each direction; on one server it crosses none. So a
link is one number, the smaller of its two directions, and a ring is a set of (server, workers) pairs. This is the
constraint that the paper's (7)-(9) intend: (8) bounds paths, not links, and (9) admits two cycles.

The types are NamedTuples because compiled kernels take them as they are.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tradewind.model.arrays import Bytes, Floats, Ints


class Capacity(NamedTuple):
    """What S servers sorted by rack, their links and the trunks of G racks have to give.

    room   (S, R) amount of every resource on every server
    link   (S,) bit/s of the server's link in the worse direction
    first  (G + 1,) servers of rack g are first[g] … first[g + 1] - 1
    trunk  (G,) bit/s of the rack's trunk in the worse direction
    """

    room: Ints
    link: Ints
    first: Ints
    trunk: Ints


class Slot(NamedTuple):
    """Capacity of a slot, and I jobs with rings of at most N workers.

    room, link, first, trunk  as in `Capacity`
    need   (I, R) amounts of one worker
    band   (I,) bit/s reserved on every hop: b
    gain   (I, N + 1) worth of k workers, gain[:, 0] = 0; -inf for sizes that are not allowed
    open   (I, S) 1 where the job may run; empty where all jobs may run everywhere
    """

    room: Ints
    link: Ints
    first: Ints
    trunk: Ints
    need: Ints
    band: Ints
    gain: Floats
    open: Bytes

    @property
    def jobs(self) -> int:
        """Number of jobs I."""
        return int(self.need.shape[0])

    @property
    def servers(self) -> int:
        """Number of servers S."""
        return int(self.room.shape[0])

    @property
    def widest(self) -> int:
        """Largest ring N."""
        return int(self.gain.shape[1]) - 1

    @property
    def rack(self) -> Ints:
        """(S,) rack of every server."""
        return np.repeat(np.arange(len(self.trunk)), np.diff(self.first))


class SlotPrices(NamedTuple):
    """Price of a worker's resources, a server's link and a rack's trunk; all >= 0.

    room (S, R) per amount; link (S,) and trunk (G,) per bit/s
    """

    room: Floats
    link: Floats
    trunk: Floats


class Rings(NamedTuple):
    """One ring per job (none where size is 0), visited in the order given: rack by rack.

    server (I, N) -1 where unused; workers (I, N); size (I,) workers in all
    """

    server: Ints
    workers: Ints
    size: Ints


def make_slot(
    *, room: Ints, link: Ints, first: Ints, trunk: Ints, need: Ints, band: Ints, gain: Floats,
    open: Bytes | None = None,
) -> Slot:  # fmt: skip
    """Build a slot from arrays of any number type."""
    return Slot(
        room=np.ascontiguousarray(room, np.int64),
        link=np.ascontiguousarray(link, np.int64),
        first=np.ascontiguousarray(first, np.int64),
        trunk=np.ascontiguousarray(trunk, np.int64),
        need=np.ascontiguousarray(need, np.int64),
        band=np.ascontiguousarray(band, np.int64),
        gain=np.ascontiguousarray(gain, np.float64),
        open=np.ones((0, 0), np.int8) if open is None else np.ascontiguousarray(open, np.int8),
    )


def no_prices(slot: Slot) -> SlotPrices:
    """All prices 0."""
    return SlotPrices(np.zeros(slot.room.shape), np.zeros(slot.servers), np.zeros(len(slot.trunk)))


def no_rings(slot: Slot) -> Rings:
    """No job has a ring."""
    shape = (slot.jobs, max(slot.widest, 1))
    return Rings(
        server=np.full(shape, -1, np.int64),
        workers=np.zeros(shape, np.int64),
        size=np.zeros(slot.jobs, np.int64),
    )


def worth(slot: Slot, rings: Rings) -> float:
    """Sum of the gains of the rings."""
    return float(slot.gain[np.arange(slot.jobs), rings.size].sum())


def use(slot: Slot, rings: Rings) -> tuple[Ints, Ints, Ints]:
    """Capacity that the rings use: (S, R) amounts, (S,) and (G,) bit/s."""
    room, link, trunk = np.zeros_like(slot.room), np.zeros_like(slot.link), np.zeros_like(slot.trunk)
    rack = slot.rack
    for i in range(slot.jobs):
        here = np.flatnonzero(rings.server[i] >= 0)
        servers = rings.server[i, here]
        np.add.at(room, servers, rings.workers[i, here][:, None] * slot.need[i])
        if len(servers) > 1:
            np.add.at(link, servers, slot.band[i])
            racks = np.unique(rack[servers])
            if len(racks) > 1:
                trunk[racks] += slot.band[i]
    return room, link, trunk


def excess(slot: Slot, rings: Rings) -> tuple[float, float]:
    """Largest use / capacity of servers, and of links and trunks: at most 1 where the rings fit; inf where capacity is 0."""
    room, link, trunk = use(slot, rings)
    return _ratio(room, slot.room), max(_ratio(link, slot.link), _ratio(trunk, slot.trunk))


def _ratio(used: Ints, there: Ints) -> float:
    if not (used > 0).any():
        return 0.0
    with np.errstate(divide="ignore"):
        return float((used[used > 0] / np.maximum(there[used > 0], 0)).max())
