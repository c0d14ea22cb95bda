"""Arrays of a slot that the kernels change in place: what is free, and the rings that use the rest."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tradewind.model.arrays import Bytes, Floats, Ints
from tradewind.systems.gadget.kernels.price import Scratch, make_scratch
from tradewind.systems.gadget.kernels.slot import Capacity, Rings, Slot

TIE = 1e-9
"""Weight of leaving little room behind against prices of the size of 1."""


class Demand(NamedTuple):
    """What the jobs of a slot ask for.

    need, band, gain, open  as in `Slot`
    weight  (I,) what a worker counts for in greedy: the sum of its shares of all resources
    last    (I, N) servers where the job ran before, -1 where unused
    stay    by how much these servers look cheaper than they are
    pinned  (I,) 1 for a job that may run on exactly these servers and nowhere else
    """

    need: Ints
    band: Ints
    gain: Floats
    open: Bytes
    weight: Floats
    last: Ints
    stay: float
    pinned: Bytes


class State(NamedTuple):
    """A packing under way. `free` is always what `rings` leave of the slot.

    window  racks that searches look at
    tie     (1,) weight of the room that a server has left
    """

    demand: Demand
    free: Capacity
    rings: Rings
    scratch: Scratch
    window: Ints
    tie: Floats


def demand_of(slot: Slot, last: Ints | None = None, stay: float = 0.0) -> Demand:
    """The jobs' side of a slot; no job is pinned."""
    share: Floats = (slot.need / np.maximum(slot.room.sum(0), 1)).sum(1)
    return Demand(
        need=slot.need,
        band=slot.band,
        gain=slot.gain,
        open=slot.open,
        weight=np.maximum(share, 1e-12),
        last=np.full((slot.jobs, 1), -1, np.int64) if last is None else last,
        stay=stay,
        pinned=np.zeros(slot.jobs, np.int8),
    )


def scratch_of(slot: Slot) -> Scratch:
    """Tables for a slot; states of the same slot may share them."""
    scratch: Scratch = make_scratch(slot.servers, len(slot.trunk), slot.widest)
    return scratch


def state_of(slot: Slot, rings: Rings, demand: Demand, scratch: Scratch) -> State:
    """A state with copies of `rings`; their capacity is not reserved yet."""
    return State(
        demand=demand,
        free=Capacity(slot.room.copy(), slot.link.copy(), slot.first, slot.trunk.copy()),
        rings=Rings(rings.server.copy(), rings.workers.copy(), rings.size.copy()),
        scratch=scratch,
        window=np.arange(len(slot.trunk)),
        tie=np.array([TIE]),
    )
