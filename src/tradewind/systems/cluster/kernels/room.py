"""Room on hosts, counted in units of one kind: which host to take, in a time that hardly grows with their number.

The same choice as `shared/units.py`: the host on which a job leaves the least room, the first of equals; where no host
holds it, the hosts with most room, and last the one that fits most tightly.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tradewind.model.arrays import Ints
from tradewind.solvers.kernel import kernel

BITS = 64
_TURN = np.uint64(0x03F79D71B4CB0A89)
_PLACE = np.zeros(BITS, np.int64)
for _bit in range(BITS):
    _PLACE[(((1 << _bit) * 0x03F79D71B4CB0A89) & (2**64 - 1)) >> 58] = _bit

Bits = NDArray[np.uint64]


class Room(NamedTuple):
    """Hosts by free units. Bit h of row f of `low` is set where host h has f units free; a bit of `middle` stands for a
    word of `low` that is not 0, and a bit of `high` for a word of `middle`.
    """

    free: Ints
    """(H,) units free."""
    hosts: Ints
    """(F,) hosts with so many free units."""
    low: Bits
    middle: Bits
    high: Bits


def empty_room(capacity: Ints) -> Room:
    """Room of hosts with these units (H,), all free."""
    levels, sizes, size = int(capacity.max()) + 1, [], len(capacity)
    for _ in range(3):
        size = -(-size // BITS)
        sizes.append(size)
    room = Room(
        np.full(len(capacity), -1, np.int64), np.zeros(levels, np.int64),
        *(np.zeros((levels, size), np.uint64) for size in sizes),
    )  # fmt: skip
    fill(room, capacity)
    return room


@kernel
def fill(room: Room, capacity: Ints) -> None:
    """Enter hosts that are in no row yet."""
    for h in range(capacity.shape[0]):
        set_free(room, h, capacity[h])


@kernel
def set_free(room: Room, h: int, units: int) -> None:
    """Move a host to the row of its free units."""
    one, before = np.uint64(1), room.free[h]
    a, b, c = h >> 6, h >> 12, h >> 18
    if before >= 0:
        room.hosts[before] -= 1
        room.low[before, a] &= ~(one << np.uint64(h & 63))
        if room.low[before, a] == 0:
            room.middle[before, b] &= ~(one << np.uint64(a & 63))
            if room.middle[before, b] == 0:
                room.high[before, c] &= ~(one << np.uint64(b & 63))
    room.free[h] = units
    room.hosts[units] += 1
    room.low[units, a] |= one << np.uint64(h & 63)
    room.middle[units, b] |= one << np.uint64(a & 63)
    room.high[units, c] |= one << np.uint64(b & 63)


@kernel
def _lowest(word: np.uint64) -> int:
    """Number of the lowest bit that is set."""
    alone = word & (~word + np.uint64(1))
    return int(_PLACE[(alone * _TURN) >> np.uint64(58)])


@kernel
def first_host(room: Room, units: int) -> int:
    """The first host with exactly so many free units; there is one."""
    c = 0
    while room.high[units, c] == 0:
        c += 1
    b = (c << 6) + _lowest(room.high[units, c])
    a = (b << 6) + _lowest(room.middle[units, b])
    return (a << 6) + _lowest(room.low[units, a])


@kernel
def choose_host(room: Room, need: int) -> int:
    """The next host for a job of which `need` units are not placed; fewer than that many may fit there."""
    widest = room.hosts.shape[0] - 1
    for units in range(min(need, widest), widest + 1):
        if room.hosts[units] > 0:
            return first_host(room, units)
    units = widest
    while room.hosts[units] == 0:
        units -= 1
    return first_host(room, units)
